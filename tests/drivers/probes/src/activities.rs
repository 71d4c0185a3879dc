//! The routines for activity ids.

use core::ptr;

use etw_driver_support::nt;
use etw_probes_interface::{Ask, Reply, setter};
use wdk_sys::{GUID, LPCGUID, NT_SUCCESS};

use crate::{
    registrations, system,
    system::{SET, bytes_of, reply_from_here},
    write,
};

/// `EVENT_ACTIVITY_CTRL_*`.
const GET_ID: u32 = 1;
const SET_ID: u32 = 2;
const CREATE_ID: u32 = 3;
const GET_SET_ID: u32 = 4;
const CREATE_SET_ID: u32 = 5;

/// The highest IRQL at which the codes other than [`CREATE_ID`] are allowed.
const APC_LEVEL: u8 = 1;

const NULL: GUID = GUID { Data1: 0, Data2: 0, Data3: 0, Data4: [0; 8] };

fn control(code: u32, id: &mut GUID) -> u32 {
    nt!(EtwActivityIdControl, code, id).cast_unsigned()
}

/// Calls `EtwActivityIdControl` with each code, and restores the thread's id.
pub fn plain(ask: &Ask) -> Reply {
    let mut reply = reply_from_here(ask.operation);
    let mut made = NULL;
    if system::irql() > APC_LEVEL {
        reply.statuses[2] = control(CREATE_ID, &mut made);
        reply.guids[2] = bytes_of(&made);
        return reply;
    }
    let mut before = NULL;
    reply.statuses[0] = control(GET_ID, &mut before);
    reply.guids[0] = bytes_of(&before);
    let mut set = SET;
    reply.statuses[1] = control(SET_ID, &mut set);
    let mut read = NULL;
    let _status = control(GET_ID, &mut read);
    reply.guids[1] = bytes_of(&read);
    reply.statuses[2] = control(CREATE_ID, &mut made);
    reply.guids[2] = bytes_of(&made);
    let mut swapped = made;
    reply.statuses[3] = control(GET_SET_ID, &mut swapped);
    reply.guids[3] = bytes_of(&swapped);
    let mut replaced = NULL;
    reply.statuses[4] = control(CREATE_SET_ID, &mut replaced);
    reply.guids[4] = bytes_of(&replaced);
    let mut read = NULL;
    let _status = control(GET_ID, &mut read);
    reply.guids[5] = bytes_of(&read);
    if NT_SUCCESS(reply.statuses[0].cast_signed()) {
        let _status = control(SET_ID, &mut before);
    }
    reply
}

/// Returns the bytes of the id to which a pointer from `EtwActivityIdControlKernel` points.
fn bytes_behind(id: LPCGUID) -> [u8; 16] {
    // SAFETY: the routine returns null or the address of the thread's id, which stays valid until
    // this thread replaces the id.
    unsafe { id.as_ref() }.map_or([0; 16], bytes_of)
}

/// Reads, sets and reads the thread's id with `EtwActivityIdControlKernel`, and restores the id.
pub fn kernel(ask: &Ask) -> Reply {
    let mut reply = reply_from_here(ask.operation);
    // Looking up a routine requires PASSIVE_LEVEL.
    let Some(control) = (system::irql() == 0).then(system::activity_id_control_kernel).flatten()
    else {
        reply.available = 0;
        return reply;
    };
    let mut before: LPCGUID = ptr::null();
    // SAFETY: the argument is a local.
    reply.statuses[0] = unsafe { control(GET_ID, &raw mut before) }.cast_unsigned();
    reply.guids[0] = bytes_behind(before);
    reply.numbers[0] = u64::from(!before.is_null());
    let mut set: LPCGUID = &raw const SET;
    // SAFETY: the id is static.
    reply.statuses[1] = unsafe { control(SET_ID, &raw mut set) }.cast_unsigned();
    let mut read: LPCGUID = ptr::null();
    // SAFETY: the argument is a local.
    reply.statuses[2] = unsafe { control(GET_ID, &raw mut read) }.cast_unsigned();
    reply.guids[1] = bytes_behind(read);
    // SAFETY: the pointer is the thread's previous pointer, or null if there was none.
    let _status = unsafe { control(SET_ID, &raw mut before) };
    reply
}

/// Sets the thread's id, writes an event without an id, and restores the thread's id.
pub fn implicit(ask: &Ask) -> Reply {
    let Some(handle) = registrations::handle(ask.slot) else {
        return registrations::refused(ask.operation);
    };
    let mut reply = reply_from_here(ask.operation);
    match ask.form {
        setter::NONE => reply.statuses[1] = write::one(handle, None),
        setter::PLAIN if system::irql() <= APC_LEVEL => {
            let mut before = SET;
            reply.statuses[0] = control(GET_SET_ID, &mut before);
            reply.statuses[1] = write::one(handle, None);
            if NT_SUCCESS(reply.statuses[0].cast_signed()) {
                let _status = control(SET_ID, &mut before);
            }
        }
        setter::KERNEL if system::irql() == 0 => {
            let Some(control) = system::activity_id_control_kernel() else {
                reply.available = 0;
                return reply;
            };
            let mut before: LPCGUID = ptr::null();
            // SAFETY: the argument is a local.
            let _status = unsafe { control(GET_ID, &raw mut before) };
            let mut set: LPCGUID = &raw const SET;
            // SAFETY: the id is static.
            reply.statuses[0] = unsafe { control(SET_ID, &raw mut set) }.cast_unsigned();
            reply.statuses[1] = write::one(handle, None);
            // SAFETY: the pointer is the thread's previous pointer, or null if there was none.
            let _status = unsafe { control(SET_ID, &raw mut before) };
        }
        _ => return registrations::refused(ask.operation),
    }
    reply
}
