//! Classic providers, which are registered with `EtwRegisterClassicProvider` or, like WPP's, with
//! WMI.

use std::collections::BTreeMap;

use etl_file::Guid;

use super::{
    callback::minor,
    registration::{self, register},
    service::Context,
    state::{Form, WmiRegistration},
};
use crate::{
    execution::{
        call::Call,
        routine::{At, Callback, Memory, Routine, routine},
    },
    ground::{
        NtResult, NtStatus, abi::DeviceObject, arena::Block, backtrace::Explained,
        bugcheck::Violation, rule::Rule,
    },
};

/// The exports. No header documents the IRQL limit of `EtwRegisterClassicProvider`; it has
/// the limit of `EtwRegister`, because both call the enable callback. The other limit is from
/// wdm.h.
pub const ENTRIES: &[Routine<Context>] = &[
    routine("EtwRegisterClassicProvider", etw_register_classic_provider),
    routine("IoWMIRegistrationControl", io_wmi_registration_control),
];

/// Registers a classic provider. The second parameter is a type, which WPP passes as 0 (ETW-2.23).
fn etw_register_classic_provider(
    context: &Context,
    provider: At<Guid>,
    _kind: u32,
    callback: Callback,
    argument: Memory,
    slot: At<u64>,
) -> NtResult {
    if callback == Callback(0) {
        context.warn(Rule::RegisterPointer, || {
            "without an enable callback, which a classic provider requires".to_owned()
        });
        return Err(NtStatus::INVALID_PARAMETER);
    }
    registration::register_at(context, provider.0, callback.0, argument.0, slot.0, Form::Classic)
}

/// The actions of `IoWMIRegistrationControl` (`WMIREG_ACTION_*`).
mod action {
    pub const REGISTER: u32 = 1;
    pub const DEREGISTER: u32 = 2;
    pub const REREGISTER: u32 = 3;
    pub const UPDATE_GUIDS: u32 = 4;
    pub const BLOCK_IRPS: u32 = 5;
    /// The bits that are not part of the action: `WMIREG_FLAG_CALLBACK`, and
    /// `WMIREG_FLAG_TRACE_PROVIDER` with its neighbours.
    pub const FLAGS: u32 = 0xFFFF_0000;
    /// Set if the first argument is a control block with a callback, rather than a device object.
    pub const CALLBACK: u32 = 0x8000_0000;
}

/// Registers or unregisters a control block or a device object. A control block's callback returns
/// its GUIDs (ETW-2.24). In the stand-in kernel, the driver of a device object receives no WMI
/// requests.
fn io_wmi_registration_control(
    context: &Context,
    block: At<DeviceObject>,
    action: u32,
) -> NtResult {
    let has_callback = action & action::CALLBACK != 0;
    match action & !action::FLAGS {
        action::REGISTER => register_block(context, block.0, has_callback),
        action::DEREGISTER => unregister_block(context, block.0),
        action::REREGISTER | action::UPDATE_GUIDS => {
            unregister_block(context, block.0)?;
            register_block(context, block.0, has_callback)
        }
        // The stand-in kernel sends no requests that it would have to block.
        action::BLOCK_IRPS if context.etw().wmi.contains_key(&block.0) => Ok(()),
        _ => Err(NtStatus::INVALID_PARAMETER),
    }
}

fn register_block(context: &Context, block: u64, has_callback: bool) -> NtResult {
    context.check_address("a control block or device object", block, 8);
    let callback = context.read::<u64>(block);
    if context.etw().wmi.contains_key(&block) {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let guids = if has_callback { control_guids(context, block, callback)? } else { Vec::new() };
    context.etw().wmi.insert(
        block,
        WmiRegistration {
            providers: Vec::new(),
            registered_by: context.call(),
            backtrace: context.short_backtrace(),
        },
    );
    for guid in guids {
        // Registration can call the enable callback.
        let handle = register(context, guid, callback, block, Form::Wmi { block });
        if let Some(registration) = context.etw().wmi.get_mut(&block) {
            registration.providers.push(handle);
        }
    }
    Ok(())
}

fn unregister_block(context: &Context, block: u64) -> NtResult {
    let registration = context.etw().wmi.remove(&block).ok_or(NtStatus::INVALID_PARAMETER)?;
    for handle in registration.providers {
        let _unregistered = registration::unregister(context, handle);
    }
    Ok(())
}

/// The offset of the first GUID in `WMIREGINFO`, and the size of `WMIREGGUID`.
const FIRST_GUID: usize = 24;
const GUID_ENTRY: usize = 32;
/// The offsets of the GUID count in `WMIREGINFO`, and of the flags in `WMIREGGUID`.
const GUID_COUNT: usize = 16;
const GUID_FLAGS: usize = 16;
/// `WMIREG_FLAG_TRACE_CONTROL_GUID`.
const TRACE_CONTROL_GUID: u32 = 0x0000_1000;
/// The size of the buffer in the callback's first call.
const FIRST_BUFFER: usize = 512;
/// The largest buffer that a callback may request.
const MAX_BUFFER: usize = 0x1_0000;

/// Requests a control block's GUIDs from its callback (`IRP_MN_REGINFO`), and returns the control GUIDs.
fn control_guids(context: &Context, block: u64, callback: u64) -> NtResult<Vec<Guid>> {
    let mut size = FIRST_BUFFER;
    loop {
        let buffer = Block::zeroed(size);
        let written = Block::zeroed(4);
        let arguments =
            [minor::REGINFO, 0, size as u64, buffer.address(), block, written.address()];
        let status = context.call_driver("the WMI callback", callback, arguments);
        let status = NtStatus::from_register(status);
        let bytes = context.read_bytes(buffer.address(), size);
        if status == NtStatus::BUFFER_TOO_SMALL {
            let needed = number(&bytes, 0).unwrap_or(0) as usize;
            if needed <= size || needed > MAX_BUFFER {
                return Err(status);
            }
            size = needed;
            continue;
        }
        if !status.is_success() {
            return Err(status);
        }
        let length = context.read::<u32>(written.address()) as usize;
        return Ok(guids_in(bytes.get(..length).unwrap_or(&bytes)));
    }
}

/// Returns the control GUIDs in a `WMIREGINFO`.
fn guids_in(info: &[u8]) -> Vec<Guid> {
    let count = number(info, GUID_COUNT).unwrap_or(0) as usize;
    let entries = info.get(FIRST_GUID..).unwrap_or_default();
    entries
        .chunks_exact(GUID_ENTRY)
        .take(count)
        .filter(|entry| number(entry, GUID_FLAGS).unwrap_or(0) & TRACE_CONTROL_GUID != 0)
        .filter_map(|entry| Some(Guid::from_bytes(*entry.first_chunk()?)))
        .collect()
}

/// Returns the 32-bit number at this offset.
fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}

/// Reports and removes the WMI registrations that an unloaded driver left, except providers', which
/// are reported separately.
pub fn report_left_with_wmi(
    context: &Context,
    belongs: impl Fn(&Call) -> bool,
    driver: &str,
) -> Vec<Violation> {
    let left: BTreeMap<u64, WmiRegistration> = {
        let mut etw = context.etw();
        let blocks: Vec<u64> = etw
            .wmi
            .iter()
            .filter(|(_, registration)| belongs(&registration.registered_by))
            .map(|(block, _)| *block)
            .collect();
        blocks.into_iter().filter_map(|block| Some((block, etw.wmi.remove(&block)?))).collect()
    };
    left.into_iter()
        .filter(|(_, registration)| registration.providers.is_empty())
        .map(|(block, registration)| {
            let Explained { place, lines, .. } = context.explain(&registration.backtrace);
            let message = format!(
                "{driver} was unloaded without IoWMIRegistrationControl with \
                 WMIREG_ACTION_DEREGISTER for 0x{block:016X}, which it registered at {} from {place}",
                registration.registered_by.irql
            );
            Violation::new(Rule::ProviderLeftRegistered, message, lines)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_control_guids_become_providers() {
        let mut info = vec![0; FIRST_GUID];
        info[GUID_COUNT] = 2;
        for (byte, flags) in
            [(1, TRACE_CONTROL_GUID | 0x80000), (2, 0x80000), (3, TRACE_CONTROL_GUID)]
        {
            let mut entry = vec![byte; 16];
            entry.extend(flags.to_le_bytes());
            entry.resize(GUID_ENTRY, 0);
            info.extend(entry);
        }
        // The third GUID is beyond the GUID count.
        assert_eq!(guids_in(&info), [Guid::from_bytes([1; 16])]);
        for length in 0..info.len() {
            assert!(guids_in(&info[..length]).len() <= 1);
        }
    }
}
