//! WMI providers and instances, as visible to a driver. Nothing queries them, but drivers that have
//! registered for their events receive the events.

use crate::{
    execution::routine::{At, Handle, Memory, Out, routine},
    ground::{
        NtResult, NtStatus,
        abi::{ObjectAttributes, WmiInstanceConfig, WmiProviderConfig},
    },
    services::{
        kmdf::{
            lifetime::{create, give, read_attributes},
            state::{
                device::{DeviceData, device_of, get_device},
                device_object::own,
                framework::{Context, Data, Entries},
            },
        },
        managers::wmi_events::WmiEvent,
    },
};

/// The maximum amount of data in a WMI event.
const LARGEST_EVENT: u32 = 0xFFFF - 64;

/// A WMI provider: a data block that is identified by its GUID.
pub struct WmiProviderData {
    guid: [u32; 4],
    /// `EvtWmiProviderFunctionControl`, or 0.
    function_control: u64,
    /// Set for a provider of tracing, which has no instances.
    is_tracing: bool,
    /// Set if the driver was last notified that its events are enabled.
    was_enabled: bool,
}

impl Data for WmiProviderData {
    const NAME: &'static str = "WDFWMIPROVIDER";

    fn is_frameworks(&self) -> bool {
        true
    }
}

/// An instance of a data block.
pub struct WmiInstanceData {
    provider: u64,
    is_registered: bool,
}

impl Data for WmiInstanceData {
    const NAME: &'static str = "WDFWMIINSTANCE";
}

pub const ENTRIES: Entries = &[
    routine("WdfWmiProviderCreate", provider_create),
    routine("WdfWmiProviderGetDevice", get_device::<WmiProviderData>),
    routine("WdfWmiProviderIsEnabled", provider_is_enabled),
    routine("WdfWmiInstanceCreate", instance_create),
    routine("WdfWmiInstanceRegister", instance_register),
    routine("WdfWmiInstanceDeregister", instance_deregister),
    routine("WdfWmiInstanceGetDevice", get_device::<WmiInstanceData>),
    routine("WdfWmiInstanceGetProvider", instance_get_provider),
    routine("WdfWmiInstanceFireEvent", instance_fire_event),
];

/// Creates a provider from a configuration.
fn make_provider(
    context: &Context,
    device: u64,
    config: u64,
    attributes: Option<&ObjectAttributes>,
) -> NtResult<u64> {
    /// `WdfWmiProviderExpensive`, `WdfWmiProviderTracing` and `WdfWmiProviderValidFlags`.
    const EXPENSIVE: u32 = 2;
    const TRACING: u32 = 4;
    const VALID_FLAGS: u32 = 7;
    let config: WmiProviderConfig = context.read(config);
    if config.size as usize != size_of::<WmiProviderConfig>() {
        return Err(NtStatus::INFO_LENGTH_MISMATCH);
    }
    let is_tracing = config.flags & TRACING != 0;
    // Only a provider whose collection can be controlled has a callback for that.
    let is_controlled = config.flags & (EXPENSIVE | TRACING) != 0;
    if config.flags & !VALID_FLAGS != 0
        || (is_tracing && config.flags != TRACING)
        || (config.evt_wmi_provider_function_control != 0 && !is_controlled)
        || config.guid == [0; 4]
    {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let data = WmiProviderData {
        guid: config.guid,
        function_control: config.evt_wmi_provider_function_control,
        is_tracing,
        was_enabled: false,
    };
    let provider = create(context, data, attributes, Some(device))?;
    context.wmi_events().note_provider(bytes_of(config.guid));
    Ok(provider)
}

fn provider_create(
    context: &Context,
    device: Handle<DeviceData>,
    config: At<WmiProviderConfig>,
    attributes: At<ObjectAttributes>,
    provider: Out<WmiProviderData>,
) -> NtResult {
    device.check(context);
    let attributes = read_attributes(context, attributes.0);
    let made = make_provider(context, device.0, config.0, attributes.as_ref());
    give(context, made, provider.0)
}

fn instance_create(
    context: &Context,
    device: Handle<DeviceData>,
    config: At<WmiInstanceConfig>,
    attributes: At<ObjectAttributes>,
    instance: Out<WmiInstanceData>,
) -> NtResult {
    device.check(context);
    let made = make_instance(context, device.0, config.0, attributes.0);
    give(context, made, instance.0)
}

fn make_instance(context: &Context, device: u64, config: u64, attributes: u64) -> NtResult<u64> {
    let config: WmiInstanceConfig = context.read(config);
    if config.size as usize != size_of::<WmiInstanceConfig>() {
        return Err(NtStatus::INFO_LENGTH_MISMATCH);
    }
    let attributes = read_attributes(context, attributes);
    let has_context = attributes.is_some_and(|attributes| attributes.context_type_info != 0);
    let uses_context = config.use_context_for_query != 0;
    // A configuration specifies exactly one provider. A context that answers queries excludes a
    // query callback.
    if (config.provider == 0) == (config.provider_config == 0)
        || (uses_context && (config.evt_wmi_instance_query_instance != 0 || !has_context))
    {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let provider = if config.provider == 0 {
        make_provider(context, device, config.provider_config, None)?
    } else {
        context.with::<WmiProviderData, _>(config.provider, |_| ());
        if device_of(context, config.provider) != Some(device) {
            return Err(NtStatus::INVALID_PARAMETER);
        }
        config.provider
    };
    let is_tracing = context.with::<WmiProviderData, _>(provider, |data| data.is_tracing);
    if is_tracing && config.register != 0 {
        return Err(NtStatus::INVALID_DEVICE_REQUEST);
    }
    let data = WmiInstanceData { provider, is_registered: config.register != 0 };
    create(context, data, attributes.as_ref(), Some(provider))
}

/// Returns whether a driver has registered for a provider's events. The provider's data are never
/// collected.
fn provider_is_enabled(context: &Context, provider: Handle<WmiProviderData>, control: u32) -> bool {
    /// `WdfWmiEventControl` and `WdfWmiInstanceControl`.
    const EVENT: u32 = 1;
    const INSTANCE: u32 = 2;
    let guid = provider.with(context, |data| data.guid);
    match control {
        EVENT => context.wmi_events().is_watched(bytes_of(guid)),
        INSTANCE => false,
        other => {
            context.warn_of_misuse(|| {
                format!(
                    "{} was called from {} with the control {other}, which is not one of \
                     WDF_WMI_PROVIDER_CONTROL",
                    context.call().name,
                    context.caller()
                )
            });
            false
        }
    }
}

/// Returns the providers of a data block, and their callbacks, whose drivers must be notified that
/// their events are now enabled or disabled.
pub fn to_tell(context: &Context, guid: [u8; 16]) -> Vec<(u64, u64)> {
    let is_enabled = context.wmi_events().is_watched(guid);
    let mut framework = context.framework();
    let all = framework.all::<WmiProviderData>();
    all.into_iter()
        .filter_map(|provider| {
            let data = framework.get::<WmiProviderData>(provider).ok()?;
            let is_due = bytes_of(data.guid) == guid && data.was_enabled != is_enabled;
            if is_due {
                data.was_enabled = is_enabled;
            }
            (is_due && data.function_control != 0).then_some((provider, data.function_control))
        })
        .collect()
}

/// Notifies a driver that its provider's events are enabled or disabled.
pub fn tell(context: &Context, provider: u64, callback: u64) {
    /// `WdfWmiEventControl`.
    const EVENT: u64 = 1;
    let was_enabled =
        context.framework().get::<WmiProviderData>(provider).map(|data| data.was_enabled);
    // The provider may already have been deleted.
    if let Ok(was_enabled) = was_enabled {
        let arguments = [provider, EVENT, u64::from(was_enabled)];
        context.call_driver("EvtWmiProviderFunctionControl", callback, arguments);
    }
}

fn bytes_of(guid: [u32; 4]) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (to, from) in bytes.chunks_exact_mut(4).zip(guid) {
        to.copy_from_slice(&from.to_le_bytes());
    }
    bytes
}

/// Registers an instance, unless it is already registered.
fn instance_register(context: &Context, instance: Handle<WmiInstanceData>) -> NtStatus {
    let was_registered =
        instance.with(context, |data| core::mem::replace(&mut data.is_registered, true));
    if was_registered { NtStatus::INVALID_DEVICE_REQUEST } else { NtStatus::SUCCESS }
}

fn instance_deregister(context: &Context, instance: Handle<WmiInstanceData>) {
    instance.with(context, |data| data.is_registered = false);
}

fn instance_get_provider(
    context: &Context,
    instance: Handle<WmiInstanceData>,
) -> Handle<WmiProviderData> {
    Handle::new(instance.with(context, |data| data.provider))
}

/// Fires an event. Drivers that registered for the data block's events receive it.
fn instance_fire_event(
    context: &Context,
    instance: Handle<WmiInstanceData>,
    size: u32,
    data: Memory,
) -> NtStatus {
    let (is_registered, provider) =
        instance.with(context, |data| (data.is_registered, data.provider));
    if !is_registered {
        return NtStatus::WMI_GUID_DISCONNECTED;
    }
    if size > LARGEST_EVENT {
        return NtStatus::INVALID_BUFFER_SIZE;
    }
    let mut bytes = vec![0; size as usize];
    if !bytes.is_empty() {
        context.read_into(data.0, &mut bytes);
    }
    let guid = context.with::<WmiProviderData, _>(provider, |data| data.guid);
    let index = index_of(context, provider, instance.0);
    let device = device_of(context, instance.0).map_or(0, |device| own(context, device));
    let events = context.wmi_events();
    let time = context.host().shared_data().system_time();
    let id = events.provider_of(device);
    events.fire(WmiEvent::of_instance(id, bytes_of(guid), index, time, &bytes));
    NtStatus::SUCCESS
}

/// Returns the index of an instance among its provider's instances.
fn index_of(context: &Context, provider: u64, instance: u64) -> u32 {
    let mut framework = context.framework();
    let all = framework.all::<WmiInstanceData>();
    let before = all.into_iter().take_while(|one| *one != instance);
    let of_provider = before.filter(|one| {
        framework.get::<WmiInstanceData>(*one).is_ok_and(|one| one.provider == provider)
    });
    u32::try_from(of_provider.count()).unwrap_or(u32::MAX)
}
