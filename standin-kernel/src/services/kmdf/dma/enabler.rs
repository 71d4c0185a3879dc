//! DMA enablers: the properties of a device's DMA adapter, and its power callbacks.

use crate::{
    ground::{NtResult, NtStatus, abi::DmaEnablerConfig},
    services::kmdf::{
        lifetime::{create, read_attributes},
        state::{
            device::device_of,
            framework::{Context, Data},
            stack::physical_object,
        },
    },
};

/// `WDF_DMA_PROFILE`.
const PACKET: u32 = 1;
const PACKET_64: u32 = 3;
const SYSTEM: u32 = 7;
const SYSTEM_DUPLEX: u32 = 8;

/// The value that means an unlimited number of list elements (`WDF_DMA_ENABLER_UNLIMITED_FRAGMENTS`).
const UNLIMITED: u64 = 0xFFFF_FFFF;

/// A DMA enabler.
pub struct EnablerData {
    /// The device.
    pub device: u64,
    config: DmaEnablerConfig,
    /// The maximum number of elements in a scatter/gather list.
    pub maximum_elements: u64,
    is_powered: bool,
}

impl Data for EnablerData {
    const NAME: &'static str = "WDFDMAENABLER";
}

impl EnablerData {
    /// Returns the maximum length of a transfer in bytes.
    pub const fn maximum_length(&self) -> u64 {
        self.config.maximum_length & 0xFFFF_FFFF
    }

    /// Returns whether a transfer must be one range on the bus.
    pub const fn is_packet(&self) -> bool {
        matches!(self.config.profile, PACKET | PACKET_64)
    }

    /// Returns whether the transfers use a system DMA controller. The stand-in kernel does not have
    /// one.
    pub const fn is_system(&self) -> bool {
        matches!(self.config.profile, SYSTEM | SYSTEM_DUPLEX)
    }

    /// Returns whether the adapter uses version 3 of the DMA operations.
    pub const fn is_version_3(&self) -> bool {
        self.config.wdm_dma_version_override >= 3
            || self.config.address_width_override != 0
            || self.is_system()
    }

    /// Returns whether every transaction must be a single transfer.
    pub const fn requires_single_transfer(&self) -> bool {
        /// `WDF_DMA_ENABLER_CONFIG_REQUIRE_SINGLE_TRANSFER`.
        const FLAG: u32 = 2;
        self.config.flags & FLAG != 0
    }

    /// Sets the maximum number of elements in a scatter/gather list.
    pub fn set_maximum_elements(&mut self, count: u64) {
        self.maximum_elements = count.min(UNLIMITED);
    }
}

/// Reads a configuration. Drivers for KMDF 1.9 and earlier omit the last fields.
fn read_config(context: &Context, address: u64) -> NtResult<DmaEnablerConfig> {
    const OLD: usize = 64;
    let size: u32 = context.read(address);
    let mut config: DmaEnablerConfig = zerocopy::FromZeros::new_zeroed();
    if size as usize != size_of_val(&config) && size as usize != OLD {
        return Err(NtStatus::INFO_LENGTH_MISMATCH);
    }
    let bytes = zerocopy::IntoBytes::as_mut_bytes(&mut config);
    if let Some(bytes) = bytes.get_mut(..size as usize) {
        context.read_into(address, bytes);
    }
    Ok(config)
}

/// Creates an enabler for a device.
pub fn make(context: &Context, device: u64, config: u64, attributes: u64) -> NtResult<u64> {
    /// The profiles with 64 address lines.
    const WITH_64: [u32; 3] = [PACKET_64, 4, 6];
    let attributes = read_attributes(context, attributes);
    let parent = attributes.map_or(0, |attributes| attributes.parent_object);
    if parent != 0 && device_of(context, parent) != Some(device) {
        return Err(NtStatus::WDF_OBJECT_ATTRIBUTES_INVALID);
    }
    let config = read_config(context, config)?;
    let width = config.address_width_override;
    let is_system = matches!(config.profile, SYSTEM | SYSTEM_DUPLEX);
    let is_wide = WITH_64.contains(&config.profile);
    let data = EnablerData { device, config, maximum_elements: UNLIMITED, is_powered: false };
    let version = config.wdm_dma_version_override;
    let is_valid = (PACKET..=SYSTEM_DUPLEX).contains(&config.profile)
        && config.maximum_length != 0
        && (width == 0 || (!is_system && (is_wide || width <= 32)))
        && (version == 0 || version >= if data.is_version_3() { 3 } else { 2 })
        && (!data.requires_single_transfer() || data.is_version_3());
    if !is_valid {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    // Only a device with a physical device object has an adapter.
    if !is_system && physical_object(context, device) == 0 {
        return Err(NtStatus::UNSUCCESSFUL);
    }
    create(context, data, attributes.as_ref(), Some(device))
}

/// Returns a device's enablers, oldest first.
fn of_device(context: &Context, device: u64) -> Vec<u64> {
    let mut framework = context.framework();
    let mut enablers = framework.all::<EnablerData>();
    enablers.retain(|enabler| {
        framework.get::<EnablerData>(*enabler).is_ok_and(|data| data.device == device)
    });
    enablers
}

/// Calls a callback of an enabler, if the driver provides it.
fn notify(context: &Context, enabler: u64, name: &str, callback: u64) -> NtResult {
    if callback == 0 {
        return Ok(());
    }
    let status = NtStatus::from_register(context.call_driver(name, callback, [enabler]));
    status.is_success().then_some(()).ok_or(status)
}

/// Notifies a device's enablers that the device has entered its working state.
///
/// # Errors
///
/// Returns the status of the driver's failing callback.
pub fn power_up(context: &Context, device: u64) -> NtResult {
    for enabler in of_device(context, device) {
        let config = context.with::<EnablerData, _>(enabler, |data| {
            data.is_powered = true;
            data.config
        });
        notify(context, enabler, "EvtDmaEnablerFill", config.evt_dma_enabler_fill)?;
        notify(context, enabler, "EvtDmaEnablerEnable", config.evt_dma_enabler_enable)?;
        let name = "EvtDmaEnablerSelfManagedIoStart";
        notify(context, enabler, name, config.evt_dma_enabler_self_managed_io_start)?;
    }
    Ok(())
}

/// Notifies a device's enablers that the device is leaving its working state. A failure has no
/// effect.
pub fn power_down(context: &Context, device: u64) {
    for enabler in of_device(context, device).into_iter().rev() {
        let (was_powered, config) = context.with::<EnablerData, _>(enabler, |data| {
            (core::mem::take(&mut data.is_powered), data.config)
        });
        if was_powered {
            let name = "EvtDmaEnablerSelfManagedIoStop";
            let _ = notify(context, enabler, name, config.evt_dma_enabler_self_managed_io_stop);
            let _ =
                notify(context, enabler, "EvtDmaEnablerDisable", config.evt_dma_enabler_disable);
            let _ = notify(context, enabler, "EvtDmaEnablerFlush", config.evt_dma_enabler_flush);
        }
    }
}
