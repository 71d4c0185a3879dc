//! Thread objects (`KTHREAD`). Drivers receive their addresses from `KeGetCurrentThread`, and only
//! pass them on.
//!
//! Their contents are undocumented and differ between versions of Windows, so these objects have no
//! contents: an access causes a fault, whose report identifies the address.

use std::{collections::HashMap, ffi::c_void, num::NonZeroUsize, ptr::NonNull};

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use parking_lot::Mutex;

use crate::{
    execution::identity::Identity,
    ground::{access::AddressError, arena::PAGE},
};

/// The size of the address range in bytes. The range uses no memory.
const RANGE: usize = 256 << 20;

/// The distance between two objects.
const SIZE: u64 = PAGE as u64;

/// The thread objects of a kernel.
#[derive(Default)]
pub struct ThreadObjects(Mutex<Objects>);

#[derive(Default)]
struct Objects {
    /// The first address, once it is reserved.
    start: Option<u64>,
    known: HashMap<Identity, u64>,
}

impl ThreadObjects {
    /// Returns the constant address of a thread's object, or null if no addresses are left.
    pub fn address(&self, thread: Identity) -> u64 {
        let mut objects = self.0.lock();
        let Some(start) = objects.start.or_else(reserve) else {
            return 0;
        };
        objects.start = Some(start);
        let next = start + objects.known.len() as u64 % (RANGE as u64 / SIZE) * SIZE;
        *objects.known.entry(thread).or_insert(next)
    }

    /// Describes an address that is in a thread object.
    pub fn address_error(&self, address: u64) -> Option<AddressError> {
        let objects = self.0.lock();
        let start = objects.start?;
        let offset = address.checked_sub(start)?;
        if offset >= RANGE as u64 {
            return None;
        }
        let base = start + offset / SIZE * SIZE;
        let mut known = objects.known.iter();
        let (thread, _) = known.find(|(_, object)| **object == base)?;
        Some(AddressError {
            rule: None,
            what: format!(
                "is in the object of thread {} (KTHREAD), whose contents the stand-in kernel does not \
                 provide",
                thread.thread
            ),
        })
    }
}

fn reserve() -> Option<u64> {
    let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_NORESERVE;
    // SAFETY: a fresh anonymous mapping aliases nothing.
    let mapping =
        unsafe { mmap_anonymous(None, NonZeroUsize::new(RANGE)?, ProtFlags::PROT_NONE, flags) };
    mapping.ok().map(|mapping| mapping.addr().get() as u64)
}

impl Drop for Objects {
    fn drop(&mut self) {
        let start = self.start.and_then(|start| usize::try_from(start).ok());
        let start = start.and_then(NonZeroUsize::new);
        if let Some(start) = start {
            let start = NonNull::<c_void>::without_provenance(start);
            // SAFETY: the range belongs to this value, and nothing accesses it.
            let unmapped = unsafe { munmap(start, RANGE) };
            debug_assert!(unmapped.is_ok(), "munmap succeeds for the own range");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_an_object_of_its_own() {
        let objects = ThreadObjects::default();
        let system = objects.address(Identity::SYSTEM);
        let idle = objects.address(Identity::IDLE);
        assert!(system != 0 && idle != 0 && system != idle);
        assert_eq!(objects.address(Identity::SYSTEM), system);
        let error = objects.address_error(system + 0x100).unwrap();
        assert!(error.what.contains("thread 8 (KTHREAD)"), "{}", error.what);
        assert!(objects.address_error(system + 8 * SIZE).is_none());
        assert!(objects.address_error(0).is_none());
    }
}
