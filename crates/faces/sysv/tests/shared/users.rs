//! What other users may do: nothing to a directory of one user, and what its owner lets them in a
//! directory that is shared.

use crate::common::{Arrays, compile, folder, preloaded};
use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown, symlink};
use std::path::{Path, PathBuf};

/// Users that have no processes and no files.
const FIRST: u32 = 54_331;
const SECOND: u32 = 54_332;

/// The default directory of a user, removed when dropped.
struct OwnFolder(PathBuf);

impl OwnFolder {
    fn of(user: u32) -> Self {
        let default = Self(format!("/dev/shm/ulocks-sysv-{user}").into());
        default.remove();
        default
    }

    fn remove(&self) {
        let _ = fs::remove_dir_all(&self.0);
        let _ = fs::remove_file(&self.0);
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Whether this test can become other users, and has the directory of all shared memory.
fn can_change_users() -> bool {
    // SAFETY: the call takes nothing and cannot fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    let is_possible = is_root && Path::new("/dev/shm").is_dir();
    if !is_possible {
        println!("not tested: this takes root, two users and /dev/shm");
    }
    is_possible
}

/// What the program prints and complains about, in the directory or, without one, the default.
fn run(name: &str, arrays: Option<&Arrays>, arguments: &[&str]) -> (String, String) {
    let program = compile(&folder(&format!("users-{name}")), &["shared/users.c"]);
    let none = Arrays::new("none");
    let mut command = preloaded(&program, arrays.unwrap_or(&none), true);
    if arrays.is_none() {
        command.env_remove("ULOCKS_SYSV_DIR");
    }
    let output = command.args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (out, complaint) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{arguments:?}: {}: {out}{complaint}", output.status);
    (out, complaint)
}

#[test]
fn the_default_directory_is_closed_to_other_users() {
    if !can_change_users() {
        return;
    }
    let default = OwnFolder::of(FIRST);
    let users = [FIRST.to_string(), SECOND.to_string()];
    let registry = default.0.join("registry").display().to_string();
    let (out, complaint) = run("default", None, &["default", &users[0], &users[1], &registry]);
    assert_eq!(out, "made 0\nopen 13\ntruncate 13\nunlink 13\n", "{complaint}");
    assert_eq!(complaint, "");
    let (folder, registry) = (fs::metadata(&default.0).unwrap(), fs::metadata(&registry).unwrap());
    assert_eq!((folder.uid(), folder.mode() & 0o7777), (FIRST, 0o700));
    assert_eq!((registry.uid(), registry.mode() & 0o7777), (FIRST, 0o600));
}

/// The user gets the kernel's semaphores, and a line.
#[test]
fn a_default_directory_that_another_user_has_made_is_refused() {
    if !can_change_users() {
        return;
    }
    let (default, elsewhere) = (OwnFolder::of(FIRST), OwnFolder::of(SECOND));
    let own = || {
        fs::create_dir(&elsewhere.0).unwrap();
        chown(&elsewhere.0, Some(FIRST), None).unwrap();
        fs::set_permissions(&elsewhere.0, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    };
    let cases: [(&str, &dyn Fn()); 3] = [
        ("another user's", &|| {
            fs::DirBuilder::new().mode(0o700).create(&default.0).unwrap();
            chown(&default.0, Some(SECOND), None).unwrap();
        }),
        ("open to all", &|| {
            fs::create_dir(&default.0).unwrap();
            fs::set_permissions(&default.0, std::os::unix::fs::PermissionsExt::from_mode(0o1777)).unwrap();
            chown(&default.0, Some(FIRST), None).unwrap();
        }),
        ("a symbolic link", &|| {
            own();
            symlink(&elsewhere.0, &default.0).unwrap();
        }),
    ];
    for (what, prepare) in cases {
        default.remove();
        elsewhere.remove();
        prepare();
        let (out, complaint) = run("squatted", None, &["kernel", &FIRST.to_string()]);
        assert_eq!(out, "made by the kernel\n", "{what}: {complaint}");
        let expected =
            "is not a folder that its user alone may use; the program runs on the kernel's semaphores";
        assert!(complaint.contains(expected), "{what}: {complaint}");
        assert!(!default.0.join("registry").exists(), "{what}");
    }
}

#[test]
fn a_directory_that_is_made_for_all_users_is_shared_by_the_bits_of_an_array() {
    if !can_change_users() {
        return;
    }
    let arrays = Arrays::new("shared-by-users");
    arrays.let_in_all_users();
    let users = [FIRST.to_string(), SECOND.to_string()];
    let (out, complaint) = run("shared", Some(&arrays), &["shared", &users[0], &users[1]]);
    assert_eq!(out, "0666: semget 0, semop 0\n0600: semget 13, semop 13\n", "{complaint}");
    assert_eq!(fs::metadata(arrays.0.join("registry")).unwrap().mode() & 0o777, 0o666);
}

/// The owner of an array cuts it off below another user that may use it; so may everybody who may
/// use the directory do with the registry.
#[test]
fn a_user_that_truncates_a_shared_file_does_not_kill_the_others() {
    if !can_change_users() {
        return;
    }
    let users = [FIRST.to_string(), SECOND.to_string()];
    for name in ["sem.0000000000", "registry"] {
        let arrays = Arrays::new("truncated-by-another");
        arrays.let_in_all_users();
        let file = arrays.0.join(name).display().to_string();
        let (out, complaint) = run("cut", Some(&arrays), &["cut", &users[0], &users[1], &file]);
        assert_eq!(out, "before 0\nafter 5\n", "{name}");
        assert!(complaint.contains("is damaged or of another version"), "{name}: {complaint}");
    }
}
