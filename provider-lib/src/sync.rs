//! The atomics of the core library, or of the model checker.

#[cfg(not(loom))]
pub use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

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

pub(crate) use const_unless_loom;
