//! `__chkstk`, which a function calls before it takes a page or more of stack: most often in a
//! debug build, where nothing shortens its frame.
//!
//! It touches each page on the way down, so that a stack that is too short ends at its guard page
//! and not behind it. The WDK's libraries have it for a driver. Each definition is in a section
//! of its own, which the linker leaves out if nothing calls it.

use core::arch::global_asm;

// RAX has the size of the frame. All registers but R10, R11 and the flags stay as they are, and
// the caller takes the stack itself.
#[cfg(target_arch = "x86_64")]
global_asm!(
    ".section .text$stack_probe, \"xr\", one_only, __chkstk",
    ".globl __chkstk",
    ".p2align 4",
    ".def __chkstk; .scl 2; .type 32; .endef",
    "__chkstk:",
    // R11 goes down from the caller's stack pointer, and R10 is where the frame ends. A frame
    // larger than what lies below ends at address 0, which nobody reaches.
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

// X15 has the size of the frame in units of 16 bytes. All registers but X16, X17 and the flags
// stay as they are, and the caller takes the stack itself.
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
