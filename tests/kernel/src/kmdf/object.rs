//! Framework objects: handles, parents, contexts, and their deletion.

use std::collections::{HashMap, VecDeque};

use super::{
    DpcQueue, Entries, Routine,
    buffer::MemoryData,
    device::{DeviceData, DeviceInit},
    driver::{self, Client, DriverData},
    lock::{SpinLockData, WaitLockData},
    lock_framework, queue,
    queue::QueueData,
    registry::{KeyData, Parameters, TextData},
    request::{Ended, FileData, RequestData},
    timer::{self, DpcData, TimerData},
    work::{self, Work, WorkItemData},
};
use crate::{
    abi::{ContextTypeInfo, ObjectAttributes},
    pool::Block,
    status::NtStatus,
    thread::{self, Thread},
    verifier::Rule,
};

/// Handles look like kernel addresses, and none can be accessed.
const FIRST_HANDLE: u64 = 0xFFFF_A000_0000_0000;
const HANDLE_STEP: u64 = 0x40;

/// What an object is, with what its kind needs.
pub enum Kind {
    Driver(DriverData),
    Device(Box<DeviceData>),
    Queue(Box<QueueData>),
    Request(Box<RequestData>),
    File(FileData),
    Timer(TimerData),
    Dpc(DpcData),
    SpinLock(SpinLockData),
    WaitLock(WaitLockData),
    WorkItem(WorkItemData),
    Memory(MemoryData),
    Key(KeyData),
    Text(TextData),
    General,
}

impl Kind {
    /// The handle type's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Driver(_) => "WDFDRIVER",
            Self::Device(_) => "WDFDEVICE",
            Self::Queue(_) => "WDFQUEUE",
            Self::Request(_) => "WDFREQUEST",
            Self::File(_) => "WDFFILEOBJECT",
            Self::Timer(_) => "WDFTIMER",
            Self::Dpc(_) => "WDFDPC",
            Self::SpinLock(_) => "WDFSPINLOCK",
            Self::WaitLock(_) => "WDFWAITLOCK",
            Self::WorkItem(_) => "WDFWORKITEM",
            Self::Memory(_) => "WDFMEMORY",
            Self::Key(_) => "WDFKEY",
            Self::Text(_) => "WDFSTRING",
            Self::General => "WDFOBJECT",
        }
    }
}

/// Picks one kind's data out of an object.
pub trait Data: Sized {
    /// The handle type's name.
    const NAME: &'static str;
    /// The data, if the object is of this kind.
    fn of(kind: &mut Kind) -> Option<&mut Self>;
}

macro_rules! data {
    ($($variant:ident($type:ty) as $name:literal;)*) => {$(
        impl Data for $type {
            const NAME: &'static str = $name;
            fn of(kind: &mut Kind) -> Option<&mut Self> {
                match kind {
                    Kind::$variant(data) => Some(data),
                    _ => None,
                }
            }
        }
    )*};
}

data! {
    Driver(DriverData) as "WDFDRIVER";
    Device(DeviceData) as "WDFDEVICE";
    Queue(QueueData) as "WDFQUEUE";
    Request(RequestData) as "WDFREQUEST";
    File(FileData) as "WDFFILEOBJECT";
    Timer(TimerData) as "WDFTIMER";
    Dpc(DpcData) as "WDFDPC";
    SpinLock(SpinLockData) as "WDFSPINLOCK";
    WaitLock(WaitLockData) as "WDFWAITLOCK";
    WorkItem(WorkItemData) as "WDFWORKITEM";
    Memory(MemoryData) as "WDFMEMORY";
    Key(KeyData) as "WDFKEY";
    Text(TextData) as "WDFSTRING";
}

struct Context {
    /// The type's identity: the address of its unique type information.
    unique_type: u64,
    memory: Block,
}

struct Object {
    kind: Kind,
    parent: Option<u64>,
    children: Vec<u64>,
    contexts: Vec<Context>,
    cleanup: Vec<u64>,
    destroy: Vec<u64>,
    /// `WDF_EXECUTION_LEVEL`; 0 or 1 for the parent's.
    execution_level: u32,
    /// References that the driver took and has not given back.
    references: u32,
    /// Whether it was deleted: what is left of it goes with the last reference.
    deleted: bool,
}

/// Everything that the framework keeps.
#[derive(Default)]
pub struct Framework {
    objects: HashMap<u64, Object>,
    issued: u64,
    /// Drivers that are bound.
    pub clients: Vec<Client>,
    /// DPCs that wait.
    pub dpcs: DpcQueue,
    /// Devices that are being described.
    pub inits: HashMap<u64, DeviceInit>,
    /// How many of those there were.
    pub inits_issued: u64,
    /// What is to run on a system thread after the present step.
    pub work: VecDeque<Work>,
    /// How requests ended whose senders have not asked yet.
    pub ended: HashMap<u64, Ended>,
    /// The services' parameters in the registry.
    pub parameters: Parameters,
}

/// A handle that is not what a routine takes.
pub struct BadHandle {
    handle: u64,
    expected: &'static str,
    found: Option<&'static str>,
}

impl Framework {
    /// Makes an object. `attributes` have been validated.
    fn insert(&mut self, kind: Kind, parent: Option<u64>) -> u64 {
        let handle = FIRST_HANDLE + self.issued * HANDLE_STEP;
        self.issued += 1;
        if let Some(parent) = parent.and_then(|parent| self.objects.get_mut(&parent)) {
            parent.children.push(handle);
        }
        self.objects.insert(
            handle,
            Object {
                kind,
                parent,
                children: Vec::new(),
                contexts: Vec::new(),
                cleanup: Vec::new(),
                destroy: Vec::new(),
                execution_level: 0,
                references: 0,
                deleted: false,
            },
        );
        handle
    }

    /// The data behind a handle of a known kind.
    pub fn get<T: Data>(&mut self, handle: u64) -> Result<&mut T, BadHandle> {
        match self.objects.get_mut(&handle) {
            None => Err(BadHandle {
                handle,
                expected: T::NAME,
                found: None,
            }),
            Some(object) => {
                let name = object.kind.name();
                T::of(&mut object.kind).ok_or(BadHandle {
                    handle,
                    expected: T::NAME,
                    found: Some(name),
                })
            }
        }
    }

    /// Takes an object away.
    fn forget(&mut self, handle: u64) {
        if let Some(object) = self.objects.remove(&handle)
            && let Some(parent) = object
                .parent
                .and_then(|parent| self.objects.get_mut(&parent))
        {
            parent.children.retain(|child| *child != handle);
        }
    }

    /// Whether the handle names a live object.
    pub fn exists(&self, handle: u64) -> bool {
        self.objects.contains_key(&handle)
    }

    /// The nearest object upwards, the object itself included, of a kind.
    pub fn ancestor<T: Data>(&mut self, handle: u64) -> Option<u64> {
        let mut at = Some(handle);
        while let Some(handle) = at {
            let object = self.objects.get_mut(&handle)?;
            if T::of(&mut object.kind).is_some() {
                return Some(handle);
            }
            at = object.parent;
        }
        None
    }

    /// An object's parent.
    pub fn parent(&self, handle: u64) -> Option<u64> {
        self.objects.get(&handle)?.parent
    }

    /// Every live object of a kind, oldest first.
    pub fn all<T: Data>(&mut self) -> Vec<u64> {
        let mut handles: Vec<u64> = self
            .objects
            .iter_mut()
            .filter_map(|(handle, object)| T::of(&mut object.kind).map(|_| *handle))
            .collect();
        handles.sort_unstable();
        handles
    }

    /// Whether the object's callbacks, or those of an object above it, are to be
    /// called at `PASSIVE_LEVEL` only.
    pub fn is_passive(&self, handle: u64) -> bool {
        const PASSIVE: u32 = 2;
        const DISPATCH: u32 = 3;
        let mut at = Some(handle);
        while let Some(object) = at.and_then(|handle| self.objects.get(&handle)) {
            match object.execution_level {
                PASSIVE => return true,
                DISPATCH => return false,
                _ => at = object.parent,
            }
        }
        false
    }

    /// The object and everything below it, children before their parents, and
    /// brothers by age.
    fn subtree(&self, root: u64) -> Vec<u64> {
        let mut order = Vec::new();
        // Each entry says whether its children are in the order already.
        let mut stack = vec![(root, false)];
        while let Some((handle, entered)) = stack.pop() {
            if entered {
                order.push(handle);
            } else if let Some(object) = self.objects.get(&handle) {
                stack.push((handle, true));
                stack.extend(object.children.iter().rev().map(|child| (*child, false)));
            }
        }
        order
    }
}

/// The attributes at an address, `None` for a null pointer.
pub fn read_attributes(thread: &Thread, address: u64) -> Option<ObjectAttributes> {
    (address != 0).then(|| thread.read(address))
}

/// Makes an object as a driver's attributes say, with its context; `parent` is
/// the parent where the attributes name none.
pub fn create(
    thread: &Thread,
    kind: Kind,
    attributes: Option<&ObjectAttributes>,
    parent: Option<u64>,
) -> Result<u64, NtStatus> {
    let chosen = attributes.map_or(0, |attributes| attributes.parent);
    if let Some(attributes) = attributes
        && attributes.size as usize != size_of::<ObjectAttributes>()
    {
        return Err(NtStatus::INFO_LENGTH_MISMATCH);
    }
    let parent = if chosen == 0 { parent } else { Some(chosen) };
    let handle = {
        let mut framework = lock_framework(thread.shared());
        if parent.is_some_and(|parent| !framework.exists(parent)) {
            return Err(NtStatus::INVALID_PARAMETER);
        }
        framework.insert(kind, parent)
    };
    if let Some(attributes) = attributes {
        if let Some(object) = lock_framework(thread.shared()).objects.get_mut(&handle) {
            object.execution_level = attributes.execution_level;
        }
        add_context(thread, handle, attributes)
            .inspect_err(|_| lock_framework(thread.shared()).forget(handle))?;
    }
    Ok(handle)
}

/// Adds the context and callbacks that attributes describe to an object.
/// Returns the context's address, 0 if there is none.
pub fn add_context(
    thread: &Thread,
    handle: u64,
    attributes: &ObjectAttributes,
) -> Result<u64, NtStatus> {
    let context = if attributes.context_type == 0 {
        None
    } else {
        let info: ContextTypeInfo = thread.read(attributes.context_type);
        if info.size as usize != size_of::<ContextTypeInfo>() {
            return Err(NtStatus::INFO_LENGTH_MISMATCH);
        }
        let size = match attributes.context_size_override {
            0 => info.context_size,
            size => size,
        };
        let size = usize::try_from(size).map_err(|_| NtStatus::INTEGER_OVERFLOW)?;
        Some(Context {
            unique_type: unique_type(attributes.context_type, &info),
            memory: Block::zeroed(size),
        })
    };
    let mut framework = lock_framework(thread.shared());
    let Some(object) = framework.objects.get_mut(&handle) else {
        return Err(NtStatus::INVALID_HANDLE);
    };
    let mut address = 0;
    if let Some(context) = context {
        if object
            .contexts
            .iter()
            .any(|present| present.unique_type == context.unique_type)
        {
            return Err(NtStatus::OBJECT_NAME_COLLISION);
        }
        address = context.memory.address();
        object.contexts.push(context);
    }
    object
        .cleanup
        .extend((attributes.cleanup != 0).then_some(attributes.cleanup));
    object
        .destroy
        .extend((attributes.destroy != 0).then_some(attributes.destroy));
    drop(framework);
    Ok(address)
}

/// A context type's identity. `UniqueType` points at the one information that
/// stands for all its copies; where it is null, the information at hand does.
const fn unique_type(address: u64, info: &ContextTypeInfo) -> u64 {
    if info.unique_type == 0 {
        address
    } else {
        info.unique_type
    }
}

/// An object's children of a kind, oldest first.
pub fn children<T: Data>(thread: &Thread, handle: u64) -> Vec<u64> {
    let mut framework = lock_framework(thread.shared());
    let children = framework
        .objects
        .get(&handle)
        .map(|object| object.children.clone())
        .unwrap_or_default();
    children
        .into_iter()
        .filter(|child| framework.get::<T>(*child).is_ok())
        .collect()
}

/// Deletes an object and everything below it: cleanup callbacks first, children
/// before parents, then destroy callbacks in the same order. What the driver holds
/// a reference to is destroyed when it gives the last one back.
pub fn delete(thread: &Thread, root: u64) {
    let order = lock_framework(thread.shared()).subtree(root);
    for handle in &order {
        timer::stop_before_delete(thread, *handle);
        work::finish_before_delete(thread, *handle);
        queue::purge_before_delete(thread, *handle);
        let callbacks = lock_framework(thread.shared())
            .objects
            .get_mut(handle)
            .map(|object| core::mem::take(&mut object.cleanup))
            .unwrap_or_default();
        for callback in callbacks {
            thread.call_driver("EvtCleanupCallback", callback, [*handle]);
        }
    }
    for handle in &order {
        let is_held = lock_framework(thread.shared())
            .objects
            .get_mut(handle)
            .is_some_and(|object| {
                object.deleted = true;
                object.references > 0
            });
        if !is_held {
            destroy(thread, *handle);
        }
    }
}

/// Calls an object's destroy callbacks and takes it away.
fn destroy(thread: &Thread, handle: u64) {
    let callbacks = lock_framework(thread.shared())
        .objects
        .get_mut(&handle)
        .map(|object| core::mem::take(&mut object.destroy))
        .unwrap_or_default();
    for callback in callbacks {
        thread.call_driver("EvtDestroyCallback", callback, [handle]);
    }
    lock_framework(thread.shared()).forget(handle);
}

impl Thread {
    /// Runs `body` on the data of the object that the driver named; a handle of
    /// another kind stops the machine.
    pub fn with<T: Data, R>(&self, handle: u64, body: impl FnOnce(&mut T) -> R) -> R {
        let result = lock_framework(self.shared()).get::<T>(handle).map(body);
        match result {
            Ok(result) => result,
            Err(error) => self.stop_for_handle(&error),
        }
    }

    /// Runs `body` on an object of whatever kind; a handle of none stops the machine.
    fn with_object<R>(&self, handle: u64, body: impl FnOnce(&mut Object) -> R) -> R {
        let result = lock_framework(self.shared())
            .objects
            .get_mut(&handle)
            .map(body);
        result.unwrap_or_else(|| {
            self.stop_for_handle(&BadHandle {
                handle,
                expected: "WDFOBJECT",
                found: None,
            })
        })
    }

    /// Stops the machine for a wrong handle.
    pub fn stop_for_handle(&self, error: &BadHandle) -> ! {
        let call = self.call();
        let what = error.found.map_or_else(
            || "names no object".to_owned(),
            |found| format!("is a {found}"),
        );
        self.stop(
            Rule::BadHandle,
            format!(
                "{} was called from {} with 0x{:016X}, which {what}, for a {}",
                call.name(),
                self.shared().place(call.return_address),
                error.handle,
                error.expected
            ),
        )
    }
}

pub const ENTRIES: Entries = &[
    ("WdfObjectCreate", Routine::Three(object_create)),
    ("WdfObjectDelete", Routine::Two(object_delete)),
    (
        "WdfObjectGetTypedContextWorker",
        Routine::Three(get_typed_context),
    ),
    ("WdfObjectAllocateContext", Routine::Four(allocate_context)),
    (
        "WdfObjectContextGetObject",
        Routine::Two(context_get_object),
    ),
    ("WdfObjectReferenceActual", Routine::Five(reference)),
    ("WdfObjectDereferenceActual", Routine::Five(dereference)),
];

extern "win64" fn object_create(_globals: u64, attributes: u64, object: u64) -> u64 {
    let thread = thread::current();
    let attributes = read_attributes(&thread, attributes);
    let parent = driver::driver_of(&thread);
    match create(&thread, Kind::General, attributes.as_ref(), parent) {
        Ok(handle) => {
            thread.write(object, &handle);
            NtStatus::SUCCESS.to_register()
        }
        Err(status) => status.to_register(),
    }
}

extern "win64" fn object_delete(_globals: u64, handle: u64) -> u64 {
    let thread = thread::current();
    let (kind, deleted, is_frameworks) = thread.with_object(handle, |object| {
        let is_frameworks = match &object.kind {
            Kind::Driver(_) | Kind::File(_) | Kind::Request(_) => true,
            Kind::Device(device) => !device.is_control(),
            Kind::Queue(queue) => queue.is_default(),
            _ => false,
        };
        (object.kind.name(), object.deleted, is_frameworks)
    });
    let problem = if deleted {
        "was deleted before"
    } else if is_frameworks {
        "is the framework's to delete"
    } else {
        delete(&thread, handle);
        return 0;
    };
    let call = thread.call();
    thread.stop(
        Rule::BadHandle,
        format!(
            "WdfObjectDelete was called from {} with 0x{handle:016X}, a {kind} that {problem}",
            thread.shared().place(call.return_address)
        ),
    )
}

/// Takes a reference in the driver's name.
pub fn add_reference(thread: &Thread, handle: u64) {
    thread.with_object(handle, |object| object.references += 1);
}

extern "win64" fn reference(_globals: u64, handle: u64, _tag: u64, _line: u64, _file: u64) -> u64 {
    add_reference(&thread::current(), handle);
    0
}

extern "win64" fn dereference(
    _globals: u64,
    handle: u64,
    _tag: u64,
    _line: u64,
    _file: u64,
) -> u64 {
    let thread = thread::current();
    let left = thread.with_object(handle, |object| {
        object.references = object.references.checked_sub(1)?;
        Some(object.deleted && object.references == 0)
    });
    match left {
        Some(false) => {}
        Some(true) => destroy(&thread, handle),
        None => {
            let call = thread.call();
            thread.stop(
                Rule::BadHandle,
                format!(
                    "WdfObjectDereferenceActual was called from {} with 0x{handle:016X}, which \
                     the driver holds no reference to",
                    thread.shared().place(call.return_address)
                ),
            );
        }
    }
    0
}

extern "win64" fn get_typed_context(_globals: u64, handle: u64, type_info: u64) -> u64 {
    let thread = thread::current();
    let info: ContextTypeInfo = thread.read(type_info);
    let wanted = unique_type(type_info, &info);
    let context = lock_framework(thread.shared())
        .objects
        .get(&handle)
        .map(|object| {
            object
                .contexts
                .iter()
                .find(|context| context.unique_type == wanted)
                .map_or(0, |context| context.memory.address())
        });
    context.unwrap_or_else(|| {
        thread.stop_for_handle(&BadHandle {
            handle,
            expected: "WDFOBJECT",
            found: None,
        })
    })
}

extern "win64" fn allocate_context(
    _globals: u64,
    handle: u64,
    attributes: u64,
    context: u64,
) -> u64 {
    let thread = thread::current();
    let attributes: ObjectAttributes = thread.read(attributes);
    match add_context(&thread, handle, &attributes) {
        Ok(address) => {
            if context != 0 {
                thread.write(context, &address);
            }
            NtStatus::SUCCESS.to_register()
        }
        Err(status) => status.to_register(),
    }
}

extern "win64" fn context_get_object(_globals: u64, context: u64) -> u64 {
    let thread = thread::current();
    let handle = lock_framework(thread.shared())
        .objects
        .iter()
        .find(|(_, object)| {
            object
                .contexts
                .iter()
                .any(|present| present.memory.address() == context)
        })
        .map(|(handle, _)| *handle);
    handle.unwrap_or_else(|| {
        thread.stop_for_handle(&BadHandle {
            handle: context,
            expected: "context of an object",
            found: None,
        })
    })
}
