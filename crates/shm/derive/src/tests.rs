use super::shared_safe;

fn expand(input: &str) -> syn::Result<String> {
    let input = syn::parse_str(input).expect("a type");
    shared_safe(&input).map(|expanded| expanded.to_string())
}

#[test]
fn what_is_refused_and_why() {
    for (input, reason) in [
        ("#[repr(u8)] enum E { A, B }", "an enum cannot be SharedSafe"),
        ("#[repr(C)] enum E {}", "an enum cannot be SharedSafe"),
        ("#[repr(C)] union U { a: u32, b: [u8; 4] }", "a union cannot be SharedSafe"),
        ("struct S { a: u32 }", "needs `#[repr(C)]`"),
        ("#[repr(align(8))] struct S(u32);", "needs `#[repr(C)]`"),
        ("#[repr(Rust)] struct S(u32);", "needs `#[repr(C)]`"),
        ("#[repr(C, packed)] struct S(u8, u32);", "a packed struct cannot be SharedSafe"),
        ("#[repr(packed(2), C)] struct S(u8, u32);", "a packed struct cannot be SharedSafe"),
        ("#[repr(C)] struct S<'a>(&'a u32);", "a type with a lifetime cannot be SharedSafe"),
    ] {
        let told = expand(input).expect_err(input).to_string();
        assert!(told.contains(reason), "{input}: {told:?} does not say {reason:?}");
    }
}

#[test]
fn what_expands() {
    for input in [
        "#[repr(C)] struct S { a: u32, b: [u8; 4] }",
        "#[repr(transparent)] struct S(u32);",
        "#[repr(C, align(64))] struct S(u32);",
        "#[repr(align(64))] #[repr(C)] struct S(u32);",
        "#[repr(C)] struct S;",
        "#[repr(C)] struct r#type { r#fn: u32 }",
        "#[repr(C)] struct S<T, const N: usize> { list: [T; N] }",
        "#[repr(C)] struct S<T: Copy = u32> where T: Clone { one: T }",
    ] {
        let expanded = expand(input).expect(input);
        assert!(expanded.contains("unsafe impl"), "{input}: {expanded}");
    }
}

#[test]
fn fields_of_type_parameters_are_bounds() {
    let expanded = expand("#[repr(C)] struct S<T> { one: T, two: [T; 2] }").expect("it expands");
    let bounds = "where T : :: ulocks_shm :: SharedSafe , [T ; 2] : :: ulocks_shm :: SharedSafe";
    assert!(expanded.contains(bounds), "{expanded}");
}

/// An attribute below the derive may add a field, which nothing checks unless all are named.
#[test]
fn all_fields_are_named_and_no_rest() {
    for (input, pattern) in [
        ("#[repr(C)] struct S { a: u32, b: u32 }", "let Self { a : _0 , b : _1 } = all ;"),
        ("#[repr(C)] struct S(u32, u32);", "let Self { 0 : _0 , 1 : _1 } = all ;"),
        ("#[repr(C)] struct S;", "let Self { } = all ;"),
    ] {
        let expanded = expand(input).expect(input);
        assert!(expanded.contains(pattern), "{input}: {expanded}");
    }
}
