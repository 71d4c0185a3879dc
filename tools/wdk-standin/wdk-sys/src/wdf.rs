//! The framework's part of the bindings. Call its functions with
//! [`call_unsafe_wdf_function_binding!`](crate::call_unsafe_wdf_function_binding).

pub use crate::ntddk::RtlAssert;

/// Functions that the macro's expansion calls.
#[doc(hidden)]
pub mod __private {
    /// Returns the number of functions in the framework's table.
    #[must_use]
    pub fn get_wdf_function_count() -> usize {
        // SAFETY: the count is written before the driver's first call, by the entry
        // code, and never again.
        let count = unsafe { crate::WdfFunctionCount };
        count as usize
    }
}
