//! Typed contexts of framework objects.

use core::{cell::UnsafeCell, ffi::CStr};

use wdk_sys::{
    PCWDF_OBJECT_CONTEXT_TYPE_INFO, WDF_OBJECT_ATTRIBUTES, WDF_OBJECT_CONTEXT_TYPE_INFO, WDFOBJECT,
    call_unsafe_wdf_function_binding,
};

/// The framework's type information for a context. It must be in a static, because its address
/// identifies the type.
pub struct ContextType<T> {
    info: UnsafeCell<WDF_OBJECT_CONTEXT_TYPE_INFO>,
    context: core::marker::PhantomData<fn() -> T>,
}

// SAFETY: the type information is never written after construction, and the name
// that it points to is a constant.
unsafe impl<T> Sync for ContextType<T> {}

impl<T> ContextType<T> {
    /// Returns the type information for a static, whose address is `this`.
    pub const fn new(name: &'static CStr, this: *const Self) -> Self {
        Self {
            info: UnsafeCell::new(WDF_OBJECT_CONTEXT_TYPE_INFO {
                Size: size_of::<WDF_OBJECT_CONTEXT_TYPE_INFO>() as u32,
                ContextName: name.as_ptr(),
                ContextSize: size_of::<T>(),
                UniqueType: this.cast(),
                EvtDriverGetUniqueContextType: None,
            }),
            context: core::marker::PhantomData,
        }
    }

    const fn info(&self) -> PCWDF_OBJECT_CONTEXT_TYPE_INFO {
        self.info.get()
    }

    /// Returns the attributes for objects with this context.
    pub fn attributes(&self) -> WDF_OBJECT_ATTRIBUTES {
        WDF_OBJECT_ATTRIBUTES { ContextTypeInfo: self.info(), ..attributes() }
    }

    /// Returns the address of an object's context.
    ///
    /// # Safety
    ///
    /// `object` must be a live framework object that was created with [`Self::attributes`].
    pub unsafe fn address(&self, object: WDFOBJECT) -> *mut T {
        // SAFETY: the object is live, by this function's contract.
        unsafe {
            call_unsafe_wdf_function_binding!(WdfObjectGetTypedContextWorker, object, self.info())
        }
        .cast()
    }
}

/// Returns default attributes, like `WDF_OBJECT_ATTRIBUTES_INIT`.
pub fn attributes() -> WDF_OBJECT_ATTRIBUTES {
    WDF_OBJECT_ATTRIBUTES {
        Size: size_of::<WDF_OBJECT_ATTRIBUTES>() as u32,
        ExecutionLevel: wdk_sys::_WDF_EXECUTION_LEVEL::WdfExecutionLevelInheritFromParent,
        SynchronizationScope:
            wdk_sys::_WDF_SYNCHRONIZATION_SCOPE::WdfSynchronizationScopeInheritFromParent,
        ..WDF_OBJECT_ATTRIBUTES::default()
    }
}
