//! The memory that an enable callback borrows during the call: the source id and the filters.

use etl_file::Guid;
use zerocopy::IntoBytes;

use super::{
    filters::{FilterData, instance_bit},
    service::Context,
};
use crate::ground::{
    abi::{EventFilterDescriptor, EventFilterHeader},
    arena::Block,
};

/// `EVENT_FILTER_TYPE_SCHEMATIZED`.
const SCHEMATIZED: u32 = 0x8000_0000;

/// Memory that a callback may read only during the call (ETW-3.2.8).
pub struct CallbackMemory {
    pub source: Block,
    chain: Block,
    /// The end of the filter chain.
    end: u64,
    descriptor: Option<Block>,
}

impl CallbackMemory {
    pub fn new(context: &Context, source: Guid, filters: &[(u16, FilterData)]) -> Self {
        let put = |bytes: &[u8]| {
            let block = Block::guarded(bytes.len());
            context.write_bytes(block.address(), bytes);
            block
        };
        let mut bytes = filter_chain(filters);
        if context.config().hostile_filters {
            mislead(&mut bytes);
        }
        // The last filter ends at the end of the memory, so that reads past it fault.
        let room = bytes.len().next_multiple_of(16) - bytes.len();
        let chain = put(&[vec![0; room], bytes.clone()].concat());
        let start = chain.address() + room as u64;
        let descriptor = EventFilterDescriptor {
            ptr: start,
            size: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            kind: SCHEMATIZED,
        };
        let end = start + bytes.len() as u64;
        for (session, _) in filters {
            context.tell_of_instance(instance_bit(*session));
        }
        context.borrowed().begin_filter(end);
        Self {
            source: put(&source.to_bytes()),
            chain,
            end,
            descriptor: (!filters.is_empty()).then(|| put(descriptor.as_bytes())),
        }
    }

    pub fn filter_address(&self) -> u64 {
        self.descriptor.as_ref().map_or(0, Block::address)
    }

    /// Ends the callback's access to the memory. Later accesses through a saved pointer fault.
    pub fn take_back(self, context: &Context) {
        let borrowed = context.borrowed();
        borrowed.end_filter(self.end);
        borrowed.end(self.source.address(), 16);
        borrowed.end(self.chain.address(), self.end - self.chain.address());
        if let Some(descriptor) = &self.descriptor {
            let size = size_of::<EventFilterDescriptor>() as u64;
            borrowed.end(descriptor.address(), size);
        }
    }
}

/// Returns the chain of schematized filters, one per session that set one (ETW-3.5.3, R-E6).
fn filter_chain(filters: &[(u16, FilterData)]) -> Vec<u8> {
    let mut chain = Vec::new();
    for (number, (session, filter)) in filters.iter().enumerate() {
        let size = size_of::<EventFilterHeader>() + filter.data.len();
        let padded = size.next_multiple_of(8);
        let last = number + 1 == filters.len();
        let header = EventFilterHeader {
            id: filter.id,
            version: filter.version,
            reserved: [0; 5],
            instance_id: instance_bit(*session),
            size: u32::try_from(size).unwrap_or(u32::MAX),
            next_offset: if last { 0 } else { u32::try_from(padded).unwrap_or(u32::MAX) },
        };
        let start = chain.len();
        chain.extend_from_slice(header.as_bytes());
        chain.extend_from_slice(&filter.data);
        chain.resize(start + if last { size } else { padded }, 0);
    }
    chain
}

/// Makes a chain of filters extend past the end of the data.
fn mislead(chain: &mut [u8]) {
    /// The offset of `NextOffset` in a header.
    const NEXT_OFFSET: usize = 20;
    let mut at = 0;
    while let Some(next) = chain.get_mut(at + NEXT_OFFSET..at + NEXT_OFFSET + 4) {
        let Ok(bytes) = <[u8; 4]>::try_from(&*next) else {
            return;
        };
        match u32::from_le_bytes(bytes) {
            0 => {
                next.copy_from_slice(&0x1000_u32.to_le_bytes());
                return;
            }
            step => at += step as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // R-E6
    #[test]
    fn a_chain_links_every_sessions_filter() {
        let filter = |id, data: &[u8]| FilterData { id, version: 2, data: data.to_vec() };
        let chain = filter_chain(&[(1, filter(7, b"abc")), (3, filter(8, b"z"))]);
        let first: EventFilterHeader = zerocopy::FromBytes::read_from_prefix(&chain).unwrap().0;
        assert_eq!((first.id, first.instance_id, first.size), (7, 2, 27));
        assert_eq!(first.next_offset, 32);
        let second: EventFilterHeader =
            zerocopy::FromBytes::read_from_prefix(&chain[32..]).unwrap().0;
        assert_eq!((second.id, second.instance_id, second.size), (8, 8, 25));
        assert_eq!((second.next_offset, chain.len()), (0, 57));
    }
}
