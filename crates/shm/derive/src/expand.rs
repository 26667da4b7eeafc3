//! From a struct to its implementation of `SharedSafe`, or to the reason why there is none.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Fields, GenericParam, Index, Member, parse_quote};

/// The implementation for `input`.
pub fn shared_safe(input: &DeriveInput) -> syn::Result<TokenStream> {
    let fields = fields(input)?;
    check_repr(input)?;
    if let Some(lifetime) = input.generics.lifetimes().next() {
        let message = "a type with a lifetime cannot be SharedSafe: it may have references, which are of one \
                       process";
        return Err(Error::new(lifetime.span(), message));
    }

    let members: Vec<Member> = fields
        .iter()
        .enumerate()
        .map(|(index, field)| match &field.ident {
            Some(name) => Member::Named(name.clone()),
            None => Member::Unnamed(Index::from(index)),
        })
        .collect();
    let types: Vec<_> = fields.iter().map(|field| &field.ty).collect();
    let name = &input.ident;

    let mut generics = input.generics.clone();
    let depends_on_parameters =
        generics.params.iter().any(|param| !matches!(param, GenericParam::Lifetime(_)));
    if depends_on_parameters {
        let clause = generics.make_where_clause();
        for ty in &types {
            clause.predicates.push(parse_quote!(#ty: ::ulocks_shm::SharedSafe));
        }
        clause.predicates.push(parse_quote!(Self: ::core::marker::Sync + 'static));
    }
    let (with_bounds, arguments, clause) = generics.split_for_impl();
    let (plain_bounds, plain_arguments, plain_clause) = input.generics.split_for_impl();

    // At the place of the field: the compiler points at it if its type is not `SharedSafe`. But as
    // code of this macro: the user may have forbidden `unsafe` in the user's own.
    let at = |ty: &syn::Type| Span::call_site().located_at(ty.span());
    let hashes = types.iter().map(|ty| quote_spanned!(at(ty)=> <#ty as ::ulocks_shm::SharedSafe>::LAYOUT));
    let slots =
        types.iter().map(|ty| quote_spanned!(at(ty)=> <#ty as ::ulocks_shm::SharedSafe>::LEAST_SLOTS));
    let resets = types.iter().zip(&members).map(|(ty, member)| {
        quote_spanned! {at(ty)=>
            // SAFETY: a field of `this`, for which the caller has promised.
            unsafe { <#ty as ::ulocks_shm::SharedSafe>::reset_locks(&raw mut (*this).#member) };
        }
    });
    let count = types.len();
    let bindings: Vec<_> = (0..count).map(|nth| format_ident!("_{nth}")).collect();
    // The name as an argument: of one in the text the `r#` of a raw identifier would stay.
    let no_drop = format_ident!("DropIsNotImplementedFor{}", name);

    Ok(quote! {
        // SAFETY: the struct has a fixed layout, no lifetime and no `Drop`. Each field is
        // `SharedSafe`, its hash, place and size are in the hash of the struct, and its locks are
        // reset.
        #[automatically_derived]
        unsafe impl #with_bounds ::ulocks_shm::SharedSafe for #name #arguments #clause {
            const LAYOUT: u64 = ::ulocks_shm::layout(&[
                #count as u64,
                #(
                    #hashes,
                    ::core::mem::offset_of!(Self, #members) as u64,
                    ::core::mem::size_of::<#types>() as u64,
                )*
                ::core::mem::size_of::<Self>() as u64,
                ::core::mem::align_of::<Self>() as u64,
            ]);
            const LEAST_SLOTS: usize = ::ulocks_shm::least_slots(&[#(#slots),*]);

            unsafe fn reset_locks(this: *mut Self) {
                let _ = this;
                // An attribute below this derive may have changed the struct since. A field that it
                // has added is missing here, and no reference leads to a field of a packed struct.
                let _ = |all: &Self| {
                    let Self { #(#members: #bindings),* } = all;
                };
                #(#resets)*
            }
        }

        // A type with `Drop` has both implementations, which is an error.
        const _: () = {
            #[allow(non_camel_case_types, dead_code)]
            trait #no_drop {}
            #[allow(drop_bounds)]
            impl<T: ?::core::marker::Sized + ::core::ops::Drop> #no_drop for T {}
            impl #plain_bounds #no_drop for #name #plain_arguments #plain_clause {}
        };
    })
}

fn fields(input: &DeriveInput) -> syn::Result<&Fields> {
    let reason = match &input.data {
        Data::Struct(data) => return Ok(&data.fields),
        Data::Enum(_) => {
            "an enum cannot be SharedSafe: most bit patterns are no value of it, and another process may write \
             any; use a number, and match on that"
        }
        Data::Union(_) => {
            "a union cannot be SharedSafe: nothing says which of its fields another process has written; use a \
             struct, or an array of numbers"
        }
    };
    Err(Error::new(input.ident.span(), reason))
}

/// Demands a layout that the language fixes.
fn check_repr(input: &DeriveInput) -> syn::Result<()> {
    let mut is_fixed = false;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("repr")) {
        is_fixed |= fixes_layout(attribute)?;
    }
    if is_fixed {
        return Ok(());
    }
    let message = "SharedSafe needs `#[repr(C)]` or `#[repr(transparent)]`: else the compiler chooses the \
                   layout, for each program anew";
    Err(Error::new(input.ident.span(), message))
}

/// Whether this `repr` fixes the layout.
fn fixes_layout(attribute: &Attribute) -> syn::Result<bool> {
    let mut is_fixed = false;
    attribute.parse_nested_meta(|meta| {
        if meta.path.is_ident("C") || meta.path.is_ident("transparent") {
            is_fixed = true;
        } else if meta.path.is_ident("packed") {
            let message = "a packed struct cannot be SharedSafe: its atomics and locks may not be aligned";
            return Err(meta.error(message));
        }
        // What is in the parentheses of `align(N)` is the compiler's business.
        if meta.input.peek(syn::token::Paren) {
            let content;
            syn::parenthesized!(content in meta.input);
            content.parse::<TokenStream>()?;
        }
        Ok(())
    })?;
    Ok(is_fixed)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
