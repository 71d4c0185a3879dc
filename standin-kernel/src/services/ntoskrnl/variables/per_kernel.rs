//! The variables that ntoskrnl.exe exports and whose values differ between the kernels of a
//! process.

use crate::{
    execution::identity::Identity,
    ground::{arena::Block, memory},
    services::ntoskrnl::{context::Ntoskrnl, ke::thread_objects},
};

/// The memory of the variables.
#[derive(Default)]
struct Variables(Option<Block>);

/// The offsets of the variables: `CCHAR KeNumberProcessors`, and `PEPROCESS PsInitialSystemProcess`.
const PROCESSORS: u64 = 0;
const SYSTEM_PROCESS: u64 = 16;
const SIZE: usize = 32;

/// Returns the address of a variable.
pub fn address(nt: &Ntoskrnl, name: &str) -> Option<u64> {
    let offset = match name {
        "KeNumberProcessors" => PROCESSORS,
        "PsInitialSystemProcess" => SYSTEM_PROCESS,
        _ => return None,
    };
    let process = thread_objects::process_object(nt, Identity::SYSTEM.process);
    let processors = nt.processors();
    let mut state = nt.state();
    let variables = &mut state.get::<Variables>().0;
    let block = variables.get_or_insert_with(|| {
        let block = Block::zeroed(SIZE);
        for (at, value) in [(PROCESSORS, u64::from(processors)), (SYSTEM_PROCESS, process)] {
            let written = memory::write(block.address() + at, &value);
            debug_assert!(written.is_ok(), "the block was allocated above");
        }
        block
    });
    Some(block.address() + offset)
}
