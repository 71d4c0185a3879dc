//! Reads arbitrary bytes as an .etl file, decodes it and prints it in every format.

use std::{io, num::NonZeroUsize, sync::LazyLock};

use etl::{csv, json, pcapng, perfetto, report, stats::Stats, table};
use etl_file::decode::Kind;
use etl_file::write::{AppendError, Buffer, Finish, LogFile};
use etl_file::{
    BufferInfo, Catalog, Completion, Damage, DamageKind, Decoded, Event, FirstPass, LogFileHeader,
    Pipeline, PointerSize, ReadError, Record, Selection, Trace, TraceFile, decode, merge,
};

use etl_fixtures::trace::events as events_of;

use crate::{
    payload::assert_same_shape,
    text::{assert_harmless, assert_sentence, sentence},
};

/// The catalog that holds the manifest; read only once.
static CATALOG: LazyLock<Catalog> = LazyLock::new(|| {
    let mut catalog = Catalog::new();
    catalog.add(etl_fixtures::trace::MANIFEST).expect("the manifest is well-formed");
    catalog
});

/// The size of a buffer that holds the largest record.
const LARGEST_BUFFER: usize = 0x1_1000;
/// The number of events to write again; more events find no additional bugs.
const REWRITTEN: usize = 16;
/// The number of events to print; more events only take longer.
const PRINTED: usize = 64;
/// The number of events to print as tables, the slowest format.
const TABLED: usize = 4;

/// The number of items in a file, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// The number of events.
    pub events: usize,
    /// The number of events that decode completely.
    pub decoded: usize,
    /// The number of spans between start and stop events.
    pub spans: u64,
    /// The number of records that are not events.
    pub others: usize,
    /// The number of damaged parts of the file.
    pub damages: usize,
}

/// Checks that all reported offsets are inside the file, that events survive being written and read
/// again, and that the printed output can be parsed.
///
/// # Errors
/// Fails with the text of the error if the file is rejected.
pub fn check(data: &[u8]) -> Result<Contents, String> {
    let trace = match Trace::parse(data) {
        Ok(trace) => trace,
        Err(error) => return Err(check_refusal(&error, data.len())),
    };
    check_places(&trace, data.len());
    check_rewriting(&trace);
    let events = trace.events_by_time();
    assert!(events.is_sorted_by_key(|event| event.record.timestamp));
    assert_eq!(events.len(), trace.events().count());
    let decoded: Vec<Decoded> =
        events.iter().take(PRINTED).map(|event| decode(event, &CATALOG)).collect();
    for (event, decoded) in events.iter().zip(&decoded) {
        check_decoded(event, decoded);
    }
    check_records(data, &trace);
    if trace.records().len() <= PRINTED {
        check_pipeline(data);
        check_json(data, &trace);
        check_report(data);
    }
    check_csv(&events, &decoded);
    check_merge(&trace, data);
    let spans = check_perfetto(&trace, &decoded);
    check_pcapng(&trace, &events);
    let width = data.last().map(|byte| u16::from(*byte));
    let few = decoded.get(..TABLED).unwrap_or(&decoded);
    for width in [None, width] {
        assert_harmless(&table::render(few, width));
    }
    let whole = |event: &&Decoded| event.problems.is_empty() && !event.fields.is_empty();
    Ok(Contents {
        events: events.len(),
        decoded: decoded.iter().filter(whole).count(),
        spans,
        others: trace.others().count(),
        damages: trace.damages().len(),
    })
}

fn place(offset: u64) -> usize {
    usize::try_from(offset).expect("the file is in memory")
}

fn check_refusal(error: &ReadError, length: usize) -> String {
    match error {
        ReadError::Io(error) => panic!("no file is read: {error}"),
        ReadError::TooShort { offset, .. } | ReadError::NoHeaderEvent { offset } => {
            assert!(place(*offset) <= length, "{error}");
        }
        ReadError::BufferSize { .. } | ReadError::Compressed | ReadError::OtherFormat(_) => {}
    }
    sentence(error)
}

fn check_places(trace: &Trace, length: usize) {
    let buffers = trace.buffers();
    let size = buffers.first().expect("there is a first buffer").size;
    let compressed = |buffer: &BufferInfo| buffer.flags & 0x40 != 0;
    if trace.header().session.is_compressed() || buffers.iter().any(compressed) {
        return check_compressed_places(trace, length);
    }
    let count = length.div_ceil(size as usize);
    assert!(buffers.len() <= count);
    for buffer in buffers {
        assert!(buffer.offset.is_multiple_of(u64::from(size)));
        assert!(place(buffer.offset) < length);
    }
    let in_order = |places: &[u64]| assert!(places.is_sorted(), "{places:?}");
    let mut places = Vec::new();
    for record in trace.records() {
        let (offset, size, buffer) = match record {
            Record::Event(event) => (event.offset, 80, event.buffer),
            Record::Other(other) => (other.offset, other.size.into(), other.buffer),
        };
        assert!(place(offset) + size <= length, "a record at {offset:#x}");
        assert_eq!(offset / u64::from(trace.buffers()[0].size), u64::from(buffer));
        places.push(offset);
    }
    in_order(&places);
    places.clear();
    for damage in trace.damages() {
        assert_sentence(damage);
        assert!(place(damage.offset) <= length, "{damage}");
        places.push(damage.offset);
    }
    in_order(&places);
}

/// Checks the offsets in a trace with compressed buffers. The offset of a record in a compressed
/// buffer is its offset in the uncompressed buffer plus the buffer's start.
fn check_compressed_places(trace: &Trace, length: usize) {
    let buffers = trace.buffers();
    assert!(buffers.is_sorted_by_key(|buffer| buffer.offset));
    assert!(buffers.iter().all(|buffer| place(buffer.offset) < length));
    let places = trace.records().iter().map(|record| match record {
        Record::Event(event) => (event.buffer, event.offset),
        Record::Other(other) => (other.buffer, other.offset),
    });
    assert!(places.is_sorted());
    assert!(trace.damages().is_sorted_by_key(|damage| (damage.buffer, damage.offset)));
    trace.damages().iter().for_each(assert_sentence);
}

/// Writes the first events to a new file and reads them back.
fn check_rewriting(trace: &Trace) {
    let records = || trace.events().take(REWRITTEN).map(|event| &event.record);
    // The buffer can hold all events unless they are very large. A small buffer makes the file fast
    // to write.
    let sizes = records().map(|record| record.encoded_size().next_multiple_of(8));
    let size = (sizes.sum::<usize>() + 72).next_multiple_of(1024).clamp(0x1000, LARGEST_BUFFER);
    let buffer_size = u32::try_from(size).expect("it is clamped");
    let header = LogFileHeader { buffer_size, ..LogFileHeader::default() };
    let mut log = LogFile::create(io::Cursor::new(Vec::new()), header).expect("a valid header");
    let mut buffer = Buffer::new(buffer_size, 0);
    let mut written = Vec::new();
    for record in records() {
        match buffer.try_append(record) {
            Ok(()) => written.push(record),
            // The record does not fit because items are padded, and padding after its last item
            // exceeds the limit.
            Err(AppendError::Encode(_)) => assert!(record.encoded_size() > 0xFFFF),
            Err(AppendError::Full) => break,
            Err(error) => panic!("{error}"),
        }
    }
    if !buffer.is_empty() {
        log.append(&buffer, 0).expect("memory takes everything");
    }
    let file = log.finish(Finish::default()).expect("memory takes everything").into_inner();
    let again = Trace::parse(&file).expect("it was just written");
    assert_eq!(again.damages(), []);
    assert!(again.events().map(|event| &event.record).eq(written));
}

fn check_decoded(event: &Event, decoded: &Decoded) {
    let user_data = &event.record.user_data;
    assert!(user_data.ends_with(&decoded.leftover));
    for problem in &decoded.problems {
        assert_sentence(problem);
    }
    let named: u64 = event.record.descriptor.keyword & !decoded.keywords.unnamed;
    assert_eq!(named == 0, decoded.keywords.names.is_empty());
}

/// Checks that a file has the same records as the trace in memory, in time order.
fn check_records(data: &[u8], trace: &Trace) {
    let mut file = TraceFile::new(io::Cursor::new(data)).expect("it was read before");
    let place = |record: &Record| match record {
        Record::Event(event) => (event.buffer, event.offset),
        Record::Other(other) => (other.buffer, other.offset),
    };
    let expected: Vec<_> = trace.records().iter().map(place).collect();
    let mut records = file.records();
    let mut found = Vec::new();
    let mut times = Vec::new();
    while let Some(record) = records.next().expect("memory is readable") {
        found.push((record.buffer, record.offset));
        times.push(record.timestamp);
        assert_eq!(record.event().is_some(), record.other().is_none());
    }
    assert_eq!(records.count(), found.len() as u64);
    let listed = records.damages().listed().len();
    assert_eq!(listed, trace.damages().len().min(1000));
    if records.late() == 0 {
        assert!(times.is_sorted());
        let mut events: Vec<_> = trace.events().collect();
        events.sort_by_key(|event| event.record.timestamp);
        let events: Vec<_> = events.iter().map(|event| event.offset).collect();
        let all = found.iter().map(|(_, offset)| *offset);
        let among = |offset: &u64| trace.events().any(|event| event.offset == *offset);
        if events.len() <= PRINTED {
            let all: Vec<_> = all.filter(among).collect();
            assert_eq!(all, events);
        }
    }
    found.sort_unstable();
    let mut expected = expected;
    expected.sort_unstable();
    assert_eq!(found, expected);
    for number in 0..file.buffers() {
        if let Some(buffer) = file.buffer(number).expect("memory is readable") {
            assert_eq!(buffer.records().count(), buffer.len());
        }
    }
    let (stats, _) = Stats::read(&mut file, &Pipeline::new(&CATALOG)).expect("memory is readable");
    assert_harmless(&stats.render());
}

/// Checks that a pipeline gives the same events on one and on two threads, and hides what it must,
/// with all options that a command has. The last byte selects the options.
fn check_pipeline(data: &[u8]) {
    let options = data.last().copied().unwrap_or_default();
    let mut file = TraceFile::new(io::Cursor::new(data)).expect("it was read before");
    let first = FirstPass::read(&mut file).expect("memory is readable");
    let mut catalog = CATALOG.clone();
    first.schemas.add_to(&mut catalog);
    let completion = Completion { names: options & 1 != 0, ..Completion::default() };
    let is_completed = first.can_complete || options & 2 != 0;
    let selection = Selection {
        level: (options & 4 != 0).then_some(options >> 5),
        processes: if options & 8 != 0 { vec!["0".to_owned()] } else { Vec::new() },
        ..Selection::default()
    };
    let one = Pipeline {
        selection: &selection,
        completion: is_completed.then_some(&completion),
        hardware_addresses: options & 16 != 0,
        ..Pipeline::new(&catalog)
    };
    let two = Pipeline { threads: NonZeroUsize::MIN.saturating_add(1), ..one };
    let (events, counts) = events_of(&mut file, &one);
    let (on_two, counts_on_two) = events_of(&mut file, &two);
    assert_eq!(counts, counts_on_two);
    // A number that is not equal to itself has the same text.
    let is_same = format!("{events:?}") == format!("{on_two:?}");
    assert!(is_same, "the events depend on the number of threads");
    assert_eq!(counts.selected, events.len() as u64);
    for (_, decoded) in &events {
        assert!(selection.wants(decoded));
        if !one.hardware_addresses && matches!(decoded.kind, Kind::Kernel { .. }) {
            for name in ["PhysicalAddr", "PhysicalAddress", "PermanentPhysicalAddress"] {
                let address = decoded.field(name).map(ToString::to_string);
                assert!(address.is_none_or(|text| text == "(hidden)"));
            }
        }
    }
    let plain = Pipeline { completion: None, ..one };
    let (events, counts) = events_of(&mut file, &plain);
    let (outlines, outline_counts) = events_of(&mut file, &Pipeline { details: false, ..plain });
    assert_eq!(counts, outline_counts);
    for ((_, event), (_, outline)) in events.iter().zip(&outlines) {
        let parts = |it: &Decoded| {
            let names = [&it.provider_name, &it.event_name, &it.level_name].map(Clone::clone);
            (it.provider, it.descriptor, names, it.problems.clone())
        };
        assert_eq!(parts(event), parts(outline));
    }
}

/// Checks the JSON lines and the field columns.
fn check_json(data: &[u8], trace: &Trace) {
    let mut file = TraceFile::new(io::Cursor::new(data)).expect("it was read before");
    let pipeline = Pipeline::new(&CATALOG);
    let mut out = Vec::new();
    let summary = json::write_lines(&mut file, &pipeline, &mut out);
    let summary = summary.expect("memory is readable and takes everything");
    let text = std::str::from_utf8(&out).expect("JSON is UTF-8");
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    let [header, lines @ .., end] = lines.as_slice() else {
        panic!("the first and the last line are missing");
    };
    assert_eq!(header["record"], "header");
    assert_eq!(end["record"], "end");
    assert_eq!(end["events"].as_u64(), Some(lines.len() as u64));
    assert_eq!(end["damaged"].as_u64(), Some(summary.damages.count()));
    let mut table = table::Writer::new(Vec::new(), Some(80));
    table.header(trace.header(), file.buffers()).expect("memory");
    let mut columns = csv::FieldColumns::default();
    let (events, counts) = events_of(&mut file, &pipeline);
    assert_eq!(counts, summary);
    let mut lines = lines.iter();
    for (event, decoded) in events {
        let line = lines.next().expect("a line for each event");
        assert_eq!(line["offset"].as_u64(), Some(event.offset));
        assert_eq!(line["timestamp"].as_i64(), Some(event.record.timestamp));
        let payload = line["payload"].as_str().expect("the payload's digits");
        assert_eq!(payload.len(), 2 * event.record.user_data.len());
        assert_eq!(line["pointer_size"] == 4, event.pointer_size == PointerSize::Four);
        let fields = line["fields"].as_object().expect("fields by name");
        assert_eq!(fields.len(), decoded.fields.len(), "{line}");
        for (name, value) in &decoded.fields {
            // A repeated field name gets a number.
            let same = decoded.fields.iter().filter(|(other, _)| other == name);
            if same.count() == 1 && !name.contains('#') {
                let found = fields.get(name.as_ref()).expect("the field");
                assert_same_shape(value, found);
            }
        }
        if columns.len() < TABLED * 16 {
            columns.add(&decoded).expect("few columns");
            table.event(&decoded).expect("memory takes everything");
        }
    }
    assert_eq!(lines.next(), None);
    table.end(trace.header(), &counts).expect("memory takes everything");
}

fn check_csv(events: &[&Event], decoded: &[Decoded]) {
    let mut out = Vec::new();
    let mut writer = csv::Writer::new(&mut out, None).expect("memory takes everything");
    for (event, decoded) in events.iter().zip(decoded) {
        writer.event(&event.view(), decoded).expect("memory takes everything");
    }
    writer.end().expect("memory takes everything");
    drop(writer);
    let mut reader = ::csv::Reader::from_reader(out.as_slice());
    let columns = reader.headers().expect("a line of headings").len();
    let mut rows = 0;
    for (row, event) in reader.records().zip(decoded) {
        let row = row.expect("a row like the headings");
        rows += 1;
        assert_eq!(row.len(), columns);
        assert_eq!(row[0], event.time.to_string());
        assert_eq!(row[5], *event.event_name.as_deref().unwrap_or_default());
        assert_eq!(row[6], event.descriptor.id.to_string());
    }
    assert_eq!(rows, decoded.len());
}

/// Checks that a timeline is a sequence of valid packets and shows each event once. Returns the
/// number of spans.
fn check_perfetto(trace: &Trace, decoded: &[Decoded]) -> u64 {
    let mut writer = perfetto::Writer::new(Vec::new(), &trace.header().session);
    for event in decoded {
        writer.event(event).expect("memory takes everything");
    }
    let (file, summary) = writer.finish().expect("memory takes everything");
    let mut rest = file.as_slice();
    let mut packets = 0;
    while let Some((tag, after)) = rest.split_first() {
        assert_eq!(*tag, 1 << 3 | 2, "a packet");
        let (length, after) = varint(after);
        let (packet, after) = after.split_at(place(length));
        let (kind, _) = varint(packet);
        assert!(matches!(kind >> 3, 8 | 10), "a packet starts with its time or its sequence");
        rest = after;
        packets += 1;
    }
    assert_eq!(packets, summary.packets);
    let shown = summary.instants
        + 2 * summary.slices
        + summary.open_slices
        + summary.scheduling
        + summary.file_operations
        + summary.intervals
        + summary.samples;
    assert_eq!(shown, decoded.len() as u64);
    summary.slices
}

/// Checks that a pcapng file is a sequence of blocks, and that it contains the counted numbers of
/// packets and interfaces.
fn check_pcapng(trace: &Trace, events: &[&Event]) {
    let capture = pcapng::Capture::default();
    let writer = pcapng::Writer::new(Vec::new(), trace.header(), capture);
    let mut writer = writer.expect("memory takes everything");
    for event in events {
        let decoded = etl_file::decode(event, &Catalog::new());
        let packet = pcapng::Packet::read(&event.view(), &decoded);
        writer.event(&event.view(), packet.as_ref()).expect("memory takes everything");
    }
    let (file, summary) = writer.finish();
    let parts = events.iter().filter(|event| pcapng::concerns(&event.view())).count();
    assert_eq!(summary.events, parts as u64);
    assert_harmless(&summary.to_string());
    let at = |bytes: &[u8], at: usize| {
        let number = bytes[at..at + 4].try_into().expect("four bytes");
        u64::from(u32::from_le_bytes(number))
    };
    let (mut rest, mut interfaces, mut packets) = (file.as_slice(), 0, 0);
    while !rest.is_empty() {
        let (block, after) = rest.split_at(place(at(rest, 4)));
        assert_eq!(block.len() % 4, 0);
        assert_eq!(at(block, block.len() - 4), block.len() as u64);
        match at(block, 0) {
            0x0A0D_0D0A => assert_eq!(rest.len(), file.len(), "the section comes first"),
            1 => interfaces += 1,
            6 => {
                assert!(at(block, 8) < interfaces, "an interface comes before its packets");
                assert!(at(block, 20) <= at(block, 24).min(0x4_0000));
                packets += 1;
            }
            kind => panic!("no block has the type {kind}"),
        }
        rest = after;
    }
    assert_eq!((packets, interfaces), (summary.packets, summary.interfaces));
}

/// Reads a protocol buffers varint.
fn varint(bytes: &[u8]) -> (u64, &[u8]) {
    let mut value = 0;
    for (at, byte) in bytes.iter().enumerate() {
        value |= u64::from(byte & 0x7F) << (7 * at);
        if byte & 0x80 == 0 {
            return (value, &bytes[at + 1..]);
        }
    }
    panic!("a number must have an end");
}

/// Checks that a page keeps its data in a single element, whatever the data contains.
fn check_report(data: &[u8]) {
    let limit = 16;
    let mut file = TraceFile::new(io::Cursor::new(data)).expect("it was read before");
    let mut page = report::Writer::new("fuzz", limit).expect("a temporary file can be created");
    let source =
        report::Source { name: "fuzz", file: &mut file, pipeline: Pipeline::new(&CATALOG) };
    page.add_files(&mut [source]).expect("memory is readable");
    let mut out = Vec::new();
    let written = page.finish(&mut out).expect("memory takes everything");
    let (events, _) = events_of(&mut file, &Pipeline::new(&CATALOG));
    let events = events.len() as u64;
    assert_eq!(written.events, events);
    let limit = u64::from(limit);
    assert!(written.shown <= limit);
    if events <= limit {
        assert_eq!(written.shown, events);
    }
    let page = String::from_utf8(out).expect("a page is text");
    // The elements that hold the data, the description and the script.
    let parts = page.matches("data-part=\"").count();
    assert_eq!(page.matches("<script").count(), parts + 2);
    assert_eq!(page.matches("</script").count(), parts + 2);
    let (_, data) = page.split_once("id=\"description\">").expect("the description");
    let (data, _) = data.split_once("</script>").expect("its end");
    let data: serde_json::Value = serde_json::from_str(data).expect("the description is JSON");
    assert_eq!(data["shown"].as_u64(), Some(written.shown));
}

/// Checks that merging a trace with itself yields every record twice or fails.
fn check_merge(trace: &Trace, data: &[u8]) {
    let events = trace.events().count();
    if events > PRINTED || trace.header().session.processors > 64 {
        return;
    }
    let open = || TraceFile::new(io::Cursor::new(data)).expect("it was read already");
    for compress in [false, true] {
        let out = io::Cursor::new(Vec::new());
        let options = merge::Options { compress };
        match merge::merge(&mut [open(), open()], "merged.etl", options, out) {
            Ok((file, counts)) => {
                let merged = Trace::parse(&file.into_inner()).expect("what was written is a trace");
                // Merging copies a record together with any damage inside it, but creates new
                // buffers.
                let within = |kind| trace.damages().iter().filter(|d| d.kind == kind).count();
                let copied = 2 * within(DamageKind::ItemOverrun);
                let overrun = |d: &&Damage| d.kind == DamageKind::ItemOverrun;
                assert_eq!(merged.damages().iter().filter(overrun).count(), copied);
                assert_eq!(merged.damages().len(), copied);
                assert_eq!(merged.events().count(), 2 * events);
                assert_eq!(merged.events().count() as u64, counts.events);
                assert_eq!(merged.others().count() as u64, counts.others);
                let records = trace.records().len() as u64;
                assert_eq!(counts.events + counts.others + counts.left_out, 2 * records);
            }
            Err(error) => assert_sentence(&error),
        }
    }
}
