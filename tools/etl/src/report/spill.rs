//! A temporary file of the events that a page can show.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

use etw_wire::Guid;

use super::sample::Class;

/// The data that a page needs for one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub class: Class,
    /// The event's rank in its class.
    pub rank: u16,
    /// The time in units of 100 ns since 1601.
    pub time: i64,
    pub kind: u16,
    pub thread: u32,
    pub processor: u16,
    pub activity: Guid,
    pub related: Guid,
    /// The number of the event's problem; 0 means none.
    pub problem: u16,
    /// The details: a line of JSON.
    pub line: Vec<u8>,
}

/// The size of a row before its line, in bytes.
const FIXED: usize = 1 + 2 + 8 + 2 + 4 + 2 + 16 + 16 + 2 + 4;

impl Row {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let length = u32::try_from(self.line.len()).map_err(io::Error::other)?;
        let mut fixed = Vec::with_capacity(FIXED);
        fixed.push(self.class.number());
        fixed.extend(self.rank.to_le_bytes());
        fixed.extend(self.time.to_le_bytes());
        fixed.extend(self.kind.to_le_bytes());
        fixed.extend(self.thread.to_le_bytes());
        fixed.extend(self.processor.to_le_bytes());
        fixed.extend(self.activity.to_bytes());
        fixed.extend(self.related.to_bytes());
        fixed.extend(self.problem.to_le_bytes());
        fixed.extend(length.to_le_bytes());
        out.write_all(&fixed)?;
        out.write_all(&self.line)
    }

    fn read(from: &mut impl Read) -> io::Result<Self> {
        let class = Class::from_number(u8::from_le_bytes(bytes(from)?));
        let mut row = Self {
            class,
            rank: u16::from_le_bytes(bytes(from)?),
            time: i64::from_le_bytes(bytes(from)?),
            kind: u16::from_le_bytes(bytes(from)?),
            thread: u32::from_le_bytes(bytes(from)?),
            processor: u16::from_le_bytes(bytes(from)?),
            activity: Guid::from_bytes(bytes(from)?),
            related: Guid::from_bytes(bytes(from)?),
            problem: u16::from_le_bytes(bytes(from)?),
            line: Vec::new(),
        };
        let length = u32::from_le_bytes(bytes(from)?);
        row.line = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        from.read_exact(&mut row.line)?;
        Ok(row)
    }
}

fn bytes<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// The rows, in the order in which they were pushed.
pub struct Spill {
    file: BufWriter<File>,
    rows: u64,
    last: i64,
    /// True if a row's time is earlier than the previous row's time.
    disordered: bool,
}

impl Spill {
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            file: BufWriter::new(tempfile::tempfile()?),
            rows: 0,
            last: i64::MIN,
            disordered: false,
        })
    }

    /// Returns the number of rows.
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    pub fn push(&mut self, row: &Row) -> io::Result<()> {
        self.disordered |= row.time < self.last;
        self.last = row.time;
        self.rows += 1;
        row.write(&mut self.file)
    }

    /// Passes each row to `visit`, in the order of insertion.
    fn visit(self, mut visit: impl FnMut(Row) -> io::Result<()>) -> io::Result<()> {
        let mut file = BufReader::new(rewound(self.file)?);
        for _ in 0..self.rows {
            visit(Row::read(&mut file)?)?;
        }
        Ok(())
    }

    /// Removes all rows except those for which `wanted` returns true.
    pub fn retain(self, wanted: impl Fn(&Row) -> bool) -> io::Result<Self> {
        let mut kept = Self::new()?;
        self.visit(|row| {
            if wanted(&row) {
                kept.push(&row)?;
            }
            Ok(())
        })?;
        Ok(kept)
    }

    /// Passes each row for which `wanted` returns true to `visit`, sorted by time.
    pub fn visit_sorted(
        self,
        wanted: impl Fn(&Row) -> bool,
        mut visit: impl FnMut(Row) -> io::Result<()>,
    ) -> io::Result<()> {
        if !self.disordered {
            return self.visit(|row| if wanted(&row) { visit(row) } else { Ok(()) });
        }
        let rows = self.rows;
        let mut file = BufReader::new(rewound(self.file)?);
        let mut places = Vec::new();
        for _ in 0..rows {
            let place = file.stream_position()?;
            let row = Row::read(&mut file)?;
            if wanted(&row) {
                places.push((row.time, place));
            }
        }
        places.sort_unstable();
        let mut at = file.stream_position()?;
        for (_, place) in places {
            // A relative seek keeps the reader's buffer.
            let distance = i128::from(place) - i128::from(at);
            file.seek_relative(i64::try_from(distance).map_err(io::Error::other)?)?;
            let row = Row::read(&mut file)?;
            at = place + (FIXED + row.line.len()) as u64;
            visit(row)?;
        }
        Ok(())
    }
}

fn rewound(file: BufWriter<File>) -> io::Result<File> {
    let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(time: i64) -> Row {
        Row {
            class: Class::First,
            rank: 3,
            time,
            kind: 4,
            thread: 5,
            processor: 6,
            activity: Guid::from_u128(7),
            related: Guid::from_u128(8),
            problem: 9,
            line: time.to_string().repeat(4).into_bytes(),
        }
    }

    fn sorted(times: &[i64]) -> Vec<Row> {
        let mut spill = Spill::new().unwrap();
        for &time in times {
            spill.push(&row(time)).unwrap();
        }
        let mut seen = Vec::new();
        let visit = |row| {
            seen.push(row);
            Ok(())
        };
        spill.visit_sorted(|row| row.time != 13, visit).unwrap();
        seen
    }

    #[test]
    fn rows_read_back_in_the_order_of_time() {
        let expected: Vec<Row> = [1, 2, 2, 50].map(row).into();
        assert_eq!(sorted(&[1, 2, 2, 13, 50]), expected);
        assert_eq!(sorted(&[2, 50, 13, 1, 2]), expected);
    }

    #[test]
    fn rows_are_only_sorted_if_one_is_before_its_predecessor() {
        for (times, expected) in
            [(&[1, 2, 2, 50][..], false), (&[2, 1], true), (&[0, 1, 0, 5], true)]
        {
            let mut spill = Spill::new().unwrap();
            for &time in times {
                spill.push(&row(time)).unwrap();
            }
            assert_eq!(spill.disordered, expected, "{times:?}");
        }
    }

    #[test]
    fn rows_can_be_removed() {
        let mut spill = Spill::new().unwrap();
        for time in 0..10 {
            spill.push(&row(time)).unwrap();
        }
        let spill = spill.retain(|row| row.time % 3 == 0).unwrap();
        assert_eq!(spill.rows(), 4);
    }
}
