//! Mock ETW routines of ntoskrnl.exe and, for user mode, of advapi32.dll. They record calls, fail on demand and send notifications.
//! Only one test uses them at a time.

#![allow(
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "a panic fails the calling test, and tests discard the calls that they do not check"
)]
#![allow(clippy::significant_drop_tightening, reason = "a routine's state is locked while it runs")]

use std::{
    cell::Cell,
    ffi::{CStr, c_char, c_void},
    fmt,
};

mod sync;
#[cfg(not(windows))]
mod user;

use etl_file::PointerSize;
use etl_file::decode::Value;
use etl_file::internals::schema::{Payload, Schema};
use wdk_etw::{
    EventDataDescriptor, EventDescriptor, Guid, Provider, RegisterError, Registered, TraitsBuffer,
};

use crate::sync::{Condvar, Mutex, MutexGuard};

/// `STATUS_INVALID_PARAMETER`.
pub const INVALID_PARAMETER: i32 = 0xC000_000D_u32.cast_signed();
/// `STATUS_ACCESS_DENIED`.
pub const ACCESS_DENIED: i32 = 0xC000_0022_u32.cast_signed();
/// `STATUS_NO_MEMORY`.
pub const NO_MEMORY: i32 = 0xC000_0017_u32.cast_signed();

/// `EVENT_CONTROL_CODE_DISABLE_PROVIDER`.
pub const DISABLE: u32 = 0;
/// `EVENT_CONTROL_CODE_ENABLE_PROVIDER`.
pub const ENABLE: u32 = 1;
/// `EVENT_CONTROL_CODE_CAPTURE_STATE`.
pub const CAPTURE_STATE: u32 = 2;

/// `EventProviderBinaryTrackInfo`, which has no information.
const BINARY_TRACK_INFO: i32 = 0;
/// `EventProviderSetTraits`, which is allowed only once for each registration.
const SET_TRAITS: i32 = 2;

type Callback =
    unsafe extern "system" fn(*const Guid, u32, u8, u64, u64, *const c_void, *mut c_void);

/// A value whose formatting repeats a string endlessly, and counts the repetitions.
pub struct Endless<'a>(pub &'a Cell<usize>, pub &'static str);

impl fmt::Display for Endless<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        loop {
            self.0.set(self.0.get() + 1);
            f.write_str(self.1)?;
        }
    }
}

/// A call that the crate made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// `EtwRegister`, with the provider's id.
    Register(Guid),
    /// `EtwUnregister`, with the handle.
    Unregister(u64),
    /// `EtwSetInformation`, with the handle, the class and the information.
    SetInformation(u64, i32, Vec<u8>),
    /// `EtwWriteEx`.
    Write(Written),
    /// `EtwActivityIdControl`, with the code.
    Activity(u32),
    /// `ExAllocatePool2`, with the flags, the size and the tag.
    Allocate(u64, usize, u32),
    /// `ExFreePoolWithTag`, with the tag.
    Free(u32),
    /// `DbgPrint`, with the string.
    Print(String),
    /// `DbgPrintEx`, with the component, the level and the string.
    PrintEx(u32, u32, String),
}

/// A write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The handle of the registration.
    pub handle: u64,
    /// The event's descriptor.
    pub event: EventDescriptor,
    /// The filter.
    pub filter: u64,
    /// The flags.
    pub flags: u32,
    /// The activity id, if the call passed one.
    pub activity: Option<Guid>,
    /// The related activity id, if the call passed one.
    pub related: Option<Guid>,
    /// The type and the bytes of each data descriptor.
    pub data: Vec<(u8, Vec<u8>)>,
}

impl Written {
    /// Returns the event's data, from all data descriptors.
    pub fn content(&self) -> Vec<u8> {
        self.of_kind(0).unwrap_or_default()
    }

    /// Returns the schema in a `TraceLogging` event.
    pub fn schema(&self) -> Option<Schema> {
        self.of_kind(1).map(|metadata| Schema::parse_trace_logging(&metadata).unwrap())
    }

    /// Returns the bytes of all data descriptors of this type.
    fn of_kind(&self, kind: u8) -> Option<Vec<u8>> {
        let bytes = self.data.iter().filter(|(of, _)| *of == kind).map(|(_, bytes)| &**bytes);
        bytes.map(<[u8]>::to_vec).reduce(|all, more| [all, more].concat())
    }

    /// Returns the values that `schema` finds in the event's data, with their names. Panics unless
    /// the values cover all data.
    pub fn values(&self, schema: &Schema) -> Vec<(String, Value)> {
        let Payload { fields, error, leftover, .. } =
            schema.decode(&self.content(), PointerSize::Eight);
        assert_eq!((error, leftover.len()), (None, 0), "{}: {self:?}", schema.event_name);
        fields.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
    }

    /// Returns the fields that `schema` finds in the event's data, as strings.
    pub fn fields(&self, schema: &Schema) -> Vec<String> {
        let values = self.values(schema).into_iter();
        values.map(|(name, value)| format!("{name}={value}")).collect()
    }

    /// Returns the name of a `TraceLogging` event, and its fields as strings.
    pub fn described(&self) -> (String, Vec<String>) {
        let schema = self.schema().expect("a TraceLogging event");
        let fields = self.fields(&schema);
        (schema.event_name, fields)
    }
}

/// A pool block. It owns no `Box`, because a `Box` would have to be the only pointer to its memory.
pub struct Block {
    start: usize,
    bytes: usize,
    tag: u32,
}

impl Drop for Block {
    fn drop(&mut self) {
        let start = std::ptr::with_exposed_provenance_mut::<u8>(self.start);
        let block = std::ptr::slice_from_raw_parts_mut(start, self.bytes);
        // SAFETY: the memory belongs to a box, and its only owner is being dropped.
        drop(unsafe { Box::from_raw(block) });
    }
}

/// The state and the behavior of the routines.
#[derive(Default)]
pub struct Etw {
    /// The calls that no test has fetched yet.
    pub calls: Vec<Call>,
    /// The status of `EtwRegister`.
    pub register_status: i32,
    /// The status of `EtwSetInformation`, except for binary tracking.
    pub information_status: i32,
    /// The status of `EtwWriteEx`.
    pub write_status: i32,
    /// The status of `EtwUnregister`.
    pub unregister_status: i32,
    /// The level, match-any and match-all keywords of a notification sent inside `EtwRegister`.
    pub enabled_before: Option<(u8, u64, u64)>,
    /// The thread's activity id.
    pub thread_activity: Guid,
    /// The status of `EtwActivityIdControl` when it reads or sets the thread's id.
    pub thread_activity_status: i32,
    /// The number of activity ids that were created.
    pub activities: u16,
    /// The status of `EventProviderBinaryTrackInfo`.
    pub tracking_status: i32,
    /// True if pool allocations fail.
    pub no_pool: bool,
    /// The current IRQL.
    pub irql: u8,
    /// The allocated blocks.
    pub blocks: Vec<Block>,
    /// Set to make writes wait inside `EtwWriteEx`.
    pub hold_writes: bool,
    /// The number of held writes that may return.
    pub let_out: usize,
    /// The number of writes inside `EtwWriteEx`.
    pub writes_inside: usize,
    registered: Option<(Callback, usize)>,
    /// The handles with traits.
    with_traits: Vec<u64>,
    /// The released handles.
    released: Vec<u64>,
    issued: u64,
}

impl Etw {
    /// Asserts that a handle was issued and not released.
    fn assert_live(&self, handle: u64) {
        assert!(handle > 0x1000 && handle <= 0x1000 + self.issued, "{handle:#x} is not a handle");
        assert!(!self.released.contains(&handle), "{handle:#x} was released");
    }
}

static ETW: Mutex<Option<Etw>> = Mutex::new(None);
/// Signaled when writes are no longer held.
static LET_GO: Condvar = Condvar::new();
static TURN: Mutex<()> = Mutex::new(());
/// A lock that is held during a notification. `EtwUnregister` waits for it.
static NOTIFYING: Mutex<()> = Mutex::new(());

fn with<R>(body: impl FnOnce(&mut Etw) -> R) -> R {
    let mut etw = ETW.lock();
    body(etw.get_or_insert_with(Etw::default))
}

/// A test's exclusive use of the routines, which are reset when the test's turn begins. Dropping it
/// unregisters the test's first provider.
pub struct Turn {
    provider: Option<&'static Provider>,
    _held: MutexGuard<'static, ()>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(provider) = self.provider.filter(|_| !std::thread::panicking()) {
            // No session enables the provider in the next test.
            self.notify_if_registered(DISABLE, 0, 0, 0);
            assert_eq!(provider.unregister(), Ok(()));
        }
    }
}

/// Waits for the turn of the calling test.
pub fn turn() -> Turn {
    let turn = TURN.lock();
    *ETW.lock() = Some(Etw::default());
    Turn { provider: None, _held: turn }
}

/// Registers a provider.
///
/// # Errors
///
/// Returns the provider's error.
pub fn register(provider: &'static Provider) -> Result<Registered, RegisterError> {
    // SAFETY: a test's code is never unmapped.
    unsafe { provider.register() }
}

/// Registers a provider with traits.
///
/// # Errors
///
/// Returns the provider's error.
pub fn register_with<const N: usize>(
    provider: &'static Provider,
    traits: &TraitsBuffer<N>,
) -> Result<Registered, RegisterError> {
    // SAFETY: as above.
    unsafe { provider.register_with(traits) }
}

/// Waits for the turn of the calling test, and registers its provider.
pub fn registered(provider: &'static Provider) -> Turn {
    let mut etw = turn();
    assert_eq!(register(provider), Ok(Registered::Complete));
    etw.provider = Some(provider);
    etw
}

/// Waits for the turn of the calling test, registers its provider, and enables its events up to
/// this level.
pub fn enabled(provider: &'static Provider, level: u8) -> Turn {
    let etw = registered(provider);
    etw.notify(ENABLE, level, 0, 0);
    etw.calls();
    etw
}

#[allow(clippy::unused_self, reason = "only the test that holds the turn may use them")]
impl Turn {
    /// Changes the behavior of the routines.
    pub fn set(&self, change: impl FnOnce(&mut Etw)) {
        with(change);
        LET_GO.notify_all();
    }

    /// Waits until the state of the routines satisfies a condition.
    pub fn wait_until(&self, reached: impl Fn(&Etw) -> bool) {
        while !with(|etw| reached(etw)) {
            std::thread::yield_now();
        }
    }

    /// Returns the calls since the last call of this function.
    pub fn calls(&self) -> Vec<Call> {
        with(|etw| std::mem::take(&mut etw.calls))
    }

    /// Returns the writes since the last call of this function or of [`Self::calls`].
    pub fn writes(&self) -> Vec<Written> {
        self.calls()
            .into_iter()
            .filter_map(|call| match call {
                Call::Write(written) => Some(written),
                _ => None,
            })
            .collect()
    }

    /// Notifies the registered provider.
    pub fn notify(&self, code: u32, level: u8, any: u64, all: u64) {
        let registered = with(|etw| etw.registered);
        let (callback, context) = registered.expect("a provider is registered");
        call(callback, context, code, level, any, all);
    }

    /// Notifies the provider if one is registered. The registration does not end during the
    /// notification.
    pub fn notify_if_registered(&self, code: u32, level: u8, any: u64, all: u64) {
        let _notifying = NOTIFYING.lock();
        if let Some((callback, context)) = with(|etw| etw.registered) {
            call(callback, context, code, level, any, all);
        }
    }

    /// Sends a notification with a source and a filter. Both are overwritten before the function
    /// returns.
    pub fn notify_filtered(&self, mut source: Guid, kind: u32, filter: &[u8]) {
        let registered = with(|etw| etw.registered);
        let (callback, context) = registered.expect("a provider is registered");
        let mut bytes = filter.to_vec();
        let mut descriptor = Filter {
            address: bytes.as_ptr() as u64,
            size: u32::try_from(bytes.len()).unwrap(),
            kind,
        };
        // SAFETY: the crate registered the callback and the context.
        unsafe {
            callback(
                &raw const source,
                ENABLE,
                5,
                1,
                0,
                (&raw const descriptor).cast(),
                context as *mut c_void,
            );
        }
        bytes.fill(0xDD);
        descriptor.address = 0;
        source = Guid::new(0xDDDD_DDDD, 0xDDDD, 0xDDDD, [0xDD; 8]);
        std::hint::black_box((&bytes, descriptor.address, source));
    }
}

/// `EVENT_FILTER_DESCRIPTOR`.
#[repr(C)]
struct Filter {
    address: u64,
    size: u32,
    kind: u32,
}

fn call(callback: Callback, context: usize, code: u32, level: u8, any: u64, all: u64) {
    let source = Guid::NULL;
    // SAFETY: the crate registered the callback and the context.
    unsafe {
        callback(
            &raw const source,
            code,
            level,
            any,
            all,
            std::ptr::null(),
            context as *mut c_void,
        );
    }
}

/// Sets a registration's traits, bypassing the provider.
pub fn set_traits(handle: u64) {
    with(|etw| etw.with_traits.push(handle));
}

// SAFETY: the crate calls the routine by this name, and no other symbol has it.
#[unsafe(no_mangle)]
extern "system" fn EtwRegister(
    provider: &Guid,
    callback: Option<Callback>,
    context: *mut c_void,
    handle: &mut u64,
) -> i32 {
    let context = context as usize;
    let (status, enabled, issued) = with(|etw| {
        etw.calls.push(Call::Register(*provider));
        if etw.register_status == 0 {
            etw.issued += 1;
            etw.registered = callback.map(|callback| (callback, context));
        }
        (etw.register_status, etw.enabled_before, etw.issued)
    });
    if status == 0 {
        if let (Some((level, any, all)), Some(callback)) = (enabled, callback) {
            call(callback, context, ENABLE, level, any, all);
        }
        *handle = 0x1000 + issued;
    }
    status
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "system" fn EtwUnregister(handle: u64) -> i32 {
    let _no_notification = NOTIFYING.lock();
    with(|etw| {
        etw.calls.push(Call::Unregister(handle));
        etw.assert_live(handle);
        assert_eq!(etw.writes_inside, 0, "a write is under way");
        if etw.unregister_status >= 0 {
            etw.registered = None;
            etw.released.push(handle);
        }
        etw.unregister_status
    })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "system" fn EtwSetInformation(
    handle: u64,
    class: i32,
    information: *const u8,
    length: u32,
) -> i32 {
    // A call without information must pass null, not the dangling address of an empty slice.
    assert_eq!(information.is_null(), length == 0, "{information:?}");
    let blob = if information.is_null() {
        &[]
    } else {
        // SAFETY: the crate passes information of this length.
        unsafe { std::slice::from_raw_parts(information, length as usize) }
    };
    with(|etw| {
        etw.calls.push(Call::SetInformation(handle, class, blob.to_vec()));
        etw.assert_live(handle);
        if class == SET_TRAITS && etw.with_traits.contains(&handle) {
            return INVALID_PARAMETER;
        }
        if class == BINARY_TRACK_INFO {
            return etw.tracking_status;
        }
        if class == SET_TRAITS && etw.information_status >= 0 {
            etw.with_traits.push(handle);
        }
        etw.information_status
    })
}

/// `EVENT_DATA_DESCRIPTOR` in the form that ETW reads.
#[repr(C)]
struct DataDescriptor {
    address: u64,
    size: u32,
    kind: u8,
    reserved_1: u8,
    reserved_2: u16,
}

const _: () = assert!(size_of::<DataDescriptor>() == size_of::<EventDataDescriptor<'_>>());

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "system" fn EtwWriteEx(
    handle: u64,
    event: &EventDescriptor,
    filter: u64,
    flags: u32,
    activity: Option<&Guid>,
    related: Option<&Guid>,
    count: u32,
    descriptors: *const DataDescriptor,
) -> i32 {
    let data = (0..count as usize)
        .map(|at| {
            // SAFETY: the crate passes `count` descriptors.
            let descriptor = unsafe { descriptors.add(at) };
            // SAFETY: each descriptor is readable.
            let descriptor = unsafe { descriptor.read() };
            assert_eq!((descriptor.reserved_1, descriptor.reserved_2), (0, 0));
            let start = descriptor.address as *const u8;
            // A descriptor of zero bytes can have a null address.
            let bytes = if start.is_null() && descriptor.size == 0 {
                &[]
            } else {
                // SAFETY: each descriptor refers to readable bytes.
                unsafe { std::slice::from_raw_parts(start, descriptor.size as usize) }
            };
            (descriptor.kind, bytes.to_vec())
        })
        .collect();
    with(|etw| {
        etw.assert_live(handle);
        etw.writes_inside += 1;
        etw.calls.push(Call::Write(Written {
            handle,
            event: *event,
            filter,
            flags,
            activity: activity.copied(),
            related: related.copied(),
            data,
        }));
    });
    let mut held = ETW.lock();
    LET_GO.wait_while(&mut held, |etw| {
        etw.as_ref().is_some_and(|etw| etw.hold_writes && etw.let_out == 0)
    });
    let etw = held.get_or_insert_with(Etw::default);
    etw.let_out = etw.let_out.saturating_sub(1);
    etw.writes_inside -= 1;
    etw.write_status
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "system" fn EtwActivityIdControl(code: u32, activity: &mut Guid) -> i32 {
    with(|etw| {
        etw.calls.push(Call::Activity(code));
        let given = *activity;
        if code != 3 && etw.thread_activity_status != 0 {
            return etw.thread_activity_status;
        }
        match code {
            1 => *activity = etw.thread_activity,
            2 => etw.thread_activity = given,
            3 => {
                etw.activities += 1;
                *activity = Guid::new(0xAC71, etw.activities, 1, [0; 8]);
            }
            4 => *activity = std::mem::replace(&mut etw.thread_activity, given),
            _ => return INVALID_PARAMETER,
        }
        0
    })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "system" fn EtwProviderEnabled(handle: u64, level: u8, keyword: u64) -> u8 {
    with(|etw| etw.assert_live(handle));
    u8::from(level <= 4 && keyword != 0)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "system" fn ExAllocatePool2(flags: u64, bytes: usize, tag: u32) -> *mut c_void {
    with(|etw| {
        etw.calls.push(Call::Allocate(flags, bytes, tag));
        if etw.no_pool {
            return std::ptr::null_mut();
        }
        let start = Box::into_raw(vec![0_u8; bytes].into_boxed_slice()).cast::<u8>();
        etw.blocks.push(Block { start: start.expose_provenance(), bytes, tag });
        start.cast()
    })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "system" fn ExFreePoolWithTag(block: *mut c_void, tag: u32) {
    with(|etw| {
        etw.calls.push(Call::Free(tag));
        let mut blocks = etw.blocks.iter();
        let at = blocks.position(|one| one.start == block.addr() && one.tag == tag);
        drop(etw.blocks.remove(at.expect("a block of this tag")));
    });
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn DbgPrint(format: *const c_char, text: *const c_char) -> i32 {
    let text = formatted(format, text);
    with(|etw| etw.calls.push(Call::Print(text)));
    0
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn DbgPrintEx(
    component: u32,
    level: u32,
    format: *const c_char,
    text: *const c_char,
) -> i32 {
    let text = formatted(format, text);
    assert!(text.len() <= 512, "a message of at most 512 bytes is sent");
    with(|etw| etw.calls.push(Call::PrintEx(component, level, text)));
    0
}

/// Returns the string in a message whose format is `%s`.
fn formatted(format: *const c_char, text: *const c_char) -> String {
    // SAFETY: the library passes strings that end with NUL.
    let [format, text] = [format, text].map(|text| unsafe { CStr::from_ptr(text) });
    assert_eq!(format, c"%s");
    text.to_string_lossy().into_owned()
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "system" fn KeGetCurrentIrql() -> u8 {
    with(|etw| etw.irql)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "system" fn EtwEventEnabled(handle: u64, event: &EventDescriptor) -> u8 {
    with(|etw| etw.assert_live(handle));
    u8::from(event.level().0 <= 4)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "system" fn PsGetCurrentThreadId() -> *mut c_void {
    thread_local!(static THREAD: u8 = const { 0 });
    THREAD.with(|thread| std::ptr::without_provenance_mut(std::ptr::from_ref(thread).addr()))
}
