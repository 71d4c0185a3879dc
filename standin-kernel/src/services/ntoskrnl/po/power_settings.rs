//! Power settings, and the callbacks that drivers register for them. The system runs on mains power,
//! with its lid open and its display on, until a test changes a setting.

use std::collections::BTreeMap;

use etw_wire::Guid;

use crate::{
    execution::routine::{At, Callback, Memory, routine},
    ground::{NtResult, NtStatus, abi::DeviceObject, arena::Block, irql::Irql, memory},
    services::ntoskrnl::context::{Context, Entries},
};

/// The exports. Their documentation requires `PASSIVE_LEVEL`, at which the callbacks run.
pub const ENTRIES: Entries = &[
    routine("PoRegisterPowerSettingCallback", register),
    routine("PoUnregisterPowerSettingCallback", unregister),
];

/// The settings that every system has and whose values are numbers: `GUID_ACDC_POWER_SOURCE`,
/// `GUID_BATTERY_PERCENTAGE_REMAINING`, `GUID_LIDSWITCH_STATE_CHANGE`, `GUID_MONITOR_POWER_ON`,
/// `GUID_CONSOLE_DISPLAY_STATE`, `GUID_POWER_SAVING_STATUS` and `GUID_SYSTEM_AWAYMODE`.
const NUMBERS: [(&str, u32); 7] = [
    ("5d3e9a59-e9d5-4b00-a6bd-ff34ff516548", 0),
    ("a7ad8041-b45a-4cae-87a3-eecbb468a9e1", 100),
    ("ba3e0f4d-b817-4094-a2d1-d56379e6a0f3", 1),
    ("02731015-4510-4526-99e6-e5a17ebd1aea", 1),
    ("6fe69556-704a-47a0-8f24-c28d936fda47", 1),
    ("e00958c0-c213-4ace-ac77-fecced2eeea5", 0),
    ("98a7f580-01f7-48aa-9c0f-44352c29e5c0", 0),
];

/// `GUID_POWERSCHEME_PERSONALITY`, and its value: the balanced scheme.
const PERSONALITY: (&str, &str) =
    ("245d8541-3943-4422-b025-13a784f679b7", "381b4222-f694-41f0-9685-ff5bb260df2e");

/// The values of the settings, and the registrations in order.
struct Settings {
    values: BTreeMap<[u8; 16], Vec<u8>>,
    registrations: Vec<(u64, Registration)>,
}

#[derive(Clone, Copy)]
struct SettingCallback {
    setting: [u8; 16],
    routine: u64,
    context: u64,
}

struct Registration {
    callback: SettingCallback,
    _memory: Block,
}

/// Returns the bytes of a GUID in this module.
fn bytes(text: &str) -> [u8; 16] {
    text.parse::<Guid>().unwrap_or(Guid::NULL).to_bytes()
}

impl Default for Settings {
    fn default() -> Self {
        let numbers = NUMBERS.map(|(guid, value)| (bytes(guid), value.to_le_bytes().to_vec()));
        let personality = (bytes(PERSONALITY.0), bytes(PERSONALITY.1).to_vec());
        Self {
            values: numbers.into_iter().chain([personality]).collect(),
            registrations: Vec::new(),
        }
    }
}

/// Registers a callback, and calls it with the setting's current value if the setting exists.
fn register(
    context: &Context,
    _device: At<DeviceObject>,
    setting: At<Guid>,
    routine: Callback,
    callback_context: Memory,
    handle: At<u64>,
) -> NtResult {
    context.require_irql(Irql::PASSIVE_LEVEL, "to register a callback");
    let callback = SettingCallback {
        setting: context.read(setting.0),
        routine: routine.0,
        context: callback_context.0,
    };
    if routine == Callback(0) {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let memory = Block::zeroed(0x40);
    let address = memory.address();
    let value = context.with_state(|settings: &mut Settings| {
        let registration = Registration { callback, _memory: memory };
        settings.registrations.push((address, registration));
        settings.values.get(&callback.setting).cloned()
    });
    handle.write_optional(context, address);
    if let Some(value) = value {
        tell(context, callback, &value);
    }
    Ok(())
}

/// Removes the registrations that `is_taken` selects by handle and routine. Returns their number.
fn take(context: &Context, is_taken: impl Fn(u64, u64) -> bool) -> usize {
    context.with_state(|settings: &mut Settings| {
        let taken =
            |(handle, one): &mut (u64, Registration)| is_taken(*handle, one.callback.routine);
        settings.registrations.extract_if(.., taken).count()
    })
}

fn unregister(context: &Context, handle: Memory) -> NtResult {
    let taken = take(context, |one, _| one == handle.0);
    if taken > 0 { Ok(()) } else { Err(NtStatus::INVALID_PARAMETER) }
}

/// Calls a callback with a value.
fn tell(context: &Context, callback: SettingCallback, value: &[u8]) {
    let setting = Block::zeroed(16);
    let memory = Block::zeroed(value.len().max(1));
    let written = memory::write_bytes(setting.address(), &callback.setting)
        .and_then(|()| memory::write_bytes(memory.address(), value));
    context.checked(written);
    let arguments = [setting.address(), memory.address(), value.len() as u64, callback.context];
    context.call_driver("the callback for a power setting", callback.routine, arguments);
}

/// Changes a setting, and calls the callbacks that are registered for it.
pub fn set(context: &Context, setting: [u8; 16], value: &[u8]) {
    let callbacks: Vec<SettingCallback> = context.with_state(|settings: &mut Settings| {
        settings.values.insert(setting, value.to_vec());
        let all = settings.registrations.iter().map(|(_, one)| one.callback);
        all.filter(|one| one.setting == setting).collect()
    });
    for callback in callbacks {
        tell(context, callback, value);
    }
}

/// Removes the registrations of a driver's routines, and returns their number.
pub fn take_left(context: &Context, belongs: impl Fn(u64) -> bool) -> usize {
    take(context, |_, routine| belongs(routine))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_setting_is_a_guid_of_its_own() {
        let settings = Settings::default();
        assert_eq!(settings.values.len(), NUMBERS.len() + 1);
        assert!(!settings.values.contains_key(&[0; 16]));
    }
}
