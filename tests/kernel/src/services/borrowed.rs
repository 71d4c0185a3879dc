//! Memory that enable callbacks borrow, for the call only: what was borrowed lately, to know
//! it again.

use std::collections::VecDeque;

use parking_lot::Mutex;

/// The number of ranges that are remembered after their calls.
const REMEMBERED: usize = 256;

/// Memory that is borrowed now, and memory that was borrowed lately.
#[derive(Default)]
pub struct Borrowed(Mutex<State>);

#[derive(Default)]
struct State {
    /// Ranges whose calls are over, with their lengths.
    over: VecDeque<(u64, u64)>,
    /// The ends of filter data that is borrowed now.
    ends: Vec<u64>,
}

impl Borrowed {
    /// Notes that a range's call is over.
    pub fn end(&self, address: u64, length: u64) {
        let mut state = self.0.lock();
        if state.over.len() == REMEMBERED {
            state.over.pop_front();
        }
        state.over.push_back((address, length));
    }

    /// Notes that filter data which ends at `end` is borrowed.
    pub fn begin_filter(&self, end: u64) {
        self.0.lock().ends.push(end);
    }

    /// Notes that filter data which ends at `end` is not borrowed any more.
    pub fn end_filter(&self, end: u64) {
        self.0.lock().ends.retain(|one| *one != end);
    }

    /// Returns whether an address was borrowed and is not any more.
    pub fn is_over(&self, address: u64) -> bool {
        let state = self.0.lock();
        let mut over = state.over.iter();
        over.any(|(start, length)| (*start..start + length).contains(&address))
    }

    /// Returns whether an address is past filter data that is borrowed now, which is where a
    /// hostile chain leads.
    pub fn is_behind(&self, address: u64) -> bool {
        /// As far as an offset to the next filter can reach.
        const FARTHEST: u64 = 1 << 32;
        let state = self.0.lock();
        let mut ends = state.ends.iter();
        ends.any(|end| (*end..end.saturating_add(FARTHEST)).contains(&address))
    }
}
