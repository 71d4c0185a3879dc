//! Decodes events with the system's decoder (`TdhGetEventInformation`).

use std::{mem::offset_of, ptr, slice};

use etl_file::{FileTime, Guid};
use serde::Serialize;
use windows_sys::Win32::{
    Foundation::ERROR_INSUFFICIENT_BUFFER,
    System::Diagnostics::Etw::{
        EVENT_HEADER_EXT_TYPE_RELATED_ACTIVITYID, EVENT_HEADER_FLAG_32_BIT_HEADER, EVENT_MAP_INFO,
        EVENT_PROPERTY_INFO, EVENT_RECORD, PropertyParamCount, PropertyParamLength, PropertyStruct,
        TRACE_EVENT_INFO, TdhFormatProperty, TdhGetEventInformation, TdhGetEventMapInformation,
        TdhLoadManifest,
    },
};

use crate::{error::Win32Error, guid::from_windows, wide::wide};

/// A decoded event.
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    /// The time at which the event was written, in UTC.
    pub time: String,
    /// The id of the process that wrote the event.
    pub process: u32,
    /// The id of the thread.
    pub thread: u32,
    /// The number of the processor.
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
    /// The activity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activity: Option<String>,
    /// The related activity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub related_activity: Option<String>,
    /// The fields, in order.
    pub fields: Vec<(String, String)>,
    /// The reason why a part could not be decoded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Loads a manifest that is not installed, so that the system decodes with it.
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

    /// Returns the NUL-terminated text at an offset; offset 0 means that there is none.
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

/// Pairs of bytes as UTF-16 units.
trait ArrayPairs: Iterator<Item = u8> + Sized {
    fn array_pairs(mut self) -> impl Iterator<Item = u16> {
        std::iter::from_fn(move || Some(u16::from_le_bytes([self.next()?, self.next()?])))
    }
}

impl<T: Iterator<Item = u8>> ArrayPairs for T {}

/// Calls a routine with larger and larger buffers until it no longer reports that the buffer is too
/// small.
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
    fn of(record: &'a EVENT_RECORD) -> Result<Self, Win32Error> {
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

    /// Returns the event's property infos.
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

/// The rest of an event's data, and the decoded values that lengths and counts may refer to.
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

    /// Decodes the property with an index, including the members of a structure.
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
        // The length or count of a later property may refer to this value.
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

/// Returns an event's data.
fn data(record: &EVENT_RECORD) -> &[u8] {
    if record.UserData.is_null() {
        return &[];
    }
    // SAFETY: ETW passes a pointer to this many bytes, which are valid for as long as the record
    // is.
    unsafe { slice::from_raw_parts(record.UserData.cast(), usize::from(record.UserDataLength)) }
}

/// Returns the related activity of an event.
fn related(record: &EVENT_RECORD) -> Option<Guid> {
    if record.ExtendedData.is_null() {
        return None;
    }
    let count = usize::from(record.ExtendedDataCount);
    // SAFETY: ETW passes a pointer to this many items, which are valid for as long as the record
    // is.
    let items = unsafe { slice::from_raw_parts(record.ExtendedData, count) };
    let item = items.iter().find(|item| {
        u32::from(item.ExtType) == EVENT_HEADER_EXT_TYPE_RELATED_ACTIVITYID
            && usize::from(item.DataSize) >= size_of::<Guid>()
    })?;
    let address = usize::try_from(item.DataPtr).ok()?;
    let address = ptr::with_exposed_provenance::<[u8; 16]>(address);
    // SAFETY: the pointer of this item points to a GUID; byte arrays need no alignment.
    Some(Guid::from_bytes(unsafe { *address }))
}

/// Decodes an event.
pub fn decode(record: &EVENT_RECORD) -> Event {
    let header = &record.EventHeader;
    let descriptor = header.EventDescriptor;
    let activity = from_windows(&header.ActivityId);
    // SAFETY: both members of the union are numbers.
    let processor = unsafe { record.BufferContext.Anonymous.ProcessorIndex };
    let mut event = Event {
        time: FileTime::from_raw(header.TimeStamp).to_string(),
        process: header.ProcessId,
        thread: header.ThreadId,
        processor,
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
    let information = match Information::of(record) {
        Ok(information) => information,
        Err(error) => {
            event.problem = Some(error.to_string());
            return event;
        }
    };
    set_names(&mut event, &information);
    let is_32_bit = u32::from(header.Flags) & EVENT_HEADER_FLAG_32_BIT_HEADER != 0;
    let mut payload = Payload {
        information: &information,
        rest: data(record),
        pointer: if is_32_bit { 4 } else { 8 },
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
