//! The world is selected as in core.

#[path = "../core/build.rs"]
mod world;

fn main() {
    world::main();
}
