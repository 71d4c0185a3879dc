//! Lists every definition in the stand-in's sources and generates code with which the compiler
//! measures each.

use std::{env, fs, path::Path};

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Field, ForeignItem, Item, ItemMod, Visibility};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn parse(source: &Path) -> Result<Vec<Item>> {
    println!("cargo::rerun-if-changed={}", source.display());
    Ok(syn::parse_file(&fs::read_to_string(source)?)?.items)
}

/// Size, alignment and public fields of a structure or union.
fn measure<'a>(name: &syn::Ident, fields: impl Iterator<Item = &'a Field>) -> TokenStream {
    let fields = fields
        .filter(|field| matches!(field.vis, Visibility::Public(_)))
        .filter_map(|field| {
            let ident = field.ident.as_ref()?;
            let kind = &field.ty;
            Some(quote! {
                (stringify!(#ident), ::core::mem::offset_of!(#name, #ident), size_of::<#kind>())
            })
        });
    quote! { (stringify!(#name), size_of::<#name>(), align_of::<#name>(), &[#(#fields),*]) }
}

/// The constants of an enumeration's module.
fn enumerators(module: &ItemMod) -> Vec<TokenStream> {
    let name = &module.ident;
    let items = module.content.as_ref().map(|(_, items)| items.as_slice());
    items
        .unwrap_or_default()
        .iter()
        .filter_map(|item| match item {
            Item::Const(constant) => {
                let constant = &constant.ident;
                Some(quote! {
                    (stringify!(#name), stringify!(#constant), #name::#constant as i64)
                })
            }
            _ => None,
        })
        .collect()
}

fn main() -> Result<()> {
    let sources = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../wdk-sys/src");
    let mut types = Vec::new();
    let mut enums = Vec::new();
    let mut aliases = Vec::new();
    for item in parse(&sources.join("types.rs"))? {
        match item {
            Item::Struct(item) => types.push(measure(&item.ident, item.fields.iter())),
            Item::Union(item) => types.push(measure(&item.ident, item.fields.named.iter())),
            Item::Mod(item) => enums.extend(enumerators(&item)),
            Item::Type(item) => {
                let target = item.ty.to_token_stream().to_string();
                let name = item.ident.to_string();
                aliases.push(quote! { (#name, #target) });
            }
            Item::Use(item) => {
                let text = item.tree.to_token_stream().to_string();
                aliases.push(quote! { ("", #text) });
            }
            _ => {}
        }
    }
    let mut constants = Vec::new();
    for item in parse(&sources.join("constants.rs"))? {
        if let Item::Const(item) = item
            // Null pointers have no value to compare.
            && !["PVOID", "PWDF_OBJECT_ATTRIBUTES"]
                .contains(&item.ty.to_token_stream().to_string().as_str())
        {
            let name = &item.ident;
            constants.push(quote! { (stringify!(#name), #name as i64) });
        }
    }
    let mut routines = Vec::new();
    for item in parse(&sources.join("ntddk.rs"))? {
        if let Item::ForeignMod(module) = item {
            for item in module.items {
                if let ForeignItem::Fn(routine) = item {
                    let name = routine.sig.ident.to_string();
                    let signature = routine.sig.to_token_stream().to_string();
                    routines.push(quote! { (#name, #signature) });
                }
            }
        }
    }
    let measured = quote! {
        /// Name, size, alignment, and the name, offset and size of every public field.
        pub const TYPES: &[(&str, usize, usize, &[(&str, usize, usize)])] = &[#(#types),*];
        /// Enumeration, name and value.
        pub const ENUMERATORS: &[(&str, &str, i64)] = &[#(#enums),*];
        /// Name and target of every type alias; no name for an import.
        pub const ALIASES: &[(&str, &str)] = &[#(#aliases),*];
        /// Name and value.
        pub const CONSTANTS: &[(&str, i64)] = &[#(#constants),*];
        /// Name and signature.
        pub const ROUTINES: &[(&str, &str)] = &[#(#routines),*];
    };
    let out = Path::new(&env::var("OUT_DIR")?).join("measured.rs");
    fs::write(out, measured.to_string())?;
    Ok(())
}
