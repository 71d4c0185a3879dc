//! An input that the fuzzer starts from.

/// Bytes that a seed may have at most: the fuzzer makes no longer inputs unless a seed is longer,
/// and longer ones take it more time.
pub(super) const MAX_BYTES: usize = 4096;

/// An input that the fuzzer starts from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seed {
    /// Its name, which is that of its file.
    pub name: &'static str,
    /// The input.
    pub bytes: Vec<u8>,
}

impl Seed {
    /// Names an input.
    pub(super) fn new(name: &'static str, bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        let length = bytes.len();
        assert!(length <= MAX_BYTES, "the seed {name} has {length} bytes");
        Self { name, bytes }
    }
}
