//! The memory that devices can access, by bus address: common buffers, and the buffers of transfers in
//! progress.

use crate::{ground::memory, services::kmdf::state::framework::Framework};

/// The size of a page.
pub const PAGE: u64 = 4096;

/// The first address to assign, and the end of the range. Devices with 32 address lines can access
/// the entire range.
const FIRST: u64 = 0x1000_0000;
const END: u64 = 0xF000_0000;

/// A range of memory on the bus.
struct Range {
    bus: u64,
    address: u64,
    length: u64,
}

/// The memory ranges that devices can access.
pub struct Bus {
    ranges: Vec<Range>,
    next: u64,
}

impl Default for Bus {
    fn default() -> Self {
        Self { ranges: Vec::new(), next: FIRST }
    }
}

impl Bus {
    /// Maps memory and returns its bus address, which has the same offset in a page of `alignment`
    /// bytes as the memory's address. Ranges are not adjacent, because physical pages usually are
    /// not adjacent.
    pub fn map(&mut self, address: u64, length: u64, alignment: u64) -> Option<u64> {
        let offset = address % PAGE;
        for is_second in [false, true] {
            if is_second {
                self.next = FIRST;
            }
            loop {
                let start = self.next.next_multiple_of(alignment.max(PAGE)) + offset;
                let end = start.checked_add(length)?;
                if end > END {
                    break;
                }
                self.next = end.next_multiple_of(PAGE) + PAGE;
                let is_free = |range: &Range| range.bus >= end || range.bus + range.length <= start;
                if self.ranges.iter().all(is_free) {
                    self.ranges.push(Range { bus: start, address, length });
                    return Some(start);
                }
            }
        }
        None
    }

    /// Removes the range that starts at this bus address.
    pub fn unmap(&mut self, bus: u64) {
        self.ranges.retain(|range| range.bus != bus);
    }

    /// Returns the address of the memory at a bus address, if one range contains all of the memory.
    fn find(&self, bus: u64, length: usize) -> Option<u64> {
        let end = bus.checked_add(length as u64)?;
        let range =
            self.ranges.iter().find(|range| range.bus <= bus && end <= range.bus + range.length)?;
        Some(range.address + (bus - range.bus))
    }
}

/// Reads memory on behalf of a device. Returns `None` if the memory is not mapped.
pub fn read(framework: &mut Framework, bus: u64, length: usize) -> Option<Vec<u8>> {
    let address = framework.part::<Bus>().find(bus, length)?;
    memory::read_bytes(address, length).ok()
}

/// Writes memory on behalf of a device. Returns `None` if the memory is not mapped.
pub fn write(framework: &mut Framework, bus: u64, bytes: &[u8]) -> Option<()> {
    let address = framework.part::<Bus>().find(bus, bytes.len())?;
    memory::write_bytes(address, bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::{Bus, FIRST, PAGE};

    #[test]
    fn ranges_keep_their_page_offset_and_do_not_adjoin() {
        let mut bus = Bus::default();
        let first = bus.map(0x7000_0010, 0x20, PAGE).unwrap();
        let second = bus.map(0x7000_1000, PAGE, PAGE).unwrap();
        let third = bus.map(0x7000_3000, 8, 0x1_0000).unwrap();
        assert_eq!(first, FIRST + 0x10);
        assert_eq!(second, FIRST + 2 * PAGE);
        assert_eq!(third % 0x1_0000, 0);
        assert_eq!(bus.find(first + 0x1F, 1), Some(0x7000_002F));
        assert_eq!(bus.find(first + 0x1F, 2), None);
        bus.unmap(first);
        assert_eq!(bus.find(first, 1), None);
        assert_eq!(bus.map(0, u64::MAX, PAGE), None);
    }
}
