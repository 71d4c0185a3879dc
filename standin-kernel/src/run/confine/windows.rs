//! The confinement on Windows, which is a job object.

use std::{io, iter, ptr};

use anyhow::{Result, bail};
use windows_sys::Win32::System::{
    JobObjects::{
        AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_ACTIVE_PROCESS,
        JOB_OBJECT_UILIMIT_DESKTOP, JOB_OBJECT_UILIMIT_DISPLAYSETTINGS,
        JOB_OBJECT_UILIMIT_EXITWINDOWS, JOB_OBJECT_UILIMIT_GLOBALATOMS, JOB_OBJECT_UILIMIT_HANDLES,
        JOB_OBJECT_UILIMIT_READCLIPBOARD, JOB_OBJECT_UILIMIT_SYSTEMPARAMETERS,
        JOB_OBJECT_UILIMIT_WRITECLIPBOARD, JOBOBJECT_BASIC_LIMIT_INFORMATION,
        JOBOBJECT_BASIC_UI_RESTRICTIONS, JOBOBJECTINFOCLASS, JobObjectBasicLimitInformation,
        JobObjectBasicUIRestrictions, SetInformationJobObject,
    },
    Threading::GetCurrentProcess,
};

use super::files::Files;

/// The confinement mechanism that Windows provides.
#[derive(Clone, Copy)]
pub struct Confinement;

#[expect(clippy::unused_self, reason = "what other systems support differs from system to system")]
impl Confinement {
    /// Determines what the system supports.
    pub const fn of_this_system() -> Self {
        Self
    }

    /// Returns a sentence for each mechanism that the system lacks.
    pub fn missing(self) -> impl Iterator<Item = &'static str> {
        iter::once(
            "the driver is not kept from files and sockets: it can open all that you can, since \
             Windows has no equivalent of Landlock; it is kept from starting programs",
        )
    }

    /// Returns 0: the process is in a job that ends with its parent.
    pub const fn parent() -> u32 {
        0
    }

    /// Permanently keeps this process from starting processes, and from the desktop, the clipboard
    /// and the windows of other processes.
    pub fn apply(self, _parent: u32, _files: Files<'_>) -> Result<()> {
        // SAFETY: the job has default attributes and no name.
        let job = unsafe { CreateJobObjectW(ptr::null(), ptr::null()) };
        let set = |class: JOBOBJECTINFOCLASS, limits: *const core::ffi::c_void, size: usize| {
            // SAFETY: the handle is null or open, and the limits are a local of this class.
            unsafe { SetInformationJobObject(job, class, limits, u32::try_from(size).unwrap_or(0)) }
        };
        let limits = JOBOBJECT_BASIC_LIMIT_INFORMATION {
            LimitFlags: JOB_OBJECT_LIMIT_ACTIVE_PROCESS,
            ActiveProcessLimit: 1,
            ..Default::default()
        };
        let interface = JOBOBJECT_BASIC_UI_RESTRICTIONS {
            UIRestrictionsClass: JOB_OBJECT_UILIMIT_DESKTOP
                | JOB_OBJECT_UILIMIT_DISPLAYSETTINGS
                | JOB_OBJECT_UILIMIT_EXITWINDOWS
                | JOB_OBJECT_UILIMIT_GLOBALATOMS
                | JOB_OBJECT_UILIMIT_HANDLES
                | JOB_OBJECT_UILIMIT_READCLIPBOARD
                | JOB_OBJECT_UILIMIT_SYSTEMPARAMETERS
                | JOB_OBJECT_UILIMIT_WRITECLIPBOARD,
        };
        let classes = [
            set(JobObjectBasicLimitInformation, (&raw const limits).cast(), size_of_val(&limits)),
            set(
                JobObjectBasicUIRestrictions,
                (&raw const interface).cast(),
                size_of_val(&interface),
            ),
        ];
        // SAFETY: the function has no preconditions.
        let process = unsafe { GetCurrentProcess() };
        // The handle stays open, so that the job lives as long as this process.
        // SAFETY: the handle is null or open.
        let assigned = unsafe { AssignProcessToJobObject(job, process) };
        if classes.contains(&0) || assigned == 0 {
            bail!("cannot confine the process with a job object: {}", io::Error::last_os_error());
        }
        Ok(())
    }
}
