//! Dynamic child lists. A child is identified by its identification description.

use super::{
    children::{Child, ChildState, with_child},
    description::{self, Description, Kind},
    pdo_init,
    removal::{eject_later, remove_later},
};
use crate::{
    execution::routine::{At, Handle, Out, routine},
    ground::{
        NtResult, NtStatus,
        abi::{ChildListConfig, ChildListIterator, ChildRetrieveInfo, ObjectAttributes},
        opaque::{ChildAddress, ChildIdentification},
    },
    services::kmdf::{
        device::{
            init::{Inits, allocate_init},
            pnp::start_stack,
        },
        lifetime,
        lifetime::{create, give, read_attributes},
        state::{
            device::{DeviceData, DeviceInit},
            framework::{Context, Data, Entries, ObjectRoutine},
        },
        work::{Work, WorkKind, queue_work},
    },
};

pub const ENTRIES: Entries = &[
    routine("WdfFdoInitSetDefaultChildListConfig", set_default_config),
    routine("WdfFdoGetDefaultChildList", get_default_list),
    routine("WdfChildListCreate", list_create),
    routine("WdfChildListGetDevice", get_device),
    routine("WdfChildListBeginScan", begin_scan),
    routine("WdfChildListEndScan", end_scan),
    routine("WdfChildListAddOrUpdateChildDescriptionAsPresent", add_or_update),
    routine("WdfChildListUpdateChildDescriptionAsMissing", update_as_missing),
    routine("WdfChildListUpdateAllChildDescriptionsAsPresent", update_all_as_present),
    routine("WdfChildListBeginIteration", begin_iteration),
    routine("WdfChildListRetrieveNextDevice", retrieve_next),
    routine("WdfChildListEndIteration", end_iteration),
    routine("WdfChildListRequestChildEject", request_eject),
];

struct Entry {
    number: u64,
    id: Description,
    address: Option<Description>,
    /// The child's device, once the driver has created it.
    device: Option<u64>,
    is_missing: bool,
    /// Set if the current scan has reported the child.
    is_seen: bool,
}

/// A child list.
pub struct ChildListData {
    device: u64,
    pub config: ChildListConfig,
    entries: Vec<Entry>,
    issued: u64,
    scans: u32,
    /// The number of iterations in progress.
    iterations: u32,
}

impl Data for ChildListData {
    const NAME: &'static str = "WDFCHILDLIST";
    const BEFORE_DELETE: Option<ObjectRoutine> = Some(clean_up);
    const DEVICE_STARTED: Option<ObjectRoutine> = Some(scan);

    fn is_frameworks(&self) -> bool {
        true
    }
}

/// A bus device's default list: its configuration until the device is created, then the list
/// itself.
#[derive(Default)]
pub struct DefaultList {
    config: Option<(ChildListConfig, Option<ObjectAttributes>)>,
    list: Option<u64>,
}

fn check(config: &ChildListConfig) -> NtResult {
    if config.size as usize != size_of::<ChildListConfig>() {
        return Err(NtStatus::INFO_LENGTH_MISMATCH);
    }
    let smallest = 4;
    let is_valid = config.identification_description_size >= smallest
        && (config.address_description_size == 0 || config.address_description_size >= smallest)
        && config.evt_child_list_create_device != 0
        && config.identification_description_size <= description::MAX_SIZE
        && config.address_description_size <= description::MAX_SIZE;
    is_valid.then_some(()).ok_or(NtStatus::INVALID_PARAMETER)
}

fn set_default_config(
    context: &Context,
    init: Handle<DeviceInit>,
    config: At<ChildListConfig>,
    attributes: At<ObjectAttributes>,
) {
    let config = config.read(context);
    if config.size as usize != size_of::<ChildListConfig>() {
        context.stop_for_size("WDF_CHILD_LIST_CONFIG", config.size);
    }
    let attributes = read_attributes(context, attributes.0);
    let is_valid = check(&config).is_ok();
    let is_function = init.with_init(context, |init| {
        let is_function = init.control_of.is_none() && init.child_of.is_none();
        if is_function && is_valid {
            init.parts.get::<DefaultList>().config = Some((config, attributes));
        }
        is_function
    });
    if !is_valid || !is_function {
        context.warn_of_misuse(|| {
            "with an invalid configuration, or for a device that is not a function device"
                .to_owned()
        });
    }
}

/// Creates the default list of a new bus device, if its driver configured one.
pub fn create_default(context: &Context, device: u64) -> NtResult {
    let config =
        context.with::<DeviceData, _>(device, |device| device.part::<DefaultList>().config.take());
    let Some((config, attributes)) = config else {
        return Ok(());
    };
    let list = make(context, device, config, attributes.as_ref())?;
    context.with::<DeviceData, _>(device, |device| {
        device.part::<DefaultList>().list = Some(list);
    });
    Ok(())
}

fn make(
    context: &Context,
    device: u64,
    config: ChildListConfig,
    attributes: Option<&ObjectAttributes>,
) -> NtResult<u64> {
    let data =
        ChildListData { device, config, entries: Vec::new(), issued: 0, scans: 0, iterations: 0 };
    create(context, data, attributes, Some(device))
}

fn get_default_list(context: &Context, device: Handle<DeviceData>) -> Handle<ChildListData> {
    Handle::new(device.with(context, |device| device.part::<DefaultList>().list.unwrap_or(0)))
}

fn list_create(
    context: &Context,
    device: Handle<DeviceData>,
    config: At<ChildListConfig>,
    attributes: At<ObjectAttributes>,
    list: Out<ChildListData>,
) -> NtResult {
    let is_control = device.with(context, |device| device.is_control());
    let config = config.read(context);
    let attributes = read_attributes(context, attributes.0);
    let made = check(&config).and_then(|()| {
        if is_control {
            Err(NtStatus::INVALID_DEVICE_REQUEST)
        } else {
            make(context, device.0, config, attributes.as_ref())
        }
    });
    give(context, made, list.0)
}

fn get_device(context: &Context, list: Handle<ChildListData>) -> Handle<DeviceData> {
    Handle::new(list.with(context, |list| list.device))
}

/// Asks the driver to scan for children after the device has started.
fn scan(context: &Context, list: u64) {
    let callback =
        context.with::<ChildListData, _>(list, |list| list.config.evt_child_list_scan_for_children);
    if callback != 0 {
        context.call_driver("EvtChildListScanForChildren", callback, [list]);
    }
}

/// Returns the number of the child with this identification description, if it is in the list.
pub fn find(context: &Context, list: u64, id: u64) -> Option<u64> {
    let (config, present) = context.with::<ChildListData, _>(list, |list| {
        let present = list.entries.iter().filter(|entry| !entry.is_missing);
        let present: Vec<(u64, u64)> =
            present.map(|entry| (entry.number, entry.id.address())).collect();
        (list.config, present)
    });
    present
        .into_iter()
        .find(|(_, known)| description::is_same(context, list, &config, *known, id))
        .map(|(number, _)| number)
}

/// Runs `body` on a child, if it is still in the list.
fn with_entry<R>(
    context: &Context,
    list: u64,
    number: u64,
    body: impl FnOnce(&mut Entry) -> R,
) -> Option<R> {
    context.with::<ChildListData, _>(list, |list| {
        let mut entries = list.entries.iter_mut();
        entries.find(|entry| entry.number == number).map(body)
    })
}

/// A child's record in its list: the addresses of its descriptions, and its device.
#[derive(Clone, Copy)]
pub struct Descriptions {
    pub identification: u64,
    pub address: Option<u64>,
    pub device: Option<u64>,
}

/// Returns a child's record, if the child is still in the list.
pub fn descriptions(context: &Context, list: u64, number: u64) -> Option<Descriptions> {
    with_entry(context, list, number, |entry| Descriptions {
        identification: entry.id.address(),
        address: entry.address.as_ref().map(Description::address),
        device: entry.device,
    })
}

/// Replaces the address description of a child.
pub fn update_address(context: &Context, list: u64, number: u64, address: u64) -> NtResult {
    let config = context.with::<ChildListData, _>(list, |list| list.config);
    let new = description::duplicate(context, list, &config, Kind::Address, address)?;
    let old = with_entry(context, list, number, |entry| entry.address.replace(new));
    if let Some(old) = old.flatten() {
        description::clean_up(context, list, &config, Kind::Address, &old);
    }
    Ok(())
}

fn begin_scan(context: &Context, list: Handle<ChildListData>) {
    list.with(context, |list| {
        if list.scans == 0 {
            for entry in &mut list.entries {
                entry.is_seen = false;
            }
        }
        list.scans += 1;
    });
}

/// Ends a scan. Children that the scan has not reported become missing.
fn end_scan(context: &Context, list: Handle<ChildListData>) {
    let is_over = list.with(context, |list| {
        list.scans = list.scans.checked_sub(1)?;
        if list.scans == 0 {
            for entry in &mut list.entries {
                entry.is_missing |= !entry.is_seen;
            }
        }
        Some(list.scans == 0)
    });
    match is_over {
        Some(true) => report(context, list.0),
        Some(false) => {}
        None => context.warn_of_misuse(|| "without a previous WdfChildListBeginScan".to_owned()),
    }
}

/// Reports the changes of a list to the Plug and Play manager, unless a scan is in progress.
fn report(context: &Context, list: u64) {
    if context.with::<ChildListData, _>(list, |list| list.scans > 0) {
        return;
    }
    queue_work(
        context,
        Work { kind: WorkKind::NewChildren, routine: 0, handle: list, run: enumerate },
    );
}

fn add_or_update(
    context: &Context,
    list: Handle<ChildListData>,
    id: At<ChildIdentification>,
    address: At<ChildAddress>,
) -> NtResult<NtStatus> {
    let config = list.with(context, |list| list.config);
    description::check(context, &config, Kind::Identification, id.0)?;
    if !address.is_null() {
        description::check(context, &config, Kind::Address, address.0)?;
    } else if config.address_description_size != 0 {
        return Err(NtStatus::INVALID_DEVICE_REQUEST);
    }
    let is_new = add(context, list.0, &config, id.0, address.0)?;
    Ok(if is_new { NtStatus::SUCCESS } else { NtStatus::OBJECT_NAME_EXISTS })
}

/// Adds a child, or updates the address of an existing child. Returns whether the child is new.
fn add(
    context: &Context,
    list: u64,
    config: &ChildListConfig,
    id: u64,
    address: u64,
) -> NtResult<bool> {
    let address = if address == 0 {
        None
    } else {
        Some(description::duplicate(context, list, config, Kind::Address, address)?)
    };
    if let Some(number) = find(context, list, id) {
        let old = with_entry(context, list, number, |entry| {
            entry.is_seen = true;
            match address {
                Some(address) => entry.address.replace(address),
                None => None,
            }
        });
        if let Some(old) = old.flatten() {
            description::clean_up(context, list, config, Kind::Address, &old);
        }
        return Ok(false);
    }
    let id = description::duplicate(context, list, config, Kind::Identification, id)?;
    context.with::<ChildListData, _>(list, |list| {
        list.issued += 1;
        list.entries.push(Entry {
            number: list.issued,
            id,
            address,
            device: None,
            is_missing: false,
            is_seen: true,
        });
    });
    report(context, list);
    Ok(true)
}

fn update_as_missing(
    context: &Context,
    list: Handle<ChildListData>,
    id: At<ChildIdentification>,
) -> NtResult {
    let config = list.with(context, |list| list.config);
    description::check(context, &config, Kind::Identification, id.0)?;
    let number = find(context, list.0, id.0).ok_or(NtStatus::NO_SUCH_DEVICE)?;
    mark_entry_missing(context, list.0, number);
    Ok(())
}

/// Reports a child of a list missing.
pub fn mark_entry_missing(context: &Context, list: u64, number: u64) {
    with_entry(context, list, number, |entry| entry.is_missing = true);
    report(context, list);
}

fn update_all_as_present(context: &Context, list: Handle<ChildListData>) {
    list.with(context, |list| {
        for entry in &mut list.entries {
            entry.is_seen = true;
        }
    });
}

/// Creates the devices of new children, and removes the devices of missing children.
fn enumerate(context: &Context, list: u64) {
    loop {
        let next = context.framework().get::<ChildListData>(list).ok().and_then(|list| {
            let mut entries = list.entries.iter();
            let next = entries.find(|entry| entry.is_missing || entry.device.is_none())?;
            Some((next.number, next.is_missing))
        });
        match next {
            Some((number, true)) => remove_entry(context, list, number),
            Some((number, false)) => create_child(context, list, number),
            None => return,
        }
    }
}

/// Removes a child from its list immediately, and removes its device after the current step.
fn remove_entry(context: &Context, list: u64, number: u64) {
    let (config, removed) = context.with::<ChildListData, _>(list, |list| {
        let place = list.entries.iter().position(|entry| entry.number == number);
        (list.config, place.map(|place| list.entries.remove(place)))
    });
    let Some(removed) = removed else {
        return;
    };
    if let Some(device) = removed.device
        && context.framework().exists(device)
    {
        with_child(context, device, |child| child.is_missing = true);
        remove_later(context, device);
    }
    clean_up_entry(context, list, &config, &removed);
}

fn clean_up_entry(context: &Context, list: u64, config: &ChildListConfig, entry: &Entry) {
    if let Some(address) = &entry.address {
        description::clean_up(context, list, config, Kind::Address, address);
    }
    description::clean_up(context, list, config, Kind::Identification, &entry.id);
}

/// Asks the driver to create a child's device. If the driver fails, the child is removed.
fn create_child(context: &Context, list: u64, number: u64) {
    let (device, callback) = context.with::<ChildListData, _>(list, |list| {
        (list.device, list.config.evt_child_list_create_device)
    });
    let Some(id) = with_entry(context, list, number, |entry| entry.id.address()) else {
        return;
    };
    let mut description = pdo_init::new(device);
    description.parts.get::<Child>().listed = Some((list, number));
    let init = allocate_init(context, description);
    let before = context.framework().all::<DeviceData>();
    let status = context.call_driver("EvtChildListCreateDevice", callback, [list, id, init]);
    let created = {
        let mut framework = context.framework();
        framework.part::<Inits>().open.remove(&init);
        framework.all::<DeviceData>().into_iter().find(|child| {
            !before.contains(child)
                && framework
                    .get::<DeviceData>(*child)
                    .is_ok_and(|child| child.init.child_of == Some(device))
        })
    };
    let is_created = NtStatus::from_register(status).is_success();
    if let Some(child) = created.filter(|_| is_created) {
        with_entry(context, list, number, |entry| entry.device = Some(child));
        let is_raw = with_child(context, child, |child| {
            child.is_reported = true;
            child.is_raw
        });
        if is_raw {
            // A device that fails to start stays in the tree.
            let _started = start_stack(context, child);
        }
        return;
    }
    if let Some(child) = created {
        lifetime::delete(context, child);
    }
    remove_entry(context, list, number);
}

/// Releases the memory that the descriptions of a deleted list own.
fn clean_up(context: &Context, list: u64) {
    let (config, entries) = context
        .with::<ChildListData, _>(list, |list| (list.config, core::mem::take(&mut list.entries)));
    for entry in &entries {
        clean_up_entry(context, list, &config, entry);
    }
}

fn begin_iteration(
    context: &Context,
    list: Handle<ChildListData>,
    iterator: At<ChildListIterator>,
) {
    let mut given = iterator.read(context);
    if given.size as usize != size_of::<ChildListIterator>() {
        context.stop_for_size("WDF_CHILD_LIST_ITERATOR", given.size);
    }
    list.with(context, |list| list.iterations += 1);
    given.reserved = [0; 4];
    iterator.write(context, given);
}

fn end_iteration(context: &Context, list: Handle<ChildListData>, _iterator: At<ChildListIterator>) {
    let ended = list.with(context, |list| {
        list.iterations = list.iterations.checked_sub(1)?;
        Some(())
    });
    if ended.is_none() {
        context.warn_of_misuse(|| "without a previous WdfChildListBeginIteration".to_owned());
    }
}

/// Returns the next child that the iterator's flags select and, if requested, its descriptions.
fn retrieve_next(
    context: &Context,
    list: Handle<ChildListData>,
    iterator: At<ChildListIterator>,
    device: Out<DeviceData>,
    info: At<ChildRetrieveInfo>,
) -> NtResult {
    let found = next_child(context, list.0, iterator.0, info.0);
    context.write(device.0, &found.unwrap_or(0));
    found.map(|_| ())
}

fn next_child(context: &Context, list: u64, iterator: u64, info: u64) -> NtResult<u64> {
    /// `WdfChildListRetrieveDeviceSuccess` and `WdfChildListRetrieveDeviceNotYetCreated`.
    const CREATED: u32 = 1;
    const NOT_YET: u32 = 2;
    /// The valid `WDF_RETRIEVE_CHILD_FLAGS`.
    const FLAGS: u32 = 7;
    let mut given: ChildListIterator = context.read(iterator);
    if given.size as usize != size_of::<ChildListIterator>() {
        return Err(NtStatus::INFO_LENGTH_MISMATCH);
    }
    if given.flags == 0 || given.flags & !FLAGS != 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    if context.with::<ChildListData, _>(list, |list| list.iterations == 0) {
        return Err(NtStatus::INVALID_DEVICE_STATE);
    }
    let [mut after, ..] = given.reserved;
    let wanted: Option<ChildRetrieveInfo> = context.read_optional(info);
    if wanted.is_some_and(|wanted| wanted.size as usize != size_of::<ChildRetrieveInfo>()) {
        return Err(NtStatus::INFO_LENGTH_MISMATCH);
    }
    let config = context.with::<ChildListData, _>(list, |list| list.config);
    loop {
        let next = context.with::<ChildListData, _>(list, |list| {
            let mut entries = list.entries.iter();
            let next = entries.find(|entry| entry.number > after)?;
            let state = match (next.is_missing, next.device) {
                (true, _) => ChildState::Missing,
                (false, Some(_)) => ChildState::Present,
                (false, None) => ChildState::Pending,
            };
            let address = next.address.as_ref().map(Description::address);
            Some((next.number, state, next.id.address(), address, next.device))
        });
        let (number, state, id, address, child) = next.ok_or(NtStatus::NO_MORE_ENTRIES)?;
        after = number;
        if !state.is_in(given.flags) {
            continue;
        }
        if let Some(wanted) = &wanted {
            let compare = wanted.evt_child_list_identification_description_compare;
            if compare != 0 && wanted.identification_description != 0 {
                let same = context.call_driver(
                    "EvtChildListIdentificationDescriptionCompare",
                    compare,
                    [list, wanted.identification_description, id],
                );
                let [same, ..] = same.to_le_bytes();
                if same == 0 {
                    continue;
                }
            }
        }
        given.reserved = [after, 0, 0, 0];
        context.write(iterator, &given);
        if let Some(mut wanted) = wanted {
            if wanted.identification_description != 0 {
                let to = wanted.identification_description;
                description::copy(context, list, &config, Kind::Identification, id, to)?;
            }
            if let (Some(address), true) = (address, wanted.address_description != 0) {
                let to = wanted.address_description;
                description::copy(context, list, &config, Kind::Address, address, to)?;
            }
            wanted.status = if child.is_some() { CREATED } else { NOT_YET };
            context.write(info, &wanted);
        }
        return Ok(child.unwrap_or(0));
    }
}

/// Ejects the child with this identification description. Returns whether the child is in the list.
fn request_eject(
    context: &Context,
    list: Handle<ChildListData>,
    id: At<ChildIdentification>,
) -> bool {
    let config = list.with(context, |list| list.config);
    if description::check(context, &config, Kind::Identification, id.0).is_err() {
        return false;
    }
    let device = find(context, list.0, id.0)
        .and_then(|number| with_entry(context, list.0, number, |entry| entry.device).flatten());
    if let Some(device) = device {
        eject_later(context, device);
    }
    device.is_some()
}
