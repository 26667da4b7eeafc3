//! Tells the compiler which world this is, as `cfg(world = "NAME")`: "machine", unless `--cfg
//! ulocks_NAME` and the feature `NAME` select another.

use std::env;

/// The worlds beside the machine.
const MODELS: [&str; 2] = ["loom", "vm"];

/// Prints what cargo is to tell the compiler.
pub fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(world, values(\"machine\", \"{}\"))", MODELS.join("\", \""));
    let is_set = |variable: String| env::var_os(variable).is_some();
    let selected: Vec<_> = MODELS
        .into_iter()
        .filter(|model| {
            let name = model.to_uppercase();
            is_set(format!("CARGO_CFG_ULOCKS_{name}")) && is_set(format!("CARGO_FEATURE_{name}"))
        })
        .collect();
    match selected[..] {
        [] => println!("cargo::rustc-cfg=world=\"machine\""),
        [model] => println!("cargo::rustc-cfg=world=\"{model}\""),
        _ => println!(
            "cargo::error=several worlds are asked for: give one of the cfgs `ulocks_NAME`, not more"
        ),
    }
}
