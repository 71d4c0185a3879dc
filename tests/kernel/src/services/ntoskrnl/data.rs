//! The variables that ntoskrnl.exe exports.

use std::sync::OnceLock;

use crate::ground::arena::Block;

/// The exported pointers to object types.
const OBJECT_TYPES: [&str; 7] = [
    "PsThreadType",
    "PsProcessType",
    "ExEventObjectType",
    "ExSemaphoreObjectType",
    "IoFileObjectType",
    "IoDeviceObjectType",
    "CmKeyObjectType",
];

/// The size of an object type, whose fields drivers do not use.
const TYPE_SIZE: usize = 0x40;

/// The exported variables, each with its name and address, and what they point to.
struct Variables {
    /// The pointers, in the order of [`OBJECT_TYPES`].
    pointers: Block,
    types: Vec<Block>,
}

fn variables() -> &'static Variables {
    static VARIABLES: OnceLock<Variables> = OnceLock::new();
    VARIABLES.get_or_init(|| {
        let pointers = Block::zeroed(OBJECT_TYPES.len() * 8);
        let types: Vec<Block> = OBJECT_TYPES
            .iter()
            .map(|_| Block::zeroed(TYPE_SIZE))
            .collect();
        for (at, one) in (pointers.address()..).step_by(8).zip(&types) {
            let written = crate::ground::memory::write(at, &one.address());
            debug_assert!(written.is_ok(), "the block was allocated above");
        }
        Variables { pointers, types }
    })
}

/// Returns the exported variables, each with its name and address.
pub fn exports() -> impl Iterator<Item = (&'static str, u64)> {
    let first = variables().pointers.address();
    OBJECT_TYPES.into_iter().zip((first..).step_by(8))
}

/// Returns the object type that an exported variable points to.
pub fn object_type(name: &str) -> Option<u64> {
    let at = OBJECT_TYPES.iter().position(|one| *one == name)?;
    variables().types.get(at).map(Block::address)
}
