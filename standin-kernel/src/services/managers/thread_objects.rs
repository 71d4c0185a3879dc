//! Thread objects (`KTHREAD`). Drivers receive their addresses from `KeGetCurrentThread`, and only
//! pass them on.
//!
//! Their contents are undocumented and differ between versions of Windows, so these objects have no
//! contents: an access causes a fault, whose report identifies the address.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::{
    execution::identity::Identity,
    ground::{access::AddressError, arena::PAGE, host::Mapping},
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
    /// The addresses, once they are reserved.
    range: Option<Mapping>,
    known: HashMap<Identity, u64>,
}

impl ThreadObjects {
    /// Returns the constant address of a thread's object, or null if no addresses are left.
    pub fn address(&self, thread: Identity) -> u64 {
        let mut objects = self.0.lock();
        let Some(range) = objects.range.take().or_else(|| Mapping::reserve(RANGE).ok()) else {
            return 0;
        };
        let start = objects.range.insert(range).address();
        let next = start + objects.known.len() as u64 % (RANGE as u64 / SIZE) * SIZE;
        *objects.known.entry(thread).or_insert(next)
    }

    /// Describes an address that is in a thread object.
    pub fn address_error(&self, address: u64) -> Option<AddressError> {
        let objects = self.0.lock();
        let start = objects.range.as_ref()?.address();
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
