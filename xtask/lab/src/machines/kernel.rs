//! Fetches a Debian kernel and a static busybox with apt, and keeps them outside of the
//! repository.
//!
//! apt gets a root of its own with one source: a suite on the mirror that this machine already
//! uses. Nothing is installed.

use super::spec::{Libc, Machine};
use anyhow::{Context, bail};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::tools::{Missing, need};

/// What is kept of a kernel.
const FILES: [&str; 3] = ["vmlinuz", "busybox", "release"];
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A kernel, and the shell of its guest.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The image that QEMU boots.
    pub image: PathBuf,
    /// busybox.
    pub busybox: PathBuf,
    /// Its version.
    pub version: (u32, u32),
    /// The directory of the C library of its suite, if the machine has that.
    pub libraries: Option<PathBuf>,
}

/// Demands what fetches kernels.
pub fn needs() -> Result<(), Missing> {
    for tool in ["apt-get", "dpkg-deb"] {
        need(tool, "a machine with Debian, for its kernels", &[tool, "--version"])?;
    }
    need("debian-archive-keyring", "apt-get install debian-archive-keyring", &["test", "-r", KEYS])
}

/// Where kernels are kept.
pub fn cache() -> anyhow::Result<PathBuf> {
    let base = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let base = base.or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cache")));
    Ok(base.context("neither XDG_CACHE_HOME nor HOME is set")?.join("ulocks-machines"))
}

/// The kernel of `machine`, from the cache or from the mirror.
pub fn get(machine: &Machine) -> anyhow::Result<Kernel> {
    let dir = cache()?.join(format!("{}-{}", machine.kernel, machine.arch().debian));
    if !FILES.iter().all(|file| dir.join(file).exists()) {
        needs()?;
        let work = dir.with_extension("part");
        let fetched = fetch(machine, &work).and_then(|()| {
            fs::create_dir_all(&dir)?;
            for file in FILES {
                fs::copy(work.join(file), dir.join(file))?;
            }
            Ok(())
        });
        _ = fs::remove_dir_all(&work);
        fetched.with_context(|| format!("the kernel of {} cannot be had", machine.kernel))?;
        println!("kept: {}; to have a newer one, remove that directory", dir.display());
    }
    let release = fs::read_to_string(dir.join("release"))?;
    let version = version(&release).with_context(|| format!("{release}: no version of a kernel"))?;
    let libraries = match machine.libc {
        Libc::Suite => Some(libraries(machine)?),
        Libc::Gnu | Libc::Musl => None,
    };
    Ok(Kernel { image: dir.join("vmlinuz"), busybox: dir.join("busybox"), version, libraries })
}

/// The first two numbers of a release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.trim().split(['.', '-', '+']);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Puts [`FILES`] into `work`.
fn fetch(machine: &Machine, work: &Path) -> anyhow::Result<()> {
    let apt = Apt::new(machine.arch().debian, machine.suite(), work)?;
    let rt = if machine.is_rt() { "rt-" } else { "" };
    let flavour = format!("{rt}{}", machine.arch().debian);
    let meta = format!("linux-image-{flavour}");
    println!("-- fetching {meta} of {}", machine.suite());
    apt.run("apt-get", &["-qq", "update"])?;
    let depends = apt.run("apt-cache", &["depends", &meta])?;
    let image = image_package(&depends, "linux-image-")
        .with_context(|| format!("{} has no package {meta}", machine.suite()))?;
    // Since 2026 the image is in a package of its own, which the package of the image needs.
    let parts = apt.run("apt-cache", &["depends", &image])?;
    let release = image.trim_start_matches("linux-image-");
    fs::write(work.join("release"), release)?;
    let image = image_package(&parts, "linux-binary-").unwrap_or_else(|| image.clone());
    apt.unpack(&[&image, "busybox-static"])?;
    let found = find(&work.join("root"), &|name| name.starts_with("vmlinu"));
    fs::rename(found.context("the package has no kernel image")?, work.join("vmlinuz"))?;
    let found = find(&work.join("root"), &|name| name == "busybox");
    fs::rename(found.context("the package has no busybox")?, work.join("busybox"))?;
    Ok(())
}

/// The directory with the C library of the suite, from the cache or from the mirror.
fn libraries(machine: &Machine) -> anyhow::Result<PathBuf> {
    let dir = cache()?.join(format!("{}-{}-libraries", machine.suite(), machine.arch().debian));
    if !dir.exists() {
        needs()?;
        let work = dir.with_extension("part");
        println!("-- fetching libc6 of {}", machine.suite());
        let apt = Apt::new(machine.arch().debian, machine.suite(), &work)?;
        apt.run("apt-get", &["-qq", "update"])?;
        apt.unpack(&["libc6", "libgcc-s1"])?;
        let found = find(&work.join("root"), &|name| name == "libc.so.6");
        let found = found.context("the package has no C library")?;
        let from = found.parent().context("a library without a directory")?;
        let other = find(&work.join("root"), &|name| name == "libgcc_s.so.1");
        fs::rename(other.context("the package has no libgcc_s")?, from.join("libgcc_s.so.1"))?;
        fs::rename(from, &dir)?;
        fs::remove_dir_all(&work)?;
    }
    Ok(dir)
}

/// The first package whose name begins with `prefix` and a number, in what `apt-cache depends`
/// says.
fn image_package(depends: &str, prefix: &str) -> Option<String> {
    let packages = depends.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    let mut names = packages.map(|name| name.split(':').next().unwrap_or(name));
    let is_versioned = |name: &str| {
        name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    names.find(|name| is_versioned(name)).map(str::to_owned)
}

/// The first file below `dir` whose name is as `is_it` says.
fn find(dir: &Path, is_it: &dyn Fn(&str) -> bool) -> Option<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(dir).ok()?.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        let is_file = path.symlink_metadata().is_ok_and(|data| data.is_file());
        let is_found = is_file && path.file_name().is_some_and(|name| is_it(&name.to_string_lossy()));
        let below = if path.is_symlink() { None } else { find(&path, is_it) };
        if let Some(found) = is_found.then_some(path).or(below) {
            return Some(found);
        }
    }
    None
}

/// apt with a root of its own.
struct Apt {
    work: PathBuf,
    options: Vec<String>,
}

impl Apt {
    fn new(arch: &str, suite: &str, work: &Path) -> anyhow::Result<Self> {
        _ = fs::remove_dir_all(work);
        for dir in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(work.join(dir))?;
        }
        let mirror = mirror()?;
        let source = format!("deb [signed-by={KEYS}] {mirror} {suite} main\n");
        fs::write(work.join("sources.list"), source)?;
        let at = |path: &str| work.join(path).display().to_string();
        let settings = [
            format!("APT::Architecture={arch}"),
            format!("APT::Architectures={arch}"),
            format!("Dir::Etc::sourcelist={}", at("sources.list")),
            "Dir::Etc::sourceparts=-".into(),
            "Dir::State::status=/dev/null".into(),
            format!("Dir::State::lists={}", at("lists")),
            format!("Dir::Cache={}", at("cache")),
            "Acquire::Languages=none".into(),
            "APT::Sandbox::User=root".into(),
        ];
        let options = settings.into_iter().flat_map(|setting| ["-o".to_owned(), setting]).collect();
        Ok(Self { work: work.to_owned(), options })
    }

    /// Fetches `packages`, and puts their files below `root` of the directory.
    fn unpack(&self, packages: &[&str]) -> anyhow::Result<()> {
        self.run("apt-get", &[&["-qq", "download"], packages].concat())?;
        for entry in fs::read_dir(&self.work)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "deb") {
                run(Command::new("dpkg-deb").arg("-x").arg(&path).arg(self.work.join("root")))?;
            }
        }
        Ok(())
    }

    /// Runs a tool of apt.
    fn run(&self, tool: &str, args: &[&str]) -> anyhow::Result<String> {
        run(Command::new(tool).args(&self.options).args(args).current_dir(&self.work))
    }
}

/// The Debian mirror that this machine's apt uses.
fn mirror() -> anyhow::Result<String> {
    let format = "$(LABEL)|$(REPO_URI)";
    let known = run(Command::new("apt-get").args(["indextargets", "--format", format]))?;
    let found = known.lines().find_map(|line| line.strip_prefix("Debian|"));
    found.map(str::to_owned).context("apt knows no mirror of Debian; `apt-get update` may help")
}

/// Runs `command`, and returns what it prints.
fn run(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("cannot run {:?}", command.get_program()))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("{:?}: {}: {}", command.get_program(), output.status, errors.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_is_found_among_the_dependencies() {
        let meta =
            "linux-image-amd64\n  Depends: linux-base-amd64\n  Depends: linux-image-7.2.13+deb14-amd64\n";
        assert_eq!(image_package(meta, "linux-image-").as_deref(), Some("linux-image-7.2.13+deb14-amd64"));
        assert_eq!(image_package(meta, "linux-binary-"), None);
        let foreign = "  Depends: linux-image-6.1.0-50-arm64:arm64\n";
        assert_eq!(image_package(foreign, "linux-image-").as_deref(), Some("linux-image-6.1.0-50-arm64"));
        assert_eq!(image_package("  Suggests: linux-image-6.1\n", "linux-image-"), None);
    }

    #[test]
    fn the_version_is_read_from_the_release() {
        assert_eq!(version("5.10.0-32-amd64\n"), Some((5, 10)));
        assert_eq!(version("7.2.13+deb14-rt-amd64"), Some((7, 2)));
        assert_eq!(version("amd64"), None);
    }

    #[test]
    fn a_refusal_is_passed_on_in_the_words_of_the_tool() {
        let error =
            run(Command::new("sh").args(["-c", "echo 'Could not connect' >&2; exit 100"])).unwrap_err();
        assert!(error.to_string().contains("Could not connect"), "{error}");
        assert!(run(&mut Command::new("no-such-program-here")).is_err());
    }
}
