// Types whose bytes can change during a write, and options that point to arbitrary addresses.
use core::{cell::Cell, sync::atomic::AtomicU32};

use wdk_etw::{Guid, PlainData, __macro::Options};

struct Counter(AtomicU32);

unsafe impl PlainData for Counter {}

#[repr(transparent)]
struct Shared(Cell<u32>);

unsafe impl PlainData for Shared {}

#[derive(Clone, Copy)]
struct Borrowed<'a>(&'a u32);

unsafe impl<'a> PlainData for Borrowed<'a> {}

struct Anywhere;

impl Options for Anywhere {
    fn except(&self) -> u64 {
        0
    }

    fn flags(&self) -> u32 {
        0
    }

    fn activity(&self) -> *const Guid {
        1 as *const Guid
    }

    fn related(&self) -> *const Guid {
        1 as *const Guid
    }
}

fn main() {}
