//! The provider's traits blob: how large it comes out.

use crate::Trait;

/// Bytes before a trait's data: its size and its type.
const TRAIT_HEAD: usize = 3;

/// The size of a provider's traits blob.
pub fn size(name: &str, grouped: bool, custom: &[Trait]) -> usize {
    let group = if grouped { TRAIT_HEAD + 16 } else { 0 };
    let custom: usize = custom.iter().map(|one| TRAIT_HEAD + one.data.len()).sum();
    // The blob's own size, the name and its NUL.
    2 + name.len() + 1 + group + custom
}
