//! Attributes, contexts, references, and the order of callbacks in deletions.

use core::{
    ptr,
    sync::atomic::{AtomicI32, AtomicPtr, AtomicU8, Ordering::Relaxed},
};

use etw_driver_support::{at_irql, made};
use wdk_sys::{
    _WDF_EXECUTION_LEVEL as level, _WDF_SYNCHRONIZATION_SCOPE as scope, NTSTATUS,
    STATUS_DELETE_PENDING, STATUS_INFO_LENGTH_MISMATCH, STATUS_OBJECT_NAME_EXISTS,
    STATUS_OBJECT_NAME_INVALID, STATUS_SUCCESS, STATUS_TIMEOUT, WDF_NO_OBJECT_ATTRIBUTES,
    WDF_OBJECT_ATTRIBUTES, WDF_OBJECT_CONTEXT_TYPE_INFO, WDFDEVICE, WDFOBJECT,
};

use super::common::{
    self, STATUS_WDF_EXECUTION_LEVEL_INVALID, STATUS_WDF_OBJECT_ATTRIBUTES_INVALID,
    STATUS_WDF_PARENT_ASSIGNMENT_NOT_ALLOWED, STATUS_WDF_SYNCHRONIZATION_SCOPE_INVALID,
    dereference, letters, log, logged, object, reference, same, wait,
};
use crate::framework::{attributes, child_of, irql, wdf};

/// A context's type.
struct Type(WDF_OBJECT_CONTEXT_TYPE_INFO);

// SAFETY: nothing changes the type information.
unsafe impl Sync for Type {}

impl Type {
    const fn with_size(size: usize) -> Self {
        Self(WDF_OBJECT_CONTEXT_TYPE_INFO {
            Size: size_of::<WDF_OBJECT_CONTEXT_TYPE_INFO>() as u32,
            ContextName: c"Fact".as_ptr(),
            ContextSize: size,
            UniqueType: ptr::null(),
            EvtDriverGetUniqueContextType: None,
        })
    }
}

/// The type of the context that contains an object's letter, and another type.
static LETTER: Type = Type::with_size(1);
static OTHER: Type = Type::with_size(16);

/// The call that the cleanup callback of the object `a` makes on [`TARGET`].
static ACTION: AtomicU8 = AtomicU8::new(NOTHING);
static TARGET: AtomicPtr<core::ffi::c_void> = AtomicPtr::new(ptr::null_mut());
/// The status of that call.
static STATUS: AtomicI32 = AtomicI32::new(0);
const NOTHING: u8 = 0;
const DELETE: u8 = 1;
const ADD_CHILD: u8 = 2;

fn context(object: WDFOBJECT, of: &Type) -> *mut u8 {
    wdf!(WdfObjectGetTypedContextWorker, object, &raw const of.0).cast()
}

fn letter(object: WDFOBJECT) -> u8 {
    // SAFETY: the object was created with this context.
    unsafe { *context(object, &LETTER) }
}

extern "C" fn cleanup(object: WDFOBJECT) {
    let letter = letter(object);
    log(letter);
    let target = TARGET.load(Relaxed);
    match ACTION.load(Relaxed) {
        _ if letter != b'a' => {}
        DELETE => wdf!(WdfObjectDelete, target),
        ADD_CHILD => STATUS.store(common::object(&mut child_of(target)).0, Relaxed),
        _ => {}
    }
}

extern "C" fn destroy(object: WDFOBJECT) {
    log(letter(object).to_ascii_uppercase());
}

/// Logs the IRQL and the letter.
extern "C" fn cleanup_at(object: WDFOBJECT) {
    log(b'0' + irql());
    log(letter(object));
}

/// Returns attributes for an object that logs its letter.
fn lettered(parent: WDFOBJECT) -> WDF_OBJECT_ATTRIBUTES {
    WDF_OBJECT_ATTRIBUTES {
        EvtCleanupCallback: Some(cleanup),
        EvtDestroyCallback: Some(destroy),
        ContextTypeInfo: &raw const LETTER.0,
        ..child_of(parent)
    }
}

fn make(letter: u8, attributes: &mut WDF_OBJECT_ATTRIBUTES) -> WDFOBJECT {
    let (_, object) = object(attributes);
    // SAFETY: the object was created with this context.
    unsafe { *context(object, &LETTER) = letter };
    object
}

/// Creates the object `a` and its child `b`.
fn pair(device: WDFDEVICE) -> [WDFOBJECT; 2] {
    let a = make(b'a', &mut lettered(device.cast()));
    [a, make(b'b', &mut lettered(a))]
}

/// Deletes `a` of a pair. Its cleanup callback acts on the object `target`. Returns the log.
fn delete_with(device: WDFDEVICE, action: u8, target: usize) -> u64 {
    let pair = pair(device);
    TARGET.store(pair[target], Relaxed);
    ACTION.store(action, Relaxed);
    wdf!(WdfObjectDelete, pair[0]);
    ACTION.store(NOTHING, Relaxed);
    logged()
}

pub fn check(device: WDFDEVICE) {
    check_attributes();
    check_contexts(device);
    check_deletion(device);
    check_irqls(device);
}

/// Returns the status of a creation with changed attributes.
fn with(change: impl FnOnce(&mut WDF_OBJECT_ATTRIBUTES)) -> NTSTATUS {
    let mut attributes = attributes();
    change(&mut attributes);
    object(&mut attributes).0
}

fn check_attributes() {
    const INVALID: NTSTATUS = STATUS_WDF_OBJECT_ATTRIBUTES_INVALID;
    static NAMELESS: Type =
        Type(WDF_OBJECT_CONTEXT_TYPE_INFO { ContextName: ptr::null(), ..Type::with_size(16).0 });
    same!("attributes-size", with(|set| set.Size -= 1), STATUS_INFO_LENGTH_MISMATCH);
    let short = with(|set| {
        set.ContextTypeInfo = &raw const OTHER.0;
        set.ContextSizeOverride = 15;
    });
    same!("context-override-too-small", short, INVALID);
    same!("context-override-without-type", with(|set| set.ContextSizeOverride = 8), INVALID);
    let nameless = with(|set| set.ContextTypeInfo = &raw const NAMELESS.0);
    same!("context-without-name", nameless, INVALID);
    same!("execution-level-invalid", with(|set| set.ExecutionLevel = 0), INVALID);
    same!("scope-invalid", with(|set| set.SynchronizationScope = 5), INVALID);
    let scope = with(|set| set.SynchronizationScope = scope::WdfSynchronizationScopeDevice);
    same!("scope-not-allowed", scope, STATUS_WDF_SYNCHRONIZATION_SCOPE_INVALID);
    let mut passive = attributes();
    passive.ExecutionLevel = level::WdfExecutionLevelPassive;
    let lock = made(|lock| wdf!(WdfSpinLockCreate, &raw mut passive, lock)).0;
    same!("execution-level-not-allowed", lock, STATUS_WDF_EXECUTION_LEVEL_INVALID);
}

fn allocate(object: WDFOBJECT, attributes: &mut WDF_OBJECT_ATTRIBUTES) -> (NTSTATUS, *mut u8) {
    let (status, context) =
        made(|handle| wdf!(WdfObjectAllocateContext, object, attributes, handle));
    (status, context.cast())
}

fn check_contexts(device: WDFDEVICE) {
    let (_, object) = object(&mut child_of(device.cast()));
    same!("context-absent", context(object, &OTHER).is_null(), true);
    let mut given = WDF_OBJECT_ATTRIBUTES {
        ContextTypeInfo: &raw const OTHER.0,
        ContextSizeOverride: 64,
        ..attributes()
    };
    let (status, first) = allocate(object, &mut given);
    // SAFETY: the context has the size that the attributes override.
    let bytes = unsafe { *first.cast::<[u8; 64]>() };
    same!("context-override", (status, bytes), (STATUS_SUCCESS, [0; 64]));
    same!("context-twice", allocate(object, &mut given), (STATUS_OBJECT_NAME_EXISTS, first));
    given.ContextTypeInfo = &raw const LETTER.0;
    let (_, second) = allocate(object, &mut given);
    let both = (context(object, &OTHER), context(object, &LETTER));
    same!("context-types", (both, first == second), ((first, second), false));
    same!("context-object", wdf!(WdfObjectContextGetObject, second.cast()), object);
    same!("context-no-type", allocate(object, &mut attributes()).0, STATUS_OBJECT_NAME_INVALID);
    given.ParentObject = device.cast();
    let parent = allocate(object, &mut given).0;
    same!("context-parent", parent, STATUS_WDF_PARENT_ASSIGNMENT_NOT_ALLOWED);
    reference(object);
    wdf!(WdfObjectDelete, object);
    given.ParentObject = ptr::null_mut();
    same!("context-deleted", allocate(object, &mut given).0, STATUS_DELETE_PENDING);
    let child = common::object(&mut child_of(object)).0;
    same!("child-of-deleted", child, STATUS_DELETE_PENDING);
    wdf!(WdfObjectDelete, object);
    same!("deleted-twice", irql(), 0);
    dereference(object);
}

fn check_deletion(device: WDFDEVICE) {
    same!("children-first", delete_with(device, NOTHING, 0), letters(b"baBA"));
    let [a, b] = pair(device);
    let _sibling = make(b'c', &mut lettered(a));
    let _grandchild = make(b'd', &mut lettered(b));
    wdf!(WdfObjectDelete, a);
    same!("tree", logged(), letters(b"dbcaDBCA"));
    same!("child-deleted-in-cleanup", delete_with(device, DELETE, 1), letters(b"baBA"));
    same!("self-deleted-in-cleanup", delete_with(device, DELETE, 0), letters(b"baBA"));
    let _log = delete_with(device, ADD_CHILD, 0);
    same!("child-added-in-cleanup", STATUS.load(Relaxed), STATUS_DELETE_PENDING);
    let [a, b] = pair(device);
    reference(b);
    wdf!(WdfObjectDelete, a);
    same!("referenced-child", logged(), letters(b"baA"));
    dereference(b);
    same!("referenced-child-released", logged(), letters(b"B"));
    let mut failing = WDF_OBJECT_ATTRIBUTES { SynchronizationScope: 9, ..lettered(device.cast()) };
    let _failed = object(&mut failing);
    same!("failed-create", logged(), 0);
    let driver = wdf!(WdfDeviceGetDriver, device);
    wdf!(WdfObjectDelete, driver.cast());
    same!("delete-not-allowed", wdf!(WdfDeviceGetDriver, device), driver);
    let (_, collection) =
        made(|handle| wdf!(WdfCollectionCreate, &mut lettered(device.cast()), handle));
    // SAFETY: the collection was created with this context.
    unsafe { *context(collection.cast(), &LETTER) = b'c' };
    let item = make(b'i', &mut lettered(device.cast()));
    let _status = wdf!(WdfCollectionAdd, collection, item);
    wdf!(WdfObjectDelete, item);
    wdf!(WdfObjectDelete, collection.cast());
    same!("collection-holds-items", logged(), letters(b"icCI"));
}

fn check_irqls(device: WDFDEVICE) {
    const DISPATCH: u8 = 2;
    let mut plain =
        WDF_OBJECT_ATTRIBUTES { EvtCleanupCallback: Some(cleanup_at), ..lettered(device.cast()) };
    let delete_high = |attributes: &mut WDF_OBJECT_ATTRIBUTES, child: bool| {
        let object = make(b'p', attributes);
        if child {
            let mut attributes = child_of(object);
            attributes.ExecutionLevel = level::WdfExecutionLevelPassive;
            let _child = common::object(&mut attributes);
        }
        at_irql(DISPATCH, || wdf!(WdfObjectDelete, object));
        let before = logged();
        wait(1);
        (before, logged())
    };
    same!("deleted-at-dispatch", delete_high(&mut plain, false), (letters(b"2pP"), 0));
    same!("deleted-with-passive-child", delete_high(&mut plain, true), (0, letters(b"0pP")));
    plain.ExecutionLevel = level::WdfExecutionLevelPassive;
    same!("passive-deleted-at-dispatch", delete_high(&mut plain, false), (0, letters(b"0pP")));
    let string = made(|handle| wdf!(WdfStringCreate, ptr::null(), &raw mut plain, handle)).0;
    same!("string-level", string, STATUS_WDF_EXECUTION_LEVEL_INVALID);
    let lock = made(|handle| wdf!(WdfSpinLockCreate, WDF_NO_OBJECT_ATTRIBUTES, handle)).1;
    wdf!(WdfSpinLockAcquire, lock);
    let held = irql();
    wdf!(WdfSpinLockRelease, lock);
    same!("spin-lock-irql", (held, irql()), (DISPATCH, 0));
    let (_, lock) = made(|handle| wdf!(WdfWaitLockCreate, WDF_NO_OBJECT_ATTRIBUTES, handle));
    let mut zero = 0;
    let tried = at_irql(DISPATCH, || wdf!(WdfWaitLockAcquire, lock, &raw mut zero));
    same!("wait-lock-at-dispatch", tried, STATUS_SUCCESS);
    let acquire = |mut timeout: i64| wdf!(WdfWaitLockAcquire, lock, &raw mut timeout);
    same!("wait-lock-held", [acquire(0), acquire(-10_000)], [STATUS_TIMEOUT; 2]);
    at_irql(DISPATCH, || wdf!(WdfWaitLockRelease, lock));
    same!("wait-lock-released", acquire(0), STATUS_SUCCESS);
    wdf!(WdfWaitLockRelease, lock);
}
