//! Tables of Parquet files.
//!
//! `events/provider=P/date=D/` has a row for each event, with its fields as JSON. `by_event/provider=P/`
//! `event=E/date=D/` has a column for each field. The folders are partitions in Hive's form, which `DuckDB`,
//! Spark and others read as columns. A table keeps a limited number of rows in memory, and a limited
//! number of files is open.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use etl_file::decode::Value;
use etl_file::{Catalog, FileTime};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use crate::ExportError;
use crate::column::{Column, Kind};
use crate::row::Row;

/// The number of rows after which a table's values become part of its file.
const ROWS: usize = 4096;
/// The maximum number of rows of a row group, the part of a file that is in memory.
const GROUP: usize = 1 << 16;
/// The maximum number of open files.
const MAX_OPEN: usize = 64;

/// A column of all tables: its name, its type, and its value. The first columns are those of
/// `by_event`.
type Common = (&'static str, Type, fn(&Row, &Source) -> Value);

#[derive(Clone, Copy)]
enum Type {
    Text,
    Texts,
    Int,
    UInt,
    Time,
    Binary,
}

/// The number of common columns of the tables `by_event`.
const OF_FIELDS: usize = 10;

const COMMON: [Common; 32] = [
    ("time", Type::Time, |row, _| Value::FileTime(row.event.time)),
    ("host", Type::Text, |_, source| Value::Text(source.host.clone())),
    ("process", Type::UInt, |row, _| Value::UInt(row.event.process_id.into())),
    ("thread", Type::UInt, |row, _| Value::UInt(row.event.thread_id.into())),
    ("processor", Type::UInt, |row, _| Value::UInt(row.event.processor.into())),
    ("level", Type::UInt, |row, _| Value::UInt(row.event.descriptor.level.into())),
    ("opcode", Type::UInt, |row, _| Value::UInt(row.event.descriptor.opcode.into())),
    ("activity", Type::Text, |row, _| optional(row.activity.as_deref())),
    ("related_activity", Type::Text, |row, _| optional(row.related.as_deref())),
    ("message", Type::Text, |row, _| optional(row.event.message.as_deref())),
    ("timestamp", Type::Int, |row, _| Value::Int(row.event.timestamp)),
    ("boot", Type::Time, |_, source| Value::FileTime(source.boot)),
    ("trace", Type::Text, |_, source| Value::Text(source.trace.clone())),
    ("kind", Type::Text, |row, _| optional(Some(row.kind()))),
    ("provider_guid", Type::Text, |row, _| Value::Text(row.provider.clone())),
    ("provider_name", Type::Text, |row, _| optional(row.event.provider_name.as_deref())),
    ("event", Type::Text, |row, _| optional(row.event.event_name.as_deref())),
    ("id", Type::UInt, |row, _| Value::UInt(row.event.descriptor.id.into())),
    ("version", Type::UInt, |row, _| Value::UInt(row.event.descriptor.version.into())),
    ("channel", Type::UInt, |row, _| Value::UInt(row.event.descriptor.channel.into())),
    ("task", Type::UInt, |row, _| Value::UInt(row.event.descriptor.task.into())),
    ("keyword", Type::UInt, |row, _| Value::UInt(row.event.descriptor.keyword)),
    ("keyword_names", Type::Texts, |row, _| {
        texts(row.event.keywords.names.iter().map(ToString::to_string))
    }),
    ("level_name", Type::Text, |row, _| optional(row.event.level_name.as_deref())),
    ("opcode_name", Type::Text, |row, _| optional(row.event.opcode_name.as_deref())),
    ("task_name", Type::Text, |row, _| optional(row.event.task_name.as_deref())),
    ("process_name", Type::Text, |row, _| optional(row.event.process_name.as_deref())),
    ("thread_name", Type::Text, |row, _| optional(row.event.thread_name.as_deref())),
    ("fields", Type::Text, |row, _| Value::Text(row.json.clone())),
    ("payload", Type::Binary, |row, _| Value::Binary(row.user_data.clone())),
    ("problems", Type::Texts, |row, _| texts(row.problems.iter().cloned())),
    ("stack", Type::Texts, |row, _| texts(row.stack.iter().cloned())),
];

fn optional(text: Option<&str>) -> Value {
    text.map_or(Value::Null, |text| Value::Text(text.to_owned()))
}

fn texts(texts: impl Iterator<Item = String>) -> Value {
    Value::Array(texts.map(Value::Text).collect())
}

impl Type {
    fn kind(self) -> Kind {
        match self {
            Self::Text => Kind::Text,
            Self::Texts => Kind::List(Box::new(Kind::Text)),
            Self::Int => Kind::Int,
            Self::UInt => Kind::UInt,
            Self::Time => Kind::Time,
            Self::Binary => Kind::Binary,
        }
    }
}

/// The origin of events.
#[derive(Clone, Debug)]
pub struct Source {
    /// The machine.
    pub host: String,
    /// The time at which the machine started.
    pub boot: FileTime,
    /// The name of the trace, which is part of the names of files.
    pub trace: String,
    /// The start of the trace, which tells traces with the same name apart.
    pub start: FileTime,
}

/// Writes the tables of traces to a folder.
pub struct Tables {
    folder: PathBuf,
    all: HashMap<PathBuf, Table>,
    /// The number of the next use of a table.
    next: u64,
    /// The number of rows of the trace in the table of events.
    rows: u64,
}

impl Tables {
    /// Returns tables in a folder. The files of earlier exports stay, and are replaced by those of
    /// traces with the same name.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), all: HashMap::new(), next: 0, rows: 0 }
    }

    /// Adds an event to the table of all events and to that of its fields. The catalog tells which
    /// fields have names for their values.
    ///
    /// # Errors
    /// Fails if a file cannot be written.
    pub fn add(
        &mut self,
        row: &Row,
        source: &Source,
        catalog: &Catalog,
    ) -> Result<(), ExportError> {
        let provider = format!("provider={}", escaped(row.provider()));
        let date = format!("date={}", row.date);
        self.rows += 1;
        let path = self.folder.join("events").join(&provider).join(&date);
        self.table(path, source).and_then(|table| table.add(row, source, &COMMON, &[], &[]))?;
        let Value::Struct(fields) = &row.fields else {
            return Ok(());
        };
        if fields.is_empty() {
            return Ok(());
        }
        let descriptor = &row.event.descriptor;
        let event =
            format!("event={}-{}-v{}", escaped(&row.name()), descriptor.id, descriptor.version);
        let path = self.folder.join("by_event").join(&provider).join(event).join(&date);
        let named: Vec<bool> = catalog
            .schema(row.event.provider, descriptor.id, descriptor.version)
            .map(|schema| schema.fields.iter().map(|field| field.map.is_some()).collect())
            .unwrap_or_default();
        let common = COMMON.get(..OF_FIELDS).unwrap_or_default();
        self.table(path, source)?.add(row, source, common, fields, &named)
    }

    /// Completes all files of a trace. Returns the number of its events.
    ///
    /// # Errors
    /// Fails if a file cannot be written.
    pub fn end_trace(&mut self) -> Result<u64, ExportError> {
        for (_, mut table) in self.all.drain() {
            table.close()?;
        }
        Ok(std::mem::take(&mut self.rows))
    }

    /// Returns a table, and closes the file that was not used for longest if too many are open.
    fn table(&mut self, path: PathBuf, source: &Source) -> Result<&mut Table, ExportError> {
        self.next += 1;
        if !self.all.contains_key(&path) {
            let mut open: Vec<(u64, &PathBuf)> = self
                .all
                .iter()
                .filter(|(_, table)| table.is_open())
                .map(|(path, table)| (table.used, path))
                .collect();
            if open.len() >= MAX_OPEN {
                open.sort_unstable();
                let oldest = open.first().map(|(_, path)| (*path).clone());
                if let Some(table) = oldest.and_then(|path| self.all.get_mut(&path)) {
                    table.close()?;
                }
            }
        }
        let table = self.all.entry(path).or_insert_with_key(|path| Table {
            folder: path.clone(),
            name: format!("{}-{}", escaped(&source.trace), source.start.raw()),
            part: 0,
            used: 0,
            kinds: Vec::new(),
            columns: Vec::new(),
            rows: 0,
            open: None,
        });
        table.used = self.next;
        Ok(table)
    }
}

/// A table of one partition.
struct Table {
    folder: PathBuf,
    name: String,
    /// The number of files of the table.
    part: usize,
    used: u64,
    /// The names and types of the columns for fields.
    kinds: Vec<(Arc<str>, Kind)>,
    columns: Vec<Column>,
    /// The number of rows in the columns.
    rows: usize,
    open: Option<(SchemaRef, ArrowWriter<File>)>,
}

impl Table {
    const fn is_open(&self) -> bool {
        self.open.is_some() || self.rows > 0
    }

    fn add(
        &mut self,
        row: &Row,
        source: &Source,
        common: &[Common],
        fields: &[(Arc<str>, Value)],
        named: &[bool],
    ) -> Result<(), ExportError> {
        let fits = fields.iter().enumerate().all(|(at, (name, value))| {
            let known = self.kind_of(at, name);
            known.is_some_and(|(_, kind)| includes(kind, value))
        });
        if !fits {
            let mut kinds = self.kinds.clone();
            for (at, (name, value)) in fields.iter().enumerate() {
                let is_named = named.get(at) == Some(&true) && Kind::of(value) != Kind::Text;
                let kind = if is_named { Kind::Named } else { Kind::of(value) };
                match kinds.iter_mut().find(|(known, _)| known == name) {
                    Some((_, known)) => *known = known.clone().with(kind),
                    None => kinds.push((Arc::clone(name), kind)),
                }
            }
            // The file has other columns.
            self.close()?;
            self.kinds = kinds;
        }
        if self.columns.is_empty() {
            let common = common.iter().map(|(_, kind, _)| Column::new(&kind.kind()));
            let own = self.kinds.iter().map(|(_, kind)| Column::new(kind));
            self.columns = common.chain(own).collect();
        }
        let (first, own) = self.columns.split_at_mut(common.len());
        for ((_, _, value), column) in common.iter().zip(first) {
            column.push(Some(&value(row, source)));
        }
        for (at, ((name, _), column)) in self.kinds.iter().zip(own).enumerate() {
            let is_own = |(known, _): &&(Arc<str>, Value)| known == name;
            let field = fields.get(at).filter(is_own).or_else(|| fields.iter().find(is_own));
            column.push(field.map(|(_, value)| value));
        }
        self.rows += 1;
        if self.rows >= ROWS {
            self.flush(common)?;
        }
        Ok(())
    }

    /// Returns the column of a field, which is probably the one at `at`.
    fn kind_of(&self, at: usize, name: &Arc<str>) -> Option<&(Arc<str>, Kind)> {
        let is_own = |(known, _): &&(Arc<str>, Kind)| known == name;
        self.kinds.get(at).filter(is_own).or_else(|| self.kinds.iter().find(is_own))
    }

    /// Writes the rows to the file.
    fn flush(&mut self, common: &[Common]) -> Result<(), ExportError> {
        if self.rows == 0 {
            return Ok(());
        }
        let path = self.folder.join(format!("{}-{}.parquet", self.name, self.part));
        let failed = |source| ExportError::Parquet { path: path.clone(), source };
        if self.open.is_none() {
            let fields = common.iter().map(|(name, kind, _)| kind.kind().field(name));
            let own = self.kinds.iter().map(|(name, kind)| {
                // Engines do not tell upper from lower case.
                let is_common = common.iter().any(|(common, ..)| name.eq_ignore_ascii_case(common));
                let name = if is_common { format!("{name}#2") } else { name.to_string() };
                kind.field(&name)
            });
            let schema = Arc::new(Schema::new(fields.chain(own).collect::<Vec<_>>()));
            let io = |source| ExportError::Io { path: path.clone(), source };
            fs::create_dir_all(&self.folder).map_err(io)?;
            let file = File::create(&path).map_err(io)?;
            let properties = WriterProperties::builder()
                .set_compression(Compression::SNAPPY)
                .set_max_row_group_row_count(Some(GROUP))
                .build();
            let writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties));
            self.open = Some((schema, writer.map_err(failed)?));
        }
        let columns = self.columns.iter_mut().map(Column::finish).collect();
        self.rows = 0;
        if let Some((schema, writer)) = &mut self.open {
            let batch = RecordBatch::try_new(Arc::clone(schema), columns);
            let batch = batch.map_err(|error| failed(error.into()))?;
            writer.write(&batch).map_err(failed)?;
        }
        Ok(())
    }

    /// Completes the file. Later rows go to another one.
    fn close(&mut self) -> Result<(), ExportError> {
        let own = self.kinds.len();
        let common = COMMON.get(..self.columns.len().saturating_sub(own)).unwrap_or_default();
        self.flush(common)?;
        self.columns.clear();
        if let Some((_, writer)) = self.open.take() {
            let path = self.folder.join(format!("{}-{}.parquet", self.name, self.part));
            writer.close().map_err(|source| ExportError::Parquet { path, source })?;
            self.part += 1;
        }
        Ok(())
    }
}

/// Returns true if a column of a type takes a value unchanged.
fn includes(kind: &Kind, value: &Value) -> bool {
    match (kind, value) {
        (_, Value::Null) | (Kind::Text, _) => true,
        (Kind::List(item), Value::Array(values)) => values.iter().all(|one| includes(item, one)),
        _ => {
            let own = Kind::of(value);
            own == *kind || kind.clone().with(own) == *kind
        }
    }
}

/// Returns text as a part of a path, in the form of Hive's partitions.
fn escaped(text: &str) -> String {
    let parts = text.bytes().map(|byte| {
        let is_plain = byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if is_plain { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    });
    let out: String = parts.collect();
    // A name of dots would be another folder.
    if out.bytes().all(|byte| byte == b'.') { out.replace('.', "%2E") } else { out }
}
