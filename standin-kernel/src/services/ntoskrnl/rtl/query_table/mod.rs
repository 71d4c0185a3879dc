//! The tables by which `RtlQueryRegistryValues` reads several values.

mod delivery;

use self::delivery::{Delivery, EXPAND_SZ, Found, MULTI_SZ, NONE, SZ, flag};
use super::strings::terminated;
use crate::{
    ground::{NtResult, NtStatus, abi::QueryRegistryTable, rule::Rule},
    services::{
        managers::registry::{store::KeyId, value::RegistryValue},
        ntoskrnl::context::Context,
    },
};

/// `RTL_QUERY_REGISTRY_TYPECHECK_SHIFT`.
const TYPE_SHIFT: u32 = 24;

/// The maximum number of entries. A longer table counts as unterminated.
const MAX_ENTRIES: u64 = 0x1_0000;

/// The processing of one table.
struct Query<'a> {
    context: &'a Context,
    /// The driver's `Context` and `Environment`.
    arguments: [u64; 2],
    /// The key to which the entries apply.
    key: KeyId,
}

/// Reports the values that a table requests, from a key and its subkeys.
pub fn query(context: &Context, key: KeyId, table: u64, arguments: [u64; 2]) -> NtResult {
    let mut query = Query { context, arguments, key };
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
    context.stop_for_misuse("with an unterminated table")
}

/// Checks that an entry has the fields that its flags require.
const fn check(entry: &QueryRegistryTable) -> NtResult {
    let (has_routine, has_name) = (entry.query_routine != 0, entry.name != 0);
    let is_valid = if entry.flags & flag::DIRECT != 0 {
        has_name && !has_routine && entry.flags & flag::SUBKEY == 0
    } else if entry.flags & flag::SUBKEY != 0 {
        has_name
    } else {
        has_routine
    };
    if is_valid { Ok(()) } else { Err(NtStatus::INVALID_PARAMETER) }
}

impl Query<'_> {
    const fn delivery<'a>(&'a self, entry: &'a QueryRegistryTable) -> Delivery<'a> {
        Delivery { context: self.context, arguments: self.arguments, entry }
    }

    fn name(&self, entry: &QueryRegistryTable) -> String {
        String::from_utf16_lossy(&terminated::<true>(self.context, entry.name))
    }

    fn entry(&mut self, entry: &QueryRegistryTable) -> NtResult {
        if entry.flags & flag::SUBKEY != 0 {
            let path = self.name(entry);
            self.key = self.context.registry().open(Some(self.key), &path)?;
            return if entry.query_routine == 0 { Ok(()) } else { self.every_value(entry) };
        }
        if entry.name != 0 {
            return self.named_value(entry);
        }
        if entry.flags & flag::NO_VALUE != 0 {
            return self.delivery(entry).call(None, None);
        }
        self.every_value(entry)
    }

    /// Reports the value with the name in an entry, or the entry's default.
    fn named_value(&self, entry: &QueryRegistryTable) -> NtResult {
        let registry = self.context.registry();
        let name = self.name(entry);
        let (name, value) = match registry.value(self.key, &name) {
            Ok((name, value)) => (name, Some(value)),
            Err(NtStatus::OBJECT_NAME_NOT_FOUND) => (name, None),
            Err(status) => return Err(status),
        };
        self.report(entry, &name, value.as_ref())?;
        if value.is_some() && entry.flags & flag::DELETE != 0 {
            // The driver's routine may already have deleted the value.
            let _deleted = registry.remove_value(self.key, &name);
        }
        Ok(())
    }

    /// Reports all values of the key.
    fn every_value(&self, entry: &QueryRegistryTable) -> NtResult {
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

    /// Reports a value or, if there is none, the entry's default.
    fn report(
        &self,
        entry: &QueryRegistryTable,
        name: &str,
        value: Option<&RegistryValue>,
    ) -> NtResult {
        let default_type = entry.default_type & 0xFF;
        let found = value.map(|value| Found { kind: value.kind(), bytes: value.bytes() });
        // A stored value without a type or data counts as missing if the default has a type.
        let found = found.filter(|found| {
            found.kind != NONE && !(found.bytes.is_empty() && found.kind == default_type)
        });
        if let Some(found) = found {
            self.check_type(entry, &found)?;
            return self.delivery(entry).deliver(name, &found);
        }
        if default_type == NONE {
            return if entry.flags & flag::REQUIRED != 0 {
                Err(NtStatus::OBJECT_NAME_NOT_FOUND)
            } else {
                Ok(())
            };
        }
        let bytes = self.default_bytes(entry, default_type);
        if default_type == MULTI_SZ && bytes.iter().all(|byte| *byte == 0) {
            // A stored value with the same bytes has one empty string, and a default has none.
            return Ok(());
        }
        let default = Found { kind: default_type, bytes };
        self.delivery(entry).deliver(name, &default)
    }

    /// Checks the type of a value before the value is stored directly.
    fn check_type(&self, entry: &QueryRegistryTable, found: &Found) -> NtResult {
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
            context.stop_call(
                Rule::RegistryTypeUnchecked,
                &format!(
                    "with RTL_QUERY_REGISTRY_DIRECT and without RTL_QUERY_REGISTRY_TYPECHECK \
                     for {path}, which others than the system can write"
                ),
            );
        }
        Ok(())
    }

    /// Returns the bytes of an entry's default. For strings, the length is optional.
    fn default_bytes(&self, entry: &QueryRegistryTable, kind: u32) -> Vec<u8> {
        let context = self.context;
        if entry.default_length > 0 {
            return context.bytes(entry.default_data, u64::from(entry.default_length));
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
}
