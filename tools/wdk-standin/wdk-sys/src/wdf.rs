//! The framework's side of the bindings: its functions are called through
//! [`call_unsafe_wdf_function_binding!`](crate::call_unsafe_wdf_function_binding).

/// What the macro's expansion calls.
#[doc(hidden)]
pub mod __private {
    /// How many functions the framework's table has.
    #[must_use]
    pub fn get_wdf_function_count() -> usize {
        // SAFETY: the count is written before the driver's first call, by the entry
        // code, and never again.
        let count = unsafe { crate::WdfFunctionCount };
        count as usize
    }
}
