//! WMI providers and instances, as far as a driver sees them: they are registered, and nobody queries
//! or enables them.

use super::{
    object::{create, give, read_attributes},
    state::{
        device::{DeviceData, device_of},
        framework::{Context, Data, Entries},
    },
};
use crate::{
    execution::routine::Routine,
    ground::{
        abi::ObjectAttributes,
        framework_abi::{WmiInstanceConfig, WmiProviderConfig},
        status::NtStatus,
    },
};

/// A WMI provider: a data block by its GUID.
pub struct WmiProviderData {
    guid: [u32; 4],
}

impl Data for WmiProviderData {
    const NAME: &'static str = "WDFWMIPROVIDER";
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
    ("WdfWmiProviderCreate", Routine::Five(provider_create)),
    ("WdfWmiProviderGetDevice", Routine::Two(provider_get_device)),
    (
        "WdfWmiProviderIsEnabled",
        Routine::Three(provider_is_enabled),
    ),
    ("WdfWmiInstanceCreate", Routine::Five(instance_create)),
    ("WdfWmiInstanceRegister", Routine::Two(instance_register)),
    (
        "WdfWmiInstanceDeregister",
        Routine::Two(instance_deregister),
    ),
    ("WdfWmiInstanceGetDevice", Routine::Two(instance_get_device)),
    (
        "WdfWmiInstanceGetProvider",
        Routine::Two(instance_get_provider),
    ),
    (
        "WdfWmiInstanceFireEvent",
        Routine::Four(instance_fire_event),
    ),
];

/// Creates a provider from a configuration, unless the device has one with the GUID.
fn make_provider(
    context: &Context,
    device: u64,
    config: u64,
    attributes: Option<&ObjectAttributes>,
) -> Result<u64, NtStatus> {
    /// `WdfWmiProviderValidFlags`.
    const VALID_FLAGS: u32 = 7;
    /// `WdfWmiProviderEventOnly` and `WdfWmiProviderTracing`: a tracing provider has no events.
    const BOTH: u32 = 5;
    let config: WmiProviderConfig = context.read(config);
    if config.size as usize != size_of::<WmiProviderConfig>() {
        return Err(NtStatus::INFO_LENGTH_MISMATCH);
    }
    if config.flags & !VALID_FLAGS != 0 || config.flags & BOTH == BOTH || config.guid == [0; 4] {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let is_known = {
        let mut framework = context.framework();
        let providers = framework.all::<WmiProviderData>();
        providers.into_iter().any(|provider| {
            framework.ancestor::<DeviceData>(provider) == Some(device)
                && framework
                    .get::<WmiProviderData>(provider)
                    .is_ok_and(|provider| provider.guid == config.guid)
        })
    };
    if is_known {
        return Err(NtStatus::OBJECT_NAME_COLLISION);
    }
    let data = WmiProviderData { guid: config.guid };
    create(context, data, attributes, Some(device))
}

fn provider_create(
    context: &Context,
    _globals: u64,
    device: u64,
    config: u64,
    attributes: u64,
    provider: u64,
) -> u64 {
    context.with::<DeviceData, _>(device, |_| ());
    let attributes = read_attributes(context, attributes);
    let made = make_provider(context, device, config, attributes.as_ref());
    give(context, made, provider)
}

fn instance_create(
    context: &Context,
    _globals: u64,
    device: u64,
    config: u64,
    attributes: u64,
    instance: u64,
) -> u64 {
    context.with::<DeviceData, _>(device, |_| ());
    let made = make_instance(context, device, config, attributes);
    give(context, made, instance)
}

fn make_instance(
    context: &Context,
    device: u64,
    config: u64,
    attributes: u64,
) -> Result<u64, NtStatus> {
    let config: WmiInstanceConfig = context.read(config);
    if config.size as usize != size_of::<WmiInstanceConfig>() {
        return Err(NtStatus::INFO_LENGTH_MISMATCH);
    }
    let attributes = read_attributes(context, attributes);
    let has_context = attributes.is_some_and(|attributes| attributes.context_type != 0);
    let uses_context = config.use_context_for_query != 0;
    // Exactly one provider, and a context that is large enough for a query that it answers.
    if (config.provider == 0) == (config.provider_config == 0)
        || (uses_context && (config.query_instance != 0 || !has_context))
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
    let data = WmiInstanceData {
        provider,
        is_registered: config.register != 0,
    };
    create(context, data, attributes.as_ref(), Some(provider))
}

fn provider_get_device(context: &Context, _globals: u64, provider: u64) -> u64 {
    context.with::<WmiProviderData, _>(provider, |_| ());
    device_of(context, provider).unwrap_or(0)
}

/// Returns `FALSE`: no consumer enables a provider in the stand-in kernel.
fn provider_is_enabled(context: &Context, _globals: u64, provider: u64, _control: u64) -> u64 {
    context.with::<WmiProviderData, _>(provider, |_| ());
    0
}

/// Registers an instance that is not registered.
fn instance_register(context: &Context, _globals: u64, instance: u64) -> u64 {
    let was_registered = context.with::<WmiInstanceData, _>(instance, |data| {
        core::mem::replace(&mut data.is_registered, true)
    });
    if was_registered {
        NtStatus::INVALID_DEVICE_REQUEST.to_register()
    } else {
        NtStatus::SUCCESS.to_register()
    }
}

fn instance_deregister(context: &Context, _globals: u64, instance: u64) -> u64 {
    context.with::<WmiInstanceData, _>(instance, |data| data.is_registered = false);
    0
}

fn instance_get_device(context: &Context, _globals: u64, instance: u64) -> u64 {
    context.with::<WmiInstanceData, _>(instance, |_| ());
    device_of(context, instance).unwrap_or(0)
}

fn instance_get_provider(context: &Context, _globals: u64, instance: u64) -> u64 {
    context.with::<WmiInstanceData, _>(instance, |data| data.provider)
}

/// Fires an event, which no consumer receives.
fn instance_fire_event(
    context: &Context,
    _globals: u64,
    instance: u64,
    size: u64,
    data: u64,
) -> u64 {
    let is_registered = context.with::<WmiInstanceData, _>(instance, |data| data.is_registered);
    if !is_registered {
        return NtStatus::WMI_GUID_DISCONNECTED.to_register();
    }
    if size & 0xFFFF_FFFF != 0 {
        // Data at a bad address is the driver's fault.
        let _first: u8 = context.read(data);
    }
    NtStatus::SUCCESS.to_register()
}
