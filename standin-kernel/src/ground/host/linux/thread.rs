//! The registers of a thread that user-mode code cannot set.

use nix::libc;

/// `ARCH_SET_GS`.
const SET_GS: libc::c_ulong = 0x1001;

/// Sets the base of GS on this thread. Nothing else in a 64-bit Linux process uses GS.
pub fn set_gs(base: u64) {
    // SAFETY: the call changes only the base of GS, and no code of this program uses GS.
    unsafe { libc::syscall(libc::SYS_arch_prctl, SET_GS, base) };
}
