//! Notification routines for processes, threads, images and other system activity.

use core::{
    ffi::c_void,
    ptr,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
};

use etw_driver_support::{counted, utf16};
use wdk_sys::{
    BOOLEAN, HANDLE, KBUGCHECK_CALLBACK_REASON, KBUGCHECK_REASON_CALLBACK_RECORD, LARGE_INTEGER,
    NTSTATUS, OB_CALLBACK_REGISTRATION, OB_OPERATION_REGISTRATION, OB_PREOP_CALLBACK_STATUS,
    PCREATE_PROCESS_NOTIFY_ROUTINE, PCREATE_PROCESS_NOTIFY_ROUTINE_EX,
    PCREATE_THREAD_NOTIFY_ROUTINE, PEPROCESS, PEX_CALLBACK_FUNCTION, PIMAGE_INFO,
    PLOAD_IMAGE_NOTIFY_ROUTINE, POB_POST_OPERATION_INFORMATION, POB_PRE_OPERATION_INFORMATION,
    PPS_CREATE_NOTIFY_INFO, PUNICODE_STRING, PVOID, STATUS_ACCESS_DENIED,
    STATUS_PROCEDURE_NOT_FOUND,
};

use crate::{
    call::{NULL, call, driver, field, pointer, same, set_field},
    threads,
    variables::variable,
};

/// Set if [`watch`] has registered routines.
static WATCHES: AtomicBool = AtomicBool::new(false);

unsafe extern "C" fn process(parent: HANDLE, id: HANDLE, created: BOOLEAN) {
    wdk::println!("process {} {} {created}", parent.addr(), id.addr());
}

/// Prints the process, and refuses a process whose command line is empty.
unsafe extern "C" fn process_ex(object: PEPROCESS, id: HANDLE, info: PPS_CREATE_NOTIFY_INFO) {
    same!(call!(PsGetProcessId, object), id);
    // SAFETY: the kernel passes a structure for a new process.
    let Some(info) = (unsafe { info.as_mut() }) else {
        wdk::println!("end {}", id.addr());
        return;
    };
    same!(info.Size, 72);
    // SAFETY: the kernel passes both names.
    let [image, command_line] = [info.ImageFileName, info.CommandLine].map(|name| unsafe { *name });
    let parent = info.ParentProcessId.addr();
    wdk::println!("start {} of {parent} {}", id.addr(), image.Length / 2);
    if command_line.Length == 0 {
        info.CreationStatus = STATUS_ACCESS_DENIED;
    }
}

unsafe extern "C" fn thread(process: HANDLE, id: HANDLE, created: BOOLEAN) {
    wdk::println!("thread {} {} {created}", process.addr(), id.addr());
}

unsafe extern "C" fn image(name: PUNICODE_STRING, process: HANDLE, info: PIMAGE_INFO) {
    let base: u64 = field(info.cast(), 8);
    let length = field::<u16>(name.cast(), 0) / 2;
    wdk::println!("image {length} {} {base:#x}", process.addr());
}

const unsafe extern "C" fn registry(_context: PVOID, _class: PVOID, _argument: PVOID) -> NTSTATUS {
    0
}

/// The operations before and after which the routines were called: 1 for each creation of a handle, and
/// 16 for each duplication.
static BEFORE: AtomicU32 = AtomicU32::new(0);
static AFTER: AtomicU32 = AtomicU32::new(0);

/// Checks the information about an operation on a handle of the current process, and counts it.
fn note_operation(count: &AtomicU32, context: PVOID, information: PVOID) {
    let operation: u32 = field(information, 0);
    same!(context, 0x77);
    same!(field::<u32>(information, 4), 1);
    same!(field::<PVOID>(information, 8), call!(IoGetCurrentProcess));
    count.fetch_add(if operation == 1 { 1 } else { 16 }, Ordering::Relaxed);
}

unsafe extern "C" fn before_operation(
    context: PVOID,
    information: POB_PRE_OPERATION_INFORMATION,
) -> OB_PREOP_CALLBACK_STATUS {
    let information: PVOID = information.cast();
    note_operation(&BEFORE, context, information);
    let parameters: PVOID = field(information, 32);
    same!(field::<u32>(parameters, 0), 0x400);
    same!(field::<u32>(parameters, 4), 0x400);
    set_field(information, 24, 5_u64);
    0
}

unsafe extern "C" fn after_operation(context: PVOID, information: POB_POST_OPERATION_INFORMATION) {
    let information: PVOID = information.cast();
    note_operation(&AFTER, context, information);
    same!(field::<u64>(information, 24), 5);
    same!(field::<u32>(information, 32), 0);
    same!(field::<u32>(field(information, 40), 0), 0x400);
}

/// A driver's structure for operations on process handles.
struct Handles {
    operation: OB_OPERATION_REGISTRATION,
    registration: OB_CALLBACK_REGISTRATION,
}

/// The number of created thread handles.
static THREADS: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn before_thread(
    _context: PVOID,
    information: POB_PRE_OPERATION_INFORMATION,
) -> OB_PREOP_CALLBACK_STATUS {
    same!(field::<u32>(information.cast(), 0), 1);
    THREADS.fetch_add(1, Ordering::Relaxed);
    0
}

const unsafe extern "C" fn end_at_once(_context: *mut c_void) {}

/// The creation of a thread creates a handle.
fn watch_threads() {
    let mut handles = Handles::new();
    handles.operation = OB_OPERATION_REGISTRATION {
        ObjectType: variable("PsThreadType").cast(),
        Operations: 1,
        PreOperation: Some(before_thread),
        PostOperation: None,
    };
    let mut handle = NULL;
    same!(handles.register(&mut handle), 0);
    threads::join(threads::start(end_at_once, NULL));
    call!(ObUnRegisterCallbacks, handle);
    same!(THREADS.load(Ordering::Relaxed), 1);
}

static ALTITUDE: [u16; 6] = utf16(b"321000");

impl Handles {
    fn new() -> Self {
        Self {
            operation: OB_OPERATION_REGISTRATION {
                // SAFETY: the declaration, the address of the kernel's variable, matches the header.
                ObjectType: unsafe { wdk_sys::PsProcessType },
                Operations: 3,
                PreOperation: Some(before_operation),
                PostOperation: Some(after_operation),
            },
            registration: OB_CALLBACK_REGISTRATION {
                Version: 0x100,
                OperationRegistrationCount: 1,
                Altitude: counted(&ALTITUDE),
                RegistrationContext: pointer(0x77),
                OperationRegistration: ptr::null_mut(),
            },
        }
    }

    fn register(&mut self, handle: &mut PVOID) -> NTSTATUS {
        self.registration.OperationRegistration = &raw mut self.operation;
        call!(ObRegisterCallbacks, &mut self.registration, handle)
    }
}

/// Registers routines. Routines that require an image linked with `/INTEGRITYCHECK` are refused.
pub fn run() {
    let process: PCREATE_PROCESS_NOTIFY_ROUTINE = Some(process);
    same!(call!(PsSetCreateProcessNotifyRoutine, process, 0), 0);
    same!(call!(PsSetCreateProcessNotifyRoutine, process, 0), 0xC000_000D_u32);
    same!(call!(PsSetCreateProcessNotifyRoutine, process, 1), 0);
    same!(call!(PsSetCreateProcessNotifyRoutine, process, 1), STATUS_PROCEDURE_NOT_FOUND);
    let extended: PCREATE_PROCESS_NOTIFY_ROUTINE_EX = Some(process_ex);
    same!(call!(PsSetCreateProcessNotifyRoutineEx, extended, 0), STATUS_ACCESS_DENIED);
    let address = thread as *const c_void;
    let thread: PCREATE_THREAD_NOTIFY_ROUTINE = Some(thread);
    same!(call!(PsRemoveCreateThreadNotifyRoutine, thread), STATUS_PROCEDURE_NOT_FOUND);
    same!(call!(PsSetCreateThreadNotifyRoutineEx, 2, address), 0xC000_000D_u32);
    let image: PLOAD_IMAGE_NOTIFY_ROUTINE = Some(image);
    same!(call!(PsSetLoadImageNotifyRoutineEx, image, 1), 0);
    same!(call!(PsRemoveLoadImageNotifyRoutine, image), 0);
    same!(call!(PsRemoveLoadImageNotifyRoutine, image), STATUS_PROCEDURE_NOT_FOUND);
    registry_callbacks();
    let mut handle = NULL;
    same!(call!(ObGetFilterVersion), 0x100);
    same!(Handles::new().register(&mut handle), STATUS_ACCESS_DENIED);
    let mut wrong = Handles::new();
    wrong.operation.ObjectType = variable("ExEventObjectType").cast();
    same!(wrong.register(&mut handle), 0xC000_000D_u32);
    bug_checks();
}

fn registry_callbacks() {
    let routine: PEX_CALLBACK_FUNCTION = Some(registry);
    let mut altitude = counted(&ALTITUDE);
    let (mut one, mut two) = (LARGE_INTEGER::default(), LARGE_INTEGER::default());
    let mut register = |cookie: &mut LARGE_INTEGER| {
        call!(CmRegisterCallbackEx, routine, &mut altitude, driver(), NULL, cookie, NULL)
    };
    same!(register(&mut one), 0);
    same!(register(&mut two), 0xC01C_0011_u32);
    same!(call!(CmUnRegisterCallback, one), 0);
    same!(call!(CmUnRegisterCallback, one), 0xC000_000D_u32);
    same!(call!(CmRegisterCallback, routine, NULL, &mut two), 0);
    same!(call!(CmUnRegisterCallback, two), 0);
    let mut version = [0_u32; 2];
    let [major, minor] = &mut version;
    call!(CmGetCallbackVersion, major, minor);
    call!(CmGetCallbackVersion, NULL, NULL);
    same!(version == [1, 1], true);
}

const unsafe extern "C" fn bug_check(_buffer: PVOID, _length: u32) {}

const unsafe extern "C" fn with_reason(
    _reason: KBUGCHECK_CALLBACK_REASON,
    _record: *mut KBUGCHECK_REASON_CALLBACK_RECORD,
    _data: PVOID,
    _length: u32,
) {
}

const unsafe extern "C" fn nmi(_context: PVOID, _handled: BOOLEAN) -> BOOLEAN {
    0
}

fn bug_checks() {
    let mut record = [0_u64; 8];
    let register = |record: &mut [u64; 8]| {
        call!(KeRegisterBugCheckCallback, record, Some(bug_check), NULL, 0, c"test".as_ptr())
    };
    same!(register(&mut record), 1);
    same!(register(&mut record), 0);
    same!(call!(KeDeregisterBugCheckCallback, &mut record), 1);
    same!(call!(KeDeregisterBugCheckCallback, &mut record), 0);
    let mut record = [0_u64; 6];
    let name = c"test".as_ptr();
    let register = |record: &mut [u64; 6], reason: u64| {
        call!(KeRegisterBugCheckReasonCallback, record, Some(with_reason), reason, name)
    };
    same!(register(&mut record, 0), 0);
    same!(register(&mut record, 2), 1);
    same!(call!(KeDeregisterBugCheckReasonCallback, &mut record), 1);
    let handle = call!(KeRegisterNmiCallback, Some(nmi), NULL);
    same!(handle.is_null(), false);
    same!(call!(KeDeregisterNmiCallback, handle), 0);
    same!(call!(KeDeregisterNmiCallback, handle), 0xC000_0008_u32);
}

/// Registers routines of all kinds. They stay registered until the unload.
pub fn watch() {
    watch_threads();
    WATCHES.store(true, Ordering::Relaxed);
    let statuses = [
        call!(PsSetCreateProcessNotifyRoutine, Some(process), 0),
        call!(PsSetCreateProcessNotifyRoutineEx, Some(process_ex), 0),
        call!(PsSetCreateThreadNotifyRoutine, Some(thread)),
        call!(PsSetLoadImageNotifyRoutine, Some(image)),
    ];
    for status in statuses {
        same!(status, 0);
    }
    let (mut handle, mut second) = (NULL, NULL);
    same!(Handles::new().register(&mut handle), 0);
    same!(Handles::new().register(&mut second), 0xC01C_0011_u32);
    open_process();
    call!(ObUnRegisterCallbacks, handle);
    open_process();
    same!(BEFORE.load(Ordering::Relaxed), 1 + 1 + 16);
    same!(AFTER.load(Ordering::Relaxed), 1 + 1 + 16);
}

/// Opens handles of the current process: by its id, by its object, and by another handle.
fn open_process() {
    const QUERY: u64 = 0x400;
    let (mut handle, mut other, mut copy) = (NULL, NULL, NULL);
    let mut attributes = [48_u64, 0, 0, 0x200, 0, 0];
    let mut client = [call!(PsGetCurrentProcessId), NULL];
    same!(call!(ZwOpenProcess, &mut handle, QUERY, &mut attributes, &mut client), 0);
    let process = call!(IoGetCurrentProcess);
    same!(call!(ObOpenObjectByPointer, process, 0x200, NULL, QUERY, NULL, 0, &mut other), 0);
    let current = pointer(usize::MAX);
    same!(call!(ZwDuplicateObject, current, handle, current, &mut copy, QUERY, 0x200, 0), 0);
    for handle in [handle, other, copy] {
        call!(ZwClose, handle);
    }
}

/// Removes the registrations of [`watch`].
pub fn stop() {
    if !WATCHES.load(Ordering::Relaxed) {
        return;
    }
    call!(PsSetCreateProcessNotifyRoutine, Some(process), 1);
    call!(PsSetCreateProcessNotifyRoutineEx, Some(process_ex), 1);
    call!(PsRemoveCreateThreadNotifyRoutine, Some(thread));
    call!(PsRemoveLoadImageNotifyRoutine, Some(image));
}

/// Registers a routine and does not remove it. The report names this function, so it is not inlined.
#[inline(never)]
pub fn left() {
    same!(call!(PsSetLoadImageNotifyRoutine, Some(image)), 0);
}

pub fn unknown_handles() {
    call!(ObUnRegisterCallbacks, pointer(0x1234));
}
