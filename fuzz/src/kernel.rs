//! Reads arbitrary bytes as a record of the kernel, a classic provider or WPP.

use std::io::Cursor;

use etl_file::internals::kernel;
use etl_file::{Catalog, ClockType, Completion, EncodedRecord, Pipeline, TraceFile};
use etl_fixtures::trace;

use crate::text::{assert_harmless, assert_sentence};

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
    if let Ok(record) = EncodedRecord::from_bytes(data) {
        check_completion(&record);
    }
    problem.map_or(Ok(fields), Err)
}

/// Checks the events of a trace that contains a record twice, completed with each other's data.
fn check_completion(record: &EncodedRecord) {
    let header = trace::header(ClockType::Qpc, 0x1_1000, 1);
    let file = trace::of_records(header, 1, [1, 2].map(|time| (time, record.clone())));
    let mut file = TraceFile::new(Cursor::new(file)).expect("it was just written");
    let (catalog, completion) =
        (Catalog::new(), Completion { names: true, ..Completion::default() });
    let pipeline = Pipeline { completion: Some(&completion), ..Pipeline::new(&catalog) };
    let (events, counts) = trace::events(&mut file, &pipeline);
    for (_, event) in &events {
        for frame in event.stack.iter().flat_map(|stack| &stack.frames) {
            assert!(frame.place.as_ref().is_none_or(|place| !place.is_empty()));
        }
    }
    assert_eq!(counts.decoded, 2);
    assert_eq!(events.len() as u64 + counts.stacks.joined, 2);
}
