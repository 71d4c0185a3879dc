//! The primary tokens of processes, whose fields are opaque to drivers.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::ground::arena::Block;

/// The tokens, by process id. All kernels share the tokens, because nothing changes them.
static TOKENS: Mutex<BTreeMap<u32, Block>> = Mutex::new(BTreeMap::new());

/// Returns the address of a process's token.
pub fn of_process(process: u32) -> u64 {
    const SIZE: usize = 0x40;
    TOKENS.lock().entry(process).or_insert_with(|| Block::zeroed(SIZE)).address()
}

/// Returns the id of the process whose token is at this address.
pub fn process_of(token: u64) -> Option<u32> {
    let tokens = TOKENS.lock();
    tokens.iter().find(|(_, block)| block.address() == token).map(|(process, _)| *process)
}
