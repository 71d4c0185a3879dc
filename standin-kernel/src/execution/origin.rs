//! The location in a driver to which a fault is attributed.

use super::{stack, thread::Thread};
use crate::ground::{backtrace::Backtrace, memory, memory_routines, unwind::Registers};

/// Returns the calls that led to a fault, and the location that the report names.
pub fn origin(thread: &Thread, registers: Registers) -> (Backtrace, String) {
    let images = &thread.environment().images;
    if images.contains(registers.rip) {
        let backtrace = thread.backtrace_from(registers, false);
        let place = thread.explain(&backtrace).place;
        return (backtrace, place);
    }
    let at = registers.rip;
    let word = |address: u64| {
        let value = memory::read::<u64>(address).ok();
        value.filter(|_| thread.stacks().contains(address))
    };
    let described = |caller: Registers| {
        let backtrace = thread.backtrace_from(caller, true);
        let place = thread.explain(&backtrace).place;
        (backtrace, place)
    };
    // The fault is in a routine such as memcpy that received a bad address.
    if let (Some(name), Some(address)) = (memory_routines::routine_at(at), word(registers.rsp())) {
        let (backtrace, place) = described(memory_routines::caller(registers, address));
        return (backtrace, format!("{name}, called from {place}"));
    }
    // Returns the caller, if the word at this stack address is a return address in a driver.
    let caller = |stack: u64| {
        let address = word(stack).filter(|address| images.is_after_call(*address))?;
        let mut caller = registers;
        caller.rip = address;
        caller.set_rsp(stack.wrapping_add(8));
        Some(caller)
    };
    // The driver called a bad address.
    if let Some(caller) = caller(registers.rsp()) {
        let (backtrace, place) = described(caller);
        return (backtrace, format!("code at 0x{at:016X}, called from {place}"));
    }
    // The driver returned to an overwritten address. The frames above may be intact.
    let above = (registers.rsp()..stack::top_of(registers.rsp())).step_by(8);
    if thread.stacks().contains(registers.rsp())
        && let Some(caller) = above.into_iter().find_map(caller)
    {
        let (backtrace, place) = described(caller);
        return (
            backtrace,
            format!(
                "code at 0x{at:016X}, which no driver code called; probably a return address on \
                 the stack was overwritten, in a function that was called from {place} (a guess \
                 from the rest of the stack)"
            ),
        );
    }
    let place = format!("code at 0x{at:016X}, which no driver code called");
    (thread.backtrace(), place)
}
