//! `__chkstk`, which functions with at least a page of locals call first. Such functions are most
//! common in debug builds, whose frames are not optimized.
//!
//! The probe touches each page of the frame in order, so that a stack overflow hits the guard page
//! and not memory beyond it. In WDK builds, a library provides it. Each definition is in its own
//! section, which the linker omits if nothing calls the definition.

use core::arch::global_asm;

// RAX contains the size of the frame. The probe preserves all registers except R10, R11 and the
// flags, and the caller adjusts the stack pointer.
#[cfg(target_arch = "x86_64")]
global_asm!(
    ".section .text$stack_probe, \"xr\", one_only, __chkstk",
    ".globl __chkstk",
    ".p2align 4",
    ".def __chkstk; .scl 2; .type 32; .endef",
    "__chkstk:",
    // R11 descends from the caller's stack pointer to R10, the end of the frame. If the frame size
    // exceeds the stack address, R10 is 0, which the loop cannot reach without a fault.
    "lea r11, [rsp + 8]",
    "mov r10, r11",
    "sub r10, rax",
    "jae 2f",
    "xor r10d, r10d",
    "2:",
    "sub r11, 0x1000",
    "cmp r11, r10",
    "jbe 3f",
    "test byte ptr [r11], r11b",
    "jmp 2b",
    "3:",
    "test byte ptr [r10], r10b",
    "ret",
    ".text",
);

// X15 contains the size of the frame in units of 16 bytes. The probe preserves all registers except
// X16, X17 and the flags, and the caller adjusts the stack pointer.
#[cfg(target_arch = "aarch64")]
global_asm!(
    ".section .text$stack_probe, \"xr\", one_only, __chkstk",
    ".globl __chkstk",
    ".p2align 2",
    ".def __chkstk; .scl 2; .type 32; .endef",
    "__chkstk:",
    "mov x17, sp",
    "subs x16, x17, x15, lsl #4",
    "csel x16, x16, xzr, hs",
    "2:",
    "sub x17, x17, #1, lsl #12",
    "cmp x17, x16",
    "b.ls 3f",
    "ldrb wzr, [x17]",
    "b 2b",
    "3:",
    "ldrb wzr, [x16]",
    "ret",
    ".text",
);
