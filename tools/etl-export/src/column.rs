//! The columns of a table, from the values of events.

use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Float32Builder, Float64Builder, Int64Builder, StringBuilder,
    TimestampNanosecondBuilder, UInt64Builder,
};
use arrow_array::{ArrayRef, ListArray, NullArray, StructArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields, TimeUnit};
use etl_file::FileTime;
use etl_file::decode::Value;

/// The time zone of all times.
const UTC: &str = "UTC";
/// The type of times.
pub fn time_type() -> DataType {
    DataType::Timestamp(TimeUnit::Nanosecond, Some(UTC.into()))
}

/// The type of a column.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// No event has had a value yet.
    Unknown,
    Int,
    UInt,
    Float,
    Double,
    Bool,
    Text,
    Binary,
    Time,
    /// A number and, if it has one, its name.
    Named,
    List(Box<Self>),
    Struct(Vec<(Arc<str>, Self)>),
}

impl Kind {
    /// Returns the type of a value.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Unknown,
            Value::Int(_) => Self::Int,
            Value::UInt(_)
            | Value::Hex(_)
            | Value::Pointer(_)
            | Value::Code { .. }
            | Value::ProcessId(_)
            | Value::ThreadId(_)
            | Value::Port(_)
            | Value::NtStatus(_)
            | Value::HResult(_)
            | Value::Win32Error(_) => Self::UInt,
            Value::Named { .. } => Self::Named,
            Value::Float(_) => Self::Float,
            Value::Double(_) => Self::Double,
            Value::Bool(_) => Self::Bool,
            Value::Binary(_) => Self::Binary,
            Value::FileTime(time) if nanoseconds(*time).is_some() => Self::Time,
            Value::Array(values) => {
                let kinds = values.iter().map(Self::of);
                Self::List(Box::new(kinds.fold(Self::Unknown, Self::with)))
            }
            Value::Struct(members) => {
                let kinds = members.iter().map(|(name, value)| (Arc::clone(name), Self::of(value)));
                Self::Struct(kinds.collect())
            }
            _ => Self::Text,
        }
    }

    /// Returns the type for the values of two types. Values of types that do not go together become
    /// text.
    pub fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, kind) | (kind, Self::Unknown) => kind,
            (Self::Named, Self::UInt | Self::Int) | (Self::UInt | Self::Int, Self::Named) => {
                Self::Named
            }
            (Self::List(one), Self::List(other)) => Self::List(Box::new(one.with(*other))),
            (Self::Struct(one), Self::Struct(other))
                if one.iter().map(|(name, _)| name).eq(other.iter().map(|(name, _)| name)) =>
            {
                let both = one.into_iter().zip(other);
                Self::Struct(
                    both.map(|((name, one), (_, other))| (name, one.with(other))).collect(),
                )
            }
            (one, other) if one == other => one,
            _ => Self::Text,
        }
    }

    fn data_type(&self) -> DataType {
        match self {
            Self::Unknown => DataType::Null,
            Self::Int => DataType::Int64,
            Self::UInt => DataType::UInt64,
            Self::Float => DataType::Float32,
            Self::Double => DataType::Float64,
            Self::Bool => DataType::Boolean,
            Self::Text => DataType::Utf8,
            Self::Binary => DataType::Binary,
            Self::Time => time_type(),
            Self::Named => DataType::Struct(named_fields()),
            Self::List(item) => DataType::List(Arc::new(item.field("item"))),
            Self::Struct(members) => DataType::Struct(member_fields(members)),
        }
    }

    /// Returns the field of a column.
    pub fn field(&self, name: &str) -> Field {
        Field::new(name, self.data_type(), true)
    }
}

/// The fields of a number with a name. The number is signed, as most engines' numbers are.
fn named_fields() -> Fields {
    let value = Field::new("value", DataType::Int64, true);
    Fields::from(vec![value, Field::new("name", DataType::Utf8, true)])
}

fn member_fields(members: &[(Arc<str>, Kind)]) -> Fields {
    members.iter().map(|(name, kind)| kind.field(name)).collect()
}

/// Returns a time in nanoseconds since 1970, or `None` if it is outside the range of the type.
pub fn nanoseconds(time: FileTime) -> Option<i64> {
    i64::try_from(time.unix_nanos()).ok()
}

/// The values of a column.
pub enum Column {
    Unknown(usize),
    Int(Int64Builder),
    UInt(UInt64Builder),
    Float(Float32Builder),
    Double(Float64Builder),
    Bool(BooleanBuilder),
    Text(StringBuilder),
    Binary(BinaryBuilder),
    Time(TimestampNanosecondBuilder),
    Named(Int64Builder, StringBuilder, NullBufferBuilder),
    List(Box<Self>, Vec<usize>, NullBufferBuilder, Field),
    Struct(Vec<Self>, NullBufferBuilder, Fields),
}

impl Column {
    /// Returns an empty column.
    pub fn new(kind: &Kind) -> Self {
        match kind {
            Kind::Unknown => Self::Unknown(0),
            Kind::Int => Self::Int(Int64Builder::new()),
            Kind::UInt => Self::UInt(UInt64Builder::new()),
            Kind::Float => Self::Float(Float32Builder::new()),
            Kind::Double => Self::Double(Float64Builder::new()),
            Kind::Bool => Self::Bool(BooleanBuilder::new()),
            Kind::Text => Self::Text(StringBuilder::new()),
            Kind::Binary => Self::Binary(BinaryBuilder::new()),
            Kind::Time => Self::Time(TimestampNanosecondBuilder::new().with_timezone(UTC)),
            Kind::Named => {
                Self::Named(Int64Builder::new(), StringBuilder::new(), NullBufferBuilder::new(0))
            }
            Kind::List(item) => {
                let values = Box::new(Self::new(item));
                Self::List(values, Vec::new(), NullBufferBuilder::new(0), item.field("item"))
            }
            Kind::Struct(members) => Self::Struct(
                members.iter().map(|(_, kind)| Self::new(kind)).collect(),
                NullBufferBuilder::new(0),
                member_fields(members),
            ),
        }
    }

    /// Appends a value that the column's type includes, or that is missing.
    pub fn push(&mut self, value: Option<&Value>) {
        match self {
            Self::Unknown(count) => *count += 1,
            Self::Int(values) => values.append_option(value.and_then(signed)),
            Self::UInt(values) => values.append_option(value.and_then(unsigned)),
            Self::Float(values) => values.append_option(match value {
                Some(Value::Float(number)) => Some(*number),
                _ => None,
            }),
            Self::Double(values) => values.append_option(match value {
                Some(Value::Double(number)) => Some(*number),
                _ => None,
            }),
            Self::Bool(values) => values.append_option(match value {
                Some(Value::Bool(value)) => Some(*value),
                _ => None,
            }),
            Self::Text(values) => match value {
                None | Some(Value::Null) => values.append_null(),
                Some(Value::Text(text)) => values.append_value(text),
                Some(value) => values.append_value(value.to_string()),
            },
            Self::Binary(values) => match value {
                Some(Value::Binary(bytes)) => values.append_value(bytes),
                _ => values.append_null(),
            },
            Self::Time(values) => values.append_option(match value {
                Some(Value::FileTime(time)) => nanoseconds(*time),
                _ => None,
            }),
            Self::Named(values, names, validity) => {
                let number = value.and_then(|value| match value {
                    Value::Named { value, .. } => Some(value.cast_signed()),
                    value => signed(value),
                });
                validity.append(number.is_some());
                values.append_option(number);
                names.append_option(match value {
                    Some(Value::Named { name, .. }) => Some(name),
                    _ => None,
                });
            }
            Self::List(items, lengths, validity, _) => {
                let values = match value {
                    Some(Value::Array(values)) => Some(values),
                    _ => None,
                };
                validity.append(values.is_some());
                lengths.push(values.map_or(0, Vec::len));
                values.into_iter().flatten().for_each(|value| items.push(Some(value)));
            }
            Self::Struct(columns, validity, _) => {
                let members = match value {
                    Some(Value::Struct(members)) => Some(members),
                    _ => None,
                };
                validity.append(members.is_some());
                for (at, column) in columns.iter_mut().enumerate() {
                    let member = members.and_then(|members| members.get(at));
                    column.push(member.map(|(_, value)| value));
                }
            }
        }
    }

    /// Returns the values, and leaves the column empty.
    pub fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Unknown(count) => Arc::new(NullArray::new(std::mem::take(count))),
            Self::Int(values) => Arc::new(values.finish()),
            Self::UInt(values) => Arc::new(values.finish()),
            Self::Float(values) => Arc::new(values.finish()),
            Self::Double(values) => Arc::new(values.finish()),
            Self::Bool(values) => Arc::new(values.finish()),
            Self::Text(values) => Arc::new(values.finish()),
            Self::Binary(values) => Arc::new(values.finish()),
            Self::Time(values) => Arc::new(values.finish()),
            Self::Named(values, names, validity) => {
                let columns: Vec<ArrayRef> =
                    vec![Arc::new(values.finish()), Arc::new(names.finish())];
                Arc::new(StructArray::new(named_fields(), columns, validity.finish()))
            }
            Self::List(items, lengths, validity, field) => Arc::new(ListArray::new(
                Arc::new(field.clone()),
                OffsetBuffer::from_lengths(std::mem::take(lengths)),
                items.finish(),
                validity.finish(),
            )),
            Self::Struct(columns, validity, fields) => {
                let length = validity.len();
                let columns = columns.iter_mut().map(Self::finish).collect();
                let nulls = validity.finish();
                Arc::new(if fields.is_empty() {
                    StructArray::new_empty_fields(length, nulls)
                } else {
                    StructArray::new(fields.clone(), columns, nulls)
                })
            }
        }
    }
}

fn signed(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        Value::Named { value, .. } => Some(value.cast_signed()),
        value => unsigned(value).map(u64::cast_signed),
    }
}

fn unsigned(value: &Value) -> Option<u64> {
    match value {
        Value::UInt(number)
        | Value::Hex(number)
        | Value::Pointer(number)
        | Value::ProcessId(number)
        | Value::ThreadId(number) => Some(*number),
        Value::Code { address, .. } => Some(*address),
        Value::Port(number) => Some((*number).into()),
        Value::NtStatus(code) | Value::HResult(code) | Value::Win32Error(code) => {
            Some((*code).into())
        }
        _ => None,
    }
}
