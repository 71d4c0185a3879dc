//! The tables by which `RtlQueryRegistryValues` reads many values.

use super::super::{
    context::Context,
    rtl,
    strings::{new_buffer, terminated},
};
use crate::{
    ground::{
        abi::{QueryRegistryTable, UnicodeString},
        arena::Block,
        rule::Rule,
        status::NtStatus,
    },
    services::{
        registry::{
            store::{KeyId, folded},
            value::RegistryValue,
        },
        strings::text_bytes,
    },
};

/// `RTL_QUERY_REGISTRY_*`.
mod flag {
    pub const SUBKEY: u32 = 0x1;
    pub const TOPKEY: u32 = 0x2;
    pub const REQUIRED: u32 = 0x4;
    pub const NO_VALUE: u32 = 0x8;
    pub const NO_EXPAND: u32 = 0x10;
    pub const DIRECT: u32 = 0x20;
    pub const DELETE: u32 = 0x40;
    pub const TYPE_CHECK: u32 = 0x100;
}

/// Types of values.
const NONE: u32 = 0;
const SZ: u32 = 1;
const EXPAND_SZ: u32 = 2;
const MULTI_SZ: u32 = 7;

/// `RTL_QUERY_REGISTRY_TYPECHECK_SHIFT`.
const TYPE_SHIFT: u32 = 24;

/// The largest number of entries, by which a table without an end is recognized.
const MAX_ENTRIES: u64 = 0x1_0000;

/// A value to report: its type and bytes.
struct Found {
    kind: u32,
    bytes: Vec<u8>,
}

/// A run through a table.
struct Query<'a> {
    context: &'a Context,
    /// The driver's `Context` and `Environment`.
    arguments: [u64; 2],
    /// The key that the entries are for.
    key: KeyId,
}

/// Reports the values that a table asks for, of a key and of keys below it.
pub fn query(
    context: &Context,
    key: KeyId,
    table: u64,
    arguments: [u64; 2],
) -> Result<(), NtStatus> {
    let mut query = Query {
        context,
        arguments,
        key,
    };
    for number in 0..MAX_ENTRIES {
        let at = table.wrapping_add(number * size_of::<QueryRegistryTable>() as u64);
        let entry: QueryRegistryTable = context.read(at);
        let is_end = entry.query_routine == 0
            && entry.name == 0
            && entry.flags & (flag::SUBKEY | flag::DIRECT) == 0;
        if is_end {
            return Ok(());
        }
        check(&entry)?;
        if entry.flags & (flag::SUBKEY | flag::TOPKEY) != 0 {
            query.key = key;
        }
        query.entry(&entry)?;
    }
    context.stop_for_misuse("with a table that has no end")
}

/// Checks what an entry's flags require.
fn check(entry: &QueryRegistryTable) -> Result<(), NtStatus> {
    let (has_routine, has_name) = (entry.query_routine != 0, entry.name != 0);
    let is_valid = if entry.flags & flag::DIRECT != 0 {
        has_name && !has_routine && entry.flags & flag::SUBKEY == 0
    } else if entry.flags & flag::SUBKEY != 0 {
        has_name
    } else {
        has_routine
    };
    if is_valid {
        Ok(())
    } else {
        Err(NtStatus::INVALID_PARAMETER)
    }
}

impl Query<'_> {
    fn name(&self, entry: &QueryRegistryTable) -> String {
        String::from_utf16_lossy(&terminated::<true>(self.context, entry.name))
    }

    fn entry(&mut self, entry: &QueryRegistryTable) -> Result<(), NtStatus> {
        if entry.flags & flag::SUBKEY != 0 {
            let path = self.name(entry);
            self.key = self.context.registry().open(Some(self.key), &path)?;
            return if entry.query_routine == 0 {
                Ok(())
            } else {
                self.every_value(entry)
            };
        }
        if entry.name != 0 {
            return self.named_value(entry);
        }
        if entry.flags & flag::NO_VALUE != 0 {
            return self.call(entry, None, None);
        }
        self.every_value(entry)
    }

    /// Reports the value that an entry names, or its default.
    fn named_value(&self, entry: &QueryRegistryTable) -> Result<(), NtStatus> {
        let registry = self.context.registry();
        let name = self.name(entry);
        let (name, value) = match registry.value(self.key, &name) {
            Ok((name, value)) => (name, Some(value)),
            Err(NtStatus::OBJECT_NAME_NOT_FOUND) => (name, None),
            Err(status) => return Err(status),
        };
        self.report(entry, &name, value.as_ref())?;
        if value.is_some() && entry.flags & flag::DELETE != 0 {
            // The driver's routine may have deleted it.
            let _deleted = registry.remove_value(self.key, &name);
        }
        Ok(())
    }

    /// Reports all values of the key.
    fn every_value(&self, entry: &QueryRegistryTable) -> Result<(), NtStatus> {
        let registry = self.context.registry();
        let mut number = 0;
        let mut reported = 0;
        loop {
            let (name, value) = match registry.value_at(self.key, number) {
                Ok(found) => found,
                Err(NtStatus::NO_MORE_ENTRIES) => break,
                Err(status) => return Err(status),
            };
            self.report(entry, &name, Some(&value))?;
            reported += 1;
            if entry.flags & flag::DELETE == 0 || registry.remove_value(self.key, &name).is_err() {
                number += 1;
            }
        }
        if reported == 0 && entry.flags & flag::REQUIRED != 0 {
            return Err(NtStatus::OBJECT_NAME_NOT_FOUND);
        }
        Ok(())
    }

    /// Reports a value, or the default of an entry if there is none.
    fn report(
        &self,
        entry: &QueryRegistryTable,
        name: &str,
        value: Option<&RegistryValue>,
    ) -> Result<(), NtStatus> {
        let default_type = entry.default_type & 0xFF;
        let found = value.map(|value| Found {
            kind: value.kind(),
            bytes: value.bytes(),
        });
        // A value without type or data counts as missing where the default has its type.
        let found = found.filter(|found| {
            found.kind != NONE && !(found.bytes.is_empty() && found.kind == default_type)
        });
        if let Some(found) = found {
            self.check_type(entry, &found)?;
            return self.deliver(entry, name, found);
        }
        if default_type == NONE {
            return if entry.flags & flag::REQUIRED != 0 {
                Err(NtStatus::OBJECT_NAME_NOT_FOUND)
            } else {
                Ok(())
            };
        }
        let bytes = self.default_bytes(entry, default_type);
        let default = Found {
            kind: default_type,
            bytes,
        };
        self.deliver(entry, name, default)
    }

    /// Checks the type of a stored value that is to be stored directly.
    fn check_type(&self, entry: &QueryRegistryTable, found: &Found) -> Result<(), NtStatus> {
        if entry.flags & flag::DIRECT == 0 {
            return Ok(());
        }
        if entry.flags & flag::TYPE_CHECK != 0 {
            return if entry.default_type >> TYPE_SHIFT == found.kind {
                Ok(())
            } else {
                Err(NtStatus::OBJECT_TYPE_MISMATCH)
            };
        }
        let context = self.context;
        if !context.registry().is_trusted(self.key) {
            let path = context.registry().path(self.key).unwrap_or_default();
            context.stop(
                Rule::RegistryTypeUnchecked,
                format!(
                    "{} was called from {} with RTL_QUERY_REGISTRY_DIRECT and without \
                     RTL_QUERY_REGISTRY_TYPECHECK for {path}, which others than the system write",
                    context.call().name,
                    context.caller()
                ),
            );
        }
        Ok(())
    }

    /// Returns the bytes of an entry's default. Those of strings need not have a length.
    fn default_bytes(&self, entry: &QueryRegistryTable, kind: u32) -> Vec<u8> {
        let context = self.context;
        if entry.default_length > 0 {
            return rtl::bytes(context, entry.default_data, u64::from(entry.default_length));
        }
        let text_at = |at: u64| -> Vec<u8> {
            let units = terminated::<true>(context, at);
            let units = units.into_iter().chain([0]);
            units.flat_map(u16::to_le_bytes).collect()
        };
        match kind {
            SZ | EXPAND_SZ if entry.default_data != 0 => text_at(entry.default_data),
            MULTI_SZ if entry.default_data != 0 => {
                let mut bytes: Vec<u8> = Vec::new();
                loop {
                    let text = text_at(entry.default_data.wrapping_add(bytes.len() as u64));
                    bytes.extend(&text);
                    if text.len() == 2 {
                        return bytes;
                    }
                }
            }
            _ => Vec::new(),
        }
    }

    /// Splits or expands a value, unless the entry forbids that, and passes it on.
    fn deliver(
        &self,
        entry: &QueryRegistryTable,
        name: &str,
        found: Found,
    ) -> Result<(), NtStatus> {
        let is_raw = entry.flags & flag::NO_EXPAND != 0;
        match found.kind {
            MULTI_SZ if !is_raw => {
                if entry.flags & flag::DIRECT != 0 {
                    // Each string would be stored behind the last one's.
                    return Err(NtStatus::INVALID_PARAMETER);
                }
                for text in strings(&found.bytes) {
                    let one = Found {
                        kind: SZ,
                        bytes: text,
                    };
                    self.pass(entry, name, one)?;
                }
                Ok(())
            }
            EXPAND_SZ if !is_raw => {
                let expanded = Found {
                    kind: SZ,
                    bytes: self.expanded(&found.bytes),
                };
                self.pass(entry, name, expanded)
            }
            _ => self.pass(entry, name, found),
        }
    }

    fn pass(&self, entry: &QueryRegistryTable, name: &str, found: Found) -> Result<(), NtStatus> {
        if entry.flags & flag::DIRECT != 0 {
            self.store(entry.entry_context, &found)
        } else {
            self.call(entry, Some(name), Some(&found))
        }
    }

    /// Calls the driver's routine.
    fn call(
        &self,
        entry: &QueryRegistryTable,
        name: Option<&str>,
        found: Option<&Found>,
    ) -> Result<(), NtStatus> {
        let context = self.context;
        let block = |bytes: &[u8]| {
            let block = Block::zeroed(bytes.len().max(2));
            rtl::write(context, block.address(), bytes);
            block
        };
        let name = name.map(|name| block(&text_bytes(name)));
        let data = found.map(|found| block(&found.bytes));
        let length = found.map_or(0, |found| found.bytes.len() as u64);
        let [its_context, _] = self.arguments;
        let arguments = [
            name.as_ref().map_or(0, Block::address),
            found.map_or(NONE, |found| found.kind).into(),
            data.as_ref().map_or(0, Block::address),
            length,
            its_context,
            entry.entry_context,
        ];
        let result = context.call_driver("QueryRoutine", entry.query_routine, arguments);
        let status = NtStatus::from_register(result);
        if status.is_success() || status == NtStatus::BUFFER_TOO_SMALL {
            Ok(())
        } else {
            Err(status)
        }
    }

    /// Stores a value where the entry says.
    fn store(&self, to: u64, found: &Found) -> Result<(), NtStatus> {
        if matches!(found.kind, SZ | EXPAND_SZ | MULTI_SZ) {
            return self.store_text(to, &found.bytes);
        }
        let context = self.context;
        let length = u32::try_from(found.bytes.len()).unwrap_or(u32::MAX);
        if length as usize <= size_of::<u32>() {
            rtl::write(context, to, &found.bytes);
            return Ok(());
        }
        // The buffer starts with its size, which is negative if only the data are wanted.
        let size: i32 = context.read(to);
        let header = if size < 0 { 0 } else { 8 };
        if u64::from(size.unsigned_abs()) < header + u64::from(length) {
            return Err(NtStatus::BUFFER_TOO_SMALL);
        }
        if header > 0 {
            context.write(to, &[length, found.kind]);
        }
        rtl::write(context, to.wrapping_add(header), &found.bytes);
        Ok(())
    }

    /// Stores a text in a `UNICODE_STRING`, which gets a buffer if it has none.
    fn store_text(&self, to: u64, bytes: &[u8]) -> Result<(), NtStatus> {
        /// The largest size of a counted string.
        const LARGEST: usize = 0xFFFE;
        let context = self.context;
        let bytes = bytes.get(..LARGEST).unwrap_or(bytes);
        let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        let mut string: UnicodeString = context.read(to);
        if string.buffer == 0 {
            string.buffer = new_buffer(context, bytes.len().max(2));
            if string.buffer == 0 {
                return Err(NtStatus::NO_MEMORY);
            }
            string.maximum_length = length;
        } else if string.maximum_length < length {
            return Err(NtStatus::BUFFER_TOO_SMALL);
        }
        rtl::write(context, string.buffer, bytes);
        // The length leaves out the end, which a text in the registry has.
        string.length = length.saturating_sub(2);
        context.write(to, &string);
        Ok(())
    }

    /// Expands the variables of the driver's environment in a text. Others stay as they are, and without
    /// an environment all do.
    fn expanded(&self, bytes: &[u8]) -> Vec<u8> {
        let [_, environment] = self.arguments;
        if environment == 0 {
            return bytes.to_vec();
        }
        let variables = self.variables(environment);
        let units: Vec<u16> = bytes
            .chunks_exact(2)
            .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
            .collect();
        let text = String::from_utf16_lossy(&units);
        let expanded = expand(&text, &variables);
        expanded.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    /// Returns the variables of an environment: texts of the form `NAME=VALUE`, the last one empty.
    fn variables(&self, environment: u64) -> Vec<(String, String)> {
        let mut variables = Vec::new();
        let mut at = environment;
        loop {
            let units = terminated::<true>(self.context, at);
            if units.is_empty() {
                return variables;
            }
            at = at.wrapping_add(2 * (units.len() as u64 + 1));
            let text = String::from_utf16_lossy(&units);
            if let Some((name, value)) = text.split_once('=') {
                variables.push((folded(name), value.to_owned()));
            }
        }
    }
}

/// Replaces `%NAME%` by the variables' values.
fn expand(text: &str, variables: &[(String, String)]) -> String {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        expanded.push_str(before);
        let found = after.split_once('%').and_then(|(name, behind)| {
            let name = folded(name);
            let (_, value) = variables.iter().find(|(one, _)| *one == name)?;
            Some((value, behind))
        });
        match found {
            Some((value, behind)) => {
                expanded.push_str(value);
                rest = behind;
            }
            None => {
                expanded.push('%');
                rest = after;
            }
        }
    }
    expanded + rest
}

/// Returns the strings of a `REG_MULTI_SZ` value, each with its end.
fn strings(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut one = Vec::new();
    for pair in bytes.chunks_exact(2) {
        one.extend(pair);
        if pair == [0, 0] {
            if one.len() == 2 {
                return all;
            }
            all.push(std::mem::take(&mut one));
        }
    }
    if !one.is_empty() {
        one.extend([0, 0]);
        all.push(one);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_expanded_and_other_text_stays() {
        let variables = [("A".to_owned(), "1".to_owned())];
        for (text, expanded) in [
            ("%a%", "1"),
            ("x%A%y%A%", "x1y1"),
            ("100 % of %B% and %A%", "100 % of %B% and 1"),
            ("%", "%"),
            ("%%", "%%"),
        ] {
            assert_eq!(expand(text, &variables), expanded, "{text}");
        }
    }

    #[test]
    fn a_list_of_strings_is_split_at_its_ends() {
        let two = [b'a', 0, 0, 0, b'b', 0, 0, 0, 0, 0, b'c', 0];
        let strings = |bytes: &[u8]| strings(bytes).len();
        assert_eq!(strings(&two), 2);
        assert_eq!(strings(&two[..6]), 2);
        assert_eq!(strings(&[0, 0]), 0);
        assert_eq!(strings(&[]), 0);
    }
}
