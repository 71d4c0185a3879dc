//! The size of a provider's traits.

use crate::Trait;

/// The size in bytes of a trait's size and type, which precede its data.
const TRAIT_HEAD: usize = 3;

/// Returns the size of a provider's traits in bytes.
pub fn size(name: &str, grouped: bool, custom: &[Trait]) -> usize {
    let group = if grouped { TRAIT_HEAD + 16 } else { 0 };
    let custom: usize = custom.iter().map(|one| TRAIT_HEAD + one.data.len()).sum();
    // The blob's own size, the name and its NUL.
    2 + name.len() + 1 + group + custom
}
