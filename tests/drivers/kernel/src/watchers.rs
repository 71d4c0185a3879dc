//! Notification routines for processes, threads, images and other system activity.

use core::{
    ffi::c_void,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
};

use etw_driver_support::utf16;

use crate::{
    call::{address, at, call, driver, low, same},
    exports::variable,
    threads,
};

const NOT_FOUND: u32 = 0xC000_007A;
const DENIED: u32 = 0xC000_0022;

/// Set if [`watch`] has registered routines.
static WATCHES: AtomicBool = AtomicBool::new(false);

/// Reads a field of a structure that the kernel passes.
const fn field<T: Copy>(structure: u64, offset: u64) -> T {
    // SAFETY: the kernel passes a structure with the field.
    unsafe { ((structure + offset) as *const T).read() }
}

unsafe extern "C" fn process(parent: u64, id: u64, created: u64) {
    wdk::println!("process {parent} {id} {}", created & 0xFF);
}

/// Prints the process, and refuses a process whose command line is empty.
unsafe extern "C" fn process_ex(object: u64, id: u64, info: u64) {
    same!(call!("PsGetProcessId", object), id);
    if info == 0 {
        wdk::println!("end {id}");
        return;
    }
    same!(field::<u64>(info, 0), 72);
    let parent: u64 = field(info, 16);
    let image: u64 = field(info, 48);
    let command_line: u64 = field(info, 56);
    wdk::println!("start {id} of {parent} {}", field::<u16>(image, 0) / 2);
    if field::<u16>(command_line, 0) == 0 {
        // SAFETY: the routine is allowed to store a status at this address.
        unsafe { ((info + 64) as *mut u32).write(DENIED) };
    }
}

unsafe extern "C" fn thread(process: u64, id: u64, created: u64) {
    wdk::println!("thread {process} {id} {}", created & 0xFF);
}

unsafe extern "C" fn image(name: u64, process: u64, info: u64) {
    let base: u64 = field(info, 8);
    wdk::println!("image {} {process} {base:#x}", field::<u16>(name, 0) / 2);
}

const unsafe extern "C" fn registry(_context: u64, _class: u64, _argument: u64) -> u32 {
    0
}

/// The operations before and after which the routines were called: 1 for each creation of a handle, and
/// 16 for each duplication.
static BEFORE: AtomicU32 = AtomicU32::new(0);
static AFTER: AtomicU32 = AtomicU32::new(0);

/// Checks the information about an operation on a handle of the current process, and counts it.
fn note_operation(count: &AtomicU32, context: u64, information: u64) {
    let operation: u32 = field(information, 0);
    same!(context, 0x77);
    same!(field::<u32>(information, 4), 1);
    same!(field::<u64>(information, 8), call!("IoGetCurrentProcess"));
    count.fetch_add(if operation == 1 { 1 } else { 16 }, Ordering::Relaxed);
}

unsafe extern "C" fn before_operation(context: u64, information: u64) -> u32 {
    note_operation(&BEFORE, context, information);
    let parameters: u64 = field(information, 32);
    same!(field::<u32>(parameters, 0), 0x400);
    same!(field::<u32>(parameters, 4), 0x400);
    // SAFETY: the routine is allowed to store its context at this address.
    unsafe { ((information + 24) as *mut u64).write(5) };
    0
}

unsafe extern "C" fn after_operation(context: u64, information: u64) {
    note_operation(&AFTER, context, information);
    same!(field::<u64>(information, 24), 5);
    same!(field::<u32>(information, 32), 0);
    same!(field::<u32>(field(information, 40), 0), 0x400);
}

fn of(routine: *const c_void) -> u64 {
    address(routine)
}

/// A driver's structure for operations on process handles.
struct Handles {
    operation: [u64; 4],
    registration: [u64; 5],
}

/// The number of created thread handles.
static THREADS: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn before_thread(_context: u64, information: u64) -> u32 {
    same!(field::<u32>(information, 0), 1);
    THREADS.fetch_add(1, Ordering::Relaxed);
    0
}

const unsafe extern "C" fn end_at_once(_context: *mut c_void) {}

/// The creation of a thread creates a handle.
fn watch_threads() {
    let mut handles = Handles::new();
    handles.operation = [variable("PsThreadType"), 1, of(before_thread as *const c_void), 0];
    let mut handle = 0_u64;
    same!(handles.register(&mut handle), 0);
    threads::join(threads::start(end_at_once, 0));
    call!("ObUnRegisterCallbacks", handle);
    same!(THREADS.load(Ordering::Relaxed), 1);
}

static ALTITUDE: [u16; 6] = utf16(b"321000");

impl Handles {
    fn new() -> Self {
        let routine = of(before_operation as *const c_void);
        // The value in wdm.h's declaration is the address of the kernel's variable. SAFETY: the
        // declaration matches the header.
        let kind = unsafe { wdk_sys::PsProcessType } as u64;
        Self {
            operation: [kind, 3, routine, of(after_operation as *const c_void)],
            registration: [0x1_0100, 0x000C_000C, ALTITUDE.as_ptr() as u64, 0x77, 0],
        }
    }

    fn register(&mut self, handle: &mut u64) -> u32 {
        self.registration[4] = at(&mut self.operation);
        low(call!("ObRegisterCallbacks", at(&mut self.registration), at(handle)))
    }
}

/// Registers routines. Routines that require an image linked with `/INTEGRITYCHECK` are refused.
pub fn run() {
    let process = of(process as *const c_void);
    same!(low(call!("PsSetCreateProcessNotifyRoutine", process, 0)), 0);
    same!(low(call!("PsSetCreateProcessNotifyRoutine", process, 0)), 0xC000_000D);
    same!(low(call!("PsSetCreateProcessNotifyRoutine", process, 1)), 0);
    same!(low(call!("PsSetCreateProcessNotifyRoutine", process, 1)), NOT_FOUND);
    let extended = of(process_ex as *const c_void);
    same!(low(call!("PsSetCreateProcessNotifyRoutineEx", extended, 0)), DENIED);
    let thread = of(thread as *const c_void);
    same!(low(call!("PsRemoveCreateThreadNotifyRoutine", thread)), NOT_FOUND);
    same!(low(call!("PsSetCreateThreadNotifyRoutineEx", 2, thread)), 0xC000_000D);
    let image = of(image as *const c_void);
    same!(low(call!("PsSetLoadImageNotifyRoutineEx", image, 1)), 0);
    same!(low(call!("PsRemoveLoadImageNotifyRoutine", image)), 0);
    same!(low(call!("PsRemoveLoadImageNotifyRoutine", image)), NOT_FOUND);
    registry_callbacks();
    let mut handle = 0_u64;
    same!(call!("ObGetFilterVersion") & 0xFFFF, 0x100);
    same!(Handles::new().register(&mut handle), DENIED);
    let mut wrong = Handles::new();
    wrong.operation[0] = variable("ExEventObjectType");
    same!(wrong.register(&mut handle), 0xC000_000D);
    bug_checks();
}

fn registry_callbacks() {
    let routine = of(registry as *const c_void);
    let mut altitude = [0x000C_000C_u64, ALTITUDE.as_ptr() as u64];
    let (mut one, mut two) = (0_u64, 0_u64);
    let mut register = |cookie: &mut u64| {
        low(call!("CmRegisterCallbackEx", routine, at(&mut altitude), driver(), 0, at(cookie), 0))
    };
    same!(register(&mut one), 0);
    same!(register(&mut two), 0xC01C_0011);
    same!(low(call!("CmUnRegisterCallback", one)), 0);
    same!(low(call!("CmUnRegisterCallback", one)), 0xC000_000D);
    same!(low(call!("CmRegisterCallback", routine, 0, at(&mut two))), 0);
    same!(low(call!("CmUnRegisterCallback", two)), 0);
    let mut version = [0_u32; 2];
    let [major, minor] = &mut version;
    call!("CmGetCallbackVersion", at(major), at(minor));
    call!("CmGetCallbackVersion", 0, 0);
    same!(version == [1, 1], true);
}

const unsafe extern "C" fn bug_check(_buffer: u64, _length: u64) {}

fn bug_checks() {
    let routine = of(bug_check as *const c_void);
    let mut record = [0_u64; 8];
    let register = |record: &mut [u64; 8]| {
        call!("KeRegisterBugCheckCallback", at(record), routine, 0, 0, c"test".as_ptr()) & 0xFF
    };
    same!(register(&mut record), 1);
    same!(register(&mut record), 0);
    same!(call!("KeDeregisterBugCheckCallback", at(&mut record)) & 0xFF, 1);
    same!(call!("KeDeregisterBugCheckCallback", at(&mut record)) & 0xFF, 0);
    let mut record = [0_u64; 6];
    let name = c"test".as_ptr();
    let register = |record: &mut [u64; 6], reason: u64| {
        call!("KeRegisterBugCheckReasonCallback", at(record), routine, reason, name) & 0xFF
    };
    same!(register(&mut record, 0), 0);
    same!(register(&mut record, 2), 1);
    same!(call!("KeDeregisterBugCheckReasonCallback", at(&mut record)) & 0xFF, 1);
    let handle = call!("KeRegisterNmiCallback", routine, 0);
    same!(handle != 0, true);
    same!(low(call!("KeDeregisterNmiCallback", handle)), 0);
    same!(low(call!("KeDeregisterNmiCallback", handle)), 0xC000_0008);
}

/// Registers routines of all kinds. They stay registered until the unload.
pub fn watch() {
    watch_threads();
    WATCHES.store(true, Ordering::Relaxed);
    let statuses = [
        call!("PsSetCreateProcessNotifyRoutine", of(process as *const c_void), 0),
        call!("PsSetCreateProcessNotifyRoutineEx", of(process_ex as *const c_void), 0),
        call!("PsSetCreateThreadNotifyRoutine", of(thread as *const c_void)),
        call!("PsSetLoadImageNotifyRoutine", of(image as *const c_void)),
    ];
    for status in statuses {
        same!(low(status), 0);
    }
    let (mut handle, mut second) = (0_u64, 0_u64);
    same!(Handles::new().register(&mut handle), 0);
    same!(Handles::new().register(&mut second), 0xC01C_0011);
    open_process();
    call!("ObUnRegisterCallbacks", handle);
    open_process();
    same!(BEFORE.load(Ordering::Relaxed), 1 + 1 + 16);
    same!(AFTER.load(Ordering::Relaxed), 1 + 1 + 16);
}

/// Opens handles of the current process: by its id, by its object, and by another handle.
fn open_process() {
    const QUERY: u64 = 0x400;
    let (mut handle, mut other, mut copy) = (0_u64, 0_u64, 0_u64);
    let mut attributes = [48_u64, 0, 0, 0x200, 0, 0];
    let mut client = [call!("PsGetCurrentProcessId"), 0];
    let status =
        call!("ZwOpenProcess", at(&mut handle), QUERY, at(&mut attributes), at(&mut client));
    same!(low(status), 0);
    let process = call!("IoGetCurrentProcess");
    let status = call!("ObOpenObjectByPointer", process, 0x200, 0, QUERY, 0, 0, at(&mut other));
    same!(low(status), 0);
    let current = u64::MAX;
    let status =
        call!("ZwDuplicateObject", current, handle, current, at(&mut copy), QUERY, 0x200, 0);
    same!(low(status), 0);
    for handle in [handle, other, copy] {
        call!("ZwClose", handle);
    }
}

/// Removes the registrations of [`watch`].
pub fn stop() {
    if !WATCHES.load(Ordering::Relaxed) {
        return;
    }
    call!("PsSetCreateProcessNotifyRoutine", of(process as *const c_void), 1);
    call!("PsSetCreateProcessNotifyRoutineEx", of(process_ex as *const c_void), 1);
    call!("PsRemoveCreateThreadNotifyRoutine", of(thread as *const c_void));
    call!("PsRemoveLoadImageNotifyRoutine", of(image as *const c_void));
}

/// Registers a routine and does not remove it.
pub fn left() {
    call!("PsSetLoadImageNotifyRoutine", of(image as *const c_void));
}

pub fn unknown_handles() {
    call!("ObUnRegisterCallbacks", 0x1234);
}
