//! Packs test programs, the libraries that they need, and a first process into an image that the
//! kernel unpacks into memory.

use super::kernel::Kernel;
use super::plan::Plan;
use super::spec::{Arch, Machine};
use anyhow::{Context, ensure};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use xtask::programs::Program;
use xtask::tools::{Missing, need};
use xtask::workspace::Workspace;

/// The first process.
const INIT: &str = include_str!("init.sh");
/// What runs the tests.
const WORKER: &str = include_str!("worker.sh");
/// How many tests run at once. Many of them sleep for most of their time.
const WORKERS: usize = 4;
/// The program of the test kit that runs others under a profile of Docker.
const CONFINED: &str = "ulocks-confined";

/// Demands what packs images for `arch`.
pub fn needs(arch: &Arch) -> Result<(), Missing> {
    need("cpio", "apt-get install cpio", &["cpio", "--version"])?;
    for tool in ["gcc", "readelf", "strip"] {
        let (_, package) = arch.gnu;
        need(
            "the compiler of the processor",
            format!("apt-get install {package}"),
            &[&gnu(arch, tool), "--version"],
        )?;
    }
    Ok(())
}

fn gnu(arch: &Arch, tool: &str) -> String {
    format!("{}-{tool}", arch.gnu.0)
}

/// The name of a program in the image, and on the serial line.
pub fn name(program: &Program) -> String {
    format!("{}-{}", program.package, program.target)
}

/// Packs `programs` for all machines of this processor and C library.
pub fn programs(
    (arch, name_of_work): (&Arch, &str),
    programs: &[Program],
    workspace: &Workspace,
) -> anyhow::Result<PathBuf> {
    let work = workspace.target().join("machines").join(name_of_work);
    let root = work.join("root");
    _ = fs::remove_dir_all(&root);
    fs::create_dir_all(root.join("tests"))?;
    let mut libraries = BTreeSet::new();
    for program in programs {
        pack(arch, &program.path, &root.join("tests").join(name(program)), &mut libraries)?;
        fs::create_dir_all(below(&root, program.dir()))?;
        // The programs of the package, which its tests run by their paths.
        let package = workspace.packages.iter().find(|package| package.name == program.package);
        let built = program.path.ancestors().nth(2).context("a program without a directory")?;
        for bin in package.into_iter().flat_map(|package| package.bins()) {
            let path = built.join(&bin);
            if path.exists() && !below(&root, &path).exists() {
                fs::create_dir_all(below(&root, built))?;
                pack(arch, &path, &below(&root, &path), &mut libraries)?;
                if bin == CONFINED {
                    fs::copy(below(&root, &path), root.join("tests").join(CONFINED))?;
                }
            }
        }
    }
    let names: Vec<_> = libraries.iter().map(|(_, to)| format!("{}\n", to.display())).collect();
    fs::write(work.join("libraries"), names.concat())?;
    for (from, to) in libraries {
        let to = below(&root, &to);
        fs::create_dir_all(to.parent().context("a library without a directory")?)?;
        fs::copy(&from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    }
    let image = work.join("programs.cpio");
    cpio(&root, &image)?;
    fs::remove_dir_all(&root)?;
    Ok(image)
}

/// `path` in the root of the guest.
fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Copies a program without its debug information, and adds the libraries that it needs.
fn pack(
    arch: &Arch,
    from: &Path,
    to: &Path,
    libraries: &mut BTreeSet<(PathBuf, PathBuf)>,
) -> anyhow::Result<()> {
    read(Command::new(gnu(arch, "strip")).arg("-g").arg("-o").arg(to).arg(from))?;
    let said = read(Command::new(gnu(arch, "readelf")).args(["-lW", "-dW"]).arg(to))?;
    let (interpreter, needed) = needs_of(&said);
    for library in needed.iter().map(String::as_str).chain(interpreter.as_deref()) {
        let name = library.rsplit('/').next().unwrap_or(library);
        let found = read(Command::new(gnu(arch, "gcc")).arg(format!("-print-file-name={name}")))?;
        let found = PathBuf::from(found.trim());
        ensure!(found.is_absolute(), "{} needs {name}, which the compiler does not find", from.display());
        let to = if library.starts_with('/') { library.into() } else { Path::new("/lib").join(name) };
        libraries.insert((found, to));
    }
    Ok(())
}

/// The program interpreter and the libraries, in what readelf says.
fn needs_of(said: &str) -> (Option<String>, Vec<String>) {
    let between = |line: &str, from: &str, to: char| {
        let rest = line.split_once(from)?.1;
        Some(rest.split_once(to)?.0.trim().to_owned())
    };
    let interpreter = said.lines().find_map(|line| between(line, "program interpreter:", ']'));
    let needed = said.lines().filter(|line| line.contains("(NEEDED)"));
    (interpreter, needed.filter_map(|line| between(line, "[", ']')).collect())
}

/// The image of one machine: the programs, the first process and the plan.
pub fn machine(
    machine: &Machine,
    plan: &Plan,
    programs: &Path,
    kernel: &Kernel,
    dir: &Path,
) -> anyhow::Result<PathBuf> {
    let root = dir.join("root");
    _ = fs::remove_dir_all(&root);
    fs::create_dir_all(root.join("plan"))?;
    fs::create_dir_all(root.join("bin"))?;
    fs::copy(&kernel.busybox, root.join("bin/busybox"))?;
    if let Some(libraries) = &kernel.libraries {
        // They replace those of the same names.
        let list = programs.with_file_name("libraries");
        for to in fs::read_to_string(list)?.lines().map(Path::new) {
            let name = to.file_name().context("a library without a name")?;
            fs::create_dir_all(below(&root, to.parent().context("a library without a directory")?))?;
            fs::copy(libraries.join(name), below(&root, to))
                .with_context(|| format!("the suite has no {}", name.display()))?;
        }
    }
    fs::write(root.join("plan/tests"), plan.list())?;
    fs::write(root.join("plan/settings"), settings(machine, plan.limit))?;
    fs::write(root.join("plan/worker.sh"), WORKER)?;
    fs::write(root.join("init"), INIT)?;
    for file in ["init", "bin/busybox"] {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(root.join(file), fs::Permissions::from_mode(0o755))?;
    }
    let (image, own) = (dir.join("image.cpio"), dir.join("own.cpio"));
    cpio(&root, &own)?;
    // The kernel unpacks one archive after the other.
    let mut joined = File::create(&image)?;
    for part in [programs, &own] {
        io::copy(&mut File::open(part)?, &mut joined)?;
    }
    Ok(image)
}

/// What the first process reads. The watchdogs of the tests come before the limit.
fn settings(machine: &Machine, limit: u64) -> String {
    let (under, patience) = (machine.under.name(), limit * 2 / 3);
    format!("WORKERS={WORKERS}\nUNDER={under}\nexport ULOCKS_PATIENCE={patience}\n")
}

fn cpio(root: &Path, image: &Path) -> anyhow::Result<()> {
    let mut find = Command::new("find").arg(".").current_dir(root).stdout(Stdio::piped()).spawn()?;
    let names = find.stdout.take().context("its output is piped")?;
    let mut cpio = Command::new("cpio");
    cpio.args(["--quiet", "-o", "-H", "newc"]).current_dir(root).stdin(names).stdout(File::create(image)?);
    let (packed, found) = (cpio.status()?, find.wait()?);
    ensure!(packed.success() && found.success(), "cpio: {packed}, find: {found}");
    Ok(())
}

fn read(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("cannot run {:?}", command.get_program()))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_needs_of_a_program_are_read_from_readelf() {
        let said = "      [Requesting program interpreter: /lib64/ld-linux-x86-64.so.2]\n\
                    0x1 (NEEDED)             Shared library: [libgcc_s.so.1]\n\
                    0x1 (NEEDED)             Shared library: [libc.so.6]\n\
                    0xe (SONAME)             Library soname: [x.so]\n";
        let (interpreter, needed) = needs_of(said);
        assert_eq!(interpreter.as_deref(), Some("/lib64/ld-linux-x86-64.so.2"));
        assert_eq!(needed, ["libgcc_s.so.1", "libc.so.6"]);
        assert_eq!(needs_of("There is no dynamic section in this file.\n"), (None, vec![]));
    }

    #[test]
    fn a_missing_compiler_is_named_with_its_package() {
        let arch = Arch { gnu: ("no-such-processor", "gcc-none"), ..super::super::spec::ARCHES[1] };
        let missing = needs(&arch).unwrap_err().to_string();
        assert!(missing.contains("apt-get install"), "{missing}");
    }

    #[test]
    fn a_test_that_says_what_it_has_not_tested_is_told_with_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("run");
        fs::create_dir(&run).unwrap();
        fs::write(dir.path().join("program"), "echo 'test a ... not tested: no root'\necho ok\n").unwrap();
        fs::write(dir.path().join("plan"), "60 / program a\n").unwrap();
        let mut worker = Command::new("sh");
        worker.args(["-c", &format!("{WORKER}\nrun 2>/dev/null")]).env("LAUNCH", "sh").env("WORKERS", "1");
        worker.env("PLAN", dir.path().join("plan")).env("TESTS", dir.path()).env("RUN", &run);
        let said = read(&mut worker).unwrap();
        assert_eq!(said, "@start 0 program a\n@out 0 not tested: no root\n@end 0 0\n");
    }

    #[test]
    fn the_first_process_tells_what_the_parser_reads() {
        for word in ["@boot ", "@start ", "@out ", "@end ", "@under ", "@done"] {
            assert!([INIT, WORKER].concat().contains(&format!("echo \"{word}")), "{word}");
        }
        for under in ["offline", "half-cpu", "docker-*"] {
            assert!(INIT.contains(&format!("{under})")));
        }
        let offline: Machine = toml::from_str("kernel = 'sid'\ncpus = 2\nunder = 'offline'").unwrap();
        assert_eq!(settings(&offline, 90), "WORKERS=4\nUNDER=offline\nexport ULOCKS_PATIENCE=60\n");
    }
}
