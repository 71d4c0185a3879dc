//! Addresses of routines by name, and checks for valid memory.

use crate::{
    execution::routine::Routine,
    ground::{irql::Irql, memory},
    services::{
        ntoskrnl::{
            context::{Context, Entries},
            variables,
        },
        strings::read_unicode_string,
    },
};

pub const ENTRIES: Entries = &[
    ("MmGetSystemRoutineAddress", Irql::PASSIVE_LEVEL, Routine::of(mm_get_system_routine_address)),
    ("MmIsAddressValid", Irql::DISPATCH_LEVEL, Routine::of(is_address_valid)),
    ("MmQuerySystemSize", HIGH, Routine::of(system_size)),
];

/// Returns the address of a routine that this kernel provides, or null.
fn mm_get_system_routine_address(context: &Context, name: u64) -> u64 {
    let name = read_unicode_string(context, name);
    let variable = || variables::address(context.ntoskrnl(), &name);
    context.address_of(&name).or_else(variable).unwrap_or(0)
}

const HIGH: Irql = Irql::HIGH_LEVEL;

fn is_address_valid(_context: &Context, address: u64) -> bool {
    memory::read::<u8>(address).is_ok()
}

/// `MmLargeSystem`.
const fn system_size(_context: &Context) -> u32 {
    2
}
