//! Key handles, and the routines that open, create, describe and delete keys.

use std::{cell::Cell, collections::HashMap};

use super::{
    changes, key_information,
    key_operations::{self, Information, Operation},
};
use crate::{
    execution::{
        kinds::NtObject,
        routine::{At, Callback, Handle, Memory, Out, routine},
        strings::{read_unicode_string, store_unicode_string},
    },
    ground::{
        NtResult, NtStatus,
        abi::{IoStatusBlock, ObjectAttributesNt, UnicodeString},
        arena::Block,
    },
    services::{
        managers::registry::store::{KeyId, NewKey},
        ntoskrnl::{
            context::{Context, Entries},
            ex::named_events,
            ob::{
                filters::{Watched, registered},
                handles::{self, Opening, Target},
                object_attributes::{self, Attributes},
            },
            variables,
        },
    },
};

/// The key from which absolute names start.
const ROOT: &str = r"\REGISTRY";

pub const ENTRIES: Entries = &[
    routine("ZwOpenKey", open),
    routine("ZwOpenKeyEx", open_with_options),
    routine("ZwCreateKey", create),
    routine("ZwDeleteKey", delete),
    routine("ZwFlushKey", flush),
    routine("ZwQueryKey", query),
    routine("ZwEnumerateKey", enumerate),
    routine("ZwNotifyChangeKey", notify_change),
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
    /// The name that a registry callback asked for.
    name: Option<Block>,
    _memory: Block,
}

/// Creates an object for a key. It is deleted when its last handle is closed and its last reference is
/// released.
fn new_object(context: &Context, key: KeyId) -> u64 {
    let memory = Block::zeroed(0x40);
    let object = memory.address();
    let open = OpenKey { key, name: None, _memory: memory };
    context.state().get::<Keys>().0.insert(object, open);
    handles::own(context, object, |context, object| {
        key_operations::clean_up_contexts(context, |one, _| one == object);
        context.state().get::<Keys>().0.remove(&object);
    });
    object
}

fn open_object(context: &Context, object: u64, opening: Opening) -> u64 {
    let close = handle_closed;
    let target = Target { type_name: TYPE, object, close, has_reference: false };
    handles::open(context, target, opening)
}

/// The exported variable that points to the type of key objects.
const TYPE: &str = "CmKeyObjectType";

/// Notifies registry callbacks that the last handle of an object is closed, if it is a key's object.
/// The contexts of the object are cleaned up before the notification of the end.
pub fn handle_closed(context: &Context, object: u64) {
    if number_of(context, object).is_some() && handles::count(context, object) == 0 {
        changes::handle_closed(context, object);
        // A callback cannot prevent the closure.
        let _status = notify(context, Operation::CLOSE_HANDLE, object, &[], || {
            key_operations::clean_up_contexts(context, |one, _| one == object);
            Ok(())
        });
    }
}

/// Performs an operation on a key object between the notifications of registry callbacks. The members
/// `words` are those between `Object` and `CallContext`.
pub fn notify(
    context: &Context,
    operation: Operation,
    object: u64,
    words: &[u64],
    body: impl FnOnce() -> NtResult,
) -> NtResult {
    let all: Vec<u64> = [&[object], words, &[0; 3]].concat();
    let information = Information { words: &all, contexts: all.len() - 3, object };
    key_operations::notify(context, operation, &information, body, |_| object)
}

/// Performs an operation on the key of a handle. See [`notify`]; a framework's handle has no object
/// for the notifications.
pub fn notify_for(
    context: &Context,
    operation: Operation,
    handle: u64,
    words: &[u64],
    body: impl FnOnce(KeyId) -> NtResult,
) -> NtResult {
    let key = key_of(context, handle)?;
    match handles::target(context, handle) {
        Some(target) => notify(context, operation, target.object, words, || body(key)),
        None => body(key),
    }
}

/// Returns the number of the key of an object.
pub fn number_of(context: &Context, object: u64) -> Option<u64> {
    context.with_state(|keys: &mut Keys| Some(keys.0.get(&object)?.key.number()))
}

/// Returns the address of the name of a key's object. The name lives as long as the object.
pub fn name_block_of(context: &Context, object: u64) -> NtResult<u64> {
    let text = name_of(context, object).ok_or(NtStatus::KEY_DELETED)?;
    let existing = context.with_state(|keys: &mut Keys| {
        let name = keys.0.get(&object)?.name.as_ref()?;
        Some(name.address())
    });
    if let Some(address) = existing {
        return Ok(address);
    }
    let mut name = None;
    let address = store_unicode_string(context, &text, |size| {
        let block = name.insert(Block::zeroed(size));
        Some(block.address())
    });
    context.with_state(|keys: &mut Keys| {
        if let Some(open) = keys.0.get_mut(&object) {
            open.name = name;
        }
    });
    address.ok_or(NtStatus::INSUFFICIENT_RESOURCES)
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

fn open(
    context: &Context,
    handle: Out<NtObject>,
    mask: u32,
    attributes: At<ObjectAttributesNt>,
) -> NtResult {
    open_with_options(context, handle, mask, attributes, 0)
}

/// The parameters of a creation that registry callbacks receive, besides the attributes.
struct Request {
    mask: u32,
    options: u32,
    /// The address of the class, or 0.
    class: u64,
    /// The address for the disposition, or 0.
    disposition: u64,
}

/// Opens a key for another routine of the kernel, creates the key and its parents if necessary, and stores
/// a handle to it.
pub fn create_all(context: &Context, path: &str, mask: u32, handle: Out<NtObject>) -> NtResult {
    let mut text = None;
    let name = store_unicode_string(context, path, |size| {
        Some(text.insert(Block::zeroed(size)).address())
    });
    let attributes = Block::zeroed(size_of::<ObjectAttributesNt>());
    let value = ObjectAttributesNt {
        length: u32::try_from(size_of::<ObjectAttributesNt>()).unwrap_or(0),
        object_name: name.ok_or(NtStatus::INSUFFICIENT_RESOURCES)?,
        attributes: Opening::KERNEL.attributes,
        ..context.read(attributes.address())
    };
    context.write(attributes.address(), &value);
    let disposition = Block::zeroed(size_of::<u32>());
    let is_existing = context.registry().open(None, path).is_ok();
    context.write(disposition.address(), &if is_existing { EXISTING } else { NEW });
    let request = Request { mask, options: 0, class: 0, disposition: disposition.address() };
    let at = attributes.address();
    open_key(context, Operation::CREATE_KEY, handle, at, &request, |_, attributes| {
        context.registry().create_all(&attributes.name)
    })
}

/// `REG_CREATED_NEW_KEY` and `REG_OPENED_EXISTING_KEY`.
const NEW: u32 = 1;
const EXISTING: u32 = 2;

/// Opens or creates a key between the notifications of registry callbacks, and stores a handle to it.
fn open_key(
    context: &Context,
    operation: Operation,
    handle: Out<NtObject>,
    attributes: u64,
    request: &Request,
    body: impl FnOnce(Option<KeyId>, &Attributes) -> NtResult<KeyId>,
) -> NtResult {
    let value = object_attributes::read(context, attributes)?;
    let start = start(context, &value)?;
    let opening = Opening { attributes: value.flags, access: request.mask };
    if registered(context, Watched::Registry).is_empty() {
        let object = new_object(context, body(start, &value)?);
        handle.write(context, open_object(context, object, opening));
        return Ok(());
    }
    let given: ObjectAttributesNt = context.read(attributes);
    let empty = Block::zeroed(size_of::<UnicodeString>());
    let name = if given.object_name == 0 { empty.address() } else { given.object_name };
    let root = match handles::target(context, value.root) {
        Some(target) => target.object,
        None => new_object(context, start.map_or_else(|| context.registry().open(None, ROOT), Ok)?),
    };
    handles::reference_new(context, root, TYPE);
    // The locations for a callback that opens the key itself.
    let (result_object, disposition) = (Block::zeroed(8), Block::zeroed(8));
    let words = [
        name,
        root,
        variables::object_type(TYPE).unwrap_or(0),
        request.options.into(),
        request.class,
        given.security_descriptor,
        given.security_quality_of_service,
        request.mask.into(),
        Some(request.disposition).filter(|at| *at != 0).unwrap_or_else(|| disposition.address()),
        result_object.address(),
        0,
        0,
        0,
        // The version, the remaining name, and the attributes.
        1,
        name,
        u64::from(given.attributes) << 32,
        0,
    ];
    let information = Information { words: &words, contexts: 10, object: root };
    let opened = Cell::new(None);
    let perform = || {
        let object = new_object(context, body(start, &value)?);
        handles::reference_new(context, object, TYPE);
        opened.set(Some(object));
        Ok(())
    };
    // A callback that opens the key itself stores the key's object.
    let object = |done: NtResult| {
        let found = opened.get().unwrap_or_else(|| context.read(result_object.address()));
        if done.is_ok() && number_of(context, found).is_some() { found } else { 0 }
    };
    let done = key_operations::notify(context, operation, &information, perform, object);
    handles::dereference(context, At::new(root));
    done?;
    // A callback that changes a success to a failure releases the reference to the object. A callback that
    // opens the key itself transfers its reference.
    let object = object(done);
    handle.write(context, open_object(context, object, opening));
    handles::dereference(context, At::new(object));
    Ok(())
}

fn open_with_options(
    context: &Context,
    handle: Out<NtObject>,
    mask: u32,
    attributes: At<ObjectAttributesNt>,
    options: u32,
) -> NtResult {
    if options & !option::LEGAL_TO_OPEN != 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    check_options(context, options);
    let request = Request { mask, options, class: 0, disposition: 0 };
    open_key(context, Operation::OPEN_KEY, handle, attributes.0, &request, |start, attributes| {
        context.registry().open(start, &attributes.name)
    })
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
    handle: Out<NtObject>,
    mask: u32,
    attributes: At<ObjectAttributesNt>,
    _title: u32,
    class: At<UnicodeString>,
    options: u32,
    disposition: At<u32>,
) -> NtResult {
    if options & !option::LEGAL != 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    check_options(context, options);
    let request = Request { mask, options, class: class.0, disposition: disposition.0 };
    let class = if class.is_null() { String::new() } else { read_unicode_string(context, class.0) };
    let new = NewKey { class: &class, is_volatile: options & option::VOLATILE != 0 };
    open_key(context, Operation::CREATE_KEY, handle, attributes.0, &request, |start, attributes| {
        let (key, is_new) = create_named(context, start, attributes, new)?;
        disposition.write_optional(context, if is_new { NEW } else { EXISTING });
        if is_new {
            changes::subkey_changed(context, &context.registry().path(key)?, false);
        }
        Ok(key)
    })
}

/// Opens the key with an absolute path, or creates it if only the last name does not exist.
pub fn create_key(context: &Context, path: &str) -> NtResult<KeyId> {
    let (key, is_new) = context.registry().create(None, path, NewKey::default())?;
    if is_new {
        changes::subkey_changed(context, &context.registry().path(key)?, false);
    }
    Ok(key)
}

/// Opens a key, or creates it if its parent allows it. Returns whether the key is new.
fn create_named(
    context: &Context,
    start: Option<KeyId>,
    attributes: &Attributes,
    new: NewKey<'_>,
) -> NtResult<(KeyId, bool)> {
    let registry = context.registry();
    match registry.open(start, &attributes.name) {
        Ok(key) => return Ok((key, false)),
        Err(NtStatus::OBJECT_NAME_NOT_FOUND) => {}
        Err(status) => return Err(status),
    }
    registry.create(start, &attributes.name, new)
}

/// Deletes a key. Its handles remain open, but can only be closed.
fn delete(context: &Context, handle: Handle<NtObject>) -> NtResult {
    notify_for(context, Operation::DELETE_KEY, handle.0, &[], |key| {
        let path = context.registry().path(key)?;
        context.registry().delete(key)?;
        changes::subkey_changed(context, &path, true);
        Ok(())
    })
}

/// Requests a notification of the next change of a key, or of the keys below it too.
fn notify_change(
    context: &Context,
    key: Handle<NtObject>,
    event: Handle<NtObject>,
    routine: Callback,
    _argument: Memory,
    block: At<IoStatusBlock>,
    filter: u32,
    is_tree: bool,
    _buffer: Memory,
    _size: u32,
    is_asynchronous: bool,
) -> NtResult<NtStatus> {
    /// The changes of names, attributes, values and security.
    const FILTERS: u32 = 0xF;
    if routine != Callback(0) {
        context.stop_for_unprovided("with a work item");
    }
    if filter == 0 || filter & !FILTERS != 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let path = context.registry().path(key_of(context, key.0)?)?;
    let object = handles::target(context, key.0).map_or(0, |target| target.object);
    let event = named_events::reset_optional(context, event.0)?.unwrap_or(0);
    let request = changes::Request { object, path, filter, is_tree, event, block };
    Ok(changes::notify(context, request, is_asynchronous))
}

/// Checks the handle. There is nothing to flush, because the registry exists only in memory.
fn flush(context: &Context, handle: Handle<NtObject>) -> NtResult {
    notify_for(context, Operation::FLUSH_KEY, handle.0, &[], |_| Ok(()))
}

fn query(
    context: &Context,
    handle: Handle<NtObject>,
    class: u32,
    buffer: Memory,
    length: u32,
    result_length: At<u32>,
) -> NtResult {
    key_information::check_key_class(context, class, true)?;
    let words = [class.into(), buffer.0, length.into(), result_length.0];
    notify_for(context, Operation::QUERY_KEY, handle.0, &words, |key| {
        let information = key_information::of_key(context.registry(), key, class)?;
        key_information::give(context, &information, (buffer.0, length), result_length)
    })
}

fn enumerate(
    context: &Context,
    handle: Handle<NtObject>,
    index: u32,
    class: u32,
    buffer: Memory,
    length: u32,
    result_length: At<u32>,
) -> NtResult {
    key_information::check_key_class(context, class, false)?;
    let words = indexed_words(index, class, (buffer.0, length), result_length);
    notify_for(context, Operation::ENUMERATE_KEY, handle.0, &words, |key| {
        let key = context.registry().subkey(key, index)?;
        let information = key_information::of_key(context.registry(), key, class)?;
        key_information::give(context, &information, (buffer.0, length), result_length)
    })
}

/// Returns the members that registry callbacks receive for an enumeration.
pub fn indexed_words(
    index: u32,
    class: u32,
    (buffer, length): (u64, u32),
    result_length: At<u32>,
) -> [u64; 4] {
    [u64::from(index) | u64::from(class) << 32, buffer, length.into(), result_length.0]
}
