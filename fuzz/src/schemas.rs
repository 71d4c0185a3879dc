//! Reads arbitrary bytes as the schemas that a trace contains.

use etl_file::decode::schemas::{Collector, Counts, METADATA_CLASS};
use etl_file::write::ClassicRecord;
use etl_file::{Catalog, Event, EventDescriptor, EventRecord, Guid, decode};

use crate::text::assert_sentence;

/// The number of events to decode; more events only take longer.
const DECODED: usize = 16;

/// Checks that damage is reported, and that each accepted schema can decode an event. The input is
/// a list of parts: a kind (32, 33 or a chunk's kind), a two-byte size, and the payload.
#[must_use]
pub fn check(data: &[u8]) -> Counts {
    let mut collector = Collector::new();
    let mut described = Vec::new();
    let mut rest = data;
    while let Some((&[kind, low, high], after)) = rest.split_first_chunk() {
        let size = usize::from(u16::from_le_bytes([low, high])).min(after.len());
        let (payload, after) = after.split_at(size);
        rest = after;
        if let Some(record) = record(kind, payload) {
            collector.record(&record);
        }
        described.extend(key(payload));
    }
    let schemas = collector.finish();
    let counts = schemas.counts();
    assert!(schemas.defects().len() <= counts.defective);
    schemas.defects().iter().for_each(assert_sentence);
    let mut catalog = Catalog::new();
    schemas.add_to(&mut catalog);
    for (provider, descriptor) in described.into_iter().take(DECODED) {
        let event = Event {
            record: EventRecord {
                provider,
                descriptor,
                user_data: data.iter().rev().take(200).copied().collect(),
                ..EventRecord::default()
            },
            ..Event::default()
        };
        let decoded = decode(&event, &catalog);
        assert!(event.record.user_data.ends_with(&decoded.leftover));
        decoded.problems.iter().for_each(assert_sentence);
    }
    counts
}

/// Returns a record with a payload, or `None` if it is too long.
fn record(kind: u8, payload: &[u8]) -> Option<Vec<u8>> {
    if kind < 0x80 {
        let record = ClassicRecord {
            class: METADATA_CLASS,
            opcode: kind,
            payload: payload.to_vec(),
            ..ClassicRecord::default()
        };
        return record.encode().ok();
    }
    let record = EventRecord {
        process_id: kind.into(),
        descriptor: EventDescriptor {
            id: 0xFFFE,
            opcode: 0xFE,
            task: 0xFFFE,
            ..EventDescriptor::default()
        },
        user_data: payload.to_vec(),
        ..EventRecord::default()
    };
    record.encode().ok()
}

/// Returns the provider and the descriptor in a `TRACE_EVENT_INFO`.
fn key(payload: &[u8]) -> Option<(Guid, EventDescriptor)> {
    let provider = Guid::from_bytes(*payload.first_chunk()?);
    let one = payload.get(32..48)?;
    let descriptor = EventDescriptor {
        id: u16::from_le_bytes([one[0], one[1]]),
        version: one[2],
        channel: one[3],
        level: one[4],
        opcode: one[5],
        task: u16::from_le_bytes([one[6], one[7]]),
        keyword: u64::from_le_bytes(*one[8..].first_chunk()?),
    };
    Some((provider, descriptor))
}
