//! Delivers the values that `RtlQueryRegistryValues` reads, to the driver's routine or into its memory.

use crate::{
    execution::strings::{text_bytes, units},
    ground::{
        NtResult, NtStatus,
        abi::{QueryRegistryTable, UnicodeString},
        arena::Block,
    },
    services::{
        managers::registry::store::folded,
        ntoskrnl::{
            context::Context,
            rtl::strings::{new_buffer, terminated},
        },
    },
};

/// `RTL_QUERY_REGISTRY_*`.
pub mod flag {
    pub const SUBKEY: u32 = 0x1;
    pub const TOPKEY: u32 = 0x2;
    pub const REQUIRED: u32 = 0x4;
    pub const NO_VALUE: u32 = 0x8;
    pub const NO_EXPAND: u32 = 0x10;
    pub const DIRECT: u32 = 0x20;
    pub const DELETE: u32 = 0x40;
    pub const TYPE_CHECK: u32 = 0x100;
}

/// Registry value types.
pub const NONE: u32 = 0;
pub const SZ: u32 = 1;
pub const EXPAND_SZ: u32 = 2;
pub const MULTI_SZ: u32 = 7;

/// A value to report: its type and bytes.
pub struct Found {
    pub kind: u32,
    pub bytes: Vec<u8>,
}

/// The receiver of values, as an entry in the driver's table describes it.
pub struct Delivery<'a> {
    /// The context of the query.
    pub context: &'a Context,
    /// The driver's `Context` and `Environment`.
    pub arguments: [u64; 2],
    /// The entry.
    pub entry: &'a QueryRegistryTable,
}

impl Delivery<'_> {
    /// Splits or expands a value, unless the entry forbids it, and delivers it.
    pub fn deliver(&self, name: &str, found: &Found) -> NtResult {
        let entry = self.entry;
        let is_raw = entry.flags & flag::NO_EXPAND != 0;
        match found.kind {
            MULTI_SZ if !is_raw => {
                if entry.flags & flag::DIRECT != 0 {
                    // Each string would overwrite the previous one.
                    return Err(NtStatus::INVALID_PARAMETER);
                }
                for text in strings(&found.bytes) {
                    let one = Found { kind: SZ, bytes: text };
                    self.pass(name, &one)?;
                }
                Ok(())
            }
            EXPAND_SZ if !is_raw => {
                let expanded = Found { kind: SZ, bytes: self.expanded(&found.bytes) };
                self.pass(name, &expanded)
            }
            _ => self.pass(name, found),
        }
    }

    fn pass(&self, name: &str, found: &Found) -> NtResult {
        let entry = self.entry;
        if entry.flags & flag::DIRECT != 0 {
            self.store(entry.entry_context, found)
        } else {
            self.call(Some(name), Some(found))
        }
    }

    /// Calls the driver's routine.
    pub fn call(&self, name: Option<&str>, found: Option<&Found>) -> NtResult {
        let (context, entry) = (self.context, self.entry);
        let block = |bytes: &[u8]| {
            let block = Block::zeroed(bytes.len().max(2));
            context.write_bytes(block.address(), bytes);
            block
        };
        let name = name.map(|name| block(&text_bytes(name)));
        let data = found.map(|found| block(&found.bytes));
        let length = found.map_or(0, |found| found.bytes.len() as u64);
        let [routine_context, _] = self.arguments;
        let arguments = [
            name.as_ref().map_or(0, Block::address),
            found.map_or(NONE, |found| found.kind).into(),
            data.as_ref().map_or(0, Block::address),
            length,
            routine_context,
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

    /// Stores a value at the address in the entry.
    fn store(&self, destination: u64, found: &Found) -> NtResult {
        if matches!(found.kind, SZ | EXPAND_SZ | MULTI_SZ) {
            return self.store_text(destination, &found.bytes);
        }
        let context = self.context;
        let length = u32::try_from(found.bytes.len()).unwrap_or(u32::MAX);
        if length as usize <= size_of::<u32>() {
            context.write_bytes(destination, &found.bytes);
            return Ok(());
        }
        // The buffer starts with its size. A negative size requests only the data.
        let size: i32 = context.read(destination);
        let header = if size < 0 { 0 } else { 8 };
        if u64::from(size.unsigned_abs()) < header + u64::from(length) {
            return Err(NtStatus::BUFFER_TOO_SMALL);
        }
        if header > 0 {
            context.write(destination, &[length, found.kind]);
        }
        context.write_bytes(destination.wrapping_add(header), &found.bytes);
        Ok(())
    }

    /// Stores a string in a `UNICODE_STRING`, and allocates a buffer if the `UNICODE_STRING` has
    /// none.
    fn store_text(&self, destination: u64, bytes: &[u8]) -> NtResult {
        /// The largest size of a counted string.
        const LARGEST: usize = 0xFFFE;
        let context = self.context;
        let bytes = bytes.get(..LARGEST).unwrap_or(bytes);
        let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        let mut string: UnicodeString = context.read(destination);
        if string.buffer == 0 {
            string.buffer = new_buffer(context, bytes.len().max(2));
            if string.buffer == 0 {
                return Err(NtStatus::NO_MEMORY);
            }
            string.maximum_length = length;
        } else if string.maximum_length < length {
            return Err(NtStatus::BUFFER_TOO_SMALL);
        }
        context.write_bytes(string.buffer, bytes);
        // The length excludes the terminator. A string in the registry includes it.
        string.length = length.saturating_sub(2);
        context.write(destination, &string);
        Ok(())
    }

    /// Expands the variables of the driver's environment in a string. Unknown variables, or all
    /// variables if there is no environment, stay unchanged.
    fn expanded(&self, bytes: &[u8]) -> Vec<u8> {
        let [_, environment] = self.arguments;
        if environment == 0 {
            return bytes.to_vec();
        }
        let variables = self.variables(environment);
        let expanded = expand(&String::from_utf16_lossy(&units(bytes)), &variables);
        expanded.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    /// Returns the variables of an environment: `NAME=VALUE` strings, terminated by an empty
    /// string.
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

/// Replaces each `%NAME%` with the variable's value.
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
        if let Some((value, behind)) = found {
            expanded.push_str(value);
            rest = behind;
        } else {
            expanded.push('%');
            rest = after;
        }
    }
    expanded + rest
}

/// Returns the strings of a `REG_MULTI_SZ` value, including their terminators. The value's length
/// determines its end, so empty strings are included; the final terminator is not included.
fn strings(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut one = Vec::new();
    let (pairs, _) = bytes.as_chunks::<2>();
    for pair in pairs.strip_suffix(&[[0, 0]]).unwrap_or(pairs) {
        one.extend(pair);
        if *pair == [0, 0] {
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
        for (text, count) in [
            ("a\0b\0\0", 2),
            ("a\0b", 2),
            ("a\0b\0\0c", 4),
            ("One\0\0Three\0\0", 3),
            ("\0\0", 1),
            ("\0", 0),
            ("", 0),
        ] {
            let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            assert_eq!(strings(&bytes).len(), count, "{text:?}");
        }
    }
}
