//! The binding of drivers to the framework, and the driver object, as described in
//! `docs/reference/kmdf-binding.md`.

use crate::{
    execution::{
        routine::{At, Handle, Memory, Out, routine, routine_with_globals},
        strings::read_unicode_string,
    },
    ground::{
        NtResult, NtStatus,
        abi::{
            BindInfo, BindInfo2, DriverConfig, DriverGlobals, DriverObject, ObjectAttributes,
            UnicodeString,
        },
        arena::Block,
        memory,
    },
    services::kmdf::{
        lifetime,
        lifetime::{create_from, give},
        state::framework::{Choices, Context, Data, Entries, Framework},
    },
};

/// The table sizes of released frameworks. A driver is bound only if its table has one of these
/// sizes.
const RELEASED_SIZES: [u32; 13] = [383, 386, 387, 396, 432, 438, 444, 446, 448, 451, 453, 454, 458];
/// The largest table size for which the table is copied to the driver. Drivers with larger tables
/// receive a pointer to the table.
const MAX_COPIED: u32 = 438;

const NON_PNP_DRIVER: u32 = 1;
const NO_DISPATCH_OVERRIDE: u32 = 2;

/// The drivers that are bound to the framework.
#[derive(Default)]
struct Clients(Vec<Client>);

/// A driver that is bound to the framework.
struct Client {
    /// The driver's public globals.
    globals: Block,
    driver_object: u64,
    /// The framework version for which the driver was built.
    version: (u32, u32),
}

/// Returns the framework version for which a driver was built, if the driver is bound.
pub fn version_of(framework: &mut Framework, driver_object: u64) -> Option<(u32, u32)> {
    let client = framework
        .part::<Clients>()
        .0
        .iter()
        .find(|client| client.driver_object == driver_object)?;
    Some(client.version)
}

/// A driver object.
pub struct DriverData {
    /// `EvtDriverDeviceAdd`, or 0.
    pub device_add: u64,
    /// `EvtDriverUnload`, or 0.
    unload: u64,
    /// The `DRIVER_OBJECT`'s address.
    driver_object: u64,
    registry_path: Block,
    /// The last segment of the registry path.
    service: String,
}

impl DriverData {
    /// Returns the service's name.
    pub fn service(&self) -> String {
        self.service.clone()
    }
}

impl Data for DriverData {
    const NAME: &'static str = "WDFDRIVER";
    const CHOICES: Choices = Choices::SYNCHRONIZED;

    fn is_frameworks(&self) -> bool {
        true
    }
}

pub const ENTRIES: Entries = &[
    routine_with_globals("WdfDriverCreate", driver_create),
    routine("WdfDriverGetRegistryPath", get_registry_path),
    routine("WdfDriverWdmGetDriverObject", get_driver_object),
];

/// `WdfVersionBind`.
pub fn bind(
    context: &Context,
    driver_object: At<DriverObject>,
    registry_path: At<UnicodeString>,
    info: At<BindInfo>,
    globals: At<u64>,
) -> NtStatus {
    if [driver_object.0, registry_path.0, info.0, globals.0].contains(&0) {
        return NtStatus::INVALID_PARAMETER;
    }
    let v1 = info.read(context);
    let table = context.functions().table;
    let available = u32::try_from(table.len()).unwrap_or(u32::MAX);
    if v1.function_table == 0
        || v1.function_count > available
        || !RELEASED_SIZES.contains(&v1.function_count)
    {
        return NtStatus::INVALID_PARAMETER;
    }
    if v1.size as usize == size_of::<BindInfo2>() {
        let v2: BindInfo2 = context.read(info.0);
        if v2.function_count_pointer != 0 {
            context.write(v2.function_count_pointer, &v1.function_count);
        }
        if v2.client_version_higher != 0 {
            context.write(v2.client_version_higher, &0_u8);
        }
    } else if v1.size as usize != size_of::<BindInfo>() {
        return NtStatus::INVALID_PARAMETER;
    }
    if v1.function_count > MAX_COPIED {
        context.write(v1.function_table, &(table.as_ptr() as u64));
    } else {
        let mut at = v1.function_table;
        for entry in table.iter().take(v1.function_count as usize) {
            context.write(at, entry);
            at = at.wrapping_add(size_of_val(entry) as u64);
        }
    }
    let block = Block::zeroed(size_of::<DriverGlobals>());
    let address = block.address();
    context.write(address, &new_globals(context, registry_path.0));
    context.write(globals.0, &address);
    context.framework().part::<Clients>().0.push(Client {
        globals: block,
        driver_object: driver_object.0,
        version: (v1.version[0], v1.version[1]),
    });
    NtStatus::SUCCESS
}

/// Returns the service name: the last segment of the registry path.
fn service_of(context: &Context, registry_path: u64) -> String {
    let path = read_unicode_string(context, registry_path);
    path.rsplit('\\').next().unwrap_or_default().to_owned()
}

/// Returns new globals, with the service name as the driver name.
fn new_globals(context: &Context, registry_path: u64) -> DriverGlobals {
    let service = service_of(context, registry_path);
    let mut name = [0; 32];
    let room = name.len() - 1;
    for (slot, byte) in name.iter_mut().take(room).zip(service.bytes()) {
        *slot = byte;
    }
    DriverGlobals {
        driver_tag: u32::from_le_bytes(*b"FxDr"),
        driver_name: name,
        ..Default::default()
    }
}

/// `WdfVersionUnbind`: deletes the driver object if the driver's unload routine has not deleted it,
/// and then frees the driver globals.
pub fn unbind(
    context: &Context,
    _registry_path: At<UnicodeString>,
    _info: At<BindInfo>,
    globals: Memory,
) -> NtResult {
    let driver_object = client_object(context, globals.0).ok_or(NtStatus::INVALID_PARAMETER)?;
    delete_driver(context, driver_object);
    context.framework().part::<Clients>().0.retain(|client| client.globals.address() != globals.0);
    Ok(())
}

/// Returns the `DRIVER_OBJECT` of the driver with these globals.
fn client_object(context: &Context, globals: u64) -> Option<u64> {
    context
        .framework()
        .part::<Clients>()
        .0
        .iter()
        .find(|client| client.globals.address() == globals)
        .map(|client| client.driver_object)
}

/// Returns the handle of the driver object for a `DRIVER_OBJECT`.
pub fn handle_of(context: &Context, driver_object: u64) -> Option<u64> {
    let mut framework = context.framework();
    framework.all::<DriverData>().into_iter().find(|handle| {
        framework
            .get::<DriverData>(*handle)
            .is_ok_and(|driver| driver.driver_object == driver_object)
    })
}

/// Returns the `DRIVER_OBJECT` of a driver.
pub fn object_of(context: &Context, driver: u64) -> u64 {
    context.with::<DriverData, _>(driver, |driver| driver.driver_object)
}

/// Returns the driver object of the driver that made the current call. It is the default parent of
/// new objects.
pub fn driver_of(context: &Context) -> Option<u64> {
    let caller = context.call().return_address;
    let drivers = {
        let mut framework = context.framework();
        let handles = framework.all::<DriverData>();
        handles
            .into_iter()
            .filter_map(|handle| {
                let object = framework.get::<DriverData>(handle).ok()?.driver_object;
                Some((handle, object))
            })
            .collect::<Vec<_>>()
    };
    drivers.into_iter().find_map(|(handle, driver_object)| {
        let object: DriverObject = memory::read(driver_object).ok()?;
        let offset = caller.checked_sub(object.driver_start)?;
        (offset < u64::from(object.driver_size)).then_some(handle)
    })
}

/// Returns the framework version for which the driver that made the current call was built.
pub fn version_of_caller(context: &Context) -> (u32, u32) {
    let object = driver_of(context).map(|driver| object_of(context, driver));
    let version = object.and_then(|object| version_of(&mut context.framework(), object));
    version.unwrap_or_default()
}

fn delete_driver(context: &Context, driver_object: u64) {
    if let Some(handle) = handle_of(context, driver_object) {
        lifetime::delete(context, handle);
    }
}

fn driver_create(
    context: &Context,
    globals: At<DriverGlobals>,
    driver_object: At<DriverObject>,
    registry_path: At<UnicodeString>,
    attributes: At<ObjectAttributes>,
    config: At<DriverConfig>,
    driver: Out<DriverData>,
) -> NtResult {
    let (object, path) = (driver_object.0, registry_path.0);
    let created = create_driver(context, globals.0, object, path, attributes.0, config.0);
    give(context, created, driver.0)
}

fn create_driver(
    context: &Context,
    globals: u64,
    driver_object: u64,
    registry_path: u64,
    attributes: u64,
    config: u64,
) -> NtResult<u64> {
    let config: DriverConfig = context.read(config);
    if config.size as usize != size_of::<DriverConfig>() {
        return Err(NtStatus::INFO_LENGTH_MISMATCH);
    }
    if handle_of(context, driver_object).is_some() {
        /// `STATUS_DRIVER_INTERNAL_ERROR`.
        const INTERNAL_ERROR: NtStatus = NtStatus::from_bits(0xC000_0183);
        return Err(INTERNAL_ERROR);
    }
    if client_object(context, globals) != Some(driver_object) {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let pnp = config.driver_init_flags & NON_PNP_DRIVER == 0;
    if !pnp && config.evt_driver_device_add != 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let data = DriverData {
        device_add: config.evt_driver_device_add,
        unload: config.evt_driver_unload,
        driver_object,
        registry_path: copy_path(context, registry_path),
        service: service_of(context, registry_path),
    };
    let handle = create_from(context, data, attributes, None)?;

    // The fields that the stub and the I/O manager read.
    let displace = if config.driver_init_flags & (NON_PNP_DRIVER | NO_DISPATCH_OVERRIDE) == 0 {
        true
    } else {
        config.evt_driver_unload != 0
    };
    let mut public: DriverGlobals = context.read(globals);
    public.driver = handle;
    public.driver_flags |= config.driver_init_flags;
    if config.driver_pool_tag != 0 {
        public.driver_tag = config.driver_pool_tag;
    }
    public.displace_driver_unload = u8::from(displace);
    context.write(globals, &public);
    if config.driver_init_flags & NO_DISPATCH_OVERRIDE == 0 {
        let mut object: DriverObject = context.read(driver_object);
        object.driver_unload =
            if pnp || config.evt_driver_unload != 0 { context.functions().unload } else { 0 };
        context.write(driver_object, &object);
    }
    Ok(handle)
}

/// Returns a NUL-terminated copy of a registry path.
fn copy_path(context: &Context, registry_path: u64) -> Block {
    let bytes: Vec<u8> = read_unicode_string(context, registry_path)
        .encode_utf16()
        .chain([0])
        .flat_map(u16::to_le_bytes)
        .collect();
    let block = Block::zeroed(bytes.len());
    context.write_bytes(block.address(), &bytes);
    block
}

/// Returns the address of a driver's own unload routine: `EvtDriverUnload`, or `DriverUnload` if
/// the driver does not use the framework's routine.
pub fn unload_routine(context: &Context, driver_object: u64) -> Option<u64> {
    let own = |handle| context.with::<DriverData, _>(handle, |driver| driver.unload);
    if let Some(address) = handle_of(context, driver_object).map(own) {
        return (address != 0).then_some(address);
    }
    let object: DriverObject = memory::read(driver_object).ok()?;
    Some(object.driver_unload).filter(|address| *address != 0)
}

/// The framework's unload routine. It calls the driver's own routine and deletes the driver object.
/// The driver's stub calls it and then unbinds.
pub fn framework_unload(context: &Context, driver_object: At<DriverObject>) -> u64 {
    if let Some(handle) = handle_of(context, driver_object.0) {
        let unload = context.with::<DriverData, _>(handle, |driver| driver.unload);
        if unload != 0 {
            context.call_driver("EvtDriverUnload", unload, [handle]);
        }
        delete_driver(context, driver_object.0);
    }
    0
}

fn get_registry_path(context: &Context, driver: Handle<DriverData>) -> At<u16> {
    At::new(driver.with(context, |driver| driver.registry_path.address()))
}

fn get_driver_object(context: &Context, driver: Handle<DriverData>) -> At<DriverObject> {
    At::new(driver.with(context, |driver| driver.driver_object))
}
