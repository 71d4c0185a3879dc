//! Memory that was lent to callbacks: what was lent lately, to know it again.

use std::collections::VecDeque;

/// How many loans are remembered.
const REMEMBERED: usize = 256;

/// What was lent lately.
#[derive(Default)]
pub struct Lent {
    /// The loans that were taken back, with their lengths.
    over: VecDeque<(u64, u64)>,
    /// Where the filter data ends that is lent now.
    ends: Vec<u64>,
}

impl Lent {
    /// A loan was taken back.
    pub fn take_back(&mut self, address: u64, length: u64) {
        if self.over.len() == REMEMBERED {
            self.over.pop_front();
        }
        self.over.push_back((address, length));
    }

    /// Filter data is lent that ends there.
    pub fn lend_filter(&mut self, end: u64) {
        self.ends.push(end);
    }

    /// It is not any more.
    pub fn filter_is_back(&mut self, end: u64) {
        self.ends.retain(|one| *one != end);
    }

    /// Whether an address was lent and is not any more.
    pub fn held(&self, address: u64) -> bool {
        let mut over = self.over.iter();
        over.any(|(start, length)| (*start..start + length).contains(&address))
    }

    /// Whether an address is past filter data that is lent now, which is where a hostile
    /// chain leads.
    pub fn is_behind(&self, address: u64) -> bool {
        /// As far as an offset to the next filter can reach.
        const FARTHEST: u64 = 1 << 32;
        let mut ends = self.ends.iter();
        ends.any(|end| (*end..end.saturating_add(FARTHEST)).contains(&address))
    }
}
