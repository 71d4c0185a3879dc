//! The driver's registrations, which all have the same provider.

use core::{
    ptr,
    sync::atomic::{AtomicU64, Ordering},
};

use etw_driver_support::nt;
use etw_probes_interface::{Ask, PROVIDER, Reply, SLOTS, phase, pointer};
use wdk_sys::{GUID, NT_SUCCESS, PVOID, STATUS_INVALID_PARAMETER};

use crate::{
    callbacks, phases,
    system::{guid, reply_from_here},
};

static PROVIDER_ID: GUID = guid(PROVIDER);

/// The handle of each registration, or 0.
static HANDLES: [AtomicU64; SLOTS] = [const { AtomicU64::new(0) }; SLOTS];

fn place(slot: u32) -> Option<&'static AtomicU64> {
    HANDLES.get(slot as usize)
}

/// Returns the handle of a registration, if it is registered.
pub fn handle(slot: u32) -> Option<u64> {
    let handle = place(slot)?.load(Ordering::Acquire);
    (handle != 0).then_some(handle)
}

/// Returns an answer that refuses an operation because its registration does not exist or already
/// exists.
pub fn refused(operation: u32) -> Reply {
    let mut reply = reply_from_here(operation);
    reply.available = 0;
    reply.statuses[0] = STATUS_INVALID_PARAMETER.cast_unsigned();
    reply
}

/// Registers the provider in a slot.
pub fn register(ask: &Ask) -> Reply {
    let Some(place) = place(ask.slot).filter(|_| handle(ask.slot).is_none()) else {
        return refused(ask.operation);
    };
    let mut reply = reply_from_here(ask.operation);
    let before = callbacks::count();
    phases::set(ask.slot, phase::REGISTERING);
    let mut handle = 0;
    let status = nt!(
        EtwRegister,
        &raw const PROVIDER_ID,
        Some(callbacks::on_enable),
        ptr::without_provenance_mut(ask.slot as usize),
        &raw mut handle,
    );
    reply.statuses[0] = status.cast_unsigned();
    reply.numbers[0] = u64::from(handle != 0);
    reply.numbers[1] = u64::from(callbacks::count().wrapping_sub(before));
    if NT_SUCCESS(status) {
        place.store(handle, Ordering::Release);
        phases::set(ask.slot, phase::REGISTERED);
    } else {
        phases::set(ask.slot, phase::NOT_REGISTERED);
    }
    reply
}

/// Ends the registration in a slot.
pub fn unregister(ask: &Ask) -> Reply {
    let Some(place) = place(ask.slot) else {
        return refused(ask.operation);
    };
    let handle = place.swap(0, Ordering::AcqRel);
    if handle == 0 {
        return refused(ask.operation);
    }
    let mut reply = reply_from_here(ask.operation);
    let before = callbacks::count();
    phases::set(ask.slot, phase::UNREGISTERING);
    let status = nt!(EtwUnregister, handle);
    phases::set(ask.slot, phase::NOT_REGISTERED);
    reply.statuses[0] = status.cast_unsigned();
    reply.numbers[0] = u64::from(callbacks::count().wrapping_sub(before));
    reply
}

/// Ends all registrations.
pub fn end_all() {
    for number in 0..SLOTS as u32 {
        let _reply = unregister(&Ask { slot: number, ..Ask::default() });
    }
}

/// Sets information for a registration.
pub fn set_information(ask: &Ask, bytes: &[u8]) -> Reply {
    let Some(handle) = handle(ask.slot) else {
        return refused(ask.operation);
    };
    let [form, length, ..] = ask.numbers;
    let (address, limit): (PVOID, u64) = match form {
        pointer::BYTES => (bytes.as_ptr().cast_mut().cast(), bytes.len() as u64),
        pointer::NULL => (ptr::null_mut(), u64::from(u32::MAX)),
        pointer::DANGLING => (ptr::without_provenance_mut(1), 0),
        _ => return refused(ask.operation),
    };
    // The driver must not make the kernel read memory beyond the bytes of the request.
    if length > limit {
        return refused(ask.operation);
    }
    let mut reply = reply_from_here(ask.operation);
    phases::set(ask.slot, phase::SETTING);
    let status = nt!(EtwSetInformation, handle, ask.form.cast_signed(), address, length as u32);
    phases::set(ask.slot, phase::REGISTERED);
    reply.statuses[0] = status.cast_unsigned();
    reply
}
