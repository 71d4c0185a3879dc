//! The structures that describe keys and values. Each has a fixed part, a name, and optionally data.

use crate::{
    execution::routine::At,
    ground::{NtResult, NtStatus},
    services::{
        managers::registry::{
            store::{KeyId, Registry},
            value::RegistryValue,
        },
        ntoskrnl::context::Context,
    },
};

/// `KEY_INFORMATION_CLASS`.
pub mod key_class {
    pub const BASIC: u32 = 0;
    pub const NODE: u32 = 1;
    pub const FULL: u32 = 2;
    pub const NAME: u32 = 3;
    pub const CACHED: u32 = 4;
    pub const FLAGS: u32 = 5;
    pub const VIRTUALIZATION: u32 = 6;
    pub const HANDLE_TAGS: u32 = 7;
    pub const LAYER: u32 = 9;
}

/// `KEY_VALUE_INFORMATION_CLASS`.
pub mod value_class {
    pub const BASIC: u32 = 0;
    pub const FULL: u32 = 1;
    pub const PARTIAL: u32 = 2;
    pub const FULL_ALIGN_64: u32 = 3;
    pub const PARTIAL_ALIGN_64: u32 = 4;
    pub const LAYER: u32 = 5;
}

/// The offset of a part that is missing.
const NOWHERE: u32 = u32::MAX;

/// The information that a routine stores for the driver.
pub struct Information {
    bytes: Vec<u8>,
    /// The length of the fixed part. If it does not fit, nothing is stored.
    fixed: usize,
}

impl Information {
    /// Creates information whose fixed part consists of these fields.
    fn new(fields: &[u32]) -> Self {
        let bytes: Vec<u8> = fields.iter().flat_map(|field| field.to_le_bytes()).collect();
        let fixed = bytes.len();
        Self { bytes, fixed }
    }

    /// Adds a string without a terminator.
    fn text(mut self, text: &str) -> Self {
        self.bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
        self
    }

    /// Adds zeros up to an offset, and then the data.
    fn at(mut self, offset: u32, data: &[u8]) -> Self {
        self.bytes.resize(offset as usize, 0);
        self.bytes.extend(data);
        self
    }
}

fn text_size(text: &str) -> u32 {
    size(2 * text.encode_utf16().count())
}

fn size(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Stores as much of the information as fits in a driver's buffer, and stores the total size.
pub fn give(
    context: &Context,
    Information { bytes, fixed }: &Information,
    (buffer, length): (u64, u32),
    result_length: At<u32>,
) -> NtResult {
    result_length.write(context, size(bytes.len()));
    let room = length as usize;
    if room < *fixed {
        return Err(NtStatus::BUFFER_TOO_SMALL);
    }
    context.write_bytes(buffer, bytes.get(..room).unwrap_or(bytes));
    if room < bytes.len() { Err(NtStatus::BUFFER_OVERFLOW) } else { Ok(()) }
}

/// Checks the class of information about a key. Only a query of the key itself supports all classes.
pub fn check_key_class(context: &Context, class: u32, is_of_itself: bool) -> NtResult {
    match class {
        key_class::BASIC | key_class::NODE | key_class::FULL => Ok(()),
        key_class::NAME
        | key_class::CACHED
        | key_class::VIRTUALIZATION
        | key_class::HANDLE_TAGS
            if is_of_itself =>
        {
            Ok(())
        }
        key_class::FLAGS..=key_class::LAYER if is_of_itself => {
            context.stop_for_unprovided(&format!("for the KEY_INFORMATION_CLASS {class}"))
        }
        _ => Err(NtStatus::INVALID_PARAMETER),
    }
}

/// Returns a class of information about a key.
pub fn of_key(registry: &Registry, key: KeyId, class: u32) -> NtResult<Information> {
    /// The sizes of the fixed parts of `KEY_NODE_INFORMATION` and `KEY_FULL_INFORMATION`.
    const NODE: u32 = 24;
    const FULL: u32 = 44;
    let about = registry.describe(key)?;
    let time = about.last_write.to_le_bytes();
    let [low, high] = [0, 4].map(|at| {
        let part = time.get(at..).and_then(|rest| rest.first_chunk());
        part.copied().map_or(0, u32::from_le_bytes)
    });
    let (name, class_size) = (text_size(&about.name), text_size(&about.class));
    let units = || -> Vec<u8> {
        let units = about.class.encode_utf16();
        units.flat_map(u16::to_le_bytes).collect()
    };
    Ok(match class {
        key_class::BASIC => Information::new(&[low, high, 0, name]).text(&about.name),
        key_class::NODE => {
            let offset = (NODE + name).next_multiple_of(4);
            let has_class = class_size > 0;
            let class_offset = if has_class { offset } else { NOWHERE };
            let node =
                Information::new(&[low, high, 0, class_offset, class_size, name]).text(&about.name);
            if has_class { node.at(offset, &units()) } else { node }
        }
        key_class::FULL => {
            let offset = if class_size > 0 { FULL } else { NOWHERE };
            Information::new(&[
                low, high, 0, offset, class_size, about.subkeys, about.max_name, about.max_class,
                about.values, about.max_value_name, about.max_value_data,
            ])
            .text(&about.class)
        }
        key_class::NAME => {
            let path = registry.path(key)?;
            Information::new(&[text_size(&path)]).text(&path)
        }
        key_class::CACHED => Information::new(&[
            low, high, 0, about.subkeys, about.max_name, about.values, about.max_value_name,
            about.max_value_data, name, 0,
        ]),
        // Keys are not virtual, and their handles have no tags.
        _ => Information::new(&[0]),
    })
}

/// Checks the class of information about a value.
pub fn check_value_class(context: &Context, class: u32) -> NtResult {
    match class {
        value_class::BASIC
        | value_class::FULL
        | value_class::PARTIAL
        | value_class::FULL_ALIGN_64
        | value_class::PARTIAL_ALIGN_64 => Ok(()),
        value_class::LAYER => {
            context.stop_for_unprovided("for the KEY_VALUE_INFORMATION_CLASS 5");
        }
        _ => Err(NtStatus::INVALID_PARAMETER),
    }
}

/// Returns a class of information about a value.
pub fn of_value(name: &str, value: &RegistryValue, class: u32) -> Information {
    /// The size of the fixed part of `KEY_VALUE_FULL_INFORMATION`.
    const FULL: u32 = 20;
    let (kind, data, name_size) = (value.kind(), value.bytes(), text_size(name));
    let length = size(data.len());
    match class {
        value_class::BASIC => Information::new(&[0, kind, name_size]).text(name),
        value_class::FULL | value_class::FULL_ALIGN_64 => {
            let alignment = if class == value_class::FULL { 4 } else { 8 };
            let offset = (FULL + name_size).next_multiple_of(alignment);
            let data_offset = if length > 0 { offset } else { NOWHERE };
            let full = Information::new(&[0, kind, data_offset, length, name_size]).text(name);
            if length > 0 { full.at(offset, &data) } else { full }
        }
        value_class::PARTIAL_ALIGN_64 => Information::new(&[kind, length]).at(8, &data),
        _ => Information::new(&[0, kind, length]).at(12, &data),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_laid_out_as_the_headers_say() {
        let value = RegistryValue::from(0x1234_u32);
        for (class, fixed, length) in [
            (value_class::BASIC, 12, 18),
            (value_class::FULL, 20, 32),
            (value_class::PARTIAL, 12, 16),
            (value_class::FULL_ALIGN_64, 20, 36),
            (value_class::PARTIAL_ALIGN_64, 8, 12),
        ] {
            let found = of_value("abc", &value, class);
            assert_eq!((found.fixed, found.bytes.len()), (fixed, length), "{class}");
        }
        let nothing = of_value("abc", &RegistryValue::Binary(Vec::new()), value_class::FULL);
        assert_eq!(nothing.bytes.get(8..12), Some([0xFF; 4].as_slice()));
    }
}
