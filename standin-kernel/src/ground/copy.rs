//! Routines that copy bytes from or to addresses that may be invalid, and exchange a word there.

use std::arch::global_asm;

// The destination is in rdi, the source in rsi, and the count in rdx. Returns 0 in eax if all bytes
// were copied.
global_asm!(
    ".globl standin_kernel_copy", ".globl standin_kernel_copy_at",
    ".globl standin_kernel_copy_failed", "standin_kernel_copy:", "mov rcx, rdx",
    "standin_kernel_copy_at:", "rep movsb", "xor eax, eax", "ret", "standin_kernel_copy_failed:",
    "mov eax, 1", "ret",
);

// The address is in rdi. rsi points to the new value and receives the old one. Returns 0 in eax on
// success.
global_asm!(
    ".globl standin_kernel_exchange", ".globl standin_kernel_exchange_at",
    "standin_kernel_exchange:", "mov rax, [rsi]", "standin_kernel_exchange_at:", "xchg [rdi], rax",
    "mov [rsi], rax", "xor eax, eax", "ret",
);

unsafe extern "sysv64" {
    fn standin_kernel_copy(destination: u64, from: u64, count: usize) -> u32;
    fn standin_kernel_copy_at();
    fn standin_kernel_copy_failed();
    fn standin_kernel_exchange(address: u64, value: *mut u64) -> u32;
    fn standin_kernel_exchange_at();
}

/// Returns the address of the copying instruction.
pub fn copying_instruction() -> u64 {
    standin_kernel_copy_at as *const () as u64
}

/// Returns the address at which to continue after the instruction at `at` has faulted, if that
/// instruction belongs to one of these routines.
pub fn after_fault(at: u64) -> Option<u64> {
    let is_ours =
        at == copying_instruction() || at == standin_kernel_exchange_at as *const () as u64;
    is_ours.then_some(standin_kernel_copy_failed as *const () as u64)
}

/// Atomically exchanges a word with `value`. Returns `false` if a fault prevented the exchange.
///
/// # Safety
///
/// The process must handle faults with [`after_fault`].
pub unsafe fn exchange(address: u64, value: &mut u64) -> bool {
    // SAFETY: the routine accesses the value and the word. The driver is responsible for the word,
    // as for the memory that `copy` accesses.
    unsafe { standin_kernel_exchange(address, value) == 0 }
}

/// Copies bytes. Returns `false` if a fault ended the copy early.
///
/// # Safety
///
/// One of the two ranges must be a buffer of this program. The process must handle faults with
/// [`after_fault`].
pub unsafe fn copy(destination: u64, from: u64, count: usize) -> bool {
    // SAFETY: the routine accesses only the two ranges. The caller guarantees that one range is a
    // buffer. The driver is responsible for the other: a fault in it ends the copy, and if it is
    // accessible, it belongs to the driver, or a wild pointer could also access such memory on
    // Windows.
    unsafe { standin_kernel_copy(destination, from, count) == 0 }
}
