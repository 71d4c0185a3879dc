//! Compares the output of two independent .etl decoders with the output of `etl-file`.

use std::fmt::Write;
use std::path::Path;

use etl_file::{Catalog, Event, FileTime, Trace, decode, ext_type};
use serde_json::{Value, json};

/// Returns the number of events in a file. Panics unless both decoders agree with `etl-file`.
///
/// The decoders must read the same header fields, and the same events in the same order with every
/// field, extended item and byte of user data. Only dissect reads compressed files.
pub fn assert_third_party_decoders_agree(path: &Path) -> usize {
    let trace = Trace::open(path).expect("the file is a trace");
    assert_eq!(trace.damages(), [], "{}", path.display());
    // The readers are compared on Linux, where they are installed. The files are the same.
    if cfg!(windows) {
        return trace.events().count();
    }
    let mut decoders = vec![("dissect.etl", dump("dissect_dump.py", path))];
    if !trace.header().session.is_compressed() {
        decoders.push(("etl-parser", dump("etlparser_dump.py", path)));
    }
    for (decoder, lines) in &decoders {
        let (header, events) = lines.split_first().expect("a dump starts with the header");
        assert_same(decoder, "header", header, &header_line(&trace));
        let events: Vec<&Value> =
            events.iter().filter(|line| line.get("other").is_none()).collect();
        assert_eq!(events.len(), trace.events().count(), "{decoder}: events");
        for (n, (theirs, ours)) in events.into_iter().zip(trace.events()).enumerate() {
            assert_same(decoder, &format!("event {n}"), theirs, &event_line(ours));
            assert_same_time(decoder, n, theirs, ours.time);
            assert_same_fields(n, theirs, ours);
        }
    }
    trace.events().count()
}

/// Runs a script of `tests/oracles` on a file, and returns the lines of its output.
pub fn dump(script: &str, path: &Path) -> Vec<Value> {
    let output = etw_test_support::run_python([&etw_test_support::oracle(script), path]);
    output
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).expect("a dump is JSON"))
        .collect()
}

fn header_line(trace: &Trace) -> Value {
    let header = trace.header();
    let session = &header.session;
    json!({
        "logger": session.session_name,
        "file": session.log_file_name,
        "buffers": header.buffers_written,
        "ptr": header.pointer_size,
        "cpus": session.processors,
        "lost": header.events_lost,
        "buflost": header.buffers_lost,
        "clock": session.clock.raw(),
        "freq": session.perf_frequency,
        "start": session.start_time.raw(),
        "end": header.end_time.map_or(0, FileTime::raw),
        "mode": session.log_file_mode,
    })
}

fn event_line(event: &Event) -> Value {
    let record = &event.record;
    let descriptor = &record.descriptor;
    let items: Vec<Value> =
        record.extended.iter().map(|item| json!([item.ext_type, hex(&item.data)])).collect();
    json!({
        "cpu": event.processor,
        "provider": record.provider.to_string(),
        "id": descriptor.id,
        "ver": descriptor.version,
        "chan": descriptor.channel,
        "level": descriptor.level,
        "op": descriptor.opcode,
        "task": descriptor.task,
        "kw": descriptor.keyword,
        "pid": record.process_id,
        "tid": record.thread_id,
        "raw_ts": record.timestamp,
        "activity": record.activity_id.to_string(),
        "ext": items,
        "user": hex(&record.user_data),
    })
}

/// Compares every key of a decoder's output with our output. One decoder's output may omit the
/// processor.
fn assert_same(decoder: &str, what: &str, theirs: &Value, ours: &Value) {
    let ours = ours.as_object().expect("our lines are objects");
    for (key, our_value) in ours {
        match theirs.get(key) {
            Some(their_value) => {
                assert_eq!(their_value, our_value, "{decoder}: {what}: {key}");
            }
            None => assert_eq!(key, "cpu", "{decoder}: {what} has no such key"),
        }
    }
}

/// Compares the time of day, if a decoder returns it. The decoder uses floating point, so its time
/// is accurate only to a few microseconds.
fn assert_same_time(decoder: &str, n: usize, theirs: &Value, ours: FileTime) {
    const DAY: i128 = 24 * 60 * 60 * 1_000_000;
    const TOLERANCE: i128 = 5;
    let Some(text) = theirs.get("time").and_then(Value::as_str) else {
        return;
    };
    let ours = (ours.unix_nanos() / 1000).rem_euclid(DAY);
    let difference = (micros_of_day(text) - ours).rem_euclid(DAY);
    assert!(
        difference.min(DAY - difference) <= TOLERANCE,
        "{decoder}: event {n}: time {text} differs by {difference} microseconds"
    );
}

/// Returns the number of microseconds since midnight of a time like `2020-02-17T12:48:57.75+00:00`.
fn micros_of_day(text: &str) -> i128 {
    let (_, time) = text.split_once('T').expect("a date and a time");
    let (time, _zone) = time.split_once('+').expect("a time in UTC");
    time.split(':').fold(0, |total, part| {
        let (whole, fraction) = part.split_once('.').unwrap_or((part, ""));
        let whole: i128 = whole.parse().expect("a number");
        let fraction: i128 = format!("{fraction:0<6}").parse().expect("a fraction");
        total * 60 + whole * 1_000_000 + fraction
    })
}

/// Compares the `TraceLogging` fields that etl-parser decodes with our fields.
fn assert_same_fields(n: usize, theirs: &Value, ours: &Event) {
    let Some(decoded) = theirs.get("tl").and_then(Value::as_array) else {
        let is_trace_logging = ours.record.item(ext_type::EVENT_SCHEMA_TL).is_some();
        let is_etl_parser = theirs.get("cpu").is_none();
        assert!(!(is_trace_logging && is_etl_parser), "event {n}: no fields");
        return;
    };
    let [name, fields] = decoded.as_slice() else {
        panic!("event {n}: a name and fields are expected");
    };
    let ours = decode(ours, &Catalog::new());
    assert_eq!(name.as_str(), ours.event_name.as_deref(), "event {n}: name");
    let fields = fields.as_object().expect("fields by name");
    assert_eq!(fields.len(), ours.fields.len(), "event {n}: fields");
    for (name, value) in &ours.fields {
        let theirs = fields.get(name.as_ref()).expect("a field of the name");
        let ours = serde_json::to_value(value).expect("a value has JSON");
        // A status code is followed by its name.
        let ours = ours.get("value").unwrap_or(&ours);
        assert!(same_value(theirs, ours), "event {n}: {name}: {theirs} and {ours}");
    }
}

/// Returns whether a string is the hexadecimal form of bytes.
fn is_hex_of(text: &str, bytes: &[u64]) -> bool {
    let mut digits = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u64::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    bytes.iter().all(|wanted| digits.next().and_then(byte) == Some(*wanted))
        && digits.next().is_none()
}

/// Returns whether two strings represent the same value. etl-parser prints characters, bytes and
/// booleans as numbers, and hexadecimal numbers in decimal.
fn same_value(theirs: &Value, ours: &Value) -> bool {
    match (theirs, ours) {
        (Value::Array(units), Value::String(text)) => {
            let units: Vec<u64> = units.iter().filter_map(Value::as_u64).collect();
            is_hex_of(text, &units) || units.into_iter().eq(text.encode_utf16().map(u64::from))
        }
        (Value::Number(number), Value::String(text)) => {
            let digits = text.strip_prefix("0x").unwrap_or(text);
            let ours = u64::from_str_radix(digits, 16).ok();
            // Signed codes, such as an HRESULT, are 32 bits wide.
            let negative = number.as_i64().and_then(|number| i32::try_from(number).ok());
            number.as_u64() == ours || negative.map(|code| code.cast_unsigned().into()) == ours
        }
        (Value::Number(number), Value::Bool(truth)) => number.as_u64() == Some((*truth).into()),
        (Value::Number(theirs), Value::Number(ours)) => {
            theirs.as_i128() == ours.as_i128() && theirs.as_f64() == ours.as_f64()
        }
        _ => theirs == ours,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut digits, byte| {
        write!(digits, "{byte:02x}").expect("a string takes everything");
        digits
    })
}
