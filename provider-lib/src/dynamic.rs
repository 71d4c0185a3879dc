//! `TraceLogging` events whose metadata is created at run time.
//!
//! The compiler creates and checks the metadata of declared events
//! ([`provider`](macro@crate::provider)). Code that learns an event's fields only when the event
//! occurs, such as a facade for the `log` crate, assembles a [`DynamicEvent`].

use core::{
    ffi::CStr,
    fmt::{self, Write as _},
};

use etw_wire::{InType, TlgOutType};

use crate::{
    Channel, EventDataDescriptor, EventDescriptor, Provider, WriteError, WriteOptions,
    event::{CutField, name_in, put},
    text::Text,
};

/// Set in a field's type if an output type follows it.
const CHAIN: u8 = 0x80;

/// The metadata of a `TraceLogging` event: its size, its tag, its name and its fields, as
/// TraceLoggingProvider.h defines it.
#[derive(Clone, Copy, Debug)]
pub struct EventMetadata<'a> {
    bytes: &'a [u8],
    name: &'a CStr,
}

/// The error of [`EventMetadata::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventMetadataError {
    /// The first two bytes do not contain the metadata's size, which is this number of bytes.
    Size(usize),
    /// The tag or the name does not end inside the metadata.
    NoName,
}

impl fmt::Display for EventMetadataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(size) => write!(
                f,
                "cannot use {size} bytes as event metadata: the first two bytes are not this size"
            ),
            Self::NoName => f.write_str(
                "cannot use the bytes as event metadata: the event's tag or name does not end in \
                 them; write a tag (0 for none) and a name with a NUL after the size",
            ),
        }
    }
}

impl core::error::Error for EventMetadataError {}

impl<'a> EventMetadata<'a> {
    /// Checks that the bytes begin with their size, a tag and a name. Does not check the fields:
    /// decoders reject malformed ones.
    ///
    /// # Errors
    ///
    /// Returns an [`EventMetadataError`] if they do not.
    pub fn new(bytes: &'a [u8]) -> Result<Self, EventMetadataError> {
        let wrong_size = EventMetadataError::Size(bytes.len());
        let (size, rest) = bytes.split_first_chunk::<2>().ok_or(wrong_size)?;
        if usize::from(u16::from_le_bytes(*size)) != bytes.len() {
            return Err(wrong_size);
        }
        let last = rest.iter().position(|byte| byte & CHAIN == 0);
        let name = last
            .and_then(|last| rest.get(last.wrapping_add(1)..))
            .and_then(|rest| CStr::from_bytes_until_nul(rest).ok())
            .ok_or(EventMetadataError::NoName)?;
        Ok(Self { bytes, name })
    }

    /// Returns the event's name.
    #[must_use]
    pub const fn name(&self) -> &'a CStr {
        self.name
    }
}

impl Provider {
    /// Writes a `TraceLogging` event with metadata created at run time, if a session enables it.
    ///
    /// `event` contains the level, the keywords and the opcode. The function sets the channel that
    /// marks `TraceLogging` events. `data` contains the values of the fields that the metadata
    /// describes, in the same order and without padding.
    ///
    /// The function does nothing and succeeds while the provider is not registered
    /// ([`Statistics::dropped`](crate::Statistics)).
    ///
    /// [`DynamicEvent`] assembles the metadata and the data.
    ///
    /// # IRQL
    ///
    /// Any. The metadata and the data must be in system space and, above `APC_LEVEL`, in non-pageable
    /// memory; see [`EventDataDescriptor`].
    ///
    /// # Errors
    ///
    /// Returns a [`WriteError`] if the event could not be written. The provider also counts the
    /// failure ([`Provider::failures`]).
    pub fn write_dynamic(
        &self,
        event: &EventDescriptor,
        metadata: EventMetadata<'_>,
        options: &WriteOptions,
        data: &[u8],
    ) -> Result<(), WriteError> {
        self.write_dynamic_with(event, metadata.bytes, options, data, (0, None))
    }

    /// Writes the event and counts its lost fields. If a field was cut, writes an event `FieldCut`
    /// first.
    fn write_dynamic_with(
        &self,
        event: &EventDescriptor,
        metadata: &[u8],
        options: &WriteOptions,
        data: &[u8],
        (lost, cut): (u16, Option<CutField>),
    ) -> Result<(), WriteError> {
        let (level, keyword) = (event.level(), event.keyword());
        if !self.is_enabled_fast(level, keyword) {
            return Ok(());
        }
        let Some(guard) = self.start() else {
            self.counters.count_dropped();
            return Ok(());
        };
        let event = event.with_channel(Channel::TRACELOGGING);
        for _ in 0..lost {
            self.failures().count_cut();
        }
        if let Some(cut) = cut {
            self.write_field_cut(&guard, &event, &options, name_in(metadata), cut);
        }
        WriteError::check(self.write_counted(
            &guard,
            &event,
            &options,
            &[
                self.traits_descriptor(&guard),
                EventDataDescriptor::event_metadata(metadata),
                EventDataDescriptor::bytes(data),
            ],
        ))
    }
}

/// A `TraceLogging` event that is assembled at run time, in two buffers of fixed size: one for the
/// metadata (the names and types of the fields) and one for the data (their values).
///
/// The metadata takes 4 bytes and the event's name, and for each field its name and 2 or 3 bytes.
///
/// The value is as large as both buffers and is usually on the stack; functions take it by
/// reference and do not copy it. Assembling and writing the event does not allocate, lock, wait or
/// panic.
///
/// A string is cut, between characters, if it is longer than half of `DATA` bytes or than the space
/// that is left. A field that does not fit in one of the buffers is omitted. Both are counted in
/// [`Failures::cut`](crate::Failures::cut) when the event is written. If a string was cut, the
/// provider writes an event `FieldCut` about the first such string before the event.
///
/// ```
/// # #[wdk_etw::provider(name = "Contoso.Driver")]
/// # mod trace {
/// #     #[keyword]
/// #     pub const REQUEST: Keyword = Keyword::bit(0);
/// # }
/// use wdk_etw::{DynamicEvent, EventDescriptor, Level, WriteOptions};
///
/// fn write(name: &str, value: u64) {
///     const EVENT: EventDescriptor =
///         EventDescriptor::new(0, 0, Level::INFO, trace::REQUEST);
///     if trace::PROVIDER.is_enabled_fast(EVENT.level(), EVENT.keyword()) {
///         let mut event = DynamicEvent::<128, 256>::new();
///         event.start("Measured");
///         event.u64(name, value);
///         // The provider counts a failure.
///         let _result = event.write(&trace::PROVIDER, &EVENT, &WriteOptions::new());
///     }
/// }
/// ```
#[derive(Debug)]
pub struct DynamicEvent<const METADATA: usize, const DATA: usize> {
    metadata: Buffer<METADATA>,
    data: Buffer<DATA>,
    fields: u16,
    /// The number of fields that were cut or omitted.
    lost: u16,
    /// The first string that was cut.
    cut: Option<CutField>,
}

impl<const METADATA: usize, const DATA: usize> Default for DynamicEvent<METADATA, DATA> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const METADATA: usize, const DATA: usize> DynamicEvent<METADATA, DATA> {
    /// Returns an event without a name or fields; [`Self::start`] sets the name.
    #[must_use]
    pub const fn new() -> Self {
        const {
            assert!(
                METADATA >= 4 && METADATA <= 0x7FFF && DATA <= 0x7FFF,
                "each buffer of a dynamic event can be at most 32,767 bytes long, and the one for \
                 metadata needs at least 4"
            );
        }
        Self {
            metadata: Buffer {
                bytes: [0; METADATA],
                // The size (set by `write`), no tag, and an empty name.
                length: 4,
            },
            data: Buffer { bytes: [0; DATA], length: 0 },
            fields: 0,
            lost: 0,
            cut: None,
        }
    }

    /// Starts a new event with this name and no fields, discarding the previous one. A name that
    /// does not fit is cut.
    pub fn start(&mut self, name: &str) {
        let name = FieldName::new(name).0;
        let kept = name.floor_char_boundary(METADATA.saturating_sub(4));
        self.metadata.length = 3;
        self.metadata.append([name.get(..kept).unwrap_or_default().as_bytes(), &[0]]);
        self.data.length = 0;
        self.fields = 0;
        self.lost = u16::from(kept < name.len());
        self.cut = None;
    }

    /// Adds a 64-bit unsigned integer.
    pub fn u64<'n>(&mut self, name: impl Into<FieldName<'n>>, value: u64) {
        self.fixed(name.into(), InType::UInt64, &value.to_le_bytes());
    }

    /// Adds a 64-bit signed integer.
    pub fn i64<'n>(&mut self, name: impl Into<FieldName<'n>>, value: i64) {
        self.fixed(name.into(), InType::Int64, &value.to_le_bytes());
    }

    /// Adds a 32-bit unsigned integer.
    pub fn u32<'n>(&mut self, name: impl Into<FieldName<'n>>, value: u32) {
        self.fixed(name.into(), InType::UInt32, &value.to_le_bytes());
    }

    /// Adds a 64-bit floating-point number. The bits are copied without floating-point
    /// instructions.
    pub fn f64<'n>(&mut self, name: impl Into<FieldName<'n>>, value: f64) {
        self.fixed(name.into(), InType::Double, &value.to_bits().to_le_bytes());
    }

    /// Adds a Boolean value.
    pub fn bool<'n>(&mut self, name: impl Into<FieldName<'n>>, value: bool) {
        const TYPES: [u8; 2] = [InType::UInt8.code() | CHAIN, TlgOutType::Boolean.code()];
        self.field(name.into(), &TYPES, &[u8::from(value)]);
    }

    /// Adds a NUL-terminated UTF-8 string. A NUL inside the string becomes a space.
    pub fn str<'n>(&mut self, name: impl Into<FieldName<'n>>, value: &str) {
        self.text(name.into(), |text| {
            // `Text` counts the bytes even if they do not fit.
            let _result = text.write_str(value);
        });
    }

    /// Adds formatted arguments as a string, as [`Self::str`] does. If a `Display` or `Debug`
    /// implementation returns an error, the string ends at that point.
    ///
    /// Formatting stops at the first part that does not fit: the formatter then returns an error,
    /// so an implementation that propagates errors spends no time on text that is discarded. The
    /// length in `FieldCut` includes this part.
    pub fn format<'n>(&mut self, name: impl Into<FieldName<'n>>, value: fmt::Arguments<'_>) {
        self.text(name.into(), |text| {
            let _result = text.write_fmt(value);
        });
    }

    /// Adds bytes, which decoders show in hexadecimal.
    pub fn bytes<'n>(&mut self, name: impl Into<FieldName<'n>>, value: &[u8]) {
        const TYPE: u8 = InType::Binary.code();
        let field = self.fields;
        let fits = self.data.room().len().saturating_sub(2).min(DATA / 2);
        let kept = value.get(..fits).unwrap_or(value);
        // `DATA` is less than 65,536.
        let count = u16::try_from(kept.len()).unwrap_or(u16::MAX).to_le_bytes();
        self.field(name.into(), &[TYPE], &count);
        if self.fields != field {
            self.data.append([kept]);
            self.note_cut(field, kept.len(), value.len());
        }
    }

    /// Returns the number of fields that were cut or omitted.
    #[must_use]
    pub const fn lost(&self) -> u16 {
        self.lost
    }

    /// Writes the event, if a session enables it. See [`Provider::write_dynamic`].
    ///
    /// # IRQL
    ///
    /// Any. This value must be in system space and, above `APC_LEVEL`, in non-pageable memory, such as
    /// a driver's stack; see [`EventDataDescriptor`].
    ///
    /// # Errors
    ///
    /// Returns a [`WriteError`] if the event could not be written. The provider also counts the
    /// failure ([`Provider::failures`]).
    pub fn write(
        &mut self,
        provider: &Provider,
        event: &EventDescriptor,
        options: &WriteOptions,
    ) -> Result<(), WriteError> {
        // `new` limits the buffer's size.
        let size = u16::try_from(self.metadata.length).unwrap_or(u16::MAX);
        put(&mut self.metadata.bytes, &size.to_le_bytes());
        let metadata = self.metadata.written();
        let data = self.data.written();
        provider.write_dynamic_with(event, metadata, options, data, (self.lost, self.cut))
    }

    fn fixed(&mut self, name: FieldName<'_>, in_type: InType, value: &[u8]) {
        self.field(name, &[in_type.code()], value);
    }

    /// Adds a field of fixed size, or omits it if a buffer has no space for it.
    fn field(&mut self, name: FieldName<'_>, types: &[u8], value: &[u8]) {
        if self.data.room().len() >= value.len()
            && self.metadata.append([name.0.as_bytes(), &[0], types])
        {
            self.data.append([value]);
            self.fields = self.fields.saturating_add(1);
        } else {
            self.lost = self.lost.saturating_add(1);
        }
    }

    /// Adds a NUL-terminated string. Some decoders misread counted strings.
    fn text(&mut self, name: FieldName<'_>, fill: impl FnOnce(&mut Text<'_>)) {
        const TYPES: [u8; 2] = [InType::AnsiString.code() | CHAIN, TlgOutType::Utf8.code()];
        let field = self.fields;
        self.field(name, &TYPES, &[0]);
        if self.fields == field {
            return;
        }
        // The position of the NUL.
        let place = self.data.length.saturating_sub(1);
        let room = self.data.room().len().min(DATA / 2);
        let end = place.saturating_add(room);
        let mut text = Text::new(self.data.bytes.get_mut(place..end).unwrap_or_default());
        fill(&mut text);
        let (kept, length) = (text.kept, text.length);
        self.data.length = place.saturating_add(kept);
        self.data.append([&[0]]);
        self.note_cut(field, kept, length);
    }

    /// Records a field that was cut; does nothing for any other field.
    fn note_cut(&mut self, field: u16, kept: usize, length: usize) {
        if kept < length {
            self.lost = self.lost.saturating_add(1);
            self.cut.get_or_insert(CutField { field, length: length as u64, kept: kept as u64 });
        }
    }
}

/// The name of a [`DynamicEvent`]'s field. A constant avoids repeating the checks for each event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldName<'a>(&'a str);

impl<'a> FieldName<'a> {
    /// Returns the name up to its first NUL, because a NUL ends a name in event metadata.
    #[must_use]
    pub const fn new(name: &'a str) -> Self {
        let mut rest = name.as_bytes();
        let mut length = 0;
        while let [first, after @ ..] = rest {
            if *first == 0 {
                // A NUL is a single byte, so the name can be split before it.
                return match name.split_at_checked(length) {
                    Some((before, _)) => Self(before),
                    None => Self(name),
                };
            }
            length = name.len().wrapping_sub(after.len());
            rest = after;
        }
        Self(name)
    }
}

impl<'a, T: AsRef<str> + ?Sized> From<&'a T> for FieldName<'a> {
    fn from(name: &'a T) -> Self {
        Self::new(name.as_ref())
    }
}

/// A buffer: bytes at the front, and free space after them.
#[derive(Debug)]
struct Buffer<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Buffer<N> {
    fn written(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    fn room(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.length..).unwrap_or_default()
    }

    /// Appends all parts. If they do not fit, appends nothing and returns false.
    fn append<const PARTS: usize>(&mut self, parts: [&[u8]; PARTS]) -> bool {
        let size = parts.iter().fold(0_usize, |size, part| size.saturating_add(part.len()));
        if self.room().len() < size {
            return false;
        }
        for part in parts {
            put(self.room(), part);
            self.length = self.length.saturating_add(part.len());
        }
        true
    }
}
