//! Queries for the devices and descriptions of children that a bus driver has reported.

use super::{
    super::state::framework::{Context, Entries},
    children::with_child,
    description::{self, Kind},
    list::{ChildListData, descriptions, find, update_address},
    pdo::parent_of,
};
use crate::{
    execution::routine::{At, Handle, routine},
    ground::{
        NtResult, NtStatus,
        abi::{ChildListConfig, ChildRetrieveInfo},
        opaque::{ChildAddress, ChildIdentification},
    },
    services::kmdf::state::device::DeviceData,
};

pub const ENTRIES: Entries = &[
    routine("WdfChildListRetrievePdo", retrieve_pdo),
    routine("WdfChildListRetrieveAddressDescription", retrieve_address),
    routine("WdfPdoRetrieveIdentificationDescription", pdo_identification),
    routine("WdfPdoRetrieveAddressDescription", pdo_address),
    routine("WdfPdoUpdateAddressDescription", pdo_update_address),
];

/// `WDF_CHILD_LIST_RETRIEVE_DEVICE_STATUS`.
const CREATED: u32 = 1;
const NOT_YET: u32 = 2;
const NONE: u32 = 3;

fn config_of(context: &Context, list: u64) -> ChildListConfig {
    context.with::<ChildListData, _>(list, |list| list.config)
}

/// Returns the device of the child with this identification description, or 0.
fn retrieve_pdo(
    context: &Context,
    list: Handle<ChildListData>,
    info: At<ChildRetrieveInfo>,
) -> Handle<DeviceData> {
    let config = config_of(context, list.0);
    let mut wanted = info.read(context);
    if wanted.size as usize != size_of::<ChildRetrieveInfo>() {
        context.warn_of_size("WDF_CHILD_RETRIEVE_INFO", wanted.size);
        return Handle::new(0);
    }
    let id = wanted.identification_description;
    let is_valid = description::check(context, &config, Kind::Identification, id).is_ok();
    let number = is_valid.then(|| find(context, list.0, id)).flatten();
    let found = number.and_then(|number| descriptions(context, list.0, number));
    let device = found.and_then(|found| found.device);
    wanted.status = match (found, device) {
        (None, _) => NONE,
        (Some(_), None) => NOT_YET,
        (Some(_), Some(_)) => CREATED,
    };
    if let Some(address) = found.and_then(|found| found.address)
        && wanted.address_description != 0
    {
        let to = wanted.address_description;
        // If the driver's structure has the wrong size, it is left unchanged.
        let _ = description::copy(context, list.0, &config, Kind::Address, address, to);
    }
    info.write(context, wanted);
    Handle::new(device.unwrap_or(0))
}

/// Copies the address description of the child with this identification description.
fn retrieve_address(
    context: &Context,
    list: Handle<ChildListData>,
    id: At<ChildIdentification>,
    address_description: At<ChildAddress>,
) -> NtResult {
    let config = config_of(context, list.0);
    description::check(context, &config, Kind::Identification, id.0)?;
    description::check(context, &config, Kind::Address, address_description.0)?;
    let number = find(context, list.0, id.0).ok_or(NtStatus::NO_SUCH_DEVICE)?;
    copy(context, list.0, &config, number, Kind::Address, address_description.0)
}

/// Copies a description of a child in a list.
fn copy(
    context: &Context,
    list: u64,
    config: &ChildListConfig,
    number: u64,
    kind: Kind,
    description: u64,
) -> NtResult {
    let found = descriptions(context, list, number).ok_or(NtStatus::NO_SUCH_DEVICE)?;
    let from = match kind {
        Kind::Identification => Some(found.identification),
        Kind::Address => found.address,
    };
    let from = from.ok_or(NtStatus::INVALID_DEVICE_REQUEST)?;
    description::copy(context, list, config, kind, from, description)
}

/// Returns the list that enumerated a child, and the child's number in the list.
fn listed(context: &Context, device: u64) -> NtResult<(u64, u64)> {
    parent_of(context, device);
    with_child(context, device, |child| child.listed).ok_or(NtStatus::INVALID_DEVICE_REQUEST)
}

fn copy_of_pdo(context: &Context, device: u64, kind: Kind, description: u64) -> NtResult {
    let (list, number) = listed(context, device)?;
    let config = config_of(context, list);
    description::check(context, &config, kind, description)?;
    copy(context, list, &config, number, kind, description)
}

fn pdo_identification(
    context: &Context,
    device: Handle<DeviceData>,
    identification_description: At<ChildIdentification>,
) -> NtResult {
    copy_of_pdo(context, device.0, Kind::Identification, identification_description.0)
}

fn pdo_address(
    context: &Context,
    device: Handle<DeviceData>,
    address_description: At<ChildAddress>,
) -> NtResult {
    copy_of_pdo(context, device.0, Kind::Address, address_description.0)
}

fn pdo_update_address(
    context: &Context,
    device: Handle<DeviceData>,
    address: At<ChildAddress>,
) -> NtResult {
    let (list, number) = listed(context, device.0)?;
    let config = config_of(context, list);
    description::check(context, &config, Kind::Address, address.0)?;
    update_address(context, list, number, address.0)
}
