//! The operating system on which the stand-in kernel runs.
//!
//! Drivers run natively, so the kernel needs from its host what an operating system gives a
//! debugger or a runtime: memory at chosen addresses, faults with registers, threads that can be
//! interrupted, and a process for each run. [`linux`](self) and Windows provide the same items.
//! Only this module and the confinement of a run know which host it is.

pub mod fault;
#[cfg(target_os = "linux")]
mod linux;
pub mod protection;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(windows)]
use windows as system;

#[cfg(all(feature = "run", target_os = "linux"))]
pub use linux::code::{SET_DISPATCH, report_refused};
#[cfg(feature = "run")]
pub use system::{
    files::shell_word,
    process::{End, Process, Shared, Task, start, started_for},
};

#[cfg(test)]
pub use system::files::link_folder;
pub use system::{
    code::{
        INSTRUCTIONS, Replaced, call_name, has_system_calls, map_image, replace_instructions,
        report_on_this_thread, restore, unreported_calls,
    },
    faults::{Interruption, resume, resume_at, trap, watch},
    files::{file_number, folder_of_volume},
    memory::{FAULT_ROOM, Mapping},
    thread::set_gs,
};
