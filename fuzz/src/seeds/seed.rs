//! A fuzzer's initial input.

/// The maximum size of a seed in bytes. The fuzzer never generates inputs longer than the longest
/// seed, and long inputs are slow.
pub(super) const MAX_BYTES: usize = 4096;

/// An initial input of the fuzzer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seed {
    /// The name of the seed and of its file.
    pub name: &'static str,
    /// The input.
    pub bytes: Vec<u8>,
}

impl Seed {
    /// Returns a seed with this name and input.
    pub(super) fn new(name: &'static str, bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        let length = bytes.len();
        assert!(length <= MAX_BYTES, "the seed {name} is {length} bytes long");
        Self { name, bytes }
    }
}
