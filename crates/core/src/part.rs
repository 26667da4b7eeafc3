//! Parts of locks that a type parameter chooses: how they are made in every world.

/// A part of a lock whose initial bytes are all zero.
///
/// Declared with `ulocks_core::raw_init!`, as a raw lock's: a constant on the machine, a function
/// in models. A lock makes its part with `ulocks_core::part!(Type)`.
pub trait Part: Sized {
    /// The part of an unlocked lock.
    #[cfg(world = "machine")]
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self;
    /// The part of an unlocked lock.
    #[cfg(not(world = "machine"))]
    fn init() -> Self;
}
