//! Device interfaces that a driver enables and disables, and the function tables (`INTERFACE`) that
//! drivers of a stack query from each other.

use crate::{
    execution::routine::Routine,
    ground::{
        framework_abi::{Interface, QueryInterfaceConfig},
        status::NtStatus,
    },
    services::{
        kmdf::{
            state::{
                device::{Below, DeviceData},
                framework::{Context, Entries},
                text::TextData,
            },
            text_routines::assign,
        },
        managers::plug_and_play::link,
        strings::read_unicode_string,
    },
};

pub const ENTRIES: Entries = &[
    ("WdfDeviceSetDeviceInterfaceState", Routine::Five(set_interface_state)),
    ("WdfDeviceSetDeviceInterfaceStateEx", Routine::Five(set_interface_state)),
    ("WdfDeviceRetrieveDeviceInterfaceString", Routine::Five(retrieve_interface_string)),
    ("WdfDeviceRetrieveDeviceName", Routine::Three(retrieve_name)),
    ("WdfDeviceAddQueryInterface", Routine::Three(add_query_interface)),
    ("WdfFdoQueryForInterface", Routine::Seven(query_for_interface)),
];

/// A function table that a driver offers to the drivers above its device.
struct Offer {
    class: [u8; 16],
    /// The table's bytes, unless the driver only answers queries by its callback.
    table: Option<Vec<u8>>,
    process: u64,
    asks_parent: bool,
    /// Set if the driver's callback reads the caller's table, which is not overwritten.
    imports: bool,
}

/// The function tables that a device's driver offers.
#[derive(Default)]
struct Offers(Vec<Offer>);

fn optional_text(context: &Context, address: u64) -> String {
    if address == 0 { String::new() } else { read_unicode_string(context, address) }
}

/// Enables or disables an interface. Before, an interface is enabled when its device starts.
fn set_interface_state(
    context: &Context,
    _globals: u64,
    device: u64,
    class: u64,
    reference: u64,
    enabled: u64,
) -> u64 {
    let class: [u8; 16] = context.read(class);
    let reference = optional_text(context, reference);
    let found = context.with::<DeviceData, _>(device, |device| {
        let mut interfaces = device.interfaces.iter_mut();
        let found = interfaces.find(|interface| {
            interface.class == class && interface.reference.eq_ignore_ascii_case(&reference)
        });
        found.map(|interface| interface.is_enabled = enabled & 0xFF != 0).is_some()
    });
    if !found {
        context.warn_of_misuse(|| {
            "for an interface that the device did not create; the framework ignores the call"
                .to_owned()
        });
    }
    0
}

/// Stores an interface's symbolic link name in a string object.
fn retrieve_interface_string(
    context: &Context,
    _globals: u64,
    device: u64,
    class: u64,
    reference: u64,
    string: u64,
) -> u64 {
    let class: [u8; 16] = context.read(class);
    let reference = optional_text(context, reference);
    context.with::<TextData, _>(string, |_| ());
    let (name, found) = context.with::<DeviceData, _>(device, |device| {
        let found = device.interfaces.iter().any(|interface| {
            interface.class == class && interface.reference.eq_ignore_ascii_case(&reference)
        });
        (device.instance_path(), found)
    });
    if !found {
        return NtStatus::OBJECT_NAME_NOT_FOUND.to_register();
    }
    assign(context, string, &link(&name, class, &reference)).to_register()
}

/// Stores the device's name in a string object. A device without a name has none.
fn retrieve_name(context: &Context, _globals: u64, device: u64, string: u64) -> u64 {
    let name = context.with::<DeviceData, _>(device, |device| device.init.name.clone());
    context.with::<TextData, _>(string, |_| ());
    let status = name.map_or(NtStatus::INVALID_PARAMETER, |name| assign(context, string, &name));
    status.to_register()
}

fn add_query_interface(context: &Context, _globals: u64, device: u64, config: u64) -> u64 {
    context.with::<DeviceData, _>(device, |_| ());
    let config: QueryInterfaceConfig = context.read(config);
    if config.size as usize != size_of::<QueryInterfaceConfig>() {
        return NtStatus::INFO_LENGTH_MISMATCH.to_register();
    }
    let imports = config.import_interface != 0;
    // A query must be answered by a table or by a callback, and an import by both.
    let has_callback = config.process_query_interface_request != 0;
    if config.interface_type == 0
        || (config.interface == 0 && !has_callback)
        || (imports && !has_callback)
    {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    let table = if config.interface == 0 {
        None
    } else {
        let header: Interface = context.read(config.interface);
        if usize::from(header.size) < size_of::<Interface>() {
            return NtStatus::INVALID_PARAMETER.to_register();
        }
        let mut table = vec![0; usize::from(header.size)];
        context.read_into(config.interface, &mut table);
        Some(table)
    };
    let offer = Offer {
        class: context.read(config.interface_type),
        table,
        process: config.process_query_interface_request,
        asks_parent: config.send_query_to_parent_stack != 0,
        imports,
    };
    context.with::<DeviceData, _>(device, |device| device.part::<Offers>().0.push(offer));
    NtStatus::SUCCESS.to_register()
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
    /// The address of what else driver and bus exchange.
    pub data: u64,
}

fn query_for_interface(context: &Context, arguments: [u64; 7]) -> u64 {
    let [_globals, device, class, table, size, version, data] = arguments;
    let below = context.with::<DeviceData, _>(device, |device| device.init.below);
    ask(context, below, Query::new(class, table, size, version, data)).to_register()
}

impl Query {
    /// Creates a query from a routine's arguments.
    pub const fn new(class: u64, table: u64, size: u64, version: u64, data: u64) -> Self {
        let [size_0, size_1, ..] = size.to_le_bytes();
        let [version_0, version_1, ..] = version.to_le_bytes();
        Self {
            class,
            table,
            size: u16::from_le_bytes([size_0, size_1]),
            version: u16::from_le_bytes([version_0, version_1]),
            data,
        }
    }
}

/// Asks a stack from `at` downwards for a function table.
pub fn ask(context: &Context, mut at: Below, query: Query) -> NtStatus {
    let class: [u8; 16] = context.read(query.class);
    loop {
        let Below::Device(device) = at else {
            return NtStatus::NOT_SUPPORTED;
        };
        if !context.framework().exists(device) {
            return NtStatus::NO_SUCH_DEVICE;
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
        let status = answer(context, device, query, table.as_deref(), process, imports);
        let parent = context.with::<DeviceData, _>(device, |device| device.init.child_of);
        return match parent {
            Some(parent) if status.is_success() && asks_parent => {
                ask(context, Below::Device(parent), query)
            }
            _ => status,
        };
    }
}

/// Fills the caller's table and calls the callbacks of the driver that offers it.
fn answer(
    context: &Context,
    device: u64,
    query: Query,
    table: Option<&[u8]>,
    process: u64,
    imports: bool,
) -> NtStatus {
    if let Some(table) = table {
        let version = u16::from_le_bytes([table[2], table[3]]);
        if table.len() > usize::from(query.size) || version > query.version {
            return NtStatus::INVALID_BUFFER_SIZE;
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
            return status;
        }
    }
    if table.is_some() {
        let exposed: Interface = context.read(query.table);
        if exposed.interface_reference != 0 {
            context.call_driver(
                "InterfaceReference",
                exposed.interface_reference,
                [exposed.context],
            );
        }
    }
    NtStatus::SUCCESS
}
