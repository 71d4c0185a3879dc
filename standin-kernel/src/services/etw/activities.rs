//! The activity ids of threads, and the creation of activity ids.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use parking_lot::RwLock;

use etl_file::Guid;

/// The activity ids of a kernel.
#[derive(Default)]
pub struct Activities {
    threads: RwLock<HashMap<u32, Guid>>,
    /// Set once any thread has had an activity id. Every write without an activity id checks it.
    any: AtomicBool,
    created: AtomicU64,
    /// The pointers to activity ids that drivers have set for threads.
    pointers: RwLock<HashMap<u32, u64>>,
    /// The activity ids of requests, indexed by IRP address.
    requests: RwLock<HashMap<u64, Guid>>,
}

impl Activities {
    /// Returns a thread's activity id, or null if it has none (ETW-6.5.1).
    pub fn current(&self, thread: u32) -> Guid {
        if !self.any.load(Ordering::Acquire) {
            return Guid::NULL;
        }
        let threads = self.threads.read();
        threads.get(&thread).copied().unwrap_or(Guid::NULL)
    }

    /// Sets a thread's activity id.
    pub fn set(&self, thread: u32, activity: Guid) {
        self.any.store(true, Ordering::Release);
        let mut threads = self.threads.write();
        threads.insert(thread, activity);
    }

    /// Sets a thread's activity id, and the address where a driver stores the id.
    pub fn set_pointer(&self, thread: u32, address: u64, activity: Guid) {
        self.pointers.write().insert(thread, address);
        self.set(thread, activity);
    }

    /// Returns the address of a thread's activity id, or 0 if none was set.
    pub fn current_pointer(&self, thread: u32) -> u64 {
        self.pointers.read().get(&thread).copied().unwrap_or(0)
    }

    /// Returns the activity id that was last set for the request at an address.
    pub fn of_request(&self, irp: u64) -> Option<Guid> {
        self.requests.read().get(&irp).copied()
    }

    /// Sets the activity id of a request.
    pub fn set_of_request(&self, irp: u64, activity: Guid) {
        self.requests.write().insert(irp, activity);
    }

    /// Returns a new activity id. It is unique within the kernel's lifetime, but not a GUID
    /// (ETW-6.5.4).
    pub fn create(&self) -> Guid {
        let number = self.created.fetch_add(1, Ordering::Relaxed) + 1;
        let mut bytes = [0; 16];
        if let Some(low) = bytes.first_chunk_mut::<8>() {
            *low = number.to_le_bytes();
        }
        if let Some(high) = bytes.last_chunk_mut::<8>() {
            *high = *b"\x80testkrn";
        }
        Guid::from_bytes(bytes)
    }
}
