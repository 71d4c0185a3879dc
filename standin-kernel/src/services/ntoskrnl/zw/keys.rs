//! Key handles, and the routines that open, create, describe and delete keys.

use std::collections::HashMap;

use super::information;
use crate::{
    execution::routine::{At, Routine},
    ground::{NtResult, NtStatus, arena::Block, irql::Irql},
    services::{
        managers::registry::store::{KeyId, NewKey},
        ntoskrnl::{
            context::{Context, Entries},
            ob::{
                handles::{self, Target},
                object_attributes::{self, Attributes},
            },
        },
        strings::read_unicode_string,
    },
};

const PASSIVE: Irql = Irql::PASSIVE_LEVEL;

pub const ENTRIES: Entries = &[
    ("ZwOpenKey", PASSIVE, Routine::of(open)),
    ("ZwOpenKeyEx", PASSIVE, Routine::of(open_with_options)),
    ("ZwCreateKey", PASSIVE, Routine::of(create)),
    ("ZwDeleteKey", PASSIVE, Routine::of(delete)),
    ("ZwFlushKey", PASSIVE, Routine::of(flush)),
    ("ZwQueryKey", PASSIVE, Routine::of(query)),
    ("ZwEnumerateKey", PASSIVE, Routine::of(enumerate)),
];

/// Options of keys (`REG_OPTION_*`).
mod option {
    pub const VOLATILE: u32 = 0x1;
    pub const CREATE_LINK: u32 = 0x2;
    pub const BACKUP_RESTORE: u32 = 0x4;
    pub const OPEN_LINK: u32 = 0x8;
    /// `REG_LEGAL_OPTION` and `REG_OPEN_LEGAL_OPTION`.
    pub const LEGAL: u32 = 0x1F;
    pub const LEGAL_TO_OPEN: u32 = 0x1C;
}

/// The open keys, by object address.
#[derive(Default)]
struct Keys(HashMap<u64, OpenKey>);

struct OpenKey {
    key: KeyId,
    _memory: Block,
}

/// Opens a handle to a key. The handle has no access rights, because Windows checks rights only for
/// calls from user mode.
pub fn open_handle(context: &Context, key: KeyId) -> u64 {
    let memory = Block::zeroed(0x40);
    let object = memory.address();
    let open = OpenKey { key, _memory: memory };
    context.state().get::<Keys>().0.insert(object, open);
    handles::own(context, object, |context, object| {
        context.state().get::<Keys>().0.remove(&object);
    });
    let target =
        Target { type_name: "CmKeyObjectType", object, close: |_, _| {}, has_reference: false };
    handles::open(context, target)
}

/// Returns the name of a key, given its object.
pub fn name_of(context: &Context, object: u64) -> Option<String> {
    let key = context.with_state(|keys: &mut Keys| Some(keys.0.get(&object)?.key))?;
    context.registry().path(key).ok()
}

/// Returns the key of a handle.
pub fn key_of(context: &Context, handle: u64) -> NtResult<KeyId> {
    let of_framework = context.registry().key_of_handle(handle);
    let key = if let Some(key) = of_framework {
        key
    } else {
        let target = handles::target(context, handle).ok_or(NtStatus::INVALID_HANDLE)?;
        let mut state = context.state();
        let open = state.get::<Keys>().0.get(&target.object);
        open.ok_or(NtStatus::OBJECT_TYPE_MISMATCH)?.key
    };
    if context.registry().exists(key) { Ok(key) } else { Err(NtStatus::KEY_DELETED) }
}

/// Returns the key to which a name is relative, or `None` if the name is absolute.
fn start(context: &Context, attributes: &Attributes) -> NtResult<Option<KeyId>> {
    if attributes.root == 0 {
        return Ok(None);
    }
    key_of(context, attributes.root).map(Some)
}

fn open(context: &Context, handle: At<u64>, _mask: u32, attributes: u64) -> NtResult {
    let attributes = object_attributes::read(context, attributes)?;
    let start = start(context, &attributes)?;
    let key = context.registry().open(start, &attributes.name)?;
    handle.write(context, open_handle(context, key));
    Ok(())
}

fn open_with_options(
    context: &Context,
    handle: At<u64>,
    mask: u32,
    attributes: u64,
    options: u32,
) -> NtResult {
    if options & !option::LEGAL_TO_OPEN != 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    check_options(context, options);
    open(context, handle, mask, attributes)
}

/// Bugchecks for options that this kernel does not implement.
fn check_options(context: &Context, options: u32) {
    if options & (option::CREATE_LINK | option::OPEN_LINK) != 0 {
        context.stop_for_unprovided("for a symbolic link in the registry");
    }
    if options & option::BACKUP_RESTORE != 0 {
        context.stop_for_unprovided("with REG_OPTION_BACKUP_RESTORE");
    }
}

fn create(
    context: &Context,
    handle: At<u64>,
    _mask: u32,
    attributes: u64,
    _title: u32,
    class: u64,
    options: u32,
    disposition: At<u32>,
) -> NtResult {
    /// `REG_CREATED_NEW_KEY` and `REG_OPENED_EXISTING_KEY`.
    const NEW: u32 = 1;
    const EXISTING: u32 = 2;
    if options & !option::LEGAL != 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    check_options(context, options);
    let class = if class == 0 { String::new() } else { read_unicode_string(context, class) };
    let new = NewKey { class: &class, is_volatile: options & option::VOLATILE != 0 };
    let attributes = object_attributes::read(context, attributes)?;
    let (key, is_new) = create_named(context, &attributes, new)?;
    handle.write(context, open_handle(context, key));
    disposition.write_optional(context, if is_new { NEW } else { EXISTING });
    Ok(())
}

/// Opens a key, or creates it if its parent allows it. Returns whether the key is new.
fn create_named(
    context: &Context,
    attributes: &Attributes,
    new: NewKey<'_>,
) -> NtResult<(KeyId, bool)> {
    let registry = context.registry();
    let start = start(context, attributes)?;
    match registry.open(start, &attributes.name) {
        Ok(key) => return Ok((key, false)),
        Err(NtStatus::OBJECT_NAME_NOT_FOUND) => {}
        Err(status) => return Err(status),
    }
    registry.create(start, &attributes.name, new)
}

/// Deletes a key. Its handles remain open, but can only be closed.
fn delete(context: &Context, handle: u64) -> NtResult {
    context.registry().delete(key_of(context, handle)?)
}

/// Checks the handle. There is nothing to flush, because the registry exists only in memory.
fn flush(context: &Context, handle: u64) -> NtResult {
    key_of(context, handle).map(drop)
}

fn query(
    context: &Context,
    handle: u64,
    class: u32,
    buffer: u64,
    length: u32,
    result_length: At<u32>,
) -> NtResult {
    information::check_key_class(context, class, true)?;
    let key = key_of(context, handle)?;
    let information = information::of_key(context.registry(), key, class)?;
    information::give(context, &information, (buffer, length), result_length)
}

fn enumerate(
    context: &Context,
    handle: u64,
    index: u32,
    class: u32,
    buffer: u64,
    length: u32,
    result_length: At<u32>,
) -> NtResult {
    information::check_key_class(context, class, false)?;
    let key = context.registry().subkey(key_of(context, handle)?, index)?;
    let information = information::of_key(context.registry(), key, class)?;
    information::give(context, &information, (buffer, length), result_length)
}
