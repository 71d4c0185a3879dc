//! The registers of an instruction of driver code that is interrupted so that its access can be
//! served.

use std::mem::offset_of;

use crate::ground::host::fault::Trap;

/// The registers of an interrupted instruction, on the stack of this program's code. The routine in
/// [`super::intercept`] resumes the driver with these registers.
#[repr(C, align(64))]
pub struct Frame {
    /// The general registers, in the processor's order. Of the two copies of the stack pointer,
    /// only [`Self::rsp`] is used to resume.
    pub general: [u64; 16],
    /// The end of the range that contains the driver's stack.
    pub end: u64,
    /// The stack pointer from which the driver last continued.
    pub driver: u64,
    /// The size in bytes of the area for the extended state.
    pub state_bytes: u64,
    /// 1 if XSAVE saves the extended state, 0 if FXSAVE does.
    pub has_xsave: u64,
    /// The address at which the driver resumes.
    pub rip: u64,
    /// The code selector.
    pub cs: u64,
    /// The flags.
    pub flags: u64,
    /// The stack pointer.
    pub rsp: u64,
    /// The stack selector.
    pub ss: u64,
    /// The fault.
    pub trap: Trap,
}

const _: () = {
    assert!(offset_of!(Frame, end) == 128, "the routine has the offsets");
    assert!(offset_of!(Frame, driver) == 136, "as above");
    assert!(offset_of!(Frame, state_bytes) == 144, "as above");
    assert!(offset_of!(Frame, has_xsave) == 152, "as above");
    assert!(offset_of!(Frame, rip) == 160, "an interrupt return takes the rest");
    assert!(offset_of!(Frame, ss) == 192, "as above");
};
