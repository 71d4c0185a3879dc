//! The header of objects that threads can wait for.

use super::thread_objects;
pub use crate::ground::abi::dispatcher_kind as kind;
use crate::{ground::abi::DispatcherHeader, services::ntoskrnl::context::Context};

/// The offset of a header's list of waiters.
const WAITERS: u64 = 8;

/// Initializes an object's header.
pub fn initialize(context: &Context, object: u64, kind: u8, size: usize, state: i32) {
    context.write(object, &DispatcherHeader::new(object, kind, size, state));
}

/// Returns an object's header. Bugchecks if the object was not initialized or is of another kind.
pub fn header_of(context: &Context, object: u64, kinds: &[u8]) -> DispatcherHeader {
    let list = object.wrapping_add(WAITERS);
    // Thread objects are inaccessible, so the kernel stores their state.
    let of_thread = thread_objects::has_ended(context, object).map(|has_ended| DispatcherHeader {
        kind: kind::THREAD,
        signal_state: i32::from(has_ended),
        wait_list_head: [list; 2],
        ..Default::default()
    });
    let header = of_thread.unwrap_or_else(|| context.read(object));
    if header.wait_list_head != [list; 2] {
        context.stop_for_misuse(&format!(
            "with the object at 0x{object:016X}, which was not initialized"
        ));
    }
    if !kinds.contains(&header.kind) {
        context.stop_for_misuse(&format!(
            "with the object at 0x{object:016X}, which is {}",
            name_of(header.kind)
        ));
    }
    header
}

const fn name_of(kind: u8) -> &'static str {
    match kind {
        kind::NOTIFICATION_EVENT | kind::SYNCHRONIZATION_EVENT => "an event",
        kind::MUTANT => "a mutex",
        kind::PROCESS => "a process",
        kind::QUEUE => "a queue; only KeRemoveQueue waits for queues",
        kind::SEMAPHORE => "a semaphore",
        kind::THREAD => "a thread",
        kind::NOTIFICATION_TIMER | kind::SYNCHRONIZATION_TIMER => "a timer",
        _ => "not an object that threads can wait for",
    }
}
