//! The framework's state: objects and their handles, and the modules' own state.

use std::{any::Any, collections::HashMap, sync::Arc};

use parking_lot::{Mutex, MutexGuard};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

use crate::{
    execution::{
        context::ServiceContext,
        routine::{Handle, Kind, Routine},
    },
    ground::{NtStatus, arena::Block, clock::Clock, irql::Irql, rule::Rule},
    services::{
        managers::{module_states::ModuleStates, registry::store::Registry, wmi_events::WmiEvents},
        verifier::warnings::Verifier,
    },
};

/// The first handle. Handles look like kernel addresses, but the addresses cannot be accessed.
const FIRST_HANDLE: u64 = 0xFFFF_A000_0000_0000;
const HANDLE_STEP: u64 = 0x40;

/// The framework of a kernel.
pub struct Kmdf {
    state: Mutex<Framework>,
    clock: Arc<Clock>,
    verifier: Arc<Verifier>,
    registry: Arc<Registry>,
    wmi_events: Arc<WmiEvents>,
    ntoskrnl: Arc<Mutex<ModuleStates>>,
    functions: FunctionTable,
}

/// The gateways that the framework provides to drivers.
#[derive(Clone, Copy)]
pub struct FunctionTable {
    /// The function table through which drivers call.
    pub table: &'static [u64],
    /// The framework's own unload routine, which is stored in the driver object.
    pub unload: u64,
}

impl Kmdf {
    /// Creates a framework without objects.
    pub fn new(
        clock: Arc<Clock>,
        verifier: Arc<Verifier>,
        registry: Arc<Registry>,
        wmi_events: Arc<WmiEvents>,
        ntoskrnl: Arc<Mutex<ModuleStates>>,
        functions: FunctionTable,
    ) -> Self {
        let state = Mutex::default();
        Self { state, clock, verifier, registry, wmi_events, ntoskrnl, functions }
    }

    /// Locks the framework. The lock is never held during a call to the driver or a bugcheck.
    pub fn framework(&self) -> MutexGuard<'_, Framework> {
        self.state.lock()
    }

    /// Returns the gateways that the framework provides to drivers.
    pub const fn functions(&self) -> FunctionTable {
        self.functions
    }
}

/// The context in which the framework's routines run.
pub type Context = ServiceContext<Arc<Kmdf>>;

impl Context {
    /// Locks the framework. The lock is never held during a call to the driver or a bugcheck.
    pub fn framework(&self) -> MutexGuard<'_, Framework> {
        self.service.framework()
    }

    /// Returns the kernel's clock.
    pub fn clock(&self) -> &Clock {
        &self.service.clock
    }

    /// Returns the kernel's verifier.
    pub fn verifier(&self) -> &Verifier {
        &self.service.verifier
    }

    /// Returns the kernel's registry.
    pub fn registry(&self) -> &Registry {
        &self.service.registry
    }

    /// Returns the WMI events that drivers fire.
    pub fn wmi_events(&self) -> &WmiEvents {
        &self.service.wmi_events
    }

    /// Locks the state of ntoskrnl.exe's modules, such as the object manager's namespace. No other lock
    /// of the framework is held meanwhile.
    pub fn ntoskrnl(&self) -> MutexGuard<'_, ModuleStates> {
        self.service.ntoskrnl.lock()
    }

    /// Returns the gateways that the framework provides to drivers.
    pub fn functions(&self) -> FunctionTable {
        self.service.functions()
    }

    /// Runs `body` on the data of the object with this handle. Bugchecks for a handle to another
    /// kind of object.
    pub fn with<T: Data, R>(&self, handle: u64, body: impl FnOnce(&mut T) -> R) -> R {
        let result = self.framework().get::<T>(handle).map(body);
        match result {
            Ok(result) => result,
            Err(error) => self.stop_for_handle(&error),
        }
    }

    /// Runs `body` on an object of any kind. Bugchecks for an invalid handle.
    pub fn with_object<R>(&self, handle: u64, body: impl FnOnce(&mut Object) -> R) -> R {
        let result = self.framework().objects.get_mut(&handle).map(body);
        result.unwrap_or_else(|| {
            self.stop_for_handle(&BadHandle { handle, expected: "WDFOBJECT", found: None })
        })
    }

    /// Returns whether an object exists, is of this kind, and meets a condition.
    pub fn is<T: Data>(&self, handle: u64, condition: impl FnOnce(&mut T) -> bool) -> bool {
        self.framework().get::<T>(handle).is_ok_and(condition)
    }

    /// Warns that the driver misuses a routine, which ignores or rejects the call. On Windows, the
    /// framework's verifier breaks into the debugger. `what` completes "`WdfX` was called from Y".
    pub fn warn_of_misuse(&self, what: impl FnOnce() -> String) {
        self.verifier().warn(self, Rule::FrameworkMisused, what);
    }

    /// Bugchecks if the IRQL is higher than `limit`. `why` completes "was called", and `what`
    /// completes "the highest IRQL for". The thread's IRQL is checked because, in a job, the call's
    /// IRQL is the IRQL of the driver's last call.
    pub fn check_irql(&self, limit: Irql, why: &str, what: &str) {
        let (irql, name) = (self.irql(), self.call().name);
        if irql > limit {
            let place = self.caller();
            let sentence = format!(
                "{name} was called {why} at {irql} from {place}; the highest IRQL for {what} is {limit}"
            );
            self.stop(Rule::IrqlTooHigh, sentence);
        }
    }

    /// Reads a structure that starts with its `Size`. In older headers, the structure lacks the
    /// last fields; `old` contains the sizes in those headers. Missing fields are zero.
    ///
    /// # Errors
    ///
    /// Returns the size as an error if no headers define it.
    pub fn read_sized<T: FromZeros + IntoBytes + FromBytes>(
        &self,
        address: u64,
        old: &[usize],
    ) -> Result<T, u32> {
        let size: u32 = self.read(address);
        let length = size as usize;
        let mut value = T::new_zeroed();
        if length != size_of::<T>() && !old.contains(&length) {
            return Err(size);
        }
        let bytes = value.as_mut_bytes().get_mut(..length).ok_or(size)?;
        self.read_into(address, bytes);
        Ok(value)
    }

    /// Bugchecks because a structure's `Size` is wrong, in a routine that returns no status.
    pub fn stop_for_size(&self, structure: &str, size: u32) -> ! {
        self.stop_call(Rule::BadHandle, &format!("with a {structure} whose Size is {size}"))
    }

    /// Warns that a structure's `Size` is wrong, in a routine that then ignores the call.
    pub fn warn_of_size(&self, structure: &str, size: u32) {
        self.warn_of_misuse(|| {
            format!("with a {structure} whose Size is {size}; the framework ignores the call")
        });
    }

    /// Bugchecks with `WDF_VIOLATION`. `parameters` are the second and third parameters, and `what`
    /// completes "was called from PLACE".
    pub fn violate(&self, violation: Violation, parameters: [u64; 2], what: &str) -> ! {
        const WDF_VIOLATION: u32 = 0x10D;
        let [second, third] = parameters;
        let parameters = [violation as u64, second, third, 0];
        self.bugcheck(WDF_VIOLATION, parameters, self.sentence(what), &self.backtrace())
    }

    /// Bugchecks for a null pointer, as the framework does for a required parameter.
    pub fn require(&self, address: u64) {
        if address == 0 {
            let place = self.call().return_address;
            self.violate(
                Violation::Null,
                [0, place],
                "with a null pointer for a required parameter",
            );
        }
    }

    /// Reads a value at an address that the driver passed. The address must not be null.
    pub fn read<T: FromBytes + IntoBytes>(&self, address: u64) -> T {
        self.require(address);
        (**self).read(address)
    }

    /// Writes a value to an address that the driver passed. The address must not be null.
    pub fn write<T: IntoBytes + Immutable>(&self, address: u64, value: &T) {
        self.require(address);
        (**self).write(address, value);
    }

    /// Bugchecks because a handle is wrong.
    pub fn stop_for_handle(&self, error: &BadHandle) -> ! {
        let what = match error.found {
            Some(found) => format!("is a {found}"),
            None if self.framework().was_issued(error.handle) => {
                "is the handle of an object that was deleted".to_owned()
            }
            None => "is not an object handle".to_owned(),
        };
        self.violate(
            Violation::Handle,
            [error.handle, 0],
            &format!("with 0x{:016X}, which {what}; expected a {}", error.handle, error.expected),
        )
    }
}

/// The first parameter of `WDF_VIOLATION` (`WDF_BUGCHECK_CODES`).
#[derive(Clone, Copy, Debug)]
pub enum Violation {
    /// `WDF_RECURSIVE_LOCK`.
    RecursiveLock = 2,
    /// `WDF_REQUIRED_PARAMETER_IS_NULL`.
    Null = 4,
    /// `WDF_INVALID_HANDLE`.
    Handle = 5,
    /// `WDF_OBJECT_ERROR`.
    Object = 7,
    /// `WDF_INVALID_LOCK_OPERATION`.
    Lock = 0xB,
}

/// The choices that an object's attributes allow, in addition to a context and callbacks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choices {
    /// The execution level.
    pub level: bool,
    /// The synchronization scope.
    pub scope: bool,
    /// Set if the attributes cannot specify the parent.
    pub has_fixed_parent: bool,
}

impl Choices {
    /// The choices for objects whose callbacks are synchronized, with a parent that the framework
    /// chooses.
    pub const SYNCHRONIZED: Self = Self { level: true, scope: true, has_fixed_parent: true };
}

/// A module's part of the function table.
pub type Entries = &'static [Routine<Context>];

/// A framework routine that is called for an object.
pub type ObjectRoutine = fn(&Context, u64);

/// The data of objects of one kind, and the framework's routines for them.
pub trait Data: Any + Send {
    /// The handle type's name.
    const NAME: &'static str;

    /// Returns whether the framework owns the object, so that a driver is not allowed to delete it.
    fn is_frameworks(&self) -> bool {
        false
    }

    /// The choices that the object's attributes allow.
    const CHOICES: Choices = Choices { level: false, scope: false, has_fixed_parent: false };

    /// Set if the object is cleaned up and destroyed only at `PASSIVE_LEVEL`.
    const IS_PASSIVE: bool = false;

    /// Releases the resources of the object, after its destroy callbacks.
    const AFTER_DESTROY: Option<ObjectRoutine> = None;

    /// Stops the object's activity before the object is deleted.
    const BEFORE_DELETE: Option<ObjectRoutine> = None;

    /// Notifies the object that one of its requests has ended.
    const REQUEST_ENDED: Option<ObjectRoutine> = None;

    /// Asks the object whether the device that it uses may be removed.
    const DEVICE_LEAVES: Option<fn(&Context, u64) -> NtStatus> = None;

    /// Notifies the object that its target device stays, because a driver refused the removal.
    const DEVICE_STAYS: Option<ObjectRoutine> = None;

    /// Notifies the object that its device has entered its working state.
    const DEVICE_STARTED: Option<ObjectRoutine> = None;

    /// Notifies the object that its target device is gone.
    const DEVICE_LEFT: Option<ObjectRoutine> = None;
}

impl<T: Data> Kind for T {
    const NAME: &'static str = T::NAME;
}

impl<T: Data> Handle<T> {
    /// Bugchecks if the handle is to another kind of object.
    pub fn check(self, context: &Context) {
        self.with(context, |_| ());
    }

    /// Runs `body` on the data of the object. Bugchecks for a handle to another kind of object.
    pub fn with<R>(self, context: &Context, body: impl FnOnce(&mut T) -> R) -> R {
        context.with(self.0, body)
    }
}

/// The data of a general object (`WDFOBJECT`).
pub struct General;

impl Data for General {
    const NAME: &'static str = "WDFOBJECT";
    const CHOICES: Choices = Choices { level: true, scope: false, has_fixed_parent: false };
}

/// The data of an object of any kind.
pub trait AnyData: Any + Send {
    /// See [`Data::NAME`].
    fn name(&self) -> &'static str;
    /// See [`Data::is_frameworks`].
    fn belongs_to_framework(&self) -> bool;
    /// See [`Data::IS_PASSIVE`].
    fn is_passive(&self) -> bool;
    /// See [`Data::AFTER_DESTROY`].
    fn after_destroy(&self) -> Option<ObjectRoutine>;
    /// See [`Data::BEFORE_DELETE`].
    fn before_delete(&self) -> Option<ObjectRoutine>;
    /// See [`Data::REQUEST_ENDED`].
    fn request_ended(&self) -> Option<ObjectRoutine>;
    /// See [`Data::DEVICE_LEAVES`].
    fn device_leaves(&self) -> Option<fn(&Context, u64) -> NtStatus>;
    /// See [`Data::DEVICE_STAYS`].
    fn device_stays(&self) -> Option<ObjectRoutine>;
    /// See [`Data::DEVICE_STARTED`].
    fn device_started(&self) -> Option<ObjectRoutine>;
    /// See [`Data::DEVICE_LEFT`].
    fn device_left(&self) -> Option<ObjectRoutine>;
}

impl<T: Data> AnyData for T {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn belongs_to_framework(&self) -> bool {
        self.is_frameworks()
    }

    fn is_passive(&self) -> bool {
        T::IS_PASSIVE
    }

    fn after_destroy(&self) -> Option<ObjectRoutine> {
        T::AFTER_DESTROY
    }

    fn before_delete(&self) -> Option<ObjectRoutine> {
        T::BEFORE_DELETE
    }

    fn request_ended(&self) -> Option<ObjectRoutine> {
        T::REQUEST_ENDED
    }

    fn device_leaves(&self) -> Option<fn(&Context, u64) -> NtStatus> {
        T::DEVICE_LEAVES
    }

    fn device_stays(&self) -> Option<ObjectRoutine> {
        T::DEVICE_STAYS
    }

    fn device_started(&self) -> Option<ObjectRoutine> {
        T::DEVICE_STARTED
    }

    fn device_left(&self) -> Option<ObjectRoutine> {
        T::DEVICE_LEFT
    }
}

/// A context that a driver attached to an object.
pub struct ObjectContext {
    /// The context type's identity: the address of its unique type information.
    pub unique_type: u64,
    /// The context's memory.
    pub memory: Block,
}

/// An object.
pub struct Object {
    /// The data specific to the object's kind.
    pub data: Box<dyn AnyData>,
    parent: Option<u64>,
    children: Vec<u64>,
    /// The object's contexts.
    pub contexts: Vec<ObjectContext>,
    /// The cleanup callbacks.
    pub cleanup: Vec<u64>,
    /// The destroy callbacks.
    pub destroy: Vec<u64>,
    /// `WDF_EXECUTION_LEVEL`; 0 or 1 inherits the parent's.
    pub execution_level: u32,
    /// `WDF_SYNCHRONIZATION_SCOPE`; 0 or 1 inherits the parent's.
    pub synchronization_scope: u32,
    /// The number of references that the driver holds.
    pub references: u32,
    /// The number of references that the framework holds, for instance for a collection.
    pub held: u32,
    /// Set if the driver has requested the deletion.
    pub delete_called: bool,
    /// Set once the object's deletion has begun. Children and contexts can no longer be added.
    pub disposing: bool,
    /// Set if the object was deleted. It is destroyed when the last reference is released.
    pub deleted: bool,
}

impl Object {
    /// Returns whether the object was deleted and is no longer referenced.
    pub const fn is_over(&self) -> bool {
        self.deleted && self.references + self.held == 0
    }

    fn get<T: Data>(&mut self) -> Option<&mut T> {
        let data: &mut dyn Any = &mut *self.data;
        data.downcast_mut()
    }
}

/// The state of the framework.
#[derive(Default)]
pub struct Framework {
    /// The objects, by handle.
    pub objects: HashMap<u64, Object>,
    issued: u64,
    /// The modules' state.
    parts: ModuleStates,
}

/// The error for a handle of the wrong kind.
pub struct BadHandle {
    /// The handle.
    pub handle: u64,
    /// The name of the expected type.
    pub expected: &'static str,
    /// The name of the handle's type, or `None` for an invalid handle.
    pub found: Option<&'static str>,
}

impl Framework {
    /// Returns a module's state.
    pub fn part<T: Default + Send + 'static>(&mut self) -> &mut T {
        self.parts.get()
    }

    /// Creates an object.
    pub fn insert(&mut self, data: Box<dyn AnyData>, parent: Option<u64>) -> u64 {
        let handle = FIRST_HANDLE + self.issued * HANDLE_STEP;
        self.issued += 1;
        if let Some(parent) = parent.and_then(|parent| self.objects.get_mut(&parent)) {
            parent.children.push(handle);
        }
        self.objects.insert(
            handle,
            Object {
                data,
                parent,
                children: Vec::new(),
                contexts: Vec::new(),
                cleanup: Vec::new(),
                destroy: Vec::new(),
                execution_level: 0,
                synchronization_scope: 0,
                references: 0,
                held: 0,
                delete_called: false,
                disposing: false,
                deleted: false,
            },
        );
        handle
    }

    /// Returns the data of the object with this handle, which must be of the kind `T`.
    pub fn get<T: Data>(&mut self, handle: u64) -> Result<&mut T, BadHandle> {
        match self.objects.get_mut(&handle) {
            None => Err(BadHandle { handle, expected: T::NAME, found: None }),
            Some(object) => {
                let name = object.data.name();
                object.get().ok_or(BadHandle { handle, expected: T::NAME, found: Some(name) })
            }
        }
    }

    /// Removes an object.
    pub fn forget(&mut self, handle: u64) {
        self.separate(handle);
        self.objects.remove(&handle);
    }

    /// Removes an object from its parent's children.
    pub fn separate(&mut self, handle: u64) {
        let parent = self.objects.get_mut(&handle).and_then(|object| object.parent.take());
        if let Some(parent) = parent.and_then(|parent| self.objects.get_mut(&parent)) {
            parent.children.retain(|child| *child != handle);
        }
    }

    /// Returns whether the deletion of an object has begun.
    pub fn is_disposing(&self, handle: u64) -> bool {
        self.objects.get(&handle).is_some_and(|object| object.disposing)
    }

    /// Returns whether an object or a descendant is cleaned up only at `PASSIVE_LEVEL`.
    pub fn is_deleted_passively(&self, root: u64) -> bool {
        const PASSIVE: u32 = 2;
        self.subtree(root).iter().any(|handle| {
            let object = self.objects.get(handle);
            object
                .is_some_and(|object| object.data.is_passive() || object.execution_level == PASSIVE)
        })
    }

    /// Returns whether a handle was issued, even if its object is gone. Handles are never reused.
    pub const fn was_issued(&self, handle: u64) -> bool {
        let offset = handle.wrapping_sub(FIRST_HANDLE);
        offset.is_multiple_of(HANDLE_STEP) && offset / HANDLE_STEP < self.issued
    }

    /// Returns whether the handle refers to a live object.
    pub fn exists(&self, handle: u64) -> bool {
        self.objects.contains_key(&handle)
    }

    /// Returns the object itself, or its nearest ancestor of the kind `T`.
    pub fn ancestor<T: Data>(&mut self, handle: u64) -> Option<u64> {
        let mut at = Some(handle);
        while let Some(handle) = at {
            let object = self.objects.get_mut(&handle)?;
            if object.get::<T>().is_some() {
                return Some(handle);
            }
            at = object.parent;
        }
        None
    }

    /// Returns an object's parent.
    pub fn parent(&self, handle: u64) -> Option<u64> {
        self.objects.get(&handle)?.parent
    }

    /// Returns an object's children, oldest first.
    pub fn children_of(&self, handle: u64) -> Vec<u64> {
        self.objects.get(&handle).map(|object| object.children.clone()).unwrap_or_default()
    }

    /// Returns an object's children of the kind `T`, oldest first.
    pub fn children<T: Data>(&mut self, handle: u64) -> Vec<u64> {
        self.children_of(handle).into_iter().filter(|child| self.get::<T>(*child).is_ok()).collect()
    }

    /// Returns every live object of the kind `T`, oldest first.
    pub fn all<T: Data>(&mut self) -> Vec<u64> {
        let mut handles: Vec<u64> = self
            .objects
            .iter_mut()
            .filter_map(|(handle, object)| object.get::<T>().map(|_| *handle))
            .collect();
        handles.sort_unstable();
        handles
    }

    /// Returns whether the callbacks of the object or of an ancestor must be called at
    /// `PASSIVE_LEVEL`.
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

    /// Returns the object and its descendants, children before their parents and siblings
    /// oldest first.
    pub fn subtree(&self, root: u64) -> Vec<u64> {
        let mut order = Vec::new();
        // Each entry has a flag that is set once its children are on the stack.
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
