//! The framework's function table, and the memory in which the entry code keeps what it shares.

use core::cell::UnsafeCell;

use crate::{_WDFFUNCENUM, WDFFUNC};

/// Memory that the entry code shares with the loader and the framework. They use it only during
/// calls from the entry code; such calls are sequential, on system threads.
pub struct Shared<T>(pub UnsafeCell<T>);

// SAFETY: the system loads and unloads a driver on one thread at a time, and nothing else accesses
// the variables of this type.
unsafe impl<T> Sync for Shared<T> {}

/// The number of functions that the framework copies to [`TABLE`]: before KMDF 1.15, it copies all
/// of them; later versions store a pointer to their own table.
pub const COPIED: usize =
    if crate::version::TARGET < 15 { _WDFFUNCENUM::WdfFunctionTableNumEntries as usize } else { 0 };

/// The table of a driver for KMDF before 1.15.
pub static TABLE: Shared<[WDFFUNC; COPIED]> = Shared(UnsafeCell::new([None; COPIED]));
