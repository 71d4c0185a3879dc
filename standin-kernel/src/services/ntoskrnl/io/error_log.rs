//! Error log entries (`IO_ERROR_LOG_PACKET`), which drivers write to the system's event log.

use std::{collections::BTreeMap, mem::offset_of};

use crate::{
    execution::routine::{At, Memory, routine},
    ground::{NtStatus, abi::ErrorLogPacket, arena::Block},
    services::ntoskrnl::context::{Context, Entries, Ntoskrnl},
};

pub const ENTRIES: Entries = &[
    routine("IoAllocateErrorLogEntry", allocate),
    routine("IoWriteErrorLogEntry", write),
    routine("IoFreeErrorLogEntry", free),
];

/// The maximum size of an entry: `ERROR_LOG_LIMIT_SIZE`.
const LARGEST: usize = 240;

/// An entry that a driver wrote to the system's event log with `IoWriteErrorLogEntry`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorLogEntry {
    /// The number of the message in the driver's message file (`ErrorCode`).
    pub error_code: u32,
    /// The status of the request that failed (`FinalStatus`).
    pub final_status: NtStatus,
    /// A number that identifies the location in the driver (`UniqueErrorValue`).
    pub unique_value: u32,
    /// The category of the message (`EventCategory`).
    pub category: u16,
    /// The major function of the request.
    pub major_function: u8,
    /// The driver's retry count.
    pub retry_count: u8,
    /// The sequence number that the driver assigned to the request.
    pub sequence_number: u32,
    /// The control code, for a device control.
    pub control_code: u32,
    /// The offset on the device, in bytes.
    pub device_offset: i64,
    /// The driver's own data.
    pub dump: Vec<u8>,
    /// The insertion strings of the message, starting with the second string.
    pub strings: Vec<String>,
}

/// An entry that a driver has allocated but neither written nor freed.
struct Allocated {
    block: Block,
    size: usize,
    /// The return address of the allocating call.
    by: u64,
}

/// The entries that drivers have allocated, by address, and the entries that they have written.
#[derive(Default)]
struct Log {
    allocated: BTreeMap<u64, Allocated>,
    written: Vec<ErrorLogEntry>,
}

/// Returns the entries that drivers have written, oldest first.
pub fn entries(nt: &Ntoskrnl) -> Vec<ErrorLogEntry> {
    nt.state().get::<Log>().written.clone()
}

/// Allocates an entry for a device or driver. Returns null if the object is neither a device nor a
/// driver, or if the size is invalid.
fn allocate(context: &Context, object: Memory, size: u8) -> Memory {
    /// `IO_TYPE_DEVICE` and `IO_TYPE_DRIVER`.
    const KINDS: [i16; 2] = [3, 4];
    let size = usize::from(size);
    let is_known = !object.is_null() && KINDS.contains(&context.read(object.0));
    if !is_known || !(size_of::<ErrorLogPacket>()..=LARGEST).contains(&size) {
        return At::NULL;
    }
    if context.faults().take("ExAllocatePool2").is_some() {
        return At::NULL;
    }
    let Some(block) = Block::try_zeroed(size) else {
        return At::NULL;
    };
    let address = block.address();
    let allocated = Allocated { block, size, by: context.call().return_address };
    context.state().get::<Log>().allocated.insert(address, allocated);
    At::new(address)
}

/// Takes an entry that a driver has allocated. Bugchecks if no entry is at the address.
fn take(context: &Context, entry: u64) -> Allocated {
    let taken = context.state().get::<Log>().allocated.remove(&entry);
    taken.unwrap_or_else(|| {
        context.stop_for_wrong(entry, "an error log entry that was allocated and not written")
    })
}

/// Removes the entries that a driver has allocated but neither written nor freed. Returns their number.
pub fn take_left(context: &Context, belongs: impl Fn(u64) -> bool) -> usize {
    context.with_state(|log: &mut Log| {
        log.allocated.extract_if(.., |_, entry| belongs(entry.by)).count()
    })
}

fn free(context: &Context, entry: Memory) {
    drop(take(context, entry.0));
}

/// Writes an entry to the log and frees it.
fn write(context: &Context, entry: Memory) {
    let Allocated { block, size, .. } = take(context, entry.0);
    let packet: ErrorLogPacket = context.read(entry.0);
    if !packet.dump_data_size.is_multiple_of(4) {
        context.stop_for_misuse(&format!(
            "with an entry that has {} bytes of dump data; the size must be a multiple of 4",
            packet.dump_data_size
        ));
    }
    let bytes = context.bytes(entry.0, size as u64);
    let dump = offset_of!(ErrorLogPacket, dump_data)
        ..offset_of!(ErrorLogPacket, dump_data) + usize::from(packet.dump_data_size);
    let dump = bytes.get(dump).map(<[u8]>::to_vec);
    let strings = strings(&bytes, packet.string_offset, packet.number_of_strings);
    let (Some(dump), Some(strings)) = (dump, strings) else {
        context.stop_for_misuse(&format!(
            "with an entry of {size} bytes whose dump data ({} bytes) or strings ({} from byte {}) \
             extend past its end",
            packet.dump_data_size, packet.number_of_strings, packet.string_offset
        ));
    };
    drop(block);
    let written = ErrorLogEntry {
        error_code: packet.error_code,
        final_status: NtStatus::from_bits(packet.final_status),
        unique_value: packet.unique_error_value,
        category: packet.event_category,
        major_function: packet.major_function_code,
        retry_count: packet.retry_count,
        sequence_number: packet.sequence_number,
        control_code: packet.io_control_code,
        device_offset: packet.device_offset,
        dump,
        strings,
    };
    context.state().get::<Log>().written.push(written);
}

/// Returns an entry's strings, each of which is terminated by a zero.
fn strings(bytes: &[u8], offset: u16, count: u16) -> Option<Vec<String>> {
    if count == 0 {
        return Some(Vec::new());
    }
    let mut rest = bytes.get(usize::from(offset)..)?;
    let mut strings = Vec::new();
    for _ in 0..count {
        let units: Vec<u16> = rest
            .chunks_exact(2)
            .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
            .take_while(|unit| *unit != 0)
            .collect();
        rest = rest.get(2 * (units.len() + 1)..)?;
        strings.push(String::from_utf16_lossy(&units));
    }
    Some(strings)
}

#[cfg(test)]
mod tests {
    use super::strings;

    #[test]
    fn strings_end_in_the_entry() {
        let bytes = [9, 9, b'a', 0, b'b', 0, 0, 0, 0, 0];
        assert_eq!(strings(&bytes, 0, 0), Some(Vec::new()));
        let both = Some(vec!["ab".to_owned(), String::new()]);
        assert_eq!(strings(&bytes, 2, 2), both);
        assert_eq!(strings(&bytes, 2, 3), None);
        assert_eq!(strings(&bytes, 11, 1), None);
        assert_eq!(strings(&bytes[..7], 2, 1), None);
    }
}
