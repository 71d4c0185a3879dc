//! The process in which a driver runs, and the memory that it shares with its parent.

use std::{
    ffi::c_void,
    io,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    ptr::NonNull,
};

use nix::{
    errno::Errno,
    sys::{
        mman::{MapFlags, ProtFlags, mmap_anonymous},
        signal::{Signal, kill},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::{ForkResult, Pid, fork},
};

/// The work of a process, apart from its closure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// The number of notes that the parent process has reported.
    pub notes: usize,
    /// Set if the process reads no symbols.
    pub without_symbols: bool,
}

/// Zeroed memory that is shared with child processes, and lives as long as each process.
pub struct Shared<T: 'static>(&'static T);

impl<T> Shared<T> {
    /// Allocates the memory.
    ///
    /// # Safety
    ///
    /// All zeros must be a valid value, and other processes may change the value at any time.
    pub unsafe fn new() -> io::Result<Self> {
        let size = NonZeroUsize::new(size_of::<T>()).ok_or(io::ErrorKind::InvalidInput)?;
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a fresh anonymous mapping aliases nothing.
        let mapping: NonNull<c_void> =
            unsafe { mmap_anonymous(None, size, protection, MapFlags::MAP_SHARED) }?;
        // SAFETY: the mapping is large enough, page-aligned and never unmapped, and the caller
        // guarantees that its zero bytes are a valid value.
        Ok(Self(unsafe { mapping.cast::<T>().as_ref() }))
    }

    /// Returns the memory and the task that the parent process passed to this process, if the
    /// process starts at the beginning of its program. On Linux, it starts in [`start`].
    ///
    /// # Safety
    ///
    /// As for [`Self::new`].
    #[expect(clippy::unnecessary_wraps, reason = "other hosts have errors here")]
    pub const unsafe fn inherited() -> io::Result<Option<(Self, Task)>> {
        Ok(None)
    }

    /// Returns the value.
    pub const fn value(&self) -> &'static T {
        self.0
    }
}

/// A child process.
pub struct Process(Pid);

/// The end of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The process ended with this exit code.
    Code(i32),
    /// The process was ended in the way that the string, which follows "ended the process", says.
    By(String),
}

/// Returns the image for whose run [`start`] started this process, if the process starts at the
/// beginning of its program.
#[expect(clippy::missing_const_for_fn, reason = "other hosts read the environment")]
pub fn started_for() -> Option<PathBuf> {
    None
}

/// Starts a process for a run of an image. It runs `work`, and ends with the exit code that `work`
/// returns. This process must have only one thread.
pub fn start<T>(
    _: &Shared<T>,
    _: Task,
    _: &Path,
    work: impl FnOnce() -> i32,
) -> io::Result<Process> {
    // SAFETY: the caller guarantees that this process has one thread, so the child's memory is as
    // consistent as the parent's.
    match unsafe { fork() }? {
        ForkResult::Child => std::process::exit(work()),
        ForkResult::Parent { child } => Ok(Process(child)),
    }
}

impl Process {
    /// Returns how the process ended, or `None` if it is running.
    #[expect(clippy::needless_pass_by_ref_mut, reason = "other hosts need it")]
    pub fn end(&mut self) -> io::Result<Option<End>> {
        Ok(match waitpid(self.0, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(_, code)) => Some(End::Code(code)),
            Ok(WaitStatus::Signaled(_, Signal::SIGSYS, _)) => Some(End::By(
                "by the signal SIGSYS: the confinement refused a system call".to_owned(),
            )),
            Ok(WaitStatus::Signaled(_, signal, _)) => {
                Some(End::By(format!("by the signal {signal}")))
            }
            Ok(_) | Err(Errno::EINTR) => None,
            Err(error) => return Err(error.into()),
        })
    }

    /// Ends the process, if it has not ended by itself.
    #[expect(clippy::needless_pass_by_ref_mut, reason = "other hosts need it")]
    pub fn kill(&mut self) {
        let _ended = kill(self.0, Signal::SIGKILL);
    }
}
