//! The memory routines that compilers call implicitly. They do not count as kernel calls: they
//! have no gateway, no IRQL limit, and no entry in a thread's call history.
//!
//! They are written in assembly language, without a frame. After a fault, the return address is
//! therefore at the stack pointer, and the caller's rdi and rsi are in r10 and r11. The stack probe
//! leaves rdi and rsi unchanged.

use std::arch::global_asm;

use super::unwind::Registers;

global_asm!(
    ".globl standin_kernel_memcpy", ".globl standin_kernel_memmove",
    ".globl standin_kernel_memset", ".globl standin_kernel_memcmp", ".globl standin_kernel_strlen",
    ".globl standin_kernel_chkstk", ".globl standin_kernel_guard_check",
    ".globl standin_kernel_guard_dispatch", ".globl standin_kernel_bare_end",
    // As in ntoskrnl.exe, memcpy does what memmove does: it copies forward unless the destination starts
    // within the source.
    ".macro standin_kernel_copy", "mov r10, rdi", "mov r11, rsi", "mov rax, rcx", "mov r9, rcx",
    "sub r9, rdx", "cmp r9, r8", "jb 2f", "mov rdi, rcx", "mov rsi, rdx", "mov rcx, r8",
    "rep movsb", "mov rdi, r10", "mov rsi, r11", "ret", "2:", "mov r9b, [rdx + r8 - 1]",
    "mov [rcx + r8 - 1], r9b", "dec r8", "jnz 2b", "ret", ".endm", "standin_kernel_memcpy:",
    "standin_kernel_copy", "standin_kernel_memmove:", "standin_kernel_copy",
    "standin_kernel_memset:", "mov r10, rdi", "mov r11, rsi", "mov r9, rcx", "mov eax, edx",
    "mov rdi, rcx", "mov rcx, r8", "rep stosb", "mov rdi, r10", "mov rax, r9", "ret",
    "standin_kernel_memcmp:", "mov r10, rdi", "mov r11, rsi", "xor r9d, r9d", "2:", "cmp r9, r8",
    "je 3f", "movzx eax, byte ptr [rcx + r9]", "cmp al, [rdx + r9]", "jne 4f", "inc r9", "jmp 2b",
    "3:", "xor eax, eax", "ret", "4:", "sbb eax, eax", "or eax, 1", "ret",
    "standin_kernel_strlen:", "mov r10, rdi", "mov r11, rsi", "xor eax, eax", "2:",
    "cmp byte ptr [rcx + rax], 0", "je 3f", "inc rax", "jmp 2b", "3:", "ret",
    // Touches each page of a frame of rax bytes, from the top down, so that a frame that does not
    // fit reaches the guard page. The routine preserves all registers. It saves two of them below
    // the stack pointer, which is safe because no signal is delivered there.
    "standin_kernel_chkstk:", "mov [rsp - 8], r10", "mov [rsp - 16], r11", "lea r10, [rsp + 8]",
    "mov r11, r10", "sub r11, rax", "jae 2f",
    // The frame is larger than the address space below the stack pointer.
    "xor r11d, r11d", "2:", "sub r10, 4096", "cmp r10, r11", "jbe 3f", "test byte ptr [r10], 0",
    "jmp 2b", "3:", "test byte ptr [r11], 0", "mov r10, [rsp - 8]", "mov r11, [rsp - 16]", "ret",
    "standin_kernel_bare_end:",
    // The routines that code with control flow guard calls. The first checks the target in rcx, and
    // the second jumps to the target in rax. Both preserve all registers.
    "standin_kernel_guard_check:", "ret", "standin_kernel_guard_dispatch:", "jmp rax",
);

unsafe extern "C" {
    fn standin_kernel_memcpy();
    fn standin_kernel_memmove();
    fn standin_kernel_memset();
    fn standin_kernel_memcmp();
    fn standin_kernel_strlen();
    fn standin_kernel_chkstk();
    fn standin_kernel_guard_check();
    fn standin_kernel_guard_dispatch();
    fn standin_kernel_bare_end();
}

/// Returns the addresses of the two control flow guard routines: first the check of a target, then
/// the jump to a target. They allow every target, as on a system without kernel control flow guard.
pub fn guards() -> (u64, u64) {
    (
        standin_kernel_guard_check as *const () as u64,
        standin_kernel_guard_dispatch as *const () as u64,
    )
}

/// The routine that a function with a page or more of local variables calls first, with the frame's
/// size in rax.
const STACK_PROBE: &str = "__chkstk";

/// Returns the routines and their addresses, in ascending order of address.
pub fn routines() -> [(&'static str, u64); 6] {
    [
        ("memcpy", standin_kernel_memcpy as *const () as u64),
        ("memmove", standin_kernel_memmove as *const () as u64),
        ("memset", standin_kernel_memset as *const () as u64),
        ("memcmp", standin_kernel_memcmp as *const () as u64),
        ("strlen", standin_kernel_strlen as *const () as u64),
        (STACK_PROBE, standin_kernel_chkstk as *const () as u64),
    ]
}

/// Returns the name of the routine that contains an instruction.
pub fn routine_at(address: u64) -> Option<&'static str> {
    if address >= standin_kernel_bare_end as *const () as u64 {
        return None;
    }
    let before = |(_, start): &(&str, u64)| *start <= address;
    let found = routines().into_iter().rev().find(before);
    found.map(|(name, _)| name)
}

/// Returns the caller's registers after the routine returns, given the registers at a memory access
/// in the routine. `return_address` is the word at the stack pointer.
pub fn caller(mut registers: Registers, return_address: u64) -> Registers {
    if routine_at(registers.rip) != Some(STACK_PROBE) {
        let [rdi, rsi] = [10, 11].map(|saved| registers.get(saved));
        registers.set(7, rdi);
        registers.set(6, rsi);
    }
    registers.rip = return_address;
    registers.set_rsp(registers.rsp().wrapping_add(8));
    registers
}

#[cfg(test)]
mod tests {
    use std::{arch::asm, cmp::Ordering, mem::transmute};

    use super::*;

    type Memory = extern "win64" fn(*mut u8, *const u8, usize) -> *mut u8;
    type Set = extern "win64" fn(*mut u8, i32, usize) -> *mut u8;
    type Compare = extern "win64" fn(*const u8, *const u8, usize) -> i32;
    type Length = extern "win64" fn(*const u8) -> usize;

    #[test]
    fn routines_are_found_by_their_code() {
        for (name, start) in routines() {
            assert_eq!(routine_at(start), Some(name));
            assert_eq!(routine_at(start + 6), Some(name));
        }
        assert_eq!(routine_at(routines()[0].1 - 1), None);
        let end = standin_kernel_bare_end as *const () as u64;
        assert_eq!((routine_at(end - 1), routine_at(end)), (Some(STACK_PROBE), None));
    }

    #[test]
    fn copies_are_those_of_slices() {
        // SAFETY: the routines have these parameters.
        let copy = unsafe { transmute::<*const (), Memory>(standin_kernel_memcpy as *const ()) };
        // SAFETY: as above.
        let shift = unsafe { transmute::<*const (), Memory>(standin_kernel_memmove as *const ()) };
        let whole: Vec<u8> = (0..100).collect();
        for (from, to, count) in [(0, 10, 40), (10, 0, 40), (5, 5, 9), (0, 50, 50), (3, 4, 0)] {
            let mut expected = whole.clone();
            expected.copy_within(from..from + count, to);
            for routine in [copy, shift] {
                let mut moved = whole.clone();
                let start = moved.as_mut_ptr();
                let target = start.wrapping_add(to);
                assert_eq!(routine(target, start.wrapping_add(from), count), target);
                assert_eq!(moved, expected);
            }
        }
        let mut copied = [0; 100];
        let target = copied.as_mut_ptr();
        assert_eq!(copy(target, whole.as_ptr(), 99), target);
        assert_eq!((&copied[..99], copied[99]), (&whole[..99], 0));
    }

    #[test]
    fn the_other_routines_are_those_of_c() {
        // SAFETY: the routines have these parameters.
        let set = unsafe { transmute::<*const (), Set>(standin_kernel_memset as *const ()) };
        // SAFETY: as above.
        let compare =
            unsafe { transmute::<*const (), Compare>(standin_kernel_memcmp as *const ()) };
        // SAFETY: as above.
        let length = unsafe { transmute::<*const (), Length>(standin_kernel_strlen as *const ()) };
        let mut bytes = [1_u8; 9];
        let target = bytes.as_mut_ptr();
        assert_eq!(set(target, 0x1FE, 8), target);
        assert_eq!(bytes, [0xFE, 0xFE, 0xFE, 0xFE, 0xFE, 0xFE, 0xFE, 0xFE, 1]);
        for (one, other, count) in [("abc", "abd", 3), ("abc", "abd", 2), ("\u{7f}", "\0", 1)] {
            let expected = one.as_bytes()[..count].cmp(&other.as_bytes()[..count]);
            let found = compare(one.as_ptr(), other.as_ptr(), count).cmp(&0);
            assert_eq!(found, expected);
            assert_eq!(compare(other.as_ptr(), one.as_ptr(), count).cmp(&0), expected.reverse());
        }
        assert_eq!(compare([200].as_ptr(), [1].as_ptr(), 1).cmp(&0), Ordering::Greater);
        assert_eq!((length(c"".as_ptr().cast()), length(c"four".as_ptr().cast())), (0, 4));
    }

    #[test]
    fn the_stack_probe_preserves_all_registers() {
        for size in [0_u64, 1, 4096, 20_000] {
            let mut registers = [1_u64, 2, 3, 4, 5, 6];
            let [rcx, rdx, r8, r9, r10, r11] = &mut registers;
            let mut rax = size;
            // SAFETY: the routine reads the stack below the stack pointer, and a test's thread has much
            // more stack than the frame needs.
            unsafe {
                asm!(
                    "call {probe}",
                    probe = sym standin_kernel_chkstk,
                    inout("rax") rax,
                    inout("rcx") *rcx,
                    inout("rdx") *rdx,
                    inout("r8") *r8,
                    inout("r9") *r9,
                    inout("r10") *r10,
                    inout("r11") *r11,
                );
            }
            assert_eq!((rax, registers), (size, [1, 2, 3, 4, 5, 6]));
        }
    }

    #[test]
    fn the_caller_of_the_stack_probe_has_its_own_registers() {
        let mut registers = Registers::default();
        registers.set(7, 70);
        registers.set(6, 60);
        registers.set(10, 100);
        registers.rip = standin_kernel_chkstk as *const () as u64;
        let found = caller(registers, 5);
        assert_eq!((found.get(7), found.get(6), found.rip), (70, 60, 5));
        registers.rip = standin_kernel_memcpy as *const () as u64;
        assert_eq!(caller(registers, 5).get(7), 100);
    }
}
