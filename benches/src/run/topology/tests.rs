use super::*;
use std::fs;
use std::path::PathBuf;

/// A made-up sysfs, which goes when it is dropped.
pub struct Sysfs(PathBuf);

impl Sysfs {
    /// Without CPUs or nodes. `name` is that of the test.
    pub fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("ulocks-sysfs-{}-{name}", std::process::id()));
        fs::create_dir_all(folder.join("cpu")).unwrap();
        Self(folder)
    }

    /// With a CPU that is online.
    pub fn cpu(self, id: usize, package: usize, core: usize) -> Self {
        let files = [("physical_package_id", package), ("core_id", core), ("die_id", 0)];
        for (name, value) in files {
            self.write(&format!("cpu/cpu{id}/topology/{name}"), &value.to_string());
        }
        self
    }

    /// With a node. Its CPUs are in the form that the kernel has for them.
    pub fn node(self, node: usize, cpus: &str) -> Self {
        self.write(&format!("node/node{node}/cpulist"), cpus);
        self
    }

    /// With another file.
    pub fn file(self, path: &str, text: &str) -> Self {
        self.write(path, text);
        self
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    /// The CPUs with these ids.
    pub fn read(&self, ids: &[usize]) -> Vec<Cpu> {
        read(&self.0, ids).unwrap()
    }
}

impl Drop for Sysfs {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Two packages of two nodes (sub-NUMA clustering), each of two cores with two siblings. The
/// numbers are Linux's: siblings in the upper half.
pub fn clustered(name: &str) -> Vec<Cpu> {
    let mut sysfs = Sysfs::new(name);
    for id in 0..16 {
        sysfs = sysfs.cpu(id, id % 8 / 4, id % 4);
    }
    for node in 0..4 {
        let first = 2 * node;
        sysfs = sysfs.node(node, &format!("{first}-{},{}-{}", first + 1, first + 8, first + 9));
    }
    sysfs.read(&Vec::from_iter(0..16))
}

#[test]
fn lists_are_those_of_the_kernel() {
    assert_eq!(list("0-3,8,10-11"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
    assert_eq!(list(""), Some(vec![]));
    assert_eq!(list("0-x"), None);
}

#[test]
fn nodes_may_be_parts_of_packages() {
    let cpus = clustered("parts");
    assert_eq!(Counts::of(&cpus), Counts { nodes: 4, packages: 2, cores: 8, siblings: 2 });
    assert_eq!((cpus[3].domain(), cpus[11].domain(), cpus[12].domain()), ((0, 1), (0, 1), (1, 2)));
    assert_eq!(cpus[3].core, cpus[11].core);
    let text = Counts::of(&cpus).to_string();
    assert_eq!(text, "2 packages, 4 NUMA nodes, 8 cores of 2 threads");
}

#[test]
fn a_machine_without_nodes_has_one() {
    let sysfs = Sysfs::new("none").cpu(0, 0, 0).cpu(1, 1, 0);
    let cpus = sysfs.read(&[0, 1]);
    assert_eq!(Counts::of(&cpus), Counts { nodes: 1, packages: 2, cores: 2, siblings: 1 });
}

#[test]
fn a_machine_that_tells_nothing_has_a_core_for_each_cpu() {
    let cpus = Sysfs::new("nothing").read(&[0, 1, 5]);
    assert_eq!(Counts::of(&cpus), Counts { nodes: 1, packages: 1, cores: 3, siblings: 1 });
}

#[test]
fn nodes_without_cpus_and_files_beside_the_nodes_do_not_count() {
    let sysfs = Sysfs::new("memory")
        .cpu(0, 0, 0)
        .cpu(1, 0, 1)
        .node(0, "0-1")
        .node(2, "")
        .file("node/possible", "0-2")
        .file("node/has_cpu", "0");
    assert_eq!(Counts::of(&sysfs.read(&[0, 1])).nodes, 1);
}

/// CPUs 1 and 4 are offline: they have a folder without `topology`, and no node has them.
#[test]
fn offline_cpus_and_holes_in_the_ids_are_passed_over() {
    let mut sysfs = Sysfs::new("holes").node(0, "0,2").node(1, "8-9").file("cpu/cpu1/online", "0");
    for (id, package) in [(0, 0), (2, 0), (8, 1), (9, 1)] {
        sysfs = sysfs.cpu(id, package, id);
    }
    let cpus = sysfs.read(&[0, 2, 8, 9]);
    assert_eq!(cpus.iter().map(|cpu| cpu.node).collect::<Vec<_>>(), [0, 0, 1, 1]);
    assert_eq!(Counts::of(&cpus), Counts { nodes: 2, packages: 2, cores: 4, siblings: 1 });
}

#[test]
fn an_unreadable_list_of_cpus_is_an_error() {
    let sysfs = Sysfs::new("garbled").cpu(0, 0, 0).node(0, "all of them");
    let error = read(&sysfs.0, &[0]).unwrap_err().to_string();
    assert!(error.contains("node0/cpulist is no list of CPUs: all of them"), "{error}");
}

#[test]
fn this_machine_has_some_of_everything() {
    let ids = crate::run::pinning::allowed().unwrap();
    let counts = Counts::of(&read(Path::new(SYSFS), &ids).unwrap());
    let Counts { nodes, packages, cores, siblings } = counts;
    assert!(nodes >= 1 && packages >= 1 && cores >= packages && siblings * cores >= ids.len(), "{counts}");
}
