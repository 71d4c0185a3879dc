//! Addresses of routines by name, and checks for valid memory.

use crate::{
    execution::{
        routine::{At, Memory, routine},
        strings::read_unicode_string,
    },
    ground::{abi::UnicodeString, memory},
    services::ntoskrnl::{
        context::{Context, Entries},
        kernel_variables,
    },
};

pub const ENTRIES: Entries = &[
    routine("MmGetSystemRoutineAddress", mm_get_system_routine_address),
    routine("MmIsAddressValid", is_address_valid),
    routine("MmQuerySystemSize", system_size),
];

/// Returns the address of a routine that this kernel provides, or null.
fn mm_get_system_routine_address(context: &Context, name: At<UnicodeString>) -> Memory {
    let name = read_unicode_string(context, name.0);
    let variable = || kernel_variables::address(context.ntoskrnl(), &name);
    At::new(context.address_of(&name).or_else(variable).unwrap_or(0))
}

fn is_address_valid(_context: &Context, address: Memory) -> bool {
    memory::read::<u8>(address.0).is_ok()
}

/// `MmLargeSystem`.
const fn system_size(_context: &Context) -> u32 {
    2
}
