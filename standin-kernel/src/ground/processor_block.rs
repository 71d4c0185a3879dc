//! The processor control region (`KPCR`), which kernel-mode code reads through GS.
//!
//! Where the host leaves GS to the program, this module sets its base to an inaccessible range.
//! Elsewhere, the host replaces the instructions. Either way, each access faults and is served from
//! the fields below. An access to an unknown offset is an error.

use std::sync::OnceLock;

use super::host::{self, Mapping};

/// The size of the inaccessible range in bytes, larger than the block in any version of Windows.
const RANGE: usize = 1 << 20;

/// The offset of the processor's control block (`KPRCB`).
const PRCB: u64 = 0x180;

/// The values of one processor.
#[derive(Clone, Copy, Debug)]
pub struct ProcessorBlock {
    /// The processor's number.
    pub number: u16,
    /// The address of the current thread's object.
    pub thread: u64,
}

impl ProcessorBlock {
    /// Returns the bytes at this offset in the block, or `None` if the kernel does not provide one
    /// of them.
    pub fn read(&self, offset: u64, length: usize) -> Option<Vec<u8>> {
        let number = u32::from(self.number);
        let fields: [(u64, &[u8]); 8] = [
            // Self and CurrentPrcb.
            (0x18, &base()?.to_le_bytes()),
            (0x20, &(base()? + PRCB).to_le_bytes()),
            // MajorVersion and MinorVersion.
            (0x60, &1_u16.to_le_bytes()),
            (0x62, &1_u16.to_le_bytes()),
            // The control block: LegacyNumber with three bytes that are zero, CurrentThread, Number.
            (PRCB + 4, &[self.number.to_le_bytes()[0]]),
            (PRCB + 5, &[0; 3]),
            (PRCB + 8, &self.thread.to_le_bytes()),
            (PRCB + 0x24, &number.to_le_bytes()),
        ];
        let end = offset.checked_add(length as u64)?;
        (offset..end)
            .map(|at| {
                fields.iter().find_map(|(start, bytes)| {
                    let inside = usize::try_from(at.checked_sub(*start)?).ok()?;
                    bytes.get(inside).copied()
                })
            })
            .collect()
    }
}

/// Returns the address of the inaccessible range, which all processors share, or `None` if no
/// address space is left.
pub fn base() -> Option<u64> {
    static BASE: OnceLock<Option<Mapping>> = OnceLock::new();
    BASE.get_or_init(|| Mapping::reserve(RANGE).ok()).as_ref().map(Mapping::address)
}

/// Returns the offset in the block of an address, if the address is in the block.
pub fn offset_of(address: u64) -> Option<u64> {
    let offset = address.checked_sub(base()?)?;
    (offset < RANGE as u64).then_some(offset)
}

/// Sets GS on this thread, if the host leaves GS to the program.
pub fn use_on_this_thread() {
    if let Some(base) = base() {
        host::set_gs(base);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_offsets_that_inline_functions_use() {
        let block = ProcessorBlock { number: 3, thread: 0xFFFF_1234_5678_9ABC };
        let read = |offset, length| block.read(offset, length);
        assert_eq!(read(0x184, 1), Some(vec![3]));
        assert_eq!(read(0x1A4, 4), Some(vec![3, 0, 0, 0]));
        assert_eq!(read(0x188, 8), Some(block.thread.to_le_bytes().into()));
        let prcb = base().unwrap() + 0x180;
        assert_eq!(read(0x20, 8), Some(prcb.to_le_bytes().into()));
        assert_eq!(offset_of(prcb), Some(0x180));
        for (offset, length) in [(0, 8), (0x1A0, 8), (0x184, 16), (0x50, 1), (u64::MAX, 8)] {
            assert_eq!(read(offset, length), None, "{offset:X}");
        }
    }
}
