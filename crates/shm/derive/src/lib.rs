#![doc = include_str!("../README.md")]

mod expand;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Implements `SharedSafe` for a struct whose fields are `SharedSafe`; see the trait's
/// documentation in `ulocks-shm`.
///
/// The struct has `#[repr(C)]` or `#[repr(transparent)]`, possibly with `align(N)`, and no
/// lifetime. It does not implement `Drop`. Its fields may be of type parameters.
///
/// The layout hash has, for each field in its order, the hash of its type, its offset and its size,
/// and then the size and the alignment of the struct. Names are not a part of it.
///
/// A region of it may have as many participants as the field that permits the fewest.
///
/// # Errors
/// An enum, a union, a lifetime, a missing or another `repr`, and a `Drop` are errors of the
/// compiler, and so is a field that is not `SharedSafe`. Each names the place.
#[proc_macro_derive(SharedSafe)]
pub fn shared_safe(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::shared_safe(&input).unwrap_or_else(|error| error.into_compile_error()).into()
}
