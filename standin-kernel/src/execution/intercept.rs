//! The path from a faulting instruction of driver code into the kernel and back.
//!
//! The fault handler only stores the registers on the stack of this program's code and returns to a
//! routine there. The routine saves the processor's extended state and passes the access to
//! [`accessors`], which may call the driver. Then it continues after the instruction with all the
//! driver's registers restored. If the access is not served, the fault is reported.

use std::{
    arch::{asm, global_asm, x86_64},
    sync::OnceLock,
};

use super::{accessors, exceptions, frame::Frame, stack};
use crate::ground::host::{
    fault::{Diversion, Trap},
    resume,
};

const _: () = assert!(stack::DRIVER == -16, "the routine restores it");

// The frame is in rdi and starts at the stack pointer. The header of the XSAVE area must be zero at
// first, because XSAVE does not write its reserved bytes.
global_asm!(
    ".globl standin_kernel_intercept",
    "standin_kernel_intercept:",
    "mov rbx, rdi",
    // A host may extend the stack one page at a time.
    "mov rcx, [rbx + 144]",
    "6:",
    "cmp rcx, 4096",
    "jb 7f",
    "sub rsp, 4096",
    "test byte ptr [rsp], 0",
    "sub rcx, 4096",
    "jmp 6b",
    "7:",
    "sub rsp, rcx",
    "and rsp, -64",
    "xor eax, eax",
    "mov [rsp + 512], rax",
    "mov [rsp + 520], rax",
    "mov [rsp + 528], rax",
    "mov [rsp + 536], rax",
    "mov [rsp + 544], rax",
    "mov [rsp + 552], rax",
    "mov [rsp + 560], rax",
    "mov [rsp + 568], rax",
    "cmp qword ptr [rbx + 152], 0",
    "je 2f",
    "mov eax, -1",
    "mov edx, -1",
    "xsave64 [rsp]",
    "jmp 3f",
    "2:",
    "fxsave64 [rsp]",
    "3:",
    "mov rdi, rbx",
    "mov rsi, rsp",
    "call {serve}",
    "cmp qword ptr [rbx + 152], 0",
    "je 4f",
    "mov eax, -1",
    "mov edx, -1",
    "xrstor64 [rsp]",
    "jmp 5f",
    "4:",
    "fxrstor64 [rsp]",
    "5:",
    "mov rcx, [rbx + 128]",
    "mov rdx, [rbx + 136]",
    "mov [rcx - 16], rdx",
    "mov rax, [rbx]",
    "mov rcx, [rbx + 8]",
    "mov rdx, [rbx + 16]",
    "mov rbp, [rbx + 40]",
    "mov rsi, [rbx + 48]",
    "mov rdi, [rbx + 56]",
    "mov r8, [rbx + 64]",
    "mov r9, [rbx + 72]",
    "mov r10, [rbx + 80]",
    "mov r11, [rbx + 88]",
    "mov r12, [rbx + 96]",
    "mov r13, [rbx + 104]",
    "mov r14, [rbx + 112]",
    "mov r15, [rbx + 120]",
    "lea rsp, [rbx + 160]",
    "mov rbx, [rbx + 24]",
    "iretq",
    serve = sym serve,
);

unsafe extern "C" {
    fn standin_kernel_intercept();
}

/// The size of the area for the extended state, and whether XSAVE saves it.
fn state() -> (u64, bool) {
    /// The size of the FXSAVE area, with room for the header, which is always zeroed.
    const LEGACY: u64 = 576;
    static STATE: OnceLock<(u64, bool)> = OnceLock::new();
    *STATE.get_or_init(|| {
        let features = x86_64::__cpuid(1);
        if features.ecx & 1 << 27 == 0 {
            return (LEGACY, false);
        }
        // Every processor with XSAVE supports this CPUID leaf.
        let sizes = x86_64::__cpuid_count(0xD, 0);
        (u64::from(sizes.ebx).next_multiple_of(64).max(LEGACY), true)
    })
}

/// Determines the values that [`divert`] needs but cannot determine in a fault handler.
pub fn prepare() {
    state();
}

/// Stores the registers of a faulting instruction in a frame on the kernel's own stack, and returns
/// where to resume. The stack pointer at the fault must be in the driver's stack.
pub fn divert(trap: &Trap) -> Diversion {
    let rsp = trap.registers.rsp();
    let range = stack::RANGE as u64;
    let end = (rsp & !(range - 1)) + range;
    let slot = |place: i32| end.wrapping_add_signed(i64::from(place)) as *mut u64;
    // SAFETY: the stack pointer is in a stack's range, whose last words are the two stack pointers.
    let host = unsafe { slot(stack::HOST).read() };
    // SAFETY: as above.
    let driver = unsafe { slot(stack::DRIVER).read() };
    // SAFETY: as above. A routine may call the driver, which then continues below this stack pointer.
    unsafe { slot(stack::DRIVER).write(rsp) };
    let (cs, ss): (u64, u64);
    // SAFETY: the instructions only read the selectors.
    unsafe {
        asm!("mov {:e}, cs", out(reg) cs, options(nomem, nostack, preserves_flags));
    }
    // SAFETY: as above.
    unsafe {
        asm!("mov {:e}, ss", out(reg) ss, options(nomem, nostack, preserves_flags));
    }
    let (state_bytes, has_xsave) = state();
    let frame = (host - size_of::<Frame>() as u64) & !63;
    // SAFETY: the place is below the frames of this thread's own code, on the stack that it left to run
    // the driver.
    unsafe {
        (frame as *mut Frame).write(Frame {
            general: trap.registers.general,
            end,
            driver,
            state_bytes,
            has_xsave: u64::from(has_xsave),
            rip: trap.registers.rip,
            cs,
            flags: trap.flags,
            rsp,
            ss,
            trap: *trap,
        });
    }
    Diversion {
        instruction: standin_kernel_intercept as *const () as u64,
        stack: frame,
        argument: frame,
    }
}

/// Serves an instruction's access, makes the driver continue in its handler for the exception, or reports
/// the fault.
extern "sysv64" fn serve(frame: &mut Frame, state: *mut u8) {
    if accessors::serve(frame) {
        return;
    }
    // SAFETY: only the routine above calls this function, with the area that it has filled.
    if !unsafe { exceptions::serve_fault(frame, state) } {
        resume(frame.trap);
    }
}
