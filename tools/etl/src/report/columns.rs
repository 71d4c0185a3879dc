//! The parts of a page that contain events.
//!
//! Each part is compressed and written in base64 to its own element. A block contains the columns
//! of many events, with the values that filters and the timeline need; the script reads it when the
//! page loads. A chunk contains the details of some events; the script reads it when they are
//! shown.
//!
//! A block starts with its number of events as 32 bits. The times follow, each as the difference
//! from the previous time in groups of seven bits, lowest first. Then come the columns, each with
//! its value size in bytes, followed by all lowest bytes, all second bytes and so on, which
//! compresses better than consecutive values.

use std::collections::HashMap;
use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use etw_wire::Guid;
use flate2::Compression;
use flate2::write::DeflateEncoder;

use super::spill::Row;
use crate::perfetto::wire::varint;

/// The maximum number of events in a block.
const BLOCK_EVENTS: usize = 1 << 16;
/// The maximum number of events in a chunk.
const CHUNK_EVENTS: u32 = 4096;
/// The maximum number of bytes in a chunk with several events.
const CHUNK_BYTES: usize = 1 << 19;

/// Writes a part as an element. `name` comes from this program and needs no escaping.
pub fn write_part(name: &str, bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    let packed = STANDARD.encode(encoder.finish()?);
    // The media type prevents the browser from executing the data; base64 contains no markup.
    writeln!(
        out,
        "<script type=\"application/octet-stream\" data-part=\"{name}\">{packed}</script>"
    )
}

/// The number of columns in a block after the times.
const COLUMNS: usize = 6;

/// Writes rows, sorted by time, as blocks and chunks.
pub struct Columns {
    origin: i64,
    last: i64,
    times: Vec<u8>,
    values: [Vec<u32>; COLUMNS],
    blocks: u32,
    chunk: Vec<u8>,
    chunk_events: u32,
    /// The index of each chunk's first event.
    chunks: Vec<u64>,
    activities: HashMap<Guid, u32>,
    guids: Vec<u8>,
    rows: u64,
}

impl Columns {
    /// Starts a table whose times are relative to `origin`.
    pub fn new(origin: i64) -> Self {
        Self {
            origin,
            last: origin,
            times: Vec::new(),
            values: Default::default(),
            blocks: 0,
            chunk: Vec::new(),
            chunk_events: 0,
            chunks: Vec::new(),
            activities: HashMap::new(),
            guids: Vec::new(),
            rows: 0,
        }
    }

    /// Returns the number of rows.
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the indexes of the chunks' first events.
    pub fn chunks(&self) -> &[u64] {
        &self.chunks
    }

    /// Returns an activity's number; the null GUID has number 0.
    fn activity(&mut self, guid: Guid) -> u32 {
        if guid.is_null() {
            return 0;
        }
        let next = u32::try_from(self.activities.len() + 1).unwrap_or(u32::MAX);
        *self.activities.entry(guid).or_insert_with(|| {
            self.guids.extend(guid.to_bytes());
            next
        })
    }

    pub fn push(&mut self, row: &Row, out: &mut impl Write) -> io::Result<()> {
        varint(&mut self.times, row.time.saturating_sub(self.last).max(0).unsigned_abs());
        self.last = row.time;
        let values = [
            u32::from(row.kind),
            row.thread,
            u32::from(row.processor),
            self.activity(row.activity),
            self.activity(row.related),
            u32::from(row.problem),
        ];
        for (column, value) in self.values.iter_mut().zip(values) {
            column.push(value);
        }
        // The line feed at the end takes one byte.
        let full =
            self.chunk_events == CHUNK_EVENTS || self.chunk.len() + row.line.len() >= CHUNK_BYTES;
        if full {
            self.flush_chunk(out)?;
        }
        if self.chunk_events == 0 {
            self.chunks.push(self.rows);
        }
        self.chunk.extend(&row.line);
        self.chunk.push(b'\n');
        self.chunk_events += 1;
        self.rows += 1;
        let [first, ..] = &self.values;
        if first.len() == BLOCK_EVENTS {
            self.flush_block(out)?;
        }
        Ok(())
    }

    fn flush_chunk(&mut self, out: &mut impl Write) -> io::Result<()> {
        if self.chunk_events > 0 {
            let number = self.chunks.len().saturating_sub(1);
            write_part(&format!("details-{number}"), &self.chunk, out)?;
            self.chunk.clear();
            self.chunk_events = 0;
        }
        Ok(())
    }

    fn flush_block(&mut self, out: &mut impl Write) -> io::Result<()> {
        let [first, ..] = &self.values;
        if first.is_empty() {
            return Ok(());
        }
        let events = u32::try_from(first.len()).map_err(io::Error::other)?;
        let mut block = events.to_le_bytes().to_vec();
        block.append(&mut self.times);
        for column in &mut self.values {
            let bits = column.iter().fold(0, |bits, value| bits | value);
            let width = bits.to_le_bytes().iter().rposition(|&byte| byte != 0);
            let width = width.map_or(0, |last| last + 1);
            block.push(u8::try_from(width).map_err(io::Error::other)?);
            for byte in 0..width {
                let plane = column.iter().map(|value| value.to_le_bytes()[byte]);
                block.extend(plane);
            }
            column.clear();
        }
        write_part(&format!("block-{}", self.blocks), &block, out)?;
        self.blocks += 1;
        // The times in a block are relative to the start of the trace.
        self.last = self.origin;
        Ok(())
    }

    /// Writes the last block, and the GUIDs of the activities.
    pub fn finish(&mut self, out: &mut impl Write) -> io::Result<()> {
        self.flush_chunk(out)?;
        self.flush_block(out)?;
        write_part("activities", &self.guids, out)
    }

    /// Returns the number of blocks.
    pub const fn blocks(&self) -> u32 {
        self.blocks
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::report::sample::Class;

    /// Returns the bytes of a part.
    fn part(page: &str, name: &str) -> Vec<u8> {
        let (_, rest) = page.split_once(&format!("\"{name}\">")).unwrap();
        let (text, _) = rest.split_once('<').unwrap();
        let mut bytes = Vec::new();
        flate2::read::DeflateDecoder::new(&STANDARD.decode(text).unwrap()[..])
            .read_to_end(&mut bytes)
            .unwrap();
        bytes
    }

    fn row(time: i64, line: &[u8]) -> Row {
        Row {
            class: Class::Other,
            rank: 0,
            time,
            kind: 0x0102,
            thread: 0,
            processor: 0,
            activity: Guid::NULL,
            related: Guid::NULL,
            problem: 0,
            line: line.to_vec(),
        }
    }

    /// Returns the table with these rows, and the page.
    fn written(rows: impl IntoIterator<Item = Row>) -> (Columns, String) {
        let mut out = Vec::new();
        let mut columns = Columns::new(1_000);
        for row in rows {
            columns.push(&row, &mut out).unwrap();
        }
        columns.finish(&mut out).unwrap();
        (columns, String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_page_without_rows_has_no_block_and_no_chunk() {
        let (columns, page) = written([]);
        assert_eq!((columns.blocks(), columns.chunks()), (0, &[][..]));
        assert_eq!(page.matches("data-part").count(), 1, "{page}");
        assert!(part(&page, "activities").is_empty());
    }

    #[test]
    fn blocks_and_chunks_have_limited_numbers_of_events() {
        let rows = i64::try_from(BLOCK_EVENTS).unwrap() + 1;
        let (columns, page) = written((0..rows).map(|n| row(1_000 + n, b"x")));
        assert_eq!((columns.rows(), columns.blocks()), (65_537, 2));
        let chunks: Vec<u64> = (0..17).map(|n| n * 4096).collect();
        assert_eq!(columns.chunks(), chunks);
        for number in 0..16 {
            let lines = part(&page, &format!("details-{number}"));
            assert_eq!(lines, b"x\n".repeat(4096));
        }
        assert_eq!(part(&page, "details-16"), b"x\n");
        let whole = part(&page, "block-0");
        assert_eq!(whole[..6], [0, 0, 1, 0, 0, 1]);
        // The times in a block are relative to the start.
        let last = part(&page, "block-1");
        assert_eq!(last[..7], [1, 0, 0, 0, 0x80, 0x80, 4]);
    }

    #[test]
    fn a_chunk_has_a_limited_number_of_bytes_or_a_single_event() {
        let chunks = |lengths: &[usize]| {
            let rows = lengths.iter().map(|&length| row(1_000, &vec![b'x'; length]));
            let (columns, page) = written(rows);
            let sizes: Vec<usize> = (0..columns.chunks().len())
                .map(|number| part(&page, &format!("details-{number}")).len())
                .collect();
            (columns.chunks().to_vec(), sizes)
        };
        let half = CHUNK_BYTES / 2;
        assert_eq!(
            chunks(&[half - 1, half - 1]),
            (vec![0], vec![CHUNK_BYTES]),
            "each line ends with a byte of its own"
        );
        assert_eq!(chunks(&[half - 1, half]), (vec![0, 1], vec![half, half + 1]));
        assert_eq!(chunks(&[half - 1, half + 7]), (vec![0, 1], vec![half, half + 8]));
        let large = CHUNK_BYTES + 5;
        assert_eq!(chunks(&[large, 1, large]), (vec![0, 1, 2], vec![large + 1, 2, large + 1]));
    }

    #[test]
    fn a_block_has_times_and_planes() {
        let times = [1_000, 1_127, 1_255].into_iter();
        let (columns, page) = written((0..).zip(times).map(|(thread, time)| Row {
            thread,
            activity: Guid::from_u128(7),
            ..row(time, b"[0]")
        }));
        let block = [
            &[3, 0, 0, 0][..],      // events
            &[0, 127, 0x80, 1],     // times
            &[2, 2, 2, 2, 1, 1, 1], // kinds
            &[1, 0, 1, 2],          // threads
            &[0],                   // processors
            &[1, 1, 1, 1],          // activities
            &[0, 0],                // related activities, problems
        ];
        assert_eq!(part(&page, "block-0"), block.concat());
        assert_eq!(part(&page, "details-0"), b"[0]\n[0]\n[0]\n");
        let activities = part(&page, "activities");
        assert_eq!(activities, Guid::from_u128(7).to_bytes());
        assert_eq!((columns.chunks(), columns.blocks()), (&[0][..], 1));
    }
}
