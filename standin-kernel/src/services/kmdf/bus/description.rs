//! The descriptions of children. A bus driver defines their structures, which may own memory that
//! only the driver's callbacks can copy and free.

use crate::{
    ground::{NtResult, NtStatus, abi::ChildListConfig, arena::Block},
    services::kmdf::state::framework::Context,
};

/// The maximum size of a description.
pub const MAX_SIZE: u32 = 1 << 20;

/// The kind of a description.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The identification description. It distinguishes a child from all other children.
    Identification,
    /// The address description: the child's location. It may change.
    Address,
}

/// A description stored in a list.
pub struct Description(Block);

impl Description {
    /// Returns the address that is passed to the driver's callbacks.
    pub const fn address(&self) -> u64 {
        self.0.address()
    }
}

/// Returns the size of a kind of description, and its callbacks (copy, duplicate, clean up).
const fn callbacks(config: &ChildListConfig, kind: Kind) -> (u32, [u64; 3]) {
    match kind {
        Kind::Identification => (
            config.identification_description_size,
            [
                config.evt_child_list_identification_description_copy,
                config.evt_child_list_identification_description_duplicate,
                config.evt_child_list_identification_description_cleanup,
            ],
        ),
        Kind::Address => (
            config.address_description_size,
            [
                config.evt_child_list_address_description_copy,
                config.evt_child_list_address_description_duplicate,
                config.evt_child_list_address_description_cleanup,
            ],
        ),
    }
}

/// Checks the size in a description's header.
pub fn check(context: &Context, config: &ChildListConfig, kind: Kind, address: u64) -> NtResult {
    let size: u32 = context.read(address);
    let (expected, _) = callbacks(config, kind);
    if size == expected && size != 0 { Ok(()) } else { Err(NtStatus::INVALID_DEVICE_REQUEST) }
}

fn bytes_of(context: &Context, address: u64, size: u32) -> Vec<u8> {
    let length = size as usize;
    context.read_bytes(address, length)
}

/// Copies a description into a list.
pub fn duplicate(
    context: &Context,
    list: u64,
    config: &ChildListConfig,
    kind: Kind,
    address: u64,
) -> NtResult<Description> {
    let (size, [_, duplicate, _]) = callbacks(config, kind);
    let block = Block::zeroed(size as usize);
    if duplicate == 0 {
        context.write_bytes(block.address(), &bytes_of(context, address, size));
        return Ok(Description(block));
    }
    // The callback requires a header in the destination.
    context.write(block.address(), &size);
    let name = match kind {
        Kind::Identification => "EvtChildListIdentificationDescriptionDuplicate",
        Kind::Address => "EvtChildListAddressDescriptionDuplicate",
    };
    let status = context.call_driver(name, duplicate, [list, address, block.address()]);
    let status = NtStatus::from_register(status);
    status.is_success().then_some(Description(block)).ok_or(status)
}

/// Copies a description from a list to the driver's structure.
pub fn copy(
    context: &Context,
    list: u64,
    config: &ChildListConfig,
    kind: Kind,
    from: u64,
    destination: u64,
) -> NtResult {
    check(context, config, kind, destination)?;
    let (size, [copy, ..]) = callbacks(config, kind);
    if copy == 0 {
        context.write_bytes(destination, &bytes_of(context, from, size));
    } else {
        let name = match kind {
            Kind::Identification => "EvtChildListIdentificationDescriptionCopy",
            Kind::Address => "EvtChildListAddressDescriptionCopy",
        };
        context.call_driver(name, copy, [list, from, destination]);
    }
    Ok(())
}

/// Lets the driver free the memory that a description owns.
pub fn clean_up(
    context: &Context,
    list: u64,
    config: &ChildListConfig,
    kind: Kind,
    description: &Description,
) {
    let (_, [.., cleanup]) = callbacks(config, kind);
    if cleanup != 0 {
        let name = match kind {
            Kind::Identification => "EvtChildListIdentificationDescriptionCleanup",
            Kind::Address => "EvtChildListAddressDescriptionCleanup",
        };
        context.call_driver(name, cleanup, [list, description.address()]);
    }
}

/// Returns whether two identification descriptions identify the same child.
pub fn is_same(
    context: &Context,
    list: u64,
    config: &ChildListConfig,
    first: u64,
    second: u64,
) -> bool {
    let compare = config.evt_child_list_identification_description_compare;
    if compare == 0 {
        let size = config.identification_description_size;
        return bytes_of(context, first, size) == bytes_of(context, second, size);
    }
    let same = context.call_driver(
        "EvtChildListIdentificationDescriptionCompare",
        compare,
        [list, first, second],
    );
    same & 0xFF != 0
}
