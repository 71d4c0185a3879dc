//! Encodes kernel records, classic records and WPP messages for writers.

use etw_wire::Guid;

use crate::decode::kernel::wpp_flags;
use crate::layout;
use crate::read::PointerSize;
use crate::record::{EncodeError, EncodedRecord};

/// The header of a kernel record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum KernelForm {
    /// 32 bytes: thread, process, time and processor times.
    #[default]
    System,
    /// 24 bytes: thread, process and time.
    Compact,
    /// 16 bytes: the time only.
    PerfInfo,
}

/// A kernel event to be encoded as a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelRecord {
    /// The header.
    pub form: KernelForm,
    /// The pointer size that the header implies.
    pub pointer_size: PointerSize,
    /// The group and the opcode.
    pub hook: u16,
    /// The version of the event's layout.
    pub version: u8,
    /// Additional header bytes, 8 for each item, up to 8 items.
    pub extra: Vec<u64>,
    /// The thread; performance records do not contain it.
    pub thread_id: u32,
    /// The process; performance records do not contain it.
    pub process_id: u32,
    /// The reading of the session's clock.
    pub timestamp: i64,
    /// The processor time in kernel mode; only system records contain it.
    pub kernel_time: u32,
    /// The processor time in user mode; only system records contain it.
    pub user_time: u32,
    /// The payload.
    pub payload: Vec<u8>,
}

impl KernelRecord {
    /// Encodes the record, without trailing padding.
    ///
    /// # Errors
    /// Fails with [`EncodeError::TooLarge`] if the record exceeds
    /// 65,535 bytes, and with [`EncodeError::ExtraHeader`] if it has more than
    /// 8 additional header items.
    pub fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        let (narrow, header) = match self.form {
            KernelForm::System => (layout::HEADER_SYSTEM32, layout::SYSTEM_HEADER),
            KernelForm::Compact => (layout::HEADER_COMPACT32, layout::COMPACT_HEADER),
            KernelForm::PerfInfo => (layout::HEADER_PERFINFO32, layout::PERFINFO_HEADER),
        };
        let header_type = match self.pointer_size {
            PointerSize::Four => narrow,
            PointerSize::Eight => narrow + 1,
        };
        // One item has a separate bit; up to seven more are counted.
        let extra = u16::try_from(self.extra.len()).unwrap_or(u16::MAX);
        let extra = match extra {
            0..=7 => extra << 8,
            8 => 0x8700,
            _ => {
                return Err(EncodeError::ExtraHeader { items: extra.into() });
            }
        };
        let size = header + 8 * self.extra.len() + self.payload.len();
        let size = u16::try_from(size).map_err(|_| EncodeError::TooLarge { size })?;
        let mut out = Vec::with_capacity(usize::from(size));
        out.extend((u16::from(self.version) | extra).to_le_bytes());
        out.extend([header_type, layout::MARKER]);
        out.extend(size.to_le_bytes());
        out.extend(self.hook.to_le_bytes());
        if self.form != KernelForm::PerfInfo {
            out.extend(self.thread_id.to_le_bytes());
            out.extend(self.process_id.to_le_bytes());
        }
        out.extend(self.timestamp.to_le_bytes());
        if self.form == KernelForm::System {
            out.extend(self.kernel_time.to_le_bytes());
            out.extend(self.user_time.to_le_bytes());
        }
        out.extend(self.extra.iter().flat_map(|item| item.to_le_bytes()));
        out.extend(&self.payload);
        Ok(out)
    }
}

/// A classic event to be encoded as a record (`EVENT_TRACE_HEADER`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassicRecord {
    /// The pointer size that the header implies.
    pub pointer_size: PointerSize,
    /// The class.
    pub class: Guid,
    /// The type within the class.
    pub opcode: u8,
    /// The level.
    pub level: u8,
    /// The version of the event's layout.
    pub version: u16,
    /// The thread.
    pub thread_id: u32,
    /// The process.
    pub process_id: u32,
    /// The reading of the session's clock.
    pub timestamp: i64,
    /// The processor time in kernel mode.
    pub kernel_time: u32,
    /// The processor time in user mode.
    pub user_time: u32,
    /// The instance, its parent and the parent's class, if the event has an instance
    /// (`EVENT_INSTANCE_GUID_HEADER`).
    pub instance: Option<(u32, u32, Guid)>,
    /// The payload.
    pub payload: Vec<u8>,
}

impl ClassicRecord {
    /// Encodes the record, without trailing padding.
    ///
    /// # Errors
    /// Fails with [`EncodeError::TooLarge`] if the record exceeds
    /// 65,535 bytes.
    pub fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        let header = match (self.instance.is_some(), self.pointer_size) {
            (false, PointerSize::Four) => 0x0A,
            (false, PointerSize::Eight) => 0x14,
            (true, PointerSize::Four) => 0x0B,
            (true, PointerSize::Eight) => 0x15,
        };
        let mut out = vec![0, 0, header, layout::MARKER, self.opcode, self.level];
        out.extend(self.version.to_le_bytes());
        out.extend(self.thread_id.to_le_bytes());
        out.extend(self.process_id.to_le_bytes());
        out.extend(self.timestamp.to_le_bytes());
        out.extend(self.class.to_bytes());
        out.extend(self.kernel_time.to_le_bytes());
        out.extend(self.user_time.to_le_bytes());
        if let Some((id, parent, parent_class)) = self.instance {
            out.extend(id.to_le_bytes());
            out.extend(parent.to_le_bytes());
            out.extend(parent_class.to_bytes());
        }
        out.extend(&self.payload);
        with_size(out)
    }
}

/// A WPP message to be encoded as a record. Parts of the header that are `None` are omitted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WppRecord {
    /// The message's number.
    pub message: u16,
    /// The sequence number.
    pub sequence: Option<u32>,
    /// The GUID of the messages.
    pub guid: Option<Guid>,
    /// The component id, which replaces the GUID.
    pub component: Option<u32>,
    /// The reading of the session's clock.
    pub timestamp: Option<i64>,
    /// The thread and the process.
    pub thread_and_process: Option<(u32, u32)>,
    /// The pointer size of the arguments.
    pub pointer_size: PointerSize,
    /// The arguments.
    pub arguments: Vec<u8>,
}

impl WppRecord {
    /// Encodes the record, without trailing padding.
    ///
    /// # Errors
    /// Fails with [`EncodeError::TooLarge`] if the record exceeds
    /// 65,535 bytes.
    pub fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        let mut flags = match self.pointer_size {
            PointerSize::Four => wpp_flags::POINTER32,
            PointerSize::Eight => wpp_flags::POINTER64,
        };
        let mut parts = Vec::new();
        if let Some(sequence) = self.sequence {
            flags |= wpp_flags::SEQUENCE;
            parts.extend(sequence.to_le_bytes());
        }
        if let Some(component) = self.component {
            flags |= wpp_flags::COMPONENT_ID;
            parts.extend(component.to_le_bytes());
        } else if let Some(guid) = self.guid {
            flags |= wpp_flags::GUID;
            parts.extend(guid.to_bytes());
        }
        if let Some(timestamp) = self.timestamp {
            flags |= wpp_flags::TIMESTAMP;
            parts.extend(timestamp.to_le_bytes());
        }
        if let Some((thread, process)) = self.thread_and_process {
            flags |= wpp_flags::SYSTEM_INFO;
            parts.extend(thread.to_le_bytes());
            parts.extend(process.to_le_bytes());
        }
        let mut out = vec![0, 0, 0, layout::MARKER_MESSAGE];
        out.extend(self.message.to_le_bytes());
        out.extend(flags.to_le_bytes());
        out.extend(parts);
        out.extend(&self.arguments);
        with_size(out)
    }
}

/// Stores the size of a record in its first two bytes.
fn with_size(mut record: Vec<u8>) -> Result<Vec<u8>, EncodeError> {
    let size = record.len();
    let size = u16::try_from(size).map_err(|_| EncodeError::TooLarge { size })?;
    if let Some(place) = record.first_chunk_mut() {
        *place = size.to_le_bytes();
    }
    Ok(record)
}

macro_rules! encoded {
    ($($record:ident)*) => {$(
        impl TryFrom<&$record> for EncodedRecord {
            type Error = EncodeError;

            fn try_from(record: &$record) -> Result<Self, EncodeError> {
                Self::from_bytes(&record.encode()?)
            }
        }
    )*};
}

encoded! { KernelRecord ClassicRecord WppRecord }
