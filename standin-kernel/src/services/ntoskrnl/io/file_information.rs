//! The information that drivers query about the files of the folder.

use std::{fs, time::UNIX_EPOCH};

use zerocopy::IntoBytes as _;

use super::files::{self, OpenFile, status_of, with_file};
use crate::{
    execution::{
        kinds::NtObject,
        routine::{At, Handle, Memory, routine},
    },
    ground::{
        NtResult, NtStatus,
        abi::{FileBasic, FileObject, FileStandard, IoStatusBlock},
        host,
    },
    services::{
        managers::create_parameters::CreateParameters,
        ntoskrnl::{
            context::{Context, Entries},
            ob::handles,
        },
    },
};

pub const ENTRIES: Entries =
    &[routine("ZwQueryInformationFile", query), routine("FsRtlGetFileSize", size)];

/// The information classes.
mod class {
    pub const BASIC: u32 = 4;
    pub const STANDARD: u32 = 5;
    pub const INTERNAL: u32 = 6;
    pub const EXTENDED_ATTRIBUTES: u32 = 7;
    pub const ACCESS: u32 = 8;
    pub const NAME: u32 = 9;
    pub const POSITION: u32 = 14;
    pub const MODE: u32 = 16;
    pub const ALIGNMENT: u32 = 17;
    pub const ALL: u32 = 18;
    pub const NETWORK_OPEN: u32 = 34;
    pub const ATTRIBUTE_TAG: u32 = 35;
    /// The parts of `FILE_ALL_INFORMATION`, in order.
    pub const PARTS: [u32; 9] =
        [BASIC, STANDARD, INTERNAL, EXTENDED_ATTRIBUTES, ACCESS, POSITION, MODE, ALIGNMENT, NAME];
}

/// Converts a time of the host's file system to a `FILETIME`.
fn file_time(time: std::io::Result<std::time::SystemTime>) -> i64 {
    const SINCE_1601: i64 = 11_644_473_600 * 10_000_000;
    let since_1970 = time.ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let ticks = since_1970.map(crate::ground::clock::ticks);
    ticks.unwrap_or(0).saturating_add(SINCE_1601)
}

/// Returns the information of a class. `name` is the file's name on its volume.
fn information(file: &OpenFile, name: &str, kind: u32) -> NtResult<Vec<u8>> {
    /// `FILE_ATTRIBUTE_DIRECTORY` and `FILE_ATTRIBUTE_ARCHIVE`.
    const DIRECTORY: u32 = 0x10;
    const ARCHIVE: u32 = 0x20;
    /// The allocation unit of disks.
    const CLUSTER: u64 = 4096;
    let metadata = fs::metadata(&file.path).map_err(|error| status_of(&error))?;
    let is_directory = file.file.is_none() && !file.is_volume;
    let attributes = if is_directory { DIRECTORY } else { ARCHIVE };
    let size = if is_directory { 0 } else { metadata.len() };
    let allocation = size.next_multiple_of(CLUSTER);
    let written = file_time(metadata.modified());
    let basic = FileBasic {
        creation_time: file_time(metadata.created().or_else(|_| metadata.modified())),
        last_access_time: file_time(metadata.accessed()),
        last_write_time: written,
        change_time: written,
        file_attributes: attributes,
        ..Default::default()
    };
    Ok(match kind {
        class::BASIC => basic.as_bytes().to_vec(),
        class::STANDARD => {
            let value = FileStandard {
                allocation_size: allocation.cast_signed(),
                end_of_file: size.cast_signed(),
                number_of_links: 1,
                delete_pending: u8::from(file.deletes),
                directory: u8::from(is_directory),
                ..Default::default()
            };
            value.as_bytes().to_vec()
        }
        class::INTERNAL => host::file_number(&file.path, &metadata).to_le_bytes().to_vec(),
        class::EXTENDED_ATTRIBUTES | class::ALIGNMENT => vec![0; 4],
        class::ACCESS => {
            let rights = CreateParameters::new(file.access, [0; 2], 0, 0).access;
            rights.to_le_bytes().to_vec()
        }
        class::NAME => {
            let text: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
            [&length.to_le_bytes(), text.as_slice()].concat()
        }
        class::POSITION => file.position.unwrap_or(0).to_le_bytes().to_vec(),
        class::MODE => file.mode.to_le_bytes().to_vec(),
        class::ALL => {
            let parts = class::PARTS.map(|part| information(file, name, part));
            parts.into_iter().collect::<NtResult<Vec<_>>>()?.concat()
        }
        class::NETWORK_OPEN => {
            let times = [
                basic.creation_time, basic.last_access_time, basic.last_write_time,
                basic.change_time,
            ];
            let tail = [u64::from(attributes)];
            [times.as_bytes(), [allocation, size].as_bytes(), tail.as_bytes()].concat()
        }
        class::ATTRIBUTE_TAG => [attributes, 0].as_bytes().to_vec(),
        _ => return Err(NtStatus::INVALID_INFO_CLASS),
    })
}

/// Describes a file. If the name does not fit, its beginning is stored.
fn query(
    context: &Context,
    handle: Handle<NtObject>,
    block: At<IoStatusBlock>,
    buffer: Memory,
    length: u32,
    kind: u32,
) -> NtResult {
    /// The sizes of `FILE_NAME_INFORMATION` and `FILE_ALL_INFORMATION`, which begin their names.
    const NAME: usize = 8;
    const ALL: usize = 104;
    let target = handles::target(context, handle.0).ok_or(NtStatus::INVALID_HANDLE)?;
    let name = files::name_of(context, target.object).unwrap_or_default();
    let name = name.strip_prefix(files::VOLUME).unwrap_or(&name);
    let name = if name.is_empty() { r"\" } else { name };
    let bytes = with_file(context, handle.0, |file| information(file, name, kind))?;
    let least = match kind {
        class::NAME => NAME,
        class::ALL => ALL,
        _ => bytes.len(),
    };
    if (length as usize) < least {
        return Err(NtStatus::INFO_LENGTH_MISMATCH);
    }
    let stored = bytes.get(..length as usize).unwrap_or(&bytes);
    context.write_bytes(buffer.0, stored);
    let is_complete = stored.len() == bytes.len();
    let done = if is_complete { Ok(()) } else { Err(NtStatus::BUFFER_OVERFLOW) };
    let status = done.err().unwrap_or(NtStatus::SUCCESS).bits();
    let information = stored.len() as u64;
    block.write(context, IoStatusBlock { status, information, ..Default::default() });
    done
}

/// Stores a file's size.
fn size(context: &Context, file: At<FileObject>, size: At<i64>) -> NtResult {
    let length = files::with_object(context, file.0, |file| {
        let open = file.file.as_ref().ok_or(files::FILE_IS_A_DIRECTORY)?;
        open.metadata().map_err(|error| status_of(&error))
    })?;
    size.write(context, length.len().cast_signed());
    Ok(())
}
