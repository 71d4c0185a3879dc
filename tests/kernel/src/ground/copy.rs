//! The routine that copies bytes from or to addresses that may be wrong.

use std::arch::global_asm;

// Destination in rdi, source in rsi, count in rdx. Returns 0 in eax if all bytes were copied.
global_asm!(
    ".globl etw_testkernel_copy",
    ".globl etw_testkernel_copy_at",
    ".globl etw_testkernel_copy_failed",
    "etw_testkernel_copy:",
    "mov rcx, rdx",
    "etw_testkernel_copy_at:",
    "rep movsb",
    "xor eax, eax",
    "ret",
    "etw_testkernel_copy_failed:",
    "mov eax, 1",
    "ret",
);

unsafe extern "C" {
    fn etw_testkernel_copy(to: u64, from: u64, count: usize) -> u32;
    fn etw_testkernel_copy_at();
    fn etw_testkernel_copy_failed();
}

/// Returns the address of the copying instruction.
pub fn copying_instruction() -> u64 {
    etw_testkernel_copy_at as *const () as u64
}

/// Returns the address at which to continue after a fault of the instruction at `at`, if it is
/// the copying instruction.
pub fn after_fault(at: u64) -> Option<u64> {
    (at == copying_instruction()).then_some(etw_testkernel_copy_failed as *const () as u64)
}

/// Copies bytes. Returns `false` if a fault ended the copy early.
///
/// # Safety
///
/// One of the two ranges is a buffer of this program's. The process handles faults by
/// [`after_fault`].
pub unsafe fn copy(to: u64, from: u64, count: usize) -> bool {
    // SAFETY: the routine accesses only the two ranges. The caller guarantees that one range is a
    // buffer. The driver is responsible for the other: a fault in it ends the copy, and an
    // accessible range belongs to the driver or could also be hit by a wild pointer of a real
    // driver.
    unsafe { etw_testkernel_copy(to, from, count) == 0 }
}
