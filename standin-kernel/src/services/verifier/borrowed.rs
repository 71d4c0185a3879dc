//! The memory that enable callbacks borrow only for the call. Ranges are remembered for a time, so
//! that later accesses can be diagnosed.

use std::collections::VecDeque;

use parking_lot::Mutex;

/// The maximum number of ranges that are remembered after their enable callbacks have returned.
const REMEMBERED: usize = 256;

/// The memory that is currently borrowed, and recently borrowed memory.
#[derive(Default)]
pub struct Borrowed(Mutex<State>);

#[derive(Default)]
struct State {
    /// The addresses and lengths of the ranges that are no longer borrowed.
    over: VecDeque<(u64, u64)>,
    /// The ends of the filter data that is currently borrowed.
    ends: Vec<u64>,
}

impl Borrowed {
    /// Records that a range is no longer borrowed, because the call has returned.
    pub fn end(&self, address: u64, length: u64) {
        let mut state = self.0.lock();
        if state.over.len() == REMEMBERED {
            state.over.pop_front();
        }
        state.over.push_back((address, length));
    }

    /// Records that filter data ending at `end` is borrowed.
    pub fn begin_filter(&self, end: u64) {
        self.0.lock().ends.push(end);
    }

    /// Records that filter data ending at `end` is no longer borrowed.
    pub fn end_filter(&self, end: u64) {
        self.0.lock().ends.retain(|one| *one != end);
    }

    /// Returns whether an address is in a range that is no longer borrowed.
    pub fn is_over(&self, address: u64) -> bool {
        let state = self.0.lock();
        let mut over = state.over.iter();
        over.any(|(start, length)| (*start..start + length).contains(&address))
    }

    /// Returns whether an address is past the end of borrowed filter data, to which a hostile chain
    /// points.
    pub fn is_behind(&self, address: u64) -> bool {
        /// The maximum offset to the next filter.
        const FARTHEST: u64 = 1 << 32;
        let state = self.0.lock();
        let mut ends = state.ends.iter();
        ends.any(|end| (*end..end.saturating_add(FARTHEST)).contains(&address))
    }
}
