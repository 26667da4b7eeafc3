//! Compiles and runs programs in C and C++ against the header, with the shared and with the static
//! library.
//!
//! A program of `tests/programs` checks each result, and that no call changes `errno`.

mod harness;

use harness::{Linked, compile, directory, package, run, run_both};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use ulocks_testkit::limit::output;

/// A test for each program.
macro_rules! programs {
    ($($name:ident: $source:literal, $standard:literal;)*) => {$(
        #[test]
        fn $name() {
            run_both(concat!("tests/programs/", $source), $standard);
        }
    )*};
}

programs! {
    mutex: "mutex.c", "c11";
    barging_mutex: "barging_mutex.c", "gnu11";
    fair_mutex: "fair_mutex.c", "c11";
    pi_mutex: "pi_mutex.c", "c11";
    rwlock: "rwlock.c", "c11";
    semaphore: "semaphore.c", "c11";
    semarray: "semarray.c", "gnu11";
    region: "region.c", "gnu11";
    cancellation: "cancellation.c", "gnu11";
    robust_mutex: "robust_mutex.c", "gnu11";
    robust_fair_mutex: "robust_fair_mutex.c", "gnu11";
    robust_rwlock: "robust_rwlock.c", "gnu11";
    robust_semaphore: "robust_semaphore.c", "gnu11";
    classes_of_cpp_14: "wrappers.cpp", "c++14";
    classes_of_cpp_20: "wrappers.cpp", "c++20";
}

/// The functions that the header declares.
fn declared() -> BTreeSet<String> {
    let header = fs::read_to_string(package().join("include/ulocks.h")).expect("the header");
    let mut names = BTreeSet::new();
    // A declaration begins in the first column; comments do not.
    for line in header.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase())) {
        if let Some((before, _)) = line.split_once('(') {
            let name = before.rsplit([' ', '*']).next().expect("the last word");
            if name.starts_with("ulocks_") {
                names.insert(name.to_owned());
            }
        }
    }
    assert!(names.len() > 60, "found {names:?} only");
    names
}

/// A program that takes the address of every function does not link if one is missing.
#[test]
fn both_libraries_have_every_function_of_the_header() {
    // -Wextra has a warning for casts between types of functions.
    let mut program = String::from("#pragma GCC diagnostic ignored \"-Wcast-function-type\"\n");
    program += "#include \"ulocks.h\"\n#include \"ulocks.h\"\n\n";
    program += "typedef void (*function)(void);\n\nfunction volatile functions[] = {\n";
    for name in declared() {
        program += &format!("    (function){name},\n");
    }
    program += "};\n\nint main(void) {\n";
    program += "    for (unsigned i = 0; i < sizeof functions / sizeof *functions; i++)\n";
    program += "        if (!functions[i])\n            return 1;\n    return 0;\n}\n";
    for (extension, standards) in [("c", ["c99", "c17"]), ("cpp", ["c++11", "c++20"])] {
        let source = directory().join(format!("every-{}.{extension}", std::process::id()));
        fs::write(&source, &program).expect("a file of this test");
        for standard in standards {
            for linked in [Linked::Shared, Linked::Static] {
                if let Some(binary) = compile(&source, standard, linked) {
                    run(&binary);
                }
            }
        }
        fs::remove_file(&source).expect("a file of this test");
    }
}

/// A symbol that is no function of the header could clash with one of the program.
#[test]
fn the_shared_library_exports_the_functions_of_the_header_and_no_others() {
    let library = harness::elf::read(&harness::libraries().join("libulocks_capi.so"));
    assert_eq!(library.exported, declared());
    let version = format!("{}.{}", env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"));
    assert_eq!(library.soname, Some(format!("libulocks.so.{version}")));
}

/// Of strict standards, and without `-pthread`, which lets `<time.h>` declare more.
#[test]
fn the_header_compiles_by_itself() {
    for (language, compiler, standards) in
        [("c", "cc", &["c99", "c11", "c17"][..]), ("c++", "c++", &["c++11", "c++14", "c++20"])]
    {
        for standard in standards {
            let mut command = Command::new(compiler);
            command.args(["-x", language, "-fsyntax-only", "-pedantic", "-Wall", "-Wextra", "-Werror"]);
            command.arg(format!("-std={standard}")).arg(package().join("include/ulocks.h"));
            match command.output() {
                Err(_) => println!("not tested: this machine has no `{compiler}`"),
                Ok(output) => {
                    let errors = String::from_utf8_lossy(&output.stderr);
                    assert!(output.status.success(), "{command:?}: {errors}");
                }
            }
        }
    }
}

/// The programs check of each function that it leaves `errno` alone, so each must be called.
#[test]
fn the_programs_call_every_function_of_the_header() {
    let mut called = String::new();
    for entry in fs::read_dir(package().join("tests/programs")).expect("the programs") {
        let path = entry.expect("an entry").path();
        let text = fs::read_to_string(&path).expect("a program");
        let stem = path.file_stem().expect("a name").to_string_lossy();
        // `mutex.h` writes FN(_lock) for ulocks_mutex_lock and so on.
        if text.contains("#include \"mutex.h\"") {
            let cases = fs::read_to_string(package().join("tests/programs/mutex.h")).expect("the cases");
            called += &cases.replace("FN(_", &format!("ulocks_{stem}_")).replace(")(", "(");
            for operation in ["signal", "broadcast"] {
                assert!(cases.contains(&format!("NOTIFY(_{operation},")), "{operation} is not called");
                called += &format!("ulocks_{stem}_cond_{operation}(");
            }
        }
        if text.contains("#include \"robust.h\"") {
            let cases = fs::read_to_string(package().join("tests/programs/robust.h")).expect("the cases");
            called += &cases.replace("FN(_", &format!("ulocks_{stem}_")).replace(")(", "(");
            called += &cases.replace("FIND(", &format!("ulocks_region_{stem}("));
        }
        called += &text;
    }
    let missing: Vec<_> =
        declared().into_iter().filter(|name| !called.contains(&format!("{name}("))).collect();
    assert!(missing.is_empty(), "no program calls {missing:?}");
}

#[test]
fn examples() {
    run_both("examples/queue.c", "c11");
    run_both("examples/routes.c", "c11");
    run_both("examples/pool.cpp", "c++14");
}

/// The programs of the README, in fences of that language.
#[test]
fn programs_of_the_readme() {
    let readme = fs::read_to_string(package().join("README.md")).expect("the README");
    for (language, standard) in [("c", "c11"), ("cpp", "c++14")] {
        let (_, rest) = readme.split_once(&format!("\n```{language}\n")).expect("a program");
        let (program, _) = rest.split_once("\n```\n").expect("the end of the program");
        let source = directory().join(format!("readme-{}.{language}", std::process::id()));
        fs::write(&source, format!("{program}\n")).expect("a file of this test");
        for linked in [Linked::Shared, Linked::Static] {
            if let Some(binary) = compile(&source, standard, linked) {
                let printed = run(&binary);
                assert_eq!(printed, if language == "c" { "1\n" } else { "" });
            }
        }
        fs::remove_file(&source).expect("a file of this test");
    }
}

/// A copy that is installed as the README says, in a folder of this name.
fn installed(name: &str) -> PathBuf {
    let prefix = directory().join(format!("{name}-{}", std::process::id()));
    let [include, lib, described, cmake] =
        ["include", "lib", "lib/pkgconfig", "lib/cmake/ulocks"].map(|name| prefix.join(name));
    for new in [&include, &described, &cmake] {
        fs::create_dir_all(new).expect("a directory of this test");
    }
    fs::copy(package().join("include/ulocks.h"), include.join("ulocks.h")).expect("the header");
    let built = harness::libraries().join("libulocks_capi.so");
    let soname = harness::elf::read(&built).soname.expect("a name");
    fs::copy(built, lib.join(&soname)).expect("the library");
    std::os::unix::fs::symlink(soname, lib.join("libulocks.so")).expect("a link");
    let description = fs::read_to_string(package().join("ulocks.pc.in")).expect("the description");
    let filled = description
        .replace("@prefix@", &prefix.display().to_string())
        .replace("@libdir@", "${prefix}/lib")
        .replace("@includedir@", "${prefix}/include")
        .replace("@version@", env!("CARGO_PKG_VERSION"));
    assert!(!filled.contains('@'), "a place that is not filled:\n{filled}");
    fs::write(described.join("ulocks.pc"), filled).expect("a file of this test");
    for file in ["ulocks-config.cmake", "ulocks-config-version.cmake"] {
        fs::copy(package().join(file), cmake.join(file)).expect("what CMake reads");
    }
    prefix
}

#[test]
fn pkg_config_says_what_an_installed_copy_needs() {
    let prefix = installed("pkg-config");
    compile_by_pkg_config(&prefix);
    fs::remove_dir_all(&prefix).expect("a directory of this test");
}

#[test]
fn cargo_c_installs_what_a_program_needs() {
    // As a program of its own, since a cargo of another version may have run this test.
    if !Command::new("cargo-cinstall").arg("--version").output().is_ok_and(|asked| asked.status.success()) {
        println!("not tested: this machine has no `cargo-c`");
        return;
    }
    let prefix = directory().join(format!("cargo-c-{}", std::process::id()));
    let mut command = Command::new("cargo");
    command.args(["cinstall", "--offline", "--release", "-p", "ulocks-capi", "--prefix"]).arg(&prefix);
    command.arg("--libdir").arg(prefix.join("lib")).current_dir(package());
    command.arg("--target-dir").arg(directory().join("cargo-c-target"));
    // It takes longer than a program of a test may.
    let installed = command.output().expect("cargo runs");
    assert!(installed.status.success(), "{command:?}: {}", String::from_utf8_lossy(&installed.stderr));
    for file in ["include/ulocks.h", "include/ulocks.hpp", "lib/libulocks.a", "lib/pkgconfig/ulocks.pc"] {
        assert!(prefix.join(file).is_file(), "{file} is not installed");
    }
    let library = fs::canonicalize(prefix.join("lib/libulocks.so")).expect("the library");
    let ours = harness::elf::read(&harness::libraries().join("libulocks_capi.so")).soname;
    assert_eq!(harness::elf::read(&library).soname, ours, "its programs find no other copy");
    compile_by_pkg_config(&prefix);
    fs::remove_dir_all(&prefix).expect("a directory of this test");
}

/// Compiles an example with what `pkg-config` says of an installed copy, and runs it.
fn compile_by_pkg_config(prefix: &Path) {
    let lib = prefix.join("lib");
    let asked = Command::new("pkg-config")
        .args(["--cflags", "--libs", "ulocks"])
        .env("PKG_CONFIG_PATH", lib.join("pkgconfig"))
        .output();
    let Ok(asked) = asked else {
        println!("not tested: this machine has no `pkg-config`");
        return;
    };
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let words = String::from_utf8(asked.stdout).expect("words");
    let binary = prefix.join("queue");
    let mut command = Command::new("cc");
    command.arg(package().join("examples/queue.c")).arg("-o").arg(&binary);
    command.args(words.split_whitespace()).arg("-pthread");
    command.arg(format!("-Wl,-rpath,{}", lib.display()));
    let compiled = output(&mut command);
    assert!(compiled.status.success(), "{command:?}: {}", String::from_utf8_lossy(&compiled.stderr));
    assert_eq!(run(&binary), "100010000\n");
}

/// And it names no other.
#[test]
fn the_man_page_names_each_lock_of_the_header() {
    let named = |text: &str| -> BTreeSet<String> {
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        words.filter(|word| word.starts_with("ulocks_") && word.ends_with("_t")).map(str::to_owned).collect()
    };
    let header = fs::read_to_string(package().join("include/ulocks.h")).expect("the header");
    let is_lock = |name: &String| {
        let parts = ["options_t", "semop_t", "member_t"];
        !parts.iter().any(|end| name.ends_with(end)) && (!name.ends_with("cond_t") || name.contains("robust"))
    };
    let locks: BTreeSet<_> = named(&header).into_iter().filter(is_lock).collect();
    assert_eq!(named(include_str!("../man/ulocks.3")), locks);
}

#[test]
fn cmake_finds_an_installed_copy() {
    let prefix = installed("cmake");
    let (source, build) = (prefix.join("source"), prefix.join("build"));
    fs::create_dir_all(&source).expect("a directory of this test");
    fs::copy(package().join("examples/queue.c"), source.join("queue.c")).expect("the example");
    let project = "cmake_minimum_required(VERSION 3.13)\nproject(queue C)\n\
                   find_package(ulocks 0.1 REQUIRED)\nfind_package(Threads REQUIRED)\n\
                   add_executable(queue queue.c)\n\
                   target_link_libraries(queue PRIVATE ulocks::ulocks Threads::Threads)\n";
    fs::write(source.join("CMakeLists.txt"), project).expect("a file of this test");
    let mut command = Command::new("cmake");
    command.arg("-S").arg(&source).arg("-B").arg(&build);
    command.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()));
    match command.output() {
        Err(_) => println!("not tested: this machine has no `cmake`"),
        Ok(made) => {
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
            let built = output(Command::new("cmake").arg("--build").arg(&build));
            assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stdout));
            assert_eq!(run(&build.join("queue")), "100010000\n");
        }
    }
    fs::remove_dir_all(&prefix).expect("a directory of this test");
}
