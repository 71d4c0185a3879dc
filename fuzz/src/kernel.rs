//! Reads arbitrary bytes as a record of the kernel, a classic provider or WPP.

use etl_file::{
    Clock, ClockType, EncodedRecord, FileTime,
    analysis::{Enricher, FirstPass},
    decode::kernel,
};

use crate::text::{assert_harmless, assert_sentence};

const CLOCK: Clock = Clock {
    kind: ClockType::Qpc,
    perf_frequency: 10_000_000,
    cpu_mhz: 3000,
    start_clock: 0,
    start_time: FileTime::from_raw(134_117_966_450_000_000),
};

/// Checks that a record is decoded without loss, and returns the number of its fields.
///
/// Leftover bytes must be at the end of the record, values must be printable, a second decoding
/// must give the same result, and names and stacks must be derivable from the record.
///
/// # Errors
/// Fails with the text of the first problem, or if the bytes are not a record.
pub fn check(data: &[u8]) -> Result<usize, String> {
    let Some(record) = kernel::decode(data) else {
        let _not_a_record = EncodedRecord::from_bytes(data);
        return Err("no record".to_owned());
    };
    assert_eq!(Some(&record), kernel::decode(data).as_ref());
    let payload = &data[record.header.payload..];
    assert!(payload.ends_with(&record.leftover));
    for (_, value) in &record.fields {
        assert_harmless(&value.to_string());
    }
    for problem in &record.problems {
        assert_sentence(problem);
    }
    // Every byte belongs to a field or to the remainder; bytes remain only if a problem is
    // reported.
    if record.problems.is_empty() {
        assert!(record.leftover.is_empty());
    }
    let fields = record.fields.len();
    let problem = record.problems.first().map(ToString::to_string);
    let event = record.into_decoded(&CLOCK, 0, 0);
    let mut first = FirstPass::new();
    first.observe(&event);
    first.observe(&event);
    let mut enricher = Enricher::new(first).with_names();
    enricher.push(event.clone(), (), 0);
    enricher.push(event, (), 0);
    let mut count = 0;
    while let Some((event, ())) = enricher.drain() {
        for frame in event.stack.iter().flat_map(|stack| &stack.frames) {
            assert!(frame.place.as_ref().is_none_or(|place| !place.is_empty()));
        }
        count += 1;
    }
    assert_eq!(count + enricher.stacks().joined, 2);
    problem.map_or(Ok(fields), Err)
}
