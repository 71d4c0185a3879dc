//! Decodes events with the system's decoder (`TdhGetEventInformation`).

use std::{fmt, mem::offset_of, ptr, slice};

use etl_file::decode::schemas::METADATA_CLASS;
use etl_file::internals::show::Escaped;
use etl_file::{EventDescriptor, EventRecord, FileTime, Guid};
use serde::Serialize;
use windows_sys::Win32::{
    Foundation::ERROR_INSUFFICIENT_BUFFER,
    System::Diagnostics::Etw::{
        EVENT_MAP_INFO, EVENT_PROPERTY_INFO, EVENT_RECORD, PROVIDER_ENUMERATION_INFO,
        PropertyParamCount, PropertyParamLength, PropertyStruct, TRACE_EVENT_INFO,
        TRACE_PROVIDER_INFO, TdhEnumerateProviders, TdhFormatProperty, TdhLoadManifest,
    },
};

use crate::{
    api::{TdhGetEventInformation, TdhGetEventMapInformation},
    error::Win32Error,
    guid::from_windows,
    record::{data, is_32_bit, processor, related},
    wide::wide,
};

/// A decoded event.
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    /// The time at which the event was written, in UTC.
    pub time: String,
    /// The id of the process that wrote the event.
    pub process: u32,
    /// The id of the thread that wrote the event.
    pub thread: u32,
    /// The number of the processor on which the event was written.
    pub processor: u16,
    /// The provider's name, or its GUID.
    pub provider: String,
    /// The provider's GUID.
    pub guid: String,
    /// The event's name, task and opcode, or its id.
    pub name: String,
    /// The id.
    pub id: u16,
    /// The version.
    pub version: u8,
    /// The level.
    pub level: u8,
    /// The task.
    pub task: u16,
    /// The opcode.
    pub opcode: u8,
    /// The keyword.
    pub keyword: String,
    /// The activity id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activity: Option<String>,
    /// The related activity id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub related_activity: Option<String>,
    /// The fields, in order.
    pub fields: Vec<(String, String)>,
    /// The reason why a part of the event could not be decoded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Formats the event as a table row.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { time, process, thread, level, keyword, name, .. } = self;
        write!(f, "{time:<30} {process:>6} {thread:>6} {level:>2} {keyword:>5} {name:<24}")?;
        for (name, value) in &self.fields {
            write!(f, " {}={}", Escaped(name), Escaped(value))?;
        }
        self.problem.iter().try_for_each(|problem| write!(f, "  [{problem}]"))
    }
}

/// Loads a manifest that is not installed, so that the system can decode events with it.
///
/// # Errors
///
/// Fails if TDH cannot read the manifest.
pub fn load_manifest(path: &std::path::Path) -> Result<(), Win32Error> {
    let path = wide(path);
    // SAFETY: the path ends with a NUL.
    let code = unsafe { TdhLoadManifest(path.as_ptr()) };
    Win32Error::check("TdhLoadManifest", code)
}

/// Bytes with the alignment that TDH's structures need.
struct Buffer(Vec<u64>);

impl Buffer {
    fn new(bytes: u32) -> Self {
        Self(vec![0; (bytes as usize).div_ceil(8)])
    }

    fn bytes(&self) -> u32 {
        u32::try_from(size_of_val(self.0.as_slice())).unwrap_or(u32::MAX)
    }

    /// Returns the NUL-terminated string at `offset`; offset 0 means that there is no string.
    fn text(&self, offset: u32) -> Option<String> {
        if offset == 0 {
            return None;
        }
        let units: Vec<u16> = self
            .0
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .skip(offset as usize)
            .array_pairs()
            .take_while(|unit| *unit != 0)
            .collect();
        Some(String::from_utf16_lossy(&units).trim_end().to_owned())
    }
}

/// Splits bytes into pairs, which are UTF-16 units.
trait ArrayPairs: Iterator<Item = u8> + Sized {
    fn array_pairs(mut self) -> impl Iterator<Item = u16> {
        std::iter::from_fn(move || Some(u16::from_le_bytes([self.next()?, self.next()?])))
    }
}

impl<T: Iterator<Item = u8>> ArrayPairs for T {}

/// Calls a routine with increasingly large buffers, until it no longer reports that the buffer is
/// too small.
fn with_buffer(
    call: &'static str,
    mut routine: impl FnMut(*mut u64, &mut u32) -> u32,
) -> Result<Buffer, Win32Error> {
    let mut buffer = Buffer::new(1024);
    loop {
        let mut bytes = buffer.bytes();
        let code = routine(buffer.0.as_mut_ptr(), &mut bytes);
        if code == ERROR_INSUFFICIENT_BUFFER && bytes > buffer.bytes() {
            buffer = Buffer::new(bytes);
            continue;
        }
        return Win32Error::check(call, code).map(|()| buffer);
    }
}

/// TDH's information about an event.
struct Information<'a> {
    record: &'a EVENT_RECORD,
    buffer: Buffer,
}

impl<'a> Information<'a> {
    fn query(record: &'a EVENT_RECORD) -> Result<Self, Win32Error> {
        let buffer = with_buffer("TdhGetEventInformation", |buffer, bytes| {
            // SAFETY: the record comes from ETW, and the buffer is as large as the given size.
            unsafe { TdhGetEventInformation(record, 0, ptr::null(), buffer.cast(), bytes) }
        })?;
        Ok(Self { record, buffer })
    }

    const fn head(&self) -> *const TRACE_EVENT_INFO {
        self.buffer.0.as_ptr().cast()
    }

    const fn info(&self) -> &TRACE_EVENT_INFO {
        // SAFETY: the buffer starts with the structure, which TDH has filled in.
        unsafe { &*self.head() }
    }

    /// Returns the event's property descriptions.
    fn properties(&self) -> &[EVENT_PROPERTY_INFO] {
        let count = self.info().PropertyCount as usize;
        let start = offset_of!(TRACE_EVENT_INFO, EventPropertyInfoArray);
        let buffer = (self.buffer.bytes() as usize).saturating_sub(start);
        let count = count.min(buffer / size_of::<EVENT_PROPERTY_INFO>());
        // SAFETY: the array starts at this offset inside the buffer.
        let first = unsafe { self.head().byte_add(start) };
        // SAFETY: the buffer holds at least `count` elements, which TDH has filled in or which are
        // zero.
        unsafe { slice::from_raw_parts(first.cast(), count) }
    }

    fn map(&self, property: &EVENT_PROPERTY_INFO) -> Option<Buffer> {
        // SAFETY: the property is not a structure, so this member is valid.
        let offset = unsafe { property.Anonymous1.nonStructType.MapNameOffset };
        let name = wide(self.buffer.text(offset)?);
        with_buffer("TdhGetEventMapInformation", |buffer, bytes| {
            // SAFETY: the record comes from ETW, the name ends with a NUL, and the buffer is as
            // large as the given size.
            unsafe { TdhGetEventMapInformation(self.record, name.as_ptr(), buffer.cast(), bytes) }
        })
        .ok()
    }
}

/// The remaining event data, and the decoded values that lengths and counts can refer to.
struct Payload<'a> {
    information: &'a Information<'a>,
    rest: &'a [u8],
    pointer: u32,
    numbers: Vec<Option<u16>>,
    fields: Vec<(String, String)>,
}

impl Payload<'_> {
    const fn has(property: &EVENT_PROPERTY_INFO, flag: i32) -> bool {
        property.Flags & flag != 0
    }

    fn number_of(&self, index: u16) -> u16 {
        self.numbers.get(usize::from(index)).copied().flatten().unwrap_or(0)
    }

    /// Returns the number of elements of a property.
    fn count(&self, property: &EVENT_PROPERTY_INFO) -> u16 {
        // SAFETY: both members of the union are numbers of 16 bits.
        let count = unsafe { property.Anonymous2.count };
        if Self::has(property, PropertyParamCount) { self.number_of(count) } else { count }
    }

    fn length(&self, property: &EVENT_PROPERTY_INFO) -> u16 {
        // SAFETY: both members of the union are numbers of 16 bits.
        let length = unsafe { property.Anonymous3.length };
        if Self::has(property, PropertyParamLength) { self.number_of(length) } else { length }
    }

    /// Decodes the property with this index, including a structure's members.
    fn decode_property(&mut self, index: usize, prefix: &str) -> Result<(), Win32Error> {
        let information = self.information;
        let Some(property) = information.properties().get(index) else {
            return Ok(());
        };
        let name = information.buffer.text(property.NameOffset);
        let name = format!("{prefix}{}", name.unwrap_or_default());
        let count = self.count(property);
        let is_array = count != 1 || Self::has(property, PropertyParamCount);
        for element in 0..count {
            let name = if is_array { format!("{name}[{element}]") } else { name.clone() };
            if Self::has(property, PropertyStruct) {
                // SAFETY: the property is a structure, so this member is valid.
                let members = unsafe { property.Anonymous1.structType };
                let first = usize::from(members.StructStartIndex);
                for member in first..first + usize::from(members.NumOfStructMembers) {
                    self.decode_property(member, &format!("{name}."))?;
                }
            } else {
                self.decode_value(index, property, name)?;
            }
        }
        Ok(())
    }

    fn decode_value(
        &mut self,
        index: usize,
        property: &EVENT_PROPERTY_INFO,
        name: String,
    ) -> Result<(), Win32Error> {
        // SAFETY: the property is not a structure, so this member is valid.
        let kind = unsafe { property.Anonymous1.nonStructType };
        let length = self.length(property);
        let map = self.information.map(property);
        let map =
            map.as_ref().map_or_else(ptr::null, |map| map.0.as_ptr().cast::<EVENT_MAP_INFO>());
        let mut consumed = 0;
        let text = with_buffer("TdhFormatProperty", |buffer, bytes| {
            // SAFETY: the information and the map come from TDH, and the data and the buffer
            // have the given sizes.
            unsafe {
                TdhFormatProperty(
                    self.information.head(),
                    map,
                    self.pointer,
                    kind.InType,
                    kind.OutType,
                    length,
                    u16::try_from(self.rest.len()).unwrap_or(u16::MAX),
                    self.rest.as_ptr(),
                    bytes,
                    buffer.cast(),
                    &raw mut consumed,
                )
            }
        })?;
        let (value, rest) = self.rest.split_at(usize::from(consumed).min(self.rest.len()));
        // The length or count of a later property can refer to this value.
        if let Some(known) = self.numbers.get_mut(index) {
            *known = match *value {
                [byte] => Some(u16::from(byte)),
                [low, high, ..] if value.len() <= 8 => Some(u16::from_le_bytes([low, high])),
                _ => None,
            };
        }
        self.rest = rest;
        let units: Vec<u16> = text
            .0
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .array_pairs()
            .take_while(|unit| *unit != 0)
            .collect();
        self.fields.push((name, String::from_utf16_lossy(&units)));
        Ok(())
    }
}

/// Returns the system's schema for an event, with the maps that its fields use, as records that
/// xperf would write to a merged trace. `etl_file::decode::schemas` reads them (ETL-13.2, ETL-13.3).
///
/// # Errors
///
/// Fails if the system has no schema for the event.
pub fn schema(record: &EVENT_RECORD) -> Result<Vec<EventRecord>, Win32Error> {
    /// The type of a record that contains a `TRACE_EVENT_INFO`.
    const EVENT_INFO: u8 = 32;
    /// The type of a record that contains the provider's GUID and an `EVENT_MAP_INFO`.
    const MAP_INFO: u8 = 33;
    let of = |opcode, user_data| EventRecord {
        provider: METADATA_CLASS,
        descriptor: EventDescriptor { opcode, ..EventDescriptor::default() },
        user_data,
        ..EventRecord::default()
    };
    let information = Information::query(record)?;
    let provider = from_windows(&record.EventHeader.ProviderId).to_bytes();
    let is_structure = |property: &&EVENT_PROPERTY_INFO| Payload::has(property, PropertyStruct);
    let maps = information.properties().iter().filter(|property| !is_structure(property));
    let mut records: Vec<EventRecord> = maps
        .filter_map(|property| information.map(property))
        .map(|map| {
            let mut bytes = provider.to_vec();
            bytes.extend(map.0.iter().flat_map(|word| word.to_le_bytes()));
            of(MAP_INFO, bytes)
        })
        .collect();
    let bytes = information.buffer.0.iter().flat_map(|word| word.to_le_bytes()).collect();
    records.push(of(EVENT_INFO, bytes));
    Ok(records)
}

/// Returns the GUIDs of the registered providers with this name: those whose manifests or classes
/// are registered on this system.
///
/// # Errors
///
/// Fails if TDH cannot list the providers.
pub fn providers_named(name: &str) -> Result<Vec<Guid>, Win32Error> {
    let buffer = with_buffer("TdhEnumerateProviders", |buffer, bytes| {
        // SAFETY: the buffer is as large as the given size.
        unsafe { TdhEnumerateProviders(buffer.cast(), bytes) }
    })?;
    let head = buffer.0.as_ptr().cast::<PROVIDER_ENUMERATION_INFO>();
    // SAFETY: the buffer starts with the structure, which TDH has filled in.
    let count = unsafe { (*head).NumberOfProviders };
    let start = offset_of!(PROVIDER_ENUMERATION_INFO, TraceProviderInfoArray);
    let room = (buffer.bytes() as usize).saturating_sub(start) / size_of::<TRACE_PROVIDER_INFO>();
    // SAFETY: the array starts at this offset inside the buffer.
    let first = unsafe { head.byte_add(start) }.cast::<TRACE_PROVIDER_INFO>();
    // SAFETY: the buffer holds `room` elements, which TDH has filled in or which are zero.
    let providers = unsafe { slice::from_raw_parts(first, room.min(count as usize)) };
    let is_it = |provider: &&TRACE_PROVIDER_INFO| {
        let text = buffer.text(provider.ProviderNameOffset);
        text.is_some_and(|text| text.eq_ignore_ascii_case(name))
    };
    Ok(providers.iter().filter(is_it).map(|one| from_windows(&one.ProviderGuid)).collect())
}

/// Decodes an event in the system's format.
#[must_use]
pub fn decode(record: &EVENT_RECORD) -> Event {
    let header = &record.EventHeader;
    let descriptor = header.EventDescriptor;
    let activity = from_windows(&header.ActivityId);
    let mut event = Event {
        time: FileTime::from_raw(header.TimeStamp).to_string(),
        process: header.ProcessId,
        thread: header.ThreadId,
        processor: processor(record),
        provider: from_windows(&header.ProviderId).to_string(),
        guid: from_windows(&header.ProviderId).to_string(),
        name: format!("event {}", descriptor.Id),
        id: descriptor.Id,
        version: descriptor.Version,
        level: descriptor.Level,
        task: descriptor.Task,
        opcode: descriptor.Opcode,
        keyword: format!("0x{:x}", descriptor.Keyword),
        activity: (activity != Guid::default()).then(|| activity.to_string()),
        related_activity: related(record).map(|guid| guid.to_string()),
        fields: Vec::new(),
        problem: None,
    };
    let information = match Information::query(record) {
        Ok(information) => information,
        Err(error) => {
            event.problem = Some(error.to_string());
            return event;
        }
    };
    set_names(&mut event, &information);
    let mut payload = Payload {
        information: &information,
        rest: data(record),
        pointer: if is_32_bit(record) { 4 } else { 8 },
        numbers: vec![None; information.properties().len()],
        fields: Vec::new(),
    };
    for index in 0..information.info().TopLevelPropertyCount as usize {
        if let Err(error) = payload.decode_property(index, "") {
            event.problem =
                Some(format!("cannot decode the last {} bytes: {error}", payload.rest.len()));
            break;
        }
    }
    event.fields = payload.fields;
    event
}

/// Sets the names that TDH returns.
fn set_names(event: &mut Event, information: &Information<'_>) {
    let info = information.info();
    let text = |offset| information.buffer.text(offset).filter(|text: &String| !text.is_empty());
    if let Some(provider) = text(info.ProviderNameOffset) {
        event.provider = provider;
    }
    // SAFETY: both members of the union are offsets.
    let name = text(unsafe { info.Anonymous1.EventNameOffset });
    let task = text(info.TaskNameOffset);
    let opcode = text(info.OpcodeNameOffset);
    event.name = match (name, task, opcode) {
        (Some(name), _, _) => name,
        (None, Some(task), Some(opcode)) => format!("{task}/{opcode}"),
        (None, Some(task), None) => task,
        (None, None, _) => text(info.EventMessageOffset).unwrap_or_else(|| event.name.clone()),
    };
}
