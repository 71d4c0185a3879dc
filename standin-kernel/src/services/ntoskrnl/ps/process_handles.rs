//! Process handles, and information about the process of a handle.

use zerocopy::IntoBytes;

use super::processes::{image_path, known, session_of};
use crate::{
    execution::{
        identity::Identity,
        kinds::NtObject,
        routine::{At, Handle, Memory, Out, routine},
        strings::text_bytes,
    },
    ground::{
        NtResult, NtStatus,
        abi::{ClientId, ObjectAttributesNt, ProcessBasicInformation, UnicodeString},
    },
    services::ntoskrnl::{
        context::{Context, Entries},
        ke::thread_objects::{
            identity_of, is_running, process_end, process_object, processors, thread_by_id,
        },
        ob::{
            handles::{self, Opening, Target},
            object_attributes,
        },
    },
};

pub const ENTRIES: Entries =
    &[routine("ZwOpenProcess", open), routine("ZwQueryInformationProcess", query)];

/// Opens a handle to the process that a client id identifies, directly or by a thread in the
/// process.
fn open(
    context: &Context,
    handle: Out<NtObject>,
    access: u32,
    attributes: At<ObjectAttributesNt>,
    client: At<ClientId>,
) -> NtResult {
    const INVALID_CID: NtStatus = NtStatus::from_bits(0xC000_000B);
    const INVALID_PARAMETER_MIX: NtStatus = NtStatus::from_bits(0xC000_0030);
    let attributes = object_attributes::read(context, attributes.0)?;
    if client.is_null() || !attributes.name.is_empty() {
        // Processes have no names.
        return Err(INVALID_PARAMETER_MIX);
    }
    let [process, thread] = context.read::<[u64; 2]>(client.0).map(u32::try_from);
    let mut process = process.map_err(|_| INVALID_CID)?;
    let thread = thread.map_err(|_| INVALID_CID)?;
    if thread != 0 {
        let object = thread_by_id(context, thread).ok_or(INVALID_CID)?;
        let of_thread = identity_of(context, object).map(|identity| identity.process);
        if of_thread.is_none_or(|one| process != 0 && process != one) {
            return Err(INVALID_CID);
        }
        process = of_thread.unwrap_or(process);
    }
    // No handle can be opened to the idle process, whose id is 0.
    if process == Identity::IDLE.process || !is_running(context, process) {
        return Err(INVALID_CID);
    }
    let object = process_object(context.ntoskrnl(), process);
    let opening = Opening { attributes: attributes.flags, access };
    handles::open_watched(context, Target::process(object), handle, opening)
}

/// The classes of information (`PROCESSINFOCLASS`).
mod class {
    pub const BASIC: i32 = 0;
    pub const TIMES: i32 = 4;
    pub const DEBUG_PORT: i32 = 7;
    pub const SESSION: i32 = 24;
    pub const WOW64: i32 = 26;
    pub const IMAGE_FILE_NAME: i32 = 27;
    pub const BREAK_ON_TERMINATION: i32 = 29;
}

fn query(
    context: &Context,
    handle: Handle<NtObject>,
    class: i32,
    process_information: Memory,
    length: u32,
    needed: At<u32>,
) -> NtResult {
    let describe: fn(&Context, u64, u64) -> Vec<u8> = match class {
        class::BASIC => basic,
        class::TIMES => |context, object, _| {
            let (_, created) = known(context, object);
            // The end time and the used processor times are always 0.
            [context.clock().file_time(created), 0, 0, 0].as_bytes().to_vec()
        },
        class::SESSION => {
            |context, object, _| session_of(known(context, object).0).to_le_bytes().to_vec()
        }
        class::DEBUG_PORT | class::WOW64 => |_, _, _| vec![0; 8],
        class::BREAK_ON_TERMINATION => |context, object, _| {
            let is_critical = known(context, object).0 == Identity::SYSTEM.process;
            u32::from(is_critical).to_le_bytes().to_vec()
        },
        class::IMAGE_FILE_NAME => image_name,
        _ => return Err(NtStatus::INVALID_INFO_CLASS),
    };
    let target = handles::target_of(context, handle.0)?;
    if target.type_name != "PsProcessType" {
        return Err(NtStatus::OBJECT_TYPE_MISMATCH);
    }
    let bytes = describe(context, target.object, process_information.0);
    needed.write_optional(context, u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    let fits = match class {
        class::IMAGE_FILE_NAME => length as usize >= bytes.len(),
        _ => length as usize == bytes.len(),
    };
    if !fits {
        return Err(NtStatus::INFO_LENGTH_MISMATCH);
    }
    context.write_bytes(process_information.0, &bytes);
    Ok(())
}

fn basic(context: &Context, object: u64, _to: u64) -> Vec<u8> {
    /// The priority of a process.
    const NORMAL: i32 = 8;
    let (id, _) = known(context, object);
    let status = process_end(context, id, None).unwrap_or(NtStatus::PENDING);
    let value = ProcessBasicInformation {
        exit_status: status.bits(),
        affinity_mask: processors(context),
        base_priority: NORMAL,
        unique_process_id: id.into(),
        ..Default::default()
    };
    value.as_bytes().to_vec()
}

/// Returns a counted string with the path of a process's image, in the form that file systems use.
fn image_name(context: &Context, object: u64, buffer: u64) -> Vec<u8> {
    const STRING: usize = size_of::<UnicodeString>();
    let text = text_bytes(&image_path(context, known(context, object).0));
    let room = u16::try_from(text.len()).unwrap_or(u16::MAX);
    let string = UnicodeString {
        length: room.saturating_sub(2),
        maximum_length: room,
        buffer: buffer.wrapping_add(STRING as u64),
        ..Default::default()
    };
    [string.as_bytes(), &text].concat()
}
