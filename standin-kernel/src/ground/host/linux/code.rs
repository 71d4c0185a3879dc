//! The code of images, whose system calls are reported.
//!
//! In a Linux process, the instruction `syscall` does not fault: it makes a Linux system call, which
//! the driver's author did not intend. Linux 5.11 and later can send a signal instead, unless the
//! instruction is in a given address range. So images are mapped below all other code of the process,
//! and that range covers everything above them. The kernel's own system calls work as usual.

use std::{
    io,
    ops::Range,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use nix::libc;
use syscalls::Sysno;

use super::memory::Mapping;
use crate::ground::unwind::Table;

/// The addresses at which images are mapped. Linux and sanitizers choose other addresses.
const IMAGES: std::ops::Range<u64> = 0x2000_0000_0000..0x3000_0000_0000;
/// The distance between the addresses that are tried.
const STEP: u64 = 1 << 20;
/// The number of addresses that are tried.
const TRIES: u32 = 64;

/// `PR_SET_SYSCALL_USER_DISPATCH` and its modes.
pub const SET_DISPATCH: libc::c_int = 59;
const OFF: libc::c_ulong = 0;
const ON: libc::c_ulong = 1;

/// The code of the signal (`SYS_USER_DISPATCH`).
pub const DISPATCHED: libc::c_int = 2;
/// The code of the signal for a call that a filter refuses (`SYS_SECCOMP`).
pub const REFUSED: libc::c_int = 1;

/// Set if this process has installed a filter that refuses system calls with the signal.
static ARE_REFUSED: AtomicBool = AtomicBool::new(false);

/// Reports the system calls that this process's filter refuses from now on.
pub fn report_refused() {
    ARE_REFUSED.store(true, Ordering::Relaxed);
}

/// Returns whether a signal with this code reports a system call.
pub fn is_reported(code: libc::c_int) -> bool {
    code == DISPATCHED || (code == REFUSED && ARE_REFUSED.load(Ordering::Relaxed))
}

/// The instructions that make system calls: `syscall`, `int 0x80` and `sysenter`.
pub const INSTRUCTIONS: [([u8; 2], &str); 3] =
    [([0x0F, 0x05], "syscall"), ([0xCD, 0x80], "int 80h"), ([0x0F, 0x34], "sysenter")];

/// Maps writable memory for an image, if possible at an address where the image's system calls are
/// reported.
pub fn map_image(size: usize) -> io::Result<Mapping> {
    // Event data often contains numbers with many zero bytes, which must not look like addresses.
    static NEXT: AtomicU64 = AtomicU64::new(0x0A5C_9E30_0000);
    let length = IMAGES.end - IMAGES.start;
    // A gap between two images makes an access past the end of an image fault.
    let space = (size as u64).next_multiple_of(STEP) + STEP;
    for _ in 0..TRIES {
        let offset = NEXT.fetch_add(space, Ordering::Relaxed) % length;
        let mapping = Mapping::at(IMAGES.start + offset, size)?;
        // The address may already be in use.
        if are_reported_at(&mapping) {
            return Ok(mapping);
        }
    }
    Mapping::new(size)
}

fn are_reported_at(mapping: &Mapping) -> bool {
    let start = mapping.address();
    IMAGES.contains(&start) && start + mapping.size() as u64 <= IMAGES.end
}

/// The instructions of an image that the host has replaced. This host replaces none.
pub struct Replaced;

/// Replaces the instructions of an image that the host cannot report as faults. `sections` are the
/// offsets of its code.
pub const fn replace_instructions(
    _image: &mut [u8],
    _base: u64,
    _functions: &Table,
    _sections: &[Range<usize>],
) -> Replaced {
    Replaced
}

/// Restores the replaced instructions in code that was read at an address.
pub const fn restore(_address: u64, _code: &mut [u8]) {}

/// Returns whether an image's code contains the bytes of an instruction that makes a system call.
pub fn has_system_calls(image: &[u8], _functions: &Table, sections: &[Range<usize>]) -> bool {
    let mut code = sections.iter().filter_map(|section| image.get(section.clone()));
    code.any(|code| {
        let mut pairs = code.windows(2);
        pairs.any(|two| INSTRUCTIONS.iter().any(|(instruction, _)| instruction == two))
    })
}

/// Returns the reason that this host executes an instruction in an image that makes a system call,
/// if it does.
pub fn unreported_calls() -> Option<&'static str> {
    (!are_reported()).then_some(
        "this system cannot report such an instruction and would make the call (Linux 5.11 or \
         later and a position-independent program can)",
    )
}

/// The environment variable that lets drivers make system calls if its value is `made`, as on Linux
/// before 5.11.
const SETTING: &str = "WDK_ETW_SYSTEM_CALLS";

/// Returns whether system calls by images are reported as faults in this process.
fn are_reported() -> bool {
    static SUPPORTED: OnceLock<bool> = OnceLock::new();
    *SUPPORTED.get_or_init(|| {
        if std::env::var_os(SETTING).is_some_and(|value| value == "made") {
            return false;
        }
        // A program that is not position-independent lies below the images and would also be
        // reported.
        let own = [are_reported as *const () as u64, libc::syscall as *const () as u64];
        own.iter().all(|address| *address >= IMAGES.end) && dispatch(OFF, 0, 0)
    })
}

/// Returns the name of a system call, or a phrase with its number.
pub fn call_name(number: u64) -> String {
    let known = usize::try_from(number).ok().and_then(Sysno::new);
    known.map_or_else(|| format!("with the number {number}"), |call| format!("`{call}`"))
}

/// Makes system calls by images on this thread fault from now on, if the system supports that.
pub fn report_on_this_thread() {
    if are_reported() {
        dispatch(ON, IMAGES.end, u64::MAX - IMAGES.end);
    }
}

/// Sets the address range from which system calls are allowed.
fn dispatch(mode: libc::c_ulong, start: u64, length: u64) -> bool {
    let nothing: libc::c_ulong = 0;
    // SAFETY: the call reads and writes no memory of this process, and all code of the process
    // except the images' code is in the range.
    unsafe { libc::prctl(SET_DISPATCH, mode, start, length, nothing) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_mapped_where_their_system_calls_are_reported() {
        let mappings: Vec<_> = (0..3).map(|_| map_image(0x5000).unwrap()).collect();
        assert!(mappings.iter().all(are_reported_at));
    }

    #[test]
    fn the_process_can_make_system_calls() {
        report_on_this_thread();
        assert!(std::fs::metadata("/").is_ok());
        assert!(dispatch(OFF, 0, 0) || !are_reported());
    }
}
