//! Output for spreadsheets: CSV with one event per line.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use etl_file::decode::Value;
use etl_file::internals::show::text::{self, Times};
use etl_file::{Decoded, EventRef, FileTime};

/// The columns before the fields' columns.
const COLUMNS: [&str; 13] = [
    "time", "processor", "process", "thread", "provider", "event", "id", "level", "keyword",
    "opcode", "task", "activity", "related activity",
];

/// The column of all fields, if fields do not have separate columns.
const FIELDS: &str = "fields";

/// The columns after the fields' columns.
const LAST: [&str; 8] = [
    "process name", "thread name", "message", "stack", "payload", "problems", "duration in ns",
    "channel",
];

/// The columns of fields: their names, in the order of their first occurrence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldColumns {
    names: Vec<Arc<str>>,
    places: HashMap<(Arc<str>, usize), usize>,
}

/// The fields have more distinct names than a table can have columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the selected events have more than {} differently named fields; select fewer events",
    FieldColumns::MAX
)]
pub struct TooManyColumns;

impl FieldColumns {
    /// The maximum number of columns in common spreadsheet programs.
    pub const MAX: usize = 16_384;

    /// Adds the fields of an event. A name that repeats within an event gets a column for each
    /// repetition: `x`, `x#2`.
    ///
    /// # Errors
    /// Fails with [`TooManyColumns`] if there are more than
    /// [`MAX`](Self::MAX).
    pub fn add(&mut self, event: &Decoded) -> Result<(), TooManyColumns> {
        for (at, (name, _)) in event.fields.iter().enumerate() {
            self.add_column(name, repetition(event, at, name))?;
        }
        Ok(())
    }

    /// Adds the columns of other events.
    ///
    /// # Errors
    /// Fails with [`TooManyColumns`] if there are more than
    /// [`MAX`](Self::MAX).
    pub fn merge(&mut self, others: &Self) -> Result<(), TooManyColumns> {
        let mut keys: Vec<_> = others.places.iter().collect();
        keys.sort_by_key(|(_, place)| **place);
        keys.iter().try_for_each(|((name, nth), _)| self.add_column(name, *nth))
    }

    fn add_column(&mut self, name: &Arc<str>, nth: usize) -> Result<(), TooManyColumns> {
        let key = (Arc::clone(name), nth);
        if self.places.contains_key(&key) {
            return Ok(());
        }
        if self.names.len() == Self::MAX {
            return Err(TooManyColumns);
        }
        self.places.insert(key, self.names.len());
        self.names.push(if nth == 1 { Arc::clone(name) } else { format!("{name}#{nth}").into() });
        Ok(())
    }

    /// Returns the number of columns.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns true if no event had a field.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// Returns how often a field's name occurs in an event up to and including the field.
fn repetition(event: &Decoded, at: usize, name: &Arc<str>) -> usize {
    let before = event.fields.iter().take(at);
    1 + before.filter(|(other, _)| other == name).count()
}

/// Lines of CSV in memory.
#[derive(Debug)]
pub struct Lines(csv::Writer<Vec<u8>>);

impl Default for Lines {
    fn default() -> Self {
        Self(csv::Writer::from_writer(Vec::new()))
    }
}

impl Lines {
    /// Writes the lines to an output, without flushing it.
    fn write(self, out: &mut impl Write) -> io::Result<()> {
        let lines = self.0.into_inner().map_err(csv::IntoInnerError::into_error)?;
        out.write_all(&lines)
    }

    /// Returns true if there are enough lines to write out.
    fn are_many(&self) -> bool {
        self.0.get_ref().len() >= MANY
    }
}

/// The number of bytes after which lines are written out.
const MANY: usize = 1 << 16;

/// The columns that depend on the command.
#[derive(Clone, Copy, Debug, Default)]
pub struct Form {
    /// True to write times in seconds since the start of their session.
    pub relative: bool,
    /// True to add a column with the names of the events' files.
    pub with_file: bool,
}

/// Writes events as CSV lines.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    form: Form,
    rows: Rows,
    /// The lines that have not been written yet.
    lines: Lines,
}

impl<W: Write> Writer<W> {
    /// Returns a writer that starts with the line of column names. With `columns`, each field goes
    /// into the column with its name.
    ///
    /// # Errors
    /// Fails if the names cannot be written to memory.
    pub fn new(out: W, columns: Option<FieldColumns>) -> io::Result<Self> {
        Self::with_form(out, columns, Form::default())
    }

    /// Returns a writer like [`new`](Self::new), in a form that needs the start of each file.
    ///
    /// # Errors
    /// Fails if the names cannot be written to memory.
    pub fn with_form(out: W, columns: Option<FieldColumns>, form: Form) -> io::Result<Self> {
        let rows = Rows { columns: columns.map(Arc::new), ..Rows::default() };
        let mut lines = Lines::default();
        for column in COLUMNS {
            let is_seconds = form.relative && column == "time";
            lines.0.write_field(if is_seconds { "time in s" } else { column })?;
        }
        match &rows.columns {
            None => lines.0.write_field(FIELDS)?,
            Some(columns) => {
                for name in &columns.names {
                    lines.0.write_field(name.as_bytes())?;
                }
            }
        }
        let file = if form.with_file { Some("file") } else { None };
        lines.0.write_record(LAST.into_iter().chain(file))?;
        Ok(Self { out, form, rows, lines })
    }

    /// Sets the name of the file whose lines follow, and the start of its session.
    pub fn start_file(&mut self, name: &str, start: FileTime) {
        self.rows.times = Times::since(self.form.relative.then_some(start));
        self.rows.file = self.form.with_file.then(|| name.into());
    }

    /// Sets whether well-known status codes are shown with their names.
    #[must_use]
    pub fn with_codes(self, codes: bool) -> Self {
        Self { rows: Rows { codes, ..self.rows }, ..self }
    }

    /// Sets whether text that a spreadsheet would run as a formula starts with an apostrophe.
    #[must_use]
    pub fn with_guard(self, guard: bool) -> Self {
        Self { rows: Rows { guard, ..self.rows }, ..self }
    }

    /// Writes an event's line. `event` is the event as recorded.
    ///
    /// # Errors
    /// Fails with the output's error.
    pub fn event(&mut self, event: &EventRef<'_>, decoded: &Decoded) -> io::Result<()> {
        self.rows.line(event, decoded, &mut self.lines)?;
        if self.lines.are_many() { self.write_lines() } else { Ok(()) }
    }

    /// Returns the line format. Other threads can create [`Lines`] with it.
    #[must_use]
    pub fn rows(&self) -> Rows {
        self.rows.clone()
    }

    /// Writes lines that [`Rows::line`] created.
    ///
    /// # Errors
    /// Fails with the output's error.
    pub fn lines(&mut self, lines: Lines) -> io::Result<()> {
        self.write_lines()?;
        lines.write(&mut self.out)
    }

    fn write_lines(&mut self) -> io::Result<()> {
        std::mem::take(&mut self.lines).write(&mut self.out)
    }

    /// Completes the output.
    ///
    /// # Errors
    /// Fails with the output's error.
    pub fn end(&mut self) -> io::Result<()> {
        self.write_lines()?;
        self.out.flush()
    }
}

/// Formats events as CSV lines.
///
/// Each line contains the event's message, its user data in hexadecimal, and the parts that could
/// not be decoded with the reasons. Fields share one column, as `name=value` pairs separated by
/// spaces, or have separate columns.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    columns: Option<Arc<FieldColumns>>,
    /// True if well-known status codes are shown with their names.
    codes: bool,
    /// True if text that a spreadsheet would run as a formula starts with an apostrophe.
    guard: bool,
    /// The name of the file, if there is a column for it.
    file: Option<Arc<str>>,
    cell: Vec<u8>,
    times: Times,
}

impl Rows {
    /// Adds an event's line. `event` is the event as recorded.
    ///
    /// # Errors
    /// Fails if the line cannot be written to memory.
    pub fn line(
        &mut self,
        event: &EventRef<'_>,
        decoded: &Decoded,
        lines: &mut Lines,
    ) -> io::Result<()> {
        let Self { columns, codes, guard, file, cell, times } = self;
        let columns = columns.as_deref();
        let mut line = Line { out: &mut lines.0, codes: *codes, guard: *guard, cell };
        line.write(event, decoded, columns, times)?;
        file.iter().try_for_each(|file| line.text(file))?;
        Ok(line.out.write_record(None::<&[u8]>)?)
    }
}

/// A line that is being written.
struct Line<'a> {
    out: &'a mut csv::Writer<Vec<u8>>,
    codes: bool,
    guard: bool,
    cell: &'a mut Vec<u8>,
}

impl Line<'_> {
    fn write(
        &mut self,
        event: &EventRef<'_>,
        decoded: &Decoded,
        columns: Option<&FieldColumns>,
        times: &mut Times,
    ) -> io::Result<()> {
        let descriptor = &decoded.descriptor;
        self.cell(|cell| times.write(decoded.time, cell))?;
        self.cell(|cell| text::decimal(decoded.processor, cell))?;
        self.cell(|cell| text::decimal(decoded.process_id, cell))?;
        self.cell(|cell| text::decimal(decoded.thread_id, cell))?;
        match &decoded.provider_name {
            Some(name) => self.text(name)?,
            None => self.cell(|cell| text::guid(decoded.provider, cell))?,
        }
        let name = decoded.event_name.as_deref().unwrap_or_default();
        self.text(name)?;
        self.cell(|cell| text::decimal(descriptor.id, cell))?;
        self.named(decoded.level_name.as_ref(), descriptor.level.into())?;
        self.cell(|cell| text::hexadecimal(descriptor.keyword, 1, cell))?;
        self.named(decoded.opcode_name.as_ref(), descriptor.opcode.into())?;
        self.named(decoded.task_name.as_ref(), descriptor.task)?;
        let activity = Some(decoded.activity).filter(|activity| !activity.is_null());
        for id in [activity, decoded.related_activity] {
            self.cell(|cell| {
                if let Some(id) = id {
                    text::guid(id, cell);
                }
            })?;
        }
        self.fields(decoded, columns)?;
        for name in [&decoded.process_name, &decoded.thread_name] {
            self.text(name.as_deref().unwrap_or_default())?;
        }
        self.text(decoded.message.as_deref().unwrap_or_default())?;
        let frames = decoded.stack.iter().flat_map(|stack| &stack.frames);
        let frames = frames.map(ToString::to_string);
        self.out.write_field(frames.collect::<Vec<_>>().join("; "))?;
        self.cell(|cell| text::hex(event.user_data, cell))?;
        let problems = decoded.problems.iter().map(ToString::to_string);
        let problems: Vec<String> = problems.collect();
        self.out.write_field(problems.join("; "))?;
        self.cell(|cell| {
            if let Some(duration) = decoded.duration {
                text::decimal(duration.as_nanos(), cell);
            }
        })?;
        match descriptor.channel {
            0 => self.out.write_field("")?,
            channel => self.named(decoded.channel_name.as_ref(), channel.into())?,
        }
        Ok(())
    }

    fn cell(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.cell.clear();
        write(self.cell);
        self.out.write_field(&*self.cell)?;
        Ok(())
    }

    /// Writes text of the trace.
    fn text(&mut self, text: &str) -> io::Result<()> {
        if self.guard && text.starts_with(FORMULA) {
            return self.cell(|cell| cell.extend([b"'", text.as_bytes()].concat()));
        }
        Ok(self.out.write_field(text)?)
    }

    fn named(&mut self, name: Option<&Arc<str>>, number: u16) -> io::Result<()> {
        match name {
            Some(name) => self.text(name),
            None => self.cell(|cell| text::decimal(number, cell)),
        }
    }

    fn fields(&mut self, event: &Decoded, columns: Option<&FieldColumns>) -> io::Result<()> {
        let codes = self.codes;
        let Some(columns) = columns else {
            let guard = self.guard;
            return self.cell(|cell| {
                let first = event.fields.first();
                if guard && first.is_some_and(|(name, _)| name.starts_with(FORMULA)) {
                    cell.push(b'\'');
                }
                for (number, (name, value)) in event.fields.iter().enumerate() {
                    if number != 0 {
                        cell.push(b' ');
                    }
                    cell.extend_from_slice(name.as_bytes());
                    cell.push(b'=');
                    value.show(codes, cell);
                }
            });
        };
        let mut cells: Vec<Option<&Value>> = vec![None; columns.len()];
        for (at, (name, value)) in event.fields.iter().enumerate() {
            let key = (Arc::clone(name), repetition(event, at, name));
            let place = columns.places.get(&key);
            if let Some(cell) = place.and_then(|place| cells.get_mut(*place)) {
                *cell = Some(value);
            }
        }
        for value in cells {
            match value {
                // Text in a separate cell needs no quotation marks.
                Some(Value::Text(text)) => self.text(text)?,
                Some(Value::Named { name, .. }) if self.guard && name.starts_with(FORMULA) => {
                    self.text(&value.map(ToString::to_string).unwrap_or_default())?;
                }
                value => {
                    self.cell(|cell| value.iter().for_each(|value| value.show(codes, cell)))?;
                }
            }
        }
        Ok(())
    }
}

/// The characters at the start of a cell that spreadsheets take for a formula.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

#[cfg(test)]
mod tests;
