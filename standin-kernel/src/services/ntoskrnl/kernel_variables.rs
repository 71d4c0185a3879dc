//! The variables that ntoskrnl.exe exports and whose values differ between the kernels of a
//! process.

use crate::{
    execution::identity::Identity,
    ground::{abi::ResourceLock, arena::Block, memory},
    services::ntoskrnl::{context::Ntoskrnl, ex::resources, ke::thread_objects},
};

/// The memory of the variables.
#[derive(Default)]
struct Variables(Option<Block>);

/// The offsets of the variables: `CCHAR KeNumberProcessors`, `PEPROCESS PsInitialSystemProcess`, and
/// `ERESOURCE PsLoadedModuleResource`.
const PROCESSORS: u64 = 0;
const SYSTEM_PROCESS: u64 = 16;
const MODULE_RESOURCE: u64 = 32;
const SIZE: usize = 32 + size_of::<ResourceLock>();

/// Returns the address of a variable.
pub fn address(nt: &Ntoskrnl, name: &str) -> Option<u64> {
    let offset = match name {
        "KeNumberProcessors" => PROCESSORS,
        "PsInitialSystemProcess" => SYSTEM_PROCESS,
        "PsLoadedModuleResource" => MODULE_RESOURCE,
        _ => return None,
    };
    let process = thread_objects::process_object(nt, Identity::SYSTEM.process);
    let processors = nt.processors();
    let mut state = nt.state();
    if let Some(block) = &state.get::<Variables>().0 {
        return Some(block.address() + offset);
    }
    let block = Block::zeroed(SIZE);
    let first = block.address();
    for (at, value) in [(PROCESSORS, u64::from(processors)), (SYSTEM_PROCESS, process)] {
        let written = memory::write(first + at, &value);
        debug_assert!(written.is_ok(), "the block was allocated above");
    }
    let created = resources::create(&mut state, first + MODULE_RESOURCE);
    debug_assert!(created.is_ok(), "the block was allocated above");
    state.get::<Variables>().0 = Some(block);
    Some(first + offset)
}
