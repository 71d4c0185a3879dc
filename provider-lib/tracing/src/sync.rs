//! The atomics of the core library, or of the model checker.

#[cfg(not(loom))]
pub use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};

/// Declares a function that is `const`, except under the model checker, whose atomics have no
/// `const` constructors.
macro_rules! const_unless_loom {
    ($(#[$meta:meta])* $vis:vis const fn $($rest:tt)*) => {
        #[cfg(not(loom))]
        $(#[$meta])*
        $vis const fn $($rest)*

        #[cfg(loom)]
        $(#[$meta])*
        #[allow(clippy::missing_const_for_fn, reason = "the function is `const` without loom")]
        $vis fn $($rest)*
    };
}

/// Creates an array of values that cannot be copied.
macro_rules! array_of {
    ($value:expr) => {{
        #[cfg(not(loom))]
        {
            [const { $value }; _]
        }
        #[cfg(loom)]
        {
            core::array::from_fn(|_| $value)
        }
    }};
}

pub(crate) use {array_of, const_unless_loom};
