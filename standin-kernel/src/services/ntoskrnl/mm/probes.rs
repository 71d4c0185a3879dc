//! Checks of user-space addresses, which raise exceptions for bad addresses.

use super::pages;
use crate::{
    execution::routine::{At, Memory, routine},
    ground::{NtStatus, arena::PAGE, memory},
    services::ntoskrnl::{
        context::{Context, Entries},
        ex::exceptions::MISALIGNMENT,
        variables::USER_PROBE_ADDRESS,
    },
};

pub const ENTRIES: Entries =
    &[routine("ProbeForRead", probe_for_read), routine("ProbeForWrite", probe_for_write)];

/// Returns the kind of memory at a system-space address. The value of the address does not
/// determine it, because all memory of a Linux process is below the end of user space.
fn of_system(context: &Context, address: u64) -> Option<&'static str> {
    let environment = context.environment();
    if context.pool().contains(address) || environment.paged.contains(address) {
        Some("pool")
    } else if environment.images.contains(address) {
        Some("a driver's image")
    } else if pages::contains(context, address) {
        Some("pages that the driver allocated")
    } else if context.stack().contains(address) {
        Some("the driver's stack")
    } else {
        None
    }
}

/// Checks that a range is in user space and aligned, and returns its end. An empty range is not checked.
/// Returns `None` also after an exception.
fn probe(context: &Context, address: u64, length: u64, alignment: u32) -> Option<u64> {
    let range = format!("for {length} bytes at 0x{address:016X}");
    if length == 0 {
        return None;
    }
    let alignment = u64::from(alignment.max(1));
    if address & (alignment - 1) != 0 {
        let why = format!("{range}, which is not aligned to {alignment} bytes,");
        context.raise_exception(MISALIGNMENT, &why);
        return None;
    }
    let end = address.checked_add(length);
    let is_below = end.is_some_and(|end| end <= USER_PROBE_ADDRESS);
    if !is_below {
        let why = format!("{range}, which are not in user space,");
        context.raise_exception(NtStatus::ACCESS_VIOLATION, &why);
        return None;
    }
    if let Some(place) = of_system(context, address) {
        let why = format!("{range}, which is in {place} and not in user space,");
        context.raise_exception(NtStatus::ACCESS_VIOLATION, &why);
        return None;
    }
    end
}

fn probe_for_read(context: &Context, address: Memory, length: u64, alignment: u32) {
    probe(context, address.0, length, alignment);
}

/// Checks a range, and that each of its pages is writable. See [`probe_for_read`].
fn probe_for_write(context: &Context, address: Memory, length: u64, alignment: u32) {
    const STEP: u64 = PAGE as u64;
    let Some(end) = probe(context, address.0, length, alignment) else {
        return;
    };
    let mut at = address;
    while at.0 < end {
        let touched = memory::read::<u8>(at.0).and_then(|byte| memory::write(at.0, &byte));
        if let Err(error) = touched {
            let why = format!("for {length} bytes at 0x{address:016X}, and {error},");
            context.raise_exception(NtStatus::ACCESS_VIOLATION, &why);
            return;
        }
        at = At::new((at.0 & !(STEP - 1)) + STEP);
    }
}
