//! The copy of the workspace that mutants are planted in.

use super::plant::Plan;
use anyhow::{Context, bail};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::workspace::Workspace;

/// The copy, and the folder that it is in.
pub struct Scratch<'a> {
    /// What is copied.
    pub workspace: &'a Workspace,
    /// The folder with the copy and its build outputs.
    pub base: PathBuf,
    /// The copy.
    pub source: PathBuf,
    /// Locked while it is open, so that two commands do not change one copy.
    _lock: File,
}

impl<'a> Scratch<'a> {
    /// The copy of `workspace`, as the last run has left it.
    pub fn open(workspace: &'a Workspace) -> anyhow::Result<Self> {
        let base = workspace.target().join("mutants");
        fs::create_dir_all(base.join("source"))?;
        let lock = File::create(base.join("lock"))?;
        lock.try_lock().with_context(|| format!("another run of this command is in {}", base.display()))?;
        Ok(Self::at(workspace, base, lock))
    }

    /// The copy in `base`. `lock` keeps other commands out of `base`.
    pub fn at(workspace: &'a Workspace, base: PathBuf, lock: File) -> Self {
        Self { workspace, source: base.join("source"), base, _lock: lock }
    }

    /// Makes the copy equal to the workspace with `plan` carried out.
    pub fn renew(&self, plan: &Plan) -> anyhow::Result<()> {
        let root = &self.workspace.root;
        let mut kept = git_files(root)?;
        for path in
            kept.iter().filter(|path| !path.to_str().is_some_and(|path| plan.files.contains_key(path)))
        {
            let from = root.join(path);
            let content = fs::read(&from).with_context(|| format!("cannot read {}", from.display()))?;
            renew_file(&content, &self.source.join(path))?;
        }
        for (path, planted) in &plan.files {
            renew_file(planted.text.as_bytes(), &self.source.join(path))?;
            kept.insert(path.into());
        }
        remove_others(&self.source, &self.source, &kept)
    }
}

/// The files of the repository at `root`, as they are in the working tree.
pub fn git_files(root: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
    let args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let printed = Command::new("git").args(args).current_dir(root).output().context("git")?;
    if !printed.status.success() {
        bail!("git ls-files: {}", String::from_utf8_lossy(&printed.stderr));
    }
    let paths = String::from_utf8(printed.stdout)?;
    Ok(paths.split_terminator('\0').map(PathBuf::from).filter(|path| root.join(path).is_file()).collect())
}

/// Writes `content` to `to`, unless `to` has it already. So cargo rebuilds only what has changed.
pub fn renew_file(content: &[u8], to: &Path) -> anyhow::Result<()> {
    if fs::read(to).is_ok_and(|old| old == content) {
        return Ok(());
    }
    if let Some(dir) = to.parent() {
        fs::create_dir_all(dir)?;
    }
    fs::write(to, content).with_context(|| format!("cannot write {}", to.display()))
}

/// Removes what is under `dir` and not among `kept`, which are relative to `root`.
pub fn remove_others(dir: &Path, root: &Path, kept: &BTreeSet<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(&path, root, kept)?;
        } else if !kept.contains(path.strip_prefix(root)?) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}
