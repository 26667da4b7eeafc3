//! Tells the compiler which world this is, as `cfg(world = "NAME")`: "machine", unless `--cfg
//! ulocks_NAME` and the feature `NAME` select another. It refuses a system that is not Linux.

use std::env;

/// The worlds beside the machine.
const MODELS: [&str; 2] = ["loom", "vm"];

/// Prints what cargo is to tell the compiler.
pub fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(world, values(\"machine\", \"{}\"))", MODELS.join("\", \""));
    let system = env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if system != "linux" && system != "android" {
        println!(
            "cargo::error=ulocks runs on Linux and Android only, and this target's system is \
             `{system}`: its locks are made of Linux futexes"
        );
    }
    let is_set = |variable: String| env::var_os(variable).is_some();
    let selected: Vec<_> = MODELS
        .into_iter()
        .filter(|model| is_set(format!("CARGO_CFG_ULOCKS_{}", model.to_uppercase())))
        .collect();
    for model in &selected {
        if !is_set(format!("CARGO_FEATURE_{}", model.to_uppercase())) {
            println!(
                "cargo::error=`--cfg ulocks_{model}` needs the feature `{model}`: without it no \
                 model runs, so every test would pass. Add `--features {model}`"
            );
        }
    }
    match selected[..] {
        [] => println!("cargo::rustc-cfg=world=\"machine\""),
        [model] => println!("cargo::rustc-cfg=world=\"{model}\""),
        _ => println!(
            "cargo::error=several worlds are asked for: give one of the cfgs `ulocks_NAME`, not more"
        ),
    }
}
