//! Tests that installing a subscriber allocates one block, and removing it frees the block. There
//! is one test, because a process can install one subscriber.

#![allow(clippy::significant_drop_tightening, reason = "a test's turn lasts as long as the test")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use mock_etw::{ENABLE, register, turn};
use tracing::level_filters::LevelFilter;
use wdk_etw::Registered;
use wdk_etw_tracing::{EtwSubscriber, InstallError};

thread_local! {
    /// The number of blocks that this thread allocated and has not freed.
    static BLOCKS: Cell<i32> = const { Cell::new(0) };
    static IS_OUT_OF_MEMORY: Cell<bool> = const { Cell::new(false) };
}

struct Counting;

// SAFETY: all calls are forwarded, except allocations that are made to fail.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if IS_OUT_OF_MEMORY.get() {
            return std::ptr::null_mut();
        }
        BLOCKS.set(BLOCKS.get() + 1);
        // SAFETY: the caller upholds the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        BLOCKS.set(BLOCKS.get() - 1);
        // SAFETY: the caller upholds the contract.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[wdk_etw::provider(name = "Test.Uninstall")]
mod trace {
    #[keyword]
    pub const TRACING: Keyword = Keyword::bit(3);
}

static SUBSCRIBER: EtwSubscriber = EtwSubscriber::new(&trace::PROVIDER, trace::TRACING);

#[test]
fn installing_allocates_one_block_and_removing_frees_it() {
    let etw = turn();
    // Events before this reach no subscriber, and do not hide later events.
    let write = || tracing::info!("x");
    write();
    IS_OUT_OF_MEMORY.set(true);
    let result = SUBSCRIBER.install();
    IS_OUT_OF_MEMORY.set(false);
    assert_eq!(result, Err(InstallError::NoMemory));
    let blocks = BLOCKS.get();
    SUBSCRIBER.install().unwrap();
    assert_eq!(BLOCKS.get() - blocks, 1);
    assert_eq!(register(&trace::PROVIDER), Ok(Registered::Complete));
    etw.notify(ENABLE, 5, 0, 0);
    // Without `following_sessions`, the maximum level does not depend on the sessions.
    assert_eq!(LevelFilter::current(), LevelFilter::TRACE);
    let events = || {
        let span = tracing::info_span!("span", value = 1);
        let _inside = span.enter();
        write();
    };
    events();
    assert_eq!(etw.writes().len(), 3);
    trace::unregister().unwrap();
    etw.calls();
    let blocks = BLOCKS.get();
    // SAFETY: there are no spans, and no other thread uses `tracing`.
    unsafe { SUBSCRIBER.uninstall() };
    assert_eq!(BLOCKS.get() - blocks, -1);
    assert_eq!(LevelFilter::current(), LevelFilter::OFF);
    write();
    // SAFETY: as above.
    unsafe { SUBSCRIBER.uninstall() };
    assert_eq!(BLOCKS.get() - blocks, -1);
    assert_eq!(SUBSCRIBER.install(), Err(InstallError::AlreadyInstalled));
}
