//! Processes that a test starts.

use super::{error::KernelError, kernel::Kernel, runner::Runner};
use crate::{
    execution::identity::Identity,
    services::ntoskrnl::ps::watchers::{self, NewProcess},
};

/// A process that a test has started with [`Kernel::start_process`]. It runs no code, but drivers
/// with process callbacks are notified about it.
pub struct Process {
    runner: Runner,
    identity: Identity,
}

impl Kernel {
    /// Notifies drivers with process or thread callbacks that the system starts a process.
    ///
    /// `identity` is the process and its first thread. `image` is the path of its image, such as
    /// `\??\C:\Windows\System32\notepad.exe`.
    ///
    /// # Errors
    ///
    /// Returns an error with the status if a driver refuses the process, or if the kernel bugchecks.
    pub fn start_process(
        &self,
        identity: Identity,
        image: &str,
        command_line: &str,
    ) -> Result<Process, KernelError> {
        let process =
            NewProcess { identity, image: image.to_owned(), command_line: command_line.to_owned() };
        let status = self.runner().ntoskrnl(Identity::SYSTEM, move |context| {
            watchers::start_process(context, &process)
        })?;
        if !status.is_success() {
            return Err(KernelError::Status { routine: "starting the process", status });
        }
        Ok(Process { runner: self.runner().clone(), identity })
    }
}

impl Process {
    /// Returns the identity of the process and its first thread. A test can open files with it.
    #[must_use]
    pub const fn identity(&self) -> Identity {
        self.identity
    }

    /// Notifies drivers with image callbacks that the process maps an image. `base` is the image's
    /// address, and `size` is its size in bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel bugchecks.
    pub fn load_image(&self, path: &str, base: u64, size: u64) -> Result<(), KernelError> {
        let path = path.to_owned();
        self.runner.ntoskrnl(self.identity, move |context| {
            watchers::load_image(context, &path, base, size);
        })?;
        Ok(())
    }

    /// Starts another thread, and notifies drivers with thread callbacks.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel bugchecks.
    pub fn start_thread(&self, thread: u32) -> Result<(), KernelError> {
        self.tell_of_thread(thread, true)
    }

    /// Ends a thread, and notifies drivers with thread callbacks.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel bugchecks.
    pub fn end_thread(&self, thread: u32) -> Result<(), KernelError> {
        self.tell_of_thread(thread, false)
    }

    fn tell_of_thread(&self, thread: u32, starts: bool) -> Result<(), KernelError> {
        let thread = Identity { thread, ..self.identity };
        // A thread of the process starts another; a thread that ends still runs.
        let by = if starts { self.identity } else { thread };
        self.runner.ntoskrnl(by, move |context| {
            watchers::tell_of_thread(context, thread, starts);
        })?;
        Ok(())
    }

    /// Ends the process, and notifies drivers with process or thread callbacks.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel bugchecks.
    pub fn end(self) -> Result<(), KernelError> {
        let identity = self.identity;
        self.runner.ntoskrnl(identity, move |context| {
            watchers::end_process(context, identity, Identity::SYSTEM.process, true);
        })?;
        Ok(())
    }
}
