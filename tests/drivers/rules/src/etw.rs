//! Faults in the use of ETW, one for each verifier rule that a driver alone can break. Each service
//! is named after its rule.

use core::{
    ffi::c_void,
    hint::black_box,
    mem,
    ops::RangeInclusive,
    ptr, slice,
    sync::atomic::{AtomicPtr, AtomicU64, Ordering},
};

use etw_driver_support::{guid, made, nt, wdf};
use wdk_sys::{
    EVENT_DESCRIPTOR, GUID, LARGE_INTEGER, LPCGUID, NT_SUCCESS, NTSTATUS, PETWENABLECALLBACK,
    PEVENT_FILTER_DESCRIPTOR, POOL_FLAG_NON_PAGED, POOL_FLAG_PAGED, POOL_FLAG_UNINITIALIZED,
    POOL_FLAGS, REGHANDLE, WDF_NO_OBJECT_ATTRIBUTES, WDFSPINLOCK, WDFWAITLOCK,
};

use crate::common::{PROVIDER, Run, TAG, create_lock};

/// `EVENT_INFO_CLASS`.
const SET_TRAITS: i32 = 2;
const USE_DESCRIPTOR_TYPE: i32 = 3;
const BINARY_TRACK_INFO: i32 = 0;
/// `EVENT_ACTIVITY_CTRL_*`.
const GET_ID: u32 = 1;
const SET_ID: u32 = 2;
const CREATE_ID: u32 = 3;
const CREATE_SET_ID: u32 = 5;

/// The registration; the driver unregisters it when it is unloaded.
static HANDLE: AtomicU64 = AtomicU64::new(0);
/// A pointer that an enable callback keeps, although enable callbacks must not.
static KEPT: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());

/// The activity id of the events that have an activity id.
const ACTIVITY: GUID = guid(0x1234_5678, 1, 2, [3; 8]);

/// `EVENT_DATA_DESCRIPTOR`, with plain fields.
#[repr(C)]
#[derive(Clone, Copy)]
struct DataDescriptor {
    pointer: u64,
    size: u32,
    kind: u8,
    reserved_1: u8,
    reserved_2: u16,
}

impl DataDescriptor {
    /// Returns a descriptor for data at an address.
    fn at<T>(pointer: *const T, size: usize) -> Self {
        Self {
            pointer: pointer.addr() as u64,
            size: size as u32,
            kind: 0,
            reserved_1: 0,
            reserved_2: 0,
        }
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        Self::at(bytes.as_ptr(), bytes.len())
    }

    const fn of_kind(mut self, kind: u8) -> Self {
        self.kind = kind;
        self
    }
}

/// A valid event descriptor.
const EVENT: EVENT_DESCRIPTOR =
    EVENT_DESCRIPTOR { Id: 1, Version: 0, Channel: 0, Level: 4, Opcode: 0, Task: 0, Keyword: 1 };

/// The remaining arguments of a write.
struct Rest {
    handle: REGHANDLE,
    filter: u64,
    flags: u32,
    activity: Option<GUID>,
}

impl Rest {
    /// Returns valid arguments.
    const fn with(handle: REGHANDLE) -> Self {
        Self { handle, filter: 0, flags: 0, activity: Some(ACTIVITY) }
    }
}

/// Writes an event with a number of data descriptors that start at an address.
fn write_at(
    event: *const EVENT_DESCRIPTOR,
    rest: &Rest,
    (count, descriptors): (u32, *const DataDescriptor),
) -> NTSTATUS {
    let Rest { handle, filter, flags, ref activity } = *rest;
    let activity = activity.as_ref().map_or(ptr::null(), ptr::from_ref);
    let descriptors = descriptors.cast_mut().cast();
    nt!(EtwWriteEx, handle, event, filter, flags, activity, ptr::null(), count, descriptors)
}

fn write_all(event: &EVENT_DESCRIPTOR, rest: &Rest, descriptors: &[DataDescriptor]) -> NTSTATUS {
    write_at(event, rest, (descriptors.len() as u32, descriptors.as_ptr()))
}

/// Writes an event with these data descriptors.
fn write(handle: REGHANDLE, descriptors: &[DataDescriptor]) -> NTSTATUS {
    write_all(&EVENT, &Rest::with(handle), descriptors)
}

fn register_at(callback: PETWENABLECALLBACK, context: *mut c_void, handle: *mut u64) -> NTSTATUS {
    nt!(EtwRegister, &raw const PROVIDER, callback, context, handle)
}

/// Registers the provider until the driver is unloaded, and returns the handle, or 0.
fn register(callback: PETWENABLECALLBACK) -> REGHANDLE {
    let mut handle = 0;
    let status = register_at(callback, ptr::null_mut(), &raw mut handle);
    if NT_SUCCESS(status) {
        HANDLE.store(handle, Ordering::Relaxed);
    }
    handle
}

/// Registers the provider with a callback that does nothing.
fn registered() -> REGHANDLE {
    register(Some(quiet))
}

/// Registers the provider, writes events whose data are their numbers, as one byte of at most 255,
/// and prints a line.
pub fn write_events_and_print(count: u32) {
    let handle = registered();
    for number in 0..count {
        let bytes = number.to_le_bytes();
        let size = if number < 256 { 1 } else { bytes.len() };
        let _status = write(handle, &[DataDescriptor::at(bytes.as_ptr(), size)]);
    }
    let _status = nt!(DbgPrint, c"%u events are written\n".as_ptr(), count);
}

/// Ends the registration, if there is one.
pub fn unregister() {
    for handle in [&HANDLE, &PROMPT_HANDLE] {
        let handle = handle.swap(0, Ordering::Relaxed);
        if handle != 0 {
            let _status = nt!(EtwUnregister, handle);
        }
    }
}

fn set(handle: REGHANDLE, class: i32, bytes: &[u8]) -> NTSTATUS {
    let start = bytes.as_ptr().cast_mut().cast();
    nt!(EtwSetInformation, handle, class, start, bytes.len() as u32)
}

fn allocate(flags: POOL_FLAGS, size: usize) -> *mut u8 {
    nt!(ExAllocatePool2, flags, size as u64, TAG).cast()
}

fn free(block: *mut u8) {
    nt!(ExFreePool, block.cast());
}

fn acquire(lock: WDFSPINLOCK) {
    wdf!(WdfSpinLockAcquire, lock);
}

/// Calls a closure at `DISPATCH_LEVEL`.
fn at_dispatch(body: impl FnOnce()) {
    let lock = create_lock();
    acquire(lock);
    body();
    wdf!(WdfSpinLockRelease, lock);
}

fn control(code: u32, activity: *mut GUID) -> NTSTATUS {
    nt!(EtwActivityIdControl, code, activity)
}

/// The arguments of an enable callback that this module's callbacks use.
struct Told {
    source: LPCGUID,
    code: u32,
    level: u8,
    filter: PEVENT_FILTER_DESCRIPTOR,
    context: *mut c_void,
}

/// Defines an enable callback.
macro_rules! callback {
    ($(#[$attribute:meta])* fn $name:ident($call:ident) $body:block) => {
        $(#[$attribute])*
        extern "C" fn $name(
            source: LPCGUID,
            code: u32,
            level: u8,
            _any: u64,
            _all: u64,
            filter: PEVENT_FILTER_DESCRIPTOR,
            context: *mut c_void,
        ) {
            let $call = Told {
                source,
                code,
                level,
                filter,
                context,
            };
            $body
        }
    };
}

callback! {
    /// An enable callback that does nothing.
    fn quiet(_call) {
    }
}

callback! {
    /// V06.
    fn unregisters_itself(_call) {
        unregister();
        // This keeps the call above a call with a return address, rather than a tail call.
        black_box(0);
    }
}

callback! {
    /// V09: the code is in a section that is discarded after the driver has started.
    #[unsafe(link_section = "INIT")]
    fn in_a_discarded_section(_call) {
        black_box(0);
    }
}

callback! {
    /// V20.
    fn stays_at_dispatch(_call) {
        acquire(create_lock());
    }
}

callback! {
    /// V21.
    fn waits(_call) {
        let mut interval = LARGE_INTEGER { QuadPart: -10_000 };
        let _status = nt!(KeDelayExecutionThread, 0, 0, &raw mut interval);
    }
}

/// The wait lock that [`takes_a_lock`] acquires.
static LOCK: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

fn hold(lock: WDFWAITLOCK) {
    let _status = wdf!(WdfWaitLockAcquire, lock, ptr::null_mut());
}

fn let_go(lock: WDFWAITLOCK) {
    wdf!(WdfWaitLockRelease, lock);
}

callback! {
    /// V21: acquires a lock that is held during a call to `EtwUnregister`.
    fn takes_a_lock(_call) {
        let lock = LOCK.load(Ordering::Relaxed).cast();
        hold(lock);
        let_go(lock);
    }
}

fn holds_a_lock_over_unregister() {
    let (_status, lock) = made(|handle| wdf!(WdfWaitLockCreate, WDF_NO_OBJECT_ATTRIBUTES, handle,));
    LOCK.store(lock.cast(), Ordering::Relaxed);
    register(Some(takes_a_lock));
    hold(lock);
    unregister();
    let_go(lock);
}

callback! {
    /// V22: reads filter data that an earlier callback borrowed.
    fn keeps_its_source(call) {
        let before = KEPT.swap(call.source.cast_mut().cast(), Ordering::Relaxed);
        if !before.is_null() {
            // SAFETY: violated on purpose: this is the fault.
            unsafe { before.read_volatile() };
        }
    }
}

callback! {
    /// V27: assumes that the handle is already stored.
    fn writes_at_once(call) {
        write(call.context.addr() as u64, &[]);
    }
}

callback! {
    /// V28: follows the chain of filters without checking bounds.
    fn walks_too_far(call) {
        /// The offset of `NextOffset` in an `EVENT_FILTER_HEADER`.
        const NEXT_OFFSET: usize = 20;
        // SAFETY: ETW passes null or a valid descriptor.
        let Some(filter) = (unsafe { call.filter.as_ref() }) else {
            return;
        };
        let mut header = ptr::with_exposed_provenance::<u8>(filter.Ptr as usize);
        loop {
            let field = header.wrapping_add(NEXT_OFFSET).cast::<[u8; 4]>();
            // SAFETY: violated on purpose: the fault is the assumption that the chain ends.
            let next = u32::from_le_bytes(unsafe { field.read() });
            if next == 0 {
                return;
            }
            header = header.wrapping_add(next as usize);
        }
    }
}

/// Provider metadata with the name `P`.
const TRAITS: [u8; 4] = [4, 0, b'P', 0];
/// Event metadata with the name `E` and a `u8` field named `f`.
const METADATA: [u8; 8] = [8, 0, 0, b'E', 0, b'f', 0, 4];

fn overwrites_its_handle() {
    let mut handle = 0;
    let _status = register_at(Some(quiet), ptr::null_mut(), &raw mut handle);
    let first = handle;
    let _status = register_at(Some(quiet), ptr::null_mut(), &raw mut handle);
    for handle in [first, handle] {
        let _status = nt!(EtwUnregister, handle);
    }
}

fn registers_again_and_again() {
    for _ in 0..12 {
        registered();
        write(HANDLE.load(Ordering::Relaxed), &[]);
        unregister();
    }
}

fn uses_what_a_failure_left() {
    let mut handle = 0x1234_5678;
    let _status = register_at(Some(quiet), ptr::null_mut(), &raw mut handle);
    write(handle, &[]);
}

fn has_a_context_that_is_gone() {
    let context = allocate(POOL_FLAG_NON_PAGED, 32);
    let mut handle = 0;
    let _status = register_at(Some(quiet), context.cast(), &raw mut handle);
    HANDLE.store(handle, Ordering::Relaxed);
    free(context);
}

fn writes_in_registration(handle: usize) {
    let context = ptr::without_provenance_mut(handle);
    let mut slot = 0;
    let _status = register_at(Some(writes_at_once), context, &raw mut slot);
    HANDLE.store(slot, Ordering::Relaxed);
}

fn sets_traits_twice() {
    let handle = registered();
    set(handle, SET_TRAITS, &TRAITS);
    say("second traits", set(handle, SET_TRAITS, &TRAITS));
}

/// Prints a status.
fn say(what: &str, status: NTSTATUS) {
    wdk::println!("{what}: {:08X}", status.cast_unsigned());
}

/// Writes an event with data of a given size.
fn write_block(handle: REGHANDLE, size: usize) -> NTSTATUS {
    let block = allocate(POOL_FLAG_NON_PAGED, size);
    let status = write(handle, &[DataDescriptor::at(block, size)]);
    free(block);
    status
}

/// Calls every routine in ways that return different statuses, and prints the statuses.
fn prints_results() {
    let mut slot = 0;
    let null = ptr::null_mut();
    say("register without a slot", register_at(Some(quiet), null, ptr::null_mut()));
    say("register", register_at(Some(quiet), null, &raw mut slot));
    HANDLE.store(slot, Ordering::Relaxed);
    say("write without a handle", write(0, &[]));
    say("write", write(slot, &[DataDescriptor::from_bytes(&[1])]));
    let silent = EVENT_DESCRIPTOR { Level: 5, ..EVENT };
    say("write an event that no session enables", write_all(&silent, &Rest::with(slot), &[]));
    let descriptor = DataDescriptor::from_bytes(&TRAITS);
    say("write 128 data descriptors", write(slot, &[descriptor; 128]));
    say("write 129 data descriptors", write(slot, &[descriptor; 129]));
    // A write without an event fails.
    say("write no event", write_at(ptr::null(), &Rest::with(slot), (0, ptr::null())));
    for (what, size) in [
        ("write 3944 bytes", 3944),
        ("write 3945 bytes", 3945),
        ("write 8000 bytes", 8000),
        ("write 70000 bytes", 70_000),
    ] {
        say(what, write_block(slot, size));
    }
    say("set traits without a handle", set(0, SET_TRAITS, &TRAITS));
    // A length without an address is refused.
    let status = nt!(EtwSetInformation, slot, SET_TRAITS, null, 4);
    say("set null traits with a length", status);
    say("set cut traits", set(slot, SET_TRAITS, &TRAITS[..3]));
    say("set an unknown class", set(slot, 9, &[1]));
    say("track the binary", set(slot, 0, &[]));
    say("use types by two bytes", set(slot, USE_DESCRIPTOR_TYPE, &[1, 1]));
    say("use types by 2", set(slot, USE_DESCRIPTOR_TYPE, &[2]));
    say("use types", set(slot, USE_DESCRIPTOR_TYPE, &[1]));
    say("set traits", set(slot, SET_TRAITS, &TRAITS));
    for (what, handle, level, keyword) in [
        ("enabled without a handle", 0, 4, 1),
        ("enabled", slot, 4, 1),
        ("enabled beyond the level", slot, 5, 1),
        ("enabled beyond the keywords", slot, 4, 2),
        ("enabled at all", slot, 0, 0),
    ] {
        let enabled = nt!(EtwProviderEnabled, handle, level, keyword);
        say(what, i32::from(enabled));
    }
    let enabled = nt!(EtwEventEnabled, slot, &raw const silent);
    say("event enabled beyond the level", i32::from(enabled));
    let mut activity = ACTIVITY;
    say("get an activity", control(GET_ID, &raw mut activity));
    say("an unknown activity code", control(6, &raw mut activity));
    say("no activity", control(CREATE_ID, ptr::null_mut()));
    say("unregister without a handle", nt!(EtwUnregister, 0));
    say("unregister", nt!(EtwUnregister, HANDLE.swap(0, Ordering::Relaxed)));
}

/// Writes until ETW refuses an event, and prints the status.
fn writes_until_it_fails() {
    let handle = registered();
    for _ in 0..4000 {
        let status = write(handle, &[DataDescriptor::from_bytes(&TRAITS)]);
        if !NT_SUCCESS(status) {
            say("at last", status);
            return;
        }
    }
    say("at last", 0);
}

fn sets_large_traits() {
    let mut traits = [0x61_u8; 300];
    traits[..2].copy_from_slice(&300_u16.to_le_bytes());
    traits[2..4].copy_from_slice(b"P\0");
    // A trait of type 200 fills the remaining bytes.
    traits[4..6].copy_from_slice(&296_u16.to_le_bytes());
    traits[6] = 200;
    set(registered(), SET_TRAITS, &traits);
}

/// Sets traits that contain one trait of this type.
fn sets_a_trait(kind: u8) {
    let traits = [9, 0, b'P', 0, 5, 0, kind, 1, 2];
    set(registered(), SET_TRAITS, &traits);
}

fn event_with(change: impl FnOnce(&mut EVENT_DESCRIPTOR)) {
    let handle = registered();
    let mut event = EVENT;
    change(&mut event);
    write_all(&event, &Rest::with(handle), &[]);
}

fn rest_with(change: impl FnOnce(&mut Rest)) {
    let mut rest = Rest::with(registered());
    change(&mut rest);
    write_all(&EVENT, &rest, &[]);
}

fn descriptor_with(change: impl FnOnce(&mut DataDescriptor)) {
    let data = [1_u8; 8];
    let mut descriptor = DataDescriptor::from_bytes(&data);
    change(&mut descriptor);
    writes(&[descriptor]);
}

/// Returns the data descriptor for the event metadata.
fn described() -> DataDescriptor {
    DataDescriptor::from_bytes(&METADATA).of_kind(1)
}

/// Registers with traits, and writes an event with these data descriptors.
fn write_self_describing(descriptors: &[DataDescriptor]) {
    let handle = registered();
    set(handle, SET_TRAITS, &TRAITS);
    write(handle, descriptors);
}

/// Data in a pageable section.
#[unsafe(link_section = "PAGEDATA")]
static PAGEABLE: [u8; 16] = [7; 16];

/// Code in a pageable section.
#[unsafe(link_section = "PAGE")]
#[inline(never)]
extern "C" fn pageable_code() -> u32 {
    black_box(7)
}

fn writes_from_freed_pool() {
    let block = allocate(POOL_FLAG_NON_PAGED, 64);
    free(block);
    writes(&[DataDescriptor::at(block, 8)]);
}

/// Returns the address of a local variable, which dangles after the function has returned.
#[inline(never)]
fn address_of_a_local() -> *const u8 {
    let local = black_box([9_u8; 256]);
    black_box(local.as_ptr())
}

fn writes_what_nobody_wrote() {
    let handle = registered();
    let block = allocate(POOL_FLAG_NON_PAGED | POOL_FLAG_UNINITIALIZED, 64);
    // SAFETY: the block is 64 bytes long.
    let bytes = unsafe { slice::from_raw_parts(block, 64) };
    write(handle, &[DataDescriptor::from_bytes(bytes)]);
    free(block);
}

fn writes_an_address() {
    let handle = registered();
    let address = (&raw const HANDLE).addr().to_le_bytes();
    write(handle, &[DataDescriptor::from_bytes(&address)]);
}

fn reads_freed_pool() {
    let block = allocate(POOL_FLAG_NON_PAGED, 24);
    free(block);
    // SAFETY: violated on purpose: this is the fault.
    unsafe { block.read_volatile() };
}

fn writes_behind_a_block() {
    let block = allocate(POOL_FLAG_NON_PAGED, 32);
    // SAFETY: violated on purpose: this is the fault.
    unsafe { block.wrapping_add(32).write_volatile(1) };
}

fn reads_paged_pool_at_dispatch() {
    let block = allocate(POOL_FLAG_PAGED, 64);
    at_dispatch(|| {
        // SAFETY: violated on purpose: this is the fault.
        unsafe { block.read_volatile() };
    });
}

fn uses_paged_memory_at_passive() {
    let block = allocate(POOL_FLAG_PAGED, 64);
    at_dispatch(|| {});
    // SAFETY: the block is 64 bytes long, and the IRQL is PASSIVE_LEVEL again.
    unsafe { block.write_volatile(black_box(PAGEABLE)[3]) };
    black_box(pageable_code());
    let handle = registered();
    write(handle, &[DataDescriptor::at(block, 8), DataDescriptor::from_bytes(&PAGEABLE)]);
    free(block);
}

fn keeps_its_activity() {
    let mut activity = ACTIVITY;
    control(SET_ID, &raw mut activity);
}

fn takes_the_old_activity() {
    let handle = registered();
    let mut activity = ACTIVITY;
    control(SET_ID, &raw mut activity);
    control(CREATE_SET_ID, &raw mut activity);
    // The argument now contains the previous id.
    write(handle, &[]);
    let mut none = GUID::default();
    control(SET_ID, &raw mut none);
}

/// Writes events like the macros of TraceLoggingProvider.h in a driver: without an activity id at
/// any IRQL, and without a keyword or with level 0 unless the author specifies a keyword or level.
fn writes_as_tracelogging() {
    let handle = registered();
    set(handle, SET_TRAITS, &TRAITS);
    let event = |level| EVENT_DESCRIPTOR { Id: 0, Channel: 11, Level: level, Keyword: 0, ..EVENT };
    let rest = Rest { activity: None, ..Rest::with(handle) };
    for level in [5, 0] {
        let write = || {
            let traits = DataDescriptor::from_bytes(&TRAITS).of_kind(2);
            write_all(
                &event(level),
                &rest,
                &[traits, described(), DataDescriptor::from_bytes(&[1])],
            )
        };
        write();
        at_dispatch(|| {
            write();
        });
    }
}

/// A second provider, whose events show the driver's reaction to notifications.
static PROMPT: GUID =
    guid(0x5b9c_2f60, 0x37d1, 0x4e0a, [0x8e, 0x11, 0x90, 0x3a, 0x4c, 0x55, 0x1f, 0x02]);
/// The registration of the second provider.
static PROMPT_HANDLE: AtomicU64 = AtomicU64::new(0);

/// The provider's own enable state: 0 while it is not enabled, otherwise the level plus one.
static STATE: AtomicU64 = AtomicU64::new(0);
/// The rule that the provider breaks.
static WRONG: AtomicU64 = AtomicU64::new(0);

callback! {
    /// An enable callback that stores state, in one of several wrong ways.
    fn keeps_state(call) {
        let before = STATE.load(Ordering::Relaxed);
        let wrong = WRONG.load(Ordering::Relaxed);
        let enabled = match call.level {
            0 if wrong != 25 => 256,
            level => u64::from(level) + 1,
        };
        let after = match call.code {
            0 => 0,
            1 if wrong == 24 && enabled < before => 0,
            1 => enabled,
            2 if wrong == 26 => enabled,
            2 => before,
            _ if wrong == 23 => 0,
            _ => before,
        };
        STATE.store(after, Ordering::Relaxed);
    }
}

callback! {
    /// Writes an event if the provider is enabled according to its own state.
    fn prompted(_call) {
        if STATE.load(Ordering::Relaxed) <= u64::from(EVENT.Level) {
            return;
        }
        let status = write(HANDLE.load(Ordering::Relaxed), &[DataDescriptor::from_bytes(&[1])]);
        if !NT_SUCCESS(status) && WRONG.load(Ordering::Relaxed) == 50 {
            STATE.store(0, Ordering::Relaxed);
        }
    }
}

/// Registers a provider that breaks a rule in its handling of notifications.
fn keep_state(wrong: u64) {
    WRONG.store(wrong, Ordering::Relaxed);
    register(Some(keeps_state));
    let mut handle = 0;
    let _status =
        nt!(EtwRegister, &raw const PROMPT, Some(prompted), ptr::null_mut(), &raw mut handle);
    PROMPT_HANDLE.store(handle, Ordering::Relaxed);
}

/// Registers the provider with a callback.
fn registers(callback: PETWENABLECALLBACK) {
    register(callback);
}

/// Registers the provider, and sets information.
fn sets(class: i32, bytes: &[u8]) {
    set(registered(), class, bytes);
}

/// Registers the provider, and writes an event with these data descriptors.
fn writes(descriptors: &[DataDescriptor]) {
    write(registered(), descriptors);
}

/// Registers the provider, and writes an event with these data descriptors at `DISPATCH_LEVEL`.
fn writes_at_dispatch(descriptors: &[DataDescriptor]) {
    let handle = registered();
    at_dispatch(|| {
        write(handle, descriptors);
    });
}

/// Registers the provider, and writes one event per number, each changed by `change`.
fn writes_each(numbers: RangeInclusive<u8>, change: fn(&mut EVENT_DESCRIPTOR, u8)) {
    let handle = registered();
    for number in numbers {
        let mut event = EVENT;
        change(&mut event, number);
        write_all(&event, &Rest::with(handle), &[]);
    }
}

/// The functions of the services, by name.
pub const SERVICES: &[Run] = &[
    ("v02", || {
        let handle = registered();
        at_dispatch(|| {
            // The IRQL is the fault.
            let _status = nt!(EtwUnregister, handle);
        });
    }),
    ("v03", || {
        let handle = registered();
        at_dispatch(|| {
            set(handle, SET_TRAITS, &TRAITS);
        });
    }),
    ("v06", || registers(Some(unregisters_itself))),
    ("v07", overwrites_its_handle),
    ("v08", || {
        register_at(Some(quiet), ptr::null_mut(), ptr::without_provenance_mut(0x1_0000));
    }),
    ("v08-null", || {
        register_at(Some(quiet), ptr::null_mut(), ptr::null_mut());
    }),
    ("v09", || registers(Some(in_a_discarded_section))),
    ("v09-context", has_a_context_that_is_gone),
    ("v10", registers_again_and_again),
    ("v11", uses_what_a_failure_left),
    ("v12", || {
        write(0xFFFF_B000_1234_0000, &[]);
    }),
    ("v20", || registers(Some(stays_at_dispatch))),
    ("v21", || registers(Some(waits))),
    ("v21-lock", holds_a_lock_over_unregister),
    ("v22", || registers(Some(keeps_its_source))),
    ("v23", || keep_state(23)),
    ("v24", || keep_state(24)),
    ("v25", || keep_state(25)),
    ("v26", || keep_state(26)),
    ("keeps-state", || keep_state(0)),
    ("v50", || keep_state(50)),
    ("tracelogging", writes_as_tracelogging),
    ("global-channels", || {
        writes_each(8..=10, |event, channel| {
            // mc.exe sets one of the high keyword bits for an event with a channel.
            event.Channel = channel;
            event.Keyword |= 1 << 63;
        });
    }),
    ("common-keywords", || writes_each(48..=55, |event, bit| event.Keyword = 1 << bit)),
    ("uninitialized-handle", || {
        let mut handle = black_box(0xFFFF_FFFF_DEAD_BEEF);
        register_at(Some(quiet), ptr::null_mut(), &raw mut handle);
        HANDLE.store(handle, Ordering::Relaxed);
    }),
    ("v27", || writes_in_registration(0)),
    ("v27-garbage", || writes_in_registration(0x1000)),
    ("v28", || registers(Some(walks_too_far))),
    ("v30", || sets(SET_TRAITS, &[5, 0, b'P', 0])),
    ("v31", sets_traits_twice),
    ("v32", sets_large_traits),
    ("v33", || sets_a_trait(5)),
    ("v34", || sets_a_trait(1)),
    ("v35", || sets(USE_DESCRIPTOR_TYPE, &[1, 0])),
    ("v36", || sets(7, &[1])),
    ("v39", || {
        const NO_ADDRESS: *mut u64 = ptr::dangling_mut();
        let handle = registered();
        let _status = nt!(EtwSetInformation, handle, BINARY_TRACK_INFO, NO_ADDRESS.cast(), 0);
    }),
    ("v37", || writes(&[described()])),
    ("v38", || event_with(|event| event.Channel = 12)),
    ("v38-described", || event_with(|event| event.Channel = 11)),
    ("v40", || {
        writes_at_dispatch(&[DataDescriptor::at(allocate(POOL_FLAG_PAGED, 64), 8)]);
    }),
    ("v40-section", || writes_at_dispatch(&[DataDescriptor::from_bytes(&PAGEABLE)])),
    ("v41", || descriptor_with(|descriptor| descriptor.pointer = 0x7FFE_0000)),
    ("v42", || writes(&[DataDescriptor::from_bytes(&TRAITS); 129])),
    ("v43", || descriptor_with(|descriptor| descriptor.pointer = 0)),
    ("v43-array", || {
        // The null array is the fault.
        let none = (1, ptr::null());
        write_at(&EVENT, &Rest::with(registered()), none);
    }),
    ("v44", || {
        write_block(registered(), 70_000);
    }),
    ("v44-buffer", || {
        write_block(registered(), 8_000);
    }),
    ("v45", || descriptor_with(|descriptor| descriptor.reserved_2 = 3)),
    ("v46", || descriptor_with(|descriptor| descriptor.kind = 9)),
    ("v47", || rest_with(|rest| rest.flags = 8)),
    ("v48", || rest_with(|rest| rest.filter = 1 << 40)),
    ("v49", || event_with(|event| event.Level = 0)),
    ("v49-keyword", || event_with(|event| event.Keyword = 0)),
    ("v49-high", || event_with(|event| event.Keyword = 1 << 60)),
    ("v49-level", || event_with(|event| event.Level = 9)),
    ("v49-opcode", || event_with(|event| event.Opcode = 250)),
    ("v49-channel", || event_with(|event| event.Channel = 5)),
    ("v51", || rest_with(|rest| rest.flags = 0)),
    ("v51-good", || rest_with(|rest| rest.flags = 1)),
    ("v52", || {
        let rest = Rest { activity: None, ..Rest::with(registered()) };
        at_dispatch(|| {
            write_all(&EVENT, &rest, &[]);
        });
    }),
    ("v53", || {
        let cut = DataDescriptor::at(METADATA.as_ptr(), METADATA.len() - 1).of_kind(1);
        write_self_describing(&[cut, DataDescriptor::from_bytes(&[1])]);
    }),
    ("v53-order", || {
        write_self_describing(&[DataDescriptor::from_bytes(&[1]), described()]);
    }),
    ("v53-payload", || {
        write_self_describing(&[described(), DataDescriptor::from_bytes(&[1, 2, 3])]);
    }),
    ("v54", writes_from_freed_pool),
    ("v54-stack", || {
        let handle = registered();
        write(handle, &[DataDescriptor::at(address_of_a_local(), 8)]);
    }),
    ("v55", writes_what_nobody_wrote),
    ("v55-address", writes_an_address),
    ("v60", || {
        let mut activity = ACTIVITY;
        at_dispatch(|| {
            control(GET_ID, &raw mut activity);
        });
    }),
    ("v61", || {
        control(GET_ID, ptr::without_provenance_mut(0x1_0000));
    }),
    ("v61-null", || {
        control(GET_ID, ptr::null_mut());
    }),
    ("v61-paged", || {
        let block = allocate(POOL_FLAG_PAGED, mem::size_of::<GUID>());
        at_dispatch(|| {
            control(CREATE_ID, block.cast());
        });
    }),
    ("v62", || {
        let mut activity = ACTIVITY;
        control(9, &raw mut activity);
    }),
    ("v63", keeps_its_activity),
    ("v64", takes_the_old_activity),
    ("results", prints_results),
    ("until-it-fails", writes_until_it_fails),
    ("freed-pool-read", reads_freed_pool),
    ("past-a-block", writes_behind_a_block),
    ("paged-pool-at-dispatch", reads_paged_pool_at_dispatch),
    ("page-code-at-dispatch", || {
        at_dispatch(|| {
            black_box(pageable_code());
        });
    }),
    ("paged-at-passive", uses_paged_memory_at_passive),
];
