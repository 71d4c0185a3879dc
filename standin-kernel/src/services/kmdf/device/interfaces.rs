//! Device interfaces that a driver enables and disables, and the function tables (`INTERFACE`) that
//! drivers in a stack query from each other.

use etl_file::Guid;

use crate::{
    execution::routine::{At, Handle, Memory, routine},
    ground::{
        NtResult, NtStatus,
        abi::{Interface, QueryInterfaceConfig, UnicodeString},
        memory_routines,
    },
    services::{
        kmdf::{
            object::string::{assign, read_optional_text},
            state::{
                device::{Below, DeviceData},
                framework::{Context, Entries},
                text::TextData,
            },
        },
        managers::plug_and_play::link,
    },
};

pub const ENTRIES: Entries = &[
    routine("WdfDeviceSetDeviceInterfaceState", set_interface_state),
    routine("WdfDeviceSetDeviceInterfaceStateEx", set_interface_state),
    routine("WdfDeviceRetrieveDeviceInterfaceString", retrieve_interface_string),
    routine("WdfDeviceRetrieveDeviceName", retrieve_name),
    routine("WdfDeviceAddQueryInterface", add_query_interface),
    routine("WdfFdoQueryForInterface", query_for_interface),
];

/// A function table that a driver offers to the drivers above its device.
struct Offer {
    class: [u8; 16],
    /// The table's bytes, or `None` if only the driver's callback answers queries.
    table: Option<Vec<u8>>,
    process: u64,
    asks_parent: bool,
    /// Set if the driver's callback reads the caller's table. The table must then not be
    /// overwritten.
    imports: bool,
}

/// The function tables that a device's driver offers.
#[derive(Default)]
struct Offers(Vec<Offer>);

/// Enables or disables an interface. By default, an interface is enabled when its device starts.
fn set_interface_state(
    context: &Context,
    device: Handle<DeviceData>,
    class: At<Guid>,
    reference: At<UnicodeString>,
    enabled: bool,
) {
    device.check(context);
    let class: [u8; 16] = context.read(class.0);
    let found = read_optional_text(context, reference.0).is_ok_and(|reference| {
        device.with(context, |device| {
            let mut interfaces = device.interfaces.iter_mut();
            let found = interfaces
                .find(|interface| interface.class == class && interface.reference == reference);
            found.map(|interface| interface.is_enabled = enabled).is_some()
        })
    });
    if !found {
        context.warn_of_misuse(|| {
            "for an interface that the device did not create; the framework ignores the call"
                .to_owned()
        });
    }
}

/// Stores an interface's symbolic link name in a string object.
fn retrieve_interface_string(
    context: &Context,
    device: Handle<DeviceData>,
    class: At<Guid>,
    reference: At<UnicodeString>,
    string: Handle<TextData>,
) -> NtResult {
    let is_control = device.with(context, |device| device.is_control());
    let class: [u8; 16] = context.read(class.0);
    let reference = read_optional_text(context, reference.0)?;
    if is_control {
        return Err(NtStatus::INVALID_DEVICE_REQUEST);
    }
    string.check(context);
    let (name, found) = device.with(context, |device| {
        let mut interfaces = device.interfaces.iter();
        let found = interfaces
            .any(|interface| interface.class == class && interface.reference == reference);
        (device.instance_path(), found)
    });
    if !found {
        return Err(NtStatus::OBJECT_NAME_NOT_FOUND);
    }
    assign(context, string.0, &link(&name, class, &reference))
}

/// Stores the device's name in a string object. Fails for a device without a name.
fn retrieve_name(
    context: &Context,
    device: Handle<DeviceData>,
    string: Handle<TextData>,
) -> NtResult {
    let name = device.with(context, |device| device.init.name.clone());
    string.check(context);
    assign(context, string.0, &name.ok_or(NtStatus::INVALID_PARAMETER)?)
}

fn add_query_interface(
    context: &Context,
    device: Handle<DeviceData>,
    config: At<QueryInterfaceConfig>,
) -> NtStatus {
    device.check(context);
    let config = config.read(context);
    context.require(config.interface_type);
    let (is_control, is_child) =
        device.with(context, |device| (device.is_control(), device.init.child_of.is_some()));
    if is_control {
        return NtStatus::INVALID_DEVICE_REQUEST;
    }
    if config.size as usize != size_of::<QueryInterfaceConfig>() {
        return NtStatus::INFO_LENGTH_MISMATCH;
    }
    let imports = config.import_interface != 0;
    let asks_parent = config.send_query_to_parent_stack != 0;
    // Only a child has a parent stack. Without a table, the parent or the callback must answer, and an
    // import requires a callback.
    if (asks_parent && !is_child)
        || (config.interface == 0 && !asks_parent && !imports)
        || (imports && config.evt_device_process_query_interface_request == 0)
    {
        return NtStatus::INVALID_PARAMETER;
    }
    let table = if config.interface == 0 {
        None
    } else {
        let header: Interface = context.read(config.interface);
        if usize::from(header.size) < size_of::<Interface>() {
            return NtStatus::INVALID_PARAMETER;
        }
        let mut table = vec![0; usize::from(header.size)];
        context.read_into(config.interface, &mut table);
        // A table has routines that count its users in any case.
        for routine in table[REFERENCE..REFERENCE + 16].chunks_mut(8) {
            if routine.iter().all(|byte| *byte == 0) {
                routine.copy_from_slice(&no_op().to_le_bytes());
            }
        }
        Some(table)
    };
    let offer = Offer {
        class: context.read(config.interface_type),
        table,
        process: config.evt_device_process_query_interface_request,
        asks_parent,
        imports,
    };
    device.with(context, |device| device.part::<Offers>().0.push(offer));
    NtStatus::SUCCESS
}

/// The offset of `InterfaceReference` in an `INTERFACE`. `InterfaceDereference` follows it.
const REFERENCE: usize = 16;

/// Returns the address of a routine that does nothing.
fn no_op() -> u64 {
    memory_routines::guards().0
}

/// A driver's query for a function table.
#[derive(Clone, Copy)]
pub struct Query {
    /// The address of the interface's GUID.
    pub class: u64,
    /// The address of the table to fill.
    pub table: u64,
    /// The size of the table in bytes.
    pub size: u16,
    /// The table's version.
    pub version: u16,
    /// The address of additional data that the driver and the bus exchange.
    pub data: u64,
}

fn query_for_interface(
    context: &Context,
    device: Handle<DeviceData>,
    class: At<Guid>,
    table: At<Interface>,
    size: u16,
    version: u16,
    data: Memory,
) -> NtResult {
    let is_function =
        device.with(context, |device| !device.is_control() && device.init.child_of.is_none());
    context.require(class.0);
    context.require(table.0);
    if !is_function {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    ask(
        context,
        Below::Device(top_of(context, device.0)),
        Query { class: class.0, table: table.0, size, version, data: data.0 },
    )
}

/// Returns the device at the top of a device's stack.
fn top_of(context: &Context, mut device: u64) -> u64 {
    let mut framework = context.framework();
    let all = framework.all::<DeviceData>();
    let mut above = |lower| {
        let is_above = |upper: &DeviceData| {
            upper.init.child_of.is_none() && upper.init.below == Below::Device(lower)
        };
        let found =
            |one: &&u64| framework.get::<DeviceData>(**one).is_ok_and(|upper| is_above(upper));
        all.iter().find(found).copied()
    };
    while let Some(upper) = above(device) {
        device = upper;
    }
    device
}

/// Queries a stack, starting at `at`, for a function table.
pub fn ask(context: &Context, mut at: Below, query: Query) -> NtResult {
    let class: [u8; 16] = context.read(query.class);
    loop {
        let Below::Device(device) = at else {
            return Err(NtStatus::NOT_SUPPORTED);
        };
        if !context.framework().exists(device) {
            return Err(NtStatus::NO_SUCH_DEVICE);
        }
        let (found, next) = context.with::<DeviceData, _>(device, |device| {
            let next = match device.init.child_of {
                Some(_) => Below::Bus,
                None => device.init.below,
            };
            let offers = device.part::<Offers>().0.iter();
            let found = offers
                .filter(|offer| offer.class == class)
                .map(|offer| {
                    let table = offer.table.clone();
                    (table, offer.process, offer.asks_parent, offer.imports)
                })
                .next();
            (found, next)
        });
        let Some((table, process, asks_parent, imports)) = found else {
            at = next;
            continue;
        };
        answer(context, device, query, table.as_deref(), process, imports)?;
        let parent = context.with::<DeviceData, _>(device, |device| device.init.child_of);
        return match parent {
            Some(parent) if asks_parent => ask(context, Below::Device(parent), query),
            _ => Ok(()),
        };
    }
}

/// Fills the caller's table and calls the callbacks of the driver that offers the interface.
fn answer(
    context: &Context,
    device: u64,
    query: Query,
    table: Option<&[u8]>,
    process: u64,
    imports: bool,
) -> NtResult {
    if let Some(table) = table {
        let version = u16::from_le_bytes([table[2], table[3]]);
        if table.len() > usize::from(query.size) || version > query.version {
            return Err(NtStatus::INVALID_BUFFER_SIZE);
        }
        if !imports {
            context.write_bytes(query.table, table);
        }
    }
    if process != 0 {
        let status = context.call_driver(
            "EvtDeviceProcessQueryInterfaceRequest",
            process,
            [device, query.class, query.table, query.data],
        );
        let status = NtStatus::from_register(status);
        if !status.is_success() && status != NtStatus::NOT_SUPPORTED {
            return Err(status);
        }
    }
    if table.is_some() {
        let exposed: Interface = context.read(query.table);
        if ![0, no_op()].contains(&exposed.interface_reference) {
            context.call_driver(
                "InterfaceReference",
                exposed.interface_reference,
                [exposed.context],
            );
        }
    }
    Ok(())
}
