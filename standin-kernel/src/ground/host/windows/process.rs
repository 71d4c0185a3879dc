//! The process in which a driver runs, and the memory that it shares with its parent.
//!
//! Windows cannot copy a process, so the child is another process of the same program with the same
//! arguments. A variable in its environment names the memory and the task, and the program performs
//! the task where it would otherwise start a process.

use std::{
    env, io,
    os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    ptr,
};

use windows_sys::Win32::{
    Foundation::{HANDLE, INVALID_HANDLE_VALUE, TRUE},
    Security::SECURITY_ATTRIBUTES,
    System::{
        JobObjects::{
            AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
            JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectExtendedLimitInformation,
            SetInformationJobObject,
        },
        Memory::{CreateFileMappingW, FILE_MAP_ALL_ACCESS, MapViewOfFile, PAGE_READWRITE},
        Threading::GetCurrentProcess,
    },
};

/// The variable that names the child's handles of the shared memory and of its job, and its task.
const VARIABLE: &str = "WDK_ETW_TASK";

/// The variable that names the image.
const IMAGE: &str = "WDK_ETW_TASK_IMAGE";

/// The work of a process, apart from its closure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// The number of notes that the parent process has reported.
    pub notes: usize,
    /// Set if the process reads no symbols.
    pub without_symbols: bool,
}

/// Zeroed memory that is shared with child processes, and lives as long as each process.
pub struct Shared<T: 'static> {
    value: &'static T,
    section: OwnedHandle,
}

/// The attributes of a handle that child processes inherit.
fn inheritable() -> SECURITY_ATTRIBUTES {
    SECURITY_ATTRIBUTES {
        nLength: u32::try_from(size_of::<SECURITY_ATTRIBUTES>()).unwrap_or(0),
        lpSecurityDescriptor: ptr::null_mut(),
        bInheritHandle: TRUE,
    }
}

/// Takes the ownership of a handle that a call returned.
fn owned(handle: HANDLE) -> io::Result<OwnedHandle> {
    if handle.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: each caller passes the handle that a call has just returned, or that this process
    // inherited; nothing else owns it.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

impl<T> Shared<T> {
    /// Allocates the memory.
    ///
    /// # Safety
    ///
    /// All zeros must be a valid value, and other processes may change the value at any time.
    pub unsafe fn new() -> io::Result<Self> {
        let attributes = inheritable();
        let size = size_of::<T>() as u64;
        let [low, high] = [size & u64::from(u32::MAX), size >> 32]
            .map(|part| u32::try_from(part).unwrap_or(u32::MAX));
        // SAFETY: the attributes are a local, and the memory has no file and no name.
        let section = unsafe {
            CreateFileMappingW(
                INVALID_HANDLE_VALUE,
                &raw const attributes,
                PAGE_READWRITE,
                high,
                low,
                ptr::null(),
            )
        };
        Self::map(owned(section)?)
    }

    fn map(section: OwnedHandle) -> io::Result<Self> {
        let handle = section.as_raw_handle();
        // SAFETY: the call only adds pages, which nothing else in this process uses.
        let view = unsafe { MapViewOfFile(handle, FILE_MAP_ALL_ACCESS, 0, 0, size_of::<T>()) };
        // SAFETY: the view is as large as a value, page-aligned and never unmapped. The callers of
        // `new` and `inherited` guarantee that its bytes are a valid value.
        let value = unsafe { view.Value.cast::<T>().as_ref() };
        Ok(Self { value: value.ok_or_else(io::Error::last_os_error)?, section })
    }

    /// Returns the memory and the task that the parent process passed to this process, if
    /// [`start`] started it.
    ///
    /// # Safety
    ///
    /// As for [`Self::new`], with the same type.
    pub unsafe fn inherited() -> io::Result<Option<(Self, Task)>> {
        let Some(text) = env::var_os(VARIABLE) else {
            return Ok(None);
        };
        let words =
            text.to_string_lossy().split(' ').map(str::parse).collect::<Result<Vec<_>, _>>();
        let Ok([section, job, notes, without_symbols]) = words.as_deref() else {
            return Err(io::Error::other(format!("{VARIABLE} does not have four numbers")));
        };
        let job = owned(*job as HANDLE)?;
        // SAFETY: the function has no preconditions.
        let process = unsafe { GetCurrentProcess() };
        // The parent has the only other handle of the job, so this process ends with its parent.
        // SAFETY: the handle is open.
        if unsafe { AssignProcessToJobObject(job.as_raw_handle(), process) } == 0 {
            return Err(io::Error::last_os_error());
        }
        let task = Task { notes: *notes, without_symbols: *without_symbols != 0 };
        Ok(Some((Self::map(owned(*section as HANDLE)?)?, task)))
    }

    /// Returns the value.
    pub const fn value(&self) -> &'static T {
        self.value
    }
}

/// A child process, which ends when this value is dropped.
pub struct Process {
    child: Child,
    _job: OwnedHandle,
}

/// The end of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The process ended with this exit code.
    Code(i32),
    /// The process was ended in the way that the string, which follows "ended the process", says.
    By(String),
}

/// Returns the image for whose run [`start`] started this process.
pub fn started_for() -> Option<PathBuf> {
    env::var_os(IMAGE).map(PathBuf::from)
}

/// Starts a process for a run of an image. It finds the memory and the task with
/// [`Shared::inherited`].
pub fn start<T>(
    shared: &Shared<T>,
    task: Task,
    image: &Path,
    _: impl FnOnce() -> i32,
) -> io::Result<Process> {
    let job = job()?;
    let [section, job_handle] = [&shared.section, &job].map(|handle| handle.as_raw_handle().addr());
    let words = [section, job_handle, task.notes, usize::from(task.without_symbols)];
    let child = Command::new(env::current_exe()?)
        .args(env::args_os().skip(1))
        .env(VARIABLE, words.map(|word| word.to_string()).join(" "))
        .env(IMAGE, image)
        .stdin(Stdio::null())
        .spawn()?;
    Ok(Process { child, _job: job })
}

/// Creates a job whose processes end when its last handle is closed.
fn job() -> io::Result<OwnedHandle> {
    let attributes = inheritable();
    // SAFETY: the attributes are a local, and the job has no name.
    let job = owned(unsafe { CreateJobObjectW(&raw const attributes, ptr::null()) })?;
    let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
    limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
    let size = u32::try_from(size_of_val(&limits)).unwrap_or(0);
    let class = JobObjectExtendedLimitInformation;
    // SAFETY: the handle is open, and the limits are a local of this class.
    let set = unsafe {
        SetInformationJobObject(job.as_raw_handle(), class, (&raw const limits).cast(), size)
    };
    if set == 0 { Err(io::Error::last_os_error()) } else { Ok(job) }
}

impl Process {
    /// Returns how the process ended, or `None` if it is running.
    pub fn end(&mut self) -> io::Result<Option<End>> {
        /// The first status that denotes an error.
        const ERROR: u32 = 0xC000_0000;
        let Some(status) = self.child.try_wait()? else {
            return Ok(None);
        };
        let code = status.code().unwrap_or(0);
        let status = code.cast_unsigned();
        Ok(Some(if status < ERROR {
            End::Code(code)
        } else {
            let name = match status {
                0xC000_0005 => " (access violation)",
                0xC000_00FD => " (stack overflow)",
                0xC000_0409 => " (fast fail)",
                _ => "",
            };
            End::By(format!("by the exception 0x{status:08X}{name}"))
        }))
    }

    /// Ends the process, if it has not ended by itself.
    pub fn kill(&mut self) {
        let _ended = self.child.kill();
    }
}
