//! The record headers of kernel and classic events (ETL-14.1 to ETL-14.3).

use etw_wire::Guid;

use crate::code_page::CodePage;
use crate::cursor::Cursor;
use crate::layout::{self, wpp_flags};
use crate::read::{EventRef, PointerSize, RecordRef, pointer_size};

/// The form of a record, given by its first four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// A kernel event with a 32-byte header (`SYSTEM_TRACE_HEADER`).
    System,
    /// A kernel event with a 24-byte header.
    CompactSystem,
    /// A kernel event with a 16-byte header, which contains no process or thread.
    PerfInfo,
    /// A classic event (`EVENT_TRACE_HEADER`).
    Classic,
    /// A classic event that belongs to an instance (`EVENT_INSTANCE_GUID_HEADER`).
    ClassicInstance,
    /// A WPP message.
    Wpp,
}

/// A record's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// The form of the record.
    pub form: Form,
    /// The pointer size that the header type implies.
    pub pointer_size: PointerSize,
    /// The version of the event's layout.
    pub version: u16,
    /// The group and opcode of a kernel event.
    pub hook: Option<u16>,
    /// The class GUID of a classic event, or the GUID of a WPP message.
    pub guid: Option<Guid>,
    /// The opcode: the hook's lower byte, or `Class.Type`.
    pub opcode: u8,
    /// The level of a classic event.
    pub level: u8,
    /// The number of a WPP message.
    pub message: u16,
    /// The thread, if the header contains it.
    pub thread_id: Option<u32>,
    /// The process, if the header contains it.
    pub process_id: Option<u32>,
    /// The reading of the session's clock, if the header contains one.
    pub timestamp: Option<i64>,
    /// The processor time in kernel mode, in ticks.
    pub kernel_time: u32,
    /// The processor time in user mode, in ticks.
    pub user_time: u32,
    /// The instance and its parent.
    pub instance: Option<Instance>,
    /// The WPP-specific parts of the header.
    pub wpp: Wpp,
    /// The offset of the payload in the record.
    pub payload: usize,
    /// The code page of 8-bit text, which no header states.
    pub code_page: CodePage,
}

/// The instance of a classic event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The instance.
    pub id: u32,
    /// The parent instance.
    pub parent: u32,
    /// The GUID of the parent's class.
    pub parent_class: Guid,
}

/// The parts of a WPP message's header that other headers do not contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wpp {
    /// The flags that define which parts the header contains.
    pub flags: u16,
    /// The sequence number.
    pub sequence: Option<u32>,
    /// The component id, which replaces the GUID.
    pub component: Option<u32>,
}

/// A version bit of kernel records: the header is 8 bytes longer.
const EXTRA_HEADER: u16 = 0x8000;
/// Version bits of kernel records: the header is 8 bytes longer for each unit.
const EXTRA_ITEMS: u16 = 0x0700;
/// The size of `EVENT_INSTANCE_GUID_HEADER`.
const INSTANCE_HEADER: usize = 72;

impl RecordHeader {
    /// Reads a record's header. Returns `None` if the record has another form or is shorter than
    /// its header.
    #[must_use]
    pub fn parse(record: &[u8]) -> Option<Self> {
        let c = Cursor::new(record);
        let form = layout::Form::recognize(record)?;
        let size = pointer_size(form, record, PointerSize::Eight);
        match form {
            layout::Form::System => Self::kernel(c, Form::System, size),
            layout::Form::CompactSystem => Self::kernel(c, Form::CompactSystem, size),
            layout::Form::PerfInfo => Self::kernel(c, Form::PerfInfo, size),
            layout::Form::Classic => Self::classic(c, Form::Classic, size),
            layout::Form::ClassicInstance => Self::classic(c, Form::ClassicInstance, size),
            layout::Form::Wpp => Self::wpp(c, size),
            layout::Form::Event32 | layout::Form::Event64 | layout::Form::Unknown(_) => None,
        }
    }

    /// Reads the header of a record of a trace. If the record does not imply a pointer size, the
    /// trace's applies.
    #[must_use]
    pub fn from_record(record: &RecordRef<'_>) -> Option<Self> {
        let header = Self::parse(record.bytes)?;
        Some(Self { pointer_size: record.pointer_size(), ..header })
    }

    fn new(form: Form, pointer_size: PointerSize) -> Self {
        Self {
            form,
            pointer_size,
            version: 0,
            hook: None,
            guid: None,
            opcode: 0,
            level: 0,
            message: 0,
            thread_id: None,
            process_id: None,
            timestamp: None,
            kernel_time: 0,
            user_time: 0,
            instance: None,
            wpp: Wpp { flags: 0, sequence: None, component: None },
            payload: 0,
            code_page: CodePage::default(),
        }
    }

    /// Returns the header of a classic event in an event record. It contains only the values that
    /// select the payload's layout.
    pub(super) fn of_event(event: &EventRef<'_>) -> Self {
        Self {
            version: event.descriptor.version.into(),
            guid: Some(event.provider),
            opcode: event.descriptor.opcode,
            thread_id: known_id(event.thread_id),
            process_id: known_id(event.process_id),
            ..Self::new(Form::Classic, event.pointer_size)
        }
    }

    fn kernel(mut c: Cursor<'_>, form: Form, pointer_size: PointerSize) -> Option<Self> {
        let mut header = Self::new(form, pointer_size);
        let word = c.u16()?;
        c.take(4)?; // header type, marker and size
        let hook = c.u16()?;
        header.version = word & 0xFF;
        header.hook = Some(hook);
        [header.opcode, _] = hook.to_le_bytes();
        if form != Form::PerfInfo {
            header.thread_id = known_id(c.u32()?);
            header.process_id = known_id(c.u32()?);
        }
        header.timestamp = Some(c.i64()?);
        if form == Form::System {
            header.kernel_time = c.u32()?;
            header.user_time = c.u32()?;
        }
        let mut extra = usize::from((word & EXTRA_ITEMS) >> 8) * 8;
        if word & EXTRA_HEADER != 0 {
            extra += 8;
        }
        c.take(extra)?;
        header.payload = c.position();
        Some(header)
    }

    fn classic(mut c: Cursor<'_>, form: Form, pointer_size: PointerSize) -> Option<Self> {
        let mut header = Self::new(form, pointer_size);
        c.take(4)?; // size, header type and marker
        header.opcode = c.u8()?;
        header.level = c.u8()?;
        header.version = c.u16()?;
        header.thread_id = known_id(c.u32()?);
        header.process_id = known_id(c.u32()?);
        header.timestamp = Some(c.i64()?);
        header.guid = Some(Guid::from_bytes(c.array()?));
        header.kernel_time = c.u32()?;
        header.user_time = c.u32()?;
        if form == Form::ClassicInstance && c.rest().len() >= INSTANCE_HEADER - c.position() {
            header.instance = Some(Instance {
                id: c.u32()?,
                parent: c.u32()?,
                parent_class: Guid::from_bytes(c.array()?),
            });
        }
        header.payload = c.position();
        Some(header)
    }

    fn wpp(mut c: Cursor<'_>, size: PointerSize) -> Option<Self> {
        c.take(4)?; // size and marker
        let message = c.u16()?;
        let flags = c.u16()?;
        let mut header = Self::new(Form::Wpp, size);
        header.message = message;
        header.wpp.flags = flags;
        if flags & wpp_flags::SEQUENCE != 0 {
            header.wpp.sequence = Some(c.u32()?);
        }
        if flags & wpp_flags::COMPONENT_ID != 0 {
            header.wpp.component = Some(c.u32()?);
        } else if flags & wpp_flags::GUID != 0 {
            header.guid = Some(Guid::from_bytes(c.array()?));
        }
        if flags & (wpp_flags::TIMESTAMP | wpp_flags::PERFORMANCE_TIMESTAMP) != 0 {
            header.timestamp = Some(c.i64()?);
        }
        if flags & wpp_flags::SYSTEM_INFO != 0 {
            header.thread_id = Some(c.u32()?);
            header.process_id = Some(c.u32()?);
        }
        header.payload = c.position();
        Some(header)
    }
}

/// Returns a process or thread id, or `None` for the id that means "none".
const fn known_id(id: u32) -> Option<u32> {
    if id == u32::MAX { None } else { Some(id) }
}
