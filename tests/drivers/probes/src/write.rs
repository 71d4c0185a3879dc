//! Writes of events.

use core::ptr;

use etw_driver_support::nt;
use etw_probes_interface::{Ask, MAX_PAYLOAD, Reply, write};
use wdk_sys::{EVENT_DESCRIPTOR, GUID, NT_SUCCESS};

use crate::{
    registrations,
    system::{SET, guid_of, reply_from_here},
};

/// The contents of payloads.
static PAYLOAD: [u8; 4096] = [0x5A; 4096];

/// The maximum number of data descriptors in this driver's events: the descriptors for the largest
/// payload, one for metadata, and one of an unknown type.
const MAX_DESCRIPTORS: usize = MAX_PAYLOAD as usize / PAYLOAD.len() + 3;

/// The type of the data descriptor that contains event metadata.
const EVENT_METADATA: u8 = 1;
/// An undefined type of data descriptors.
const UNKNOWN_TYPE: u8 = 9;

/// `WINEVENT_CHANNEL_TRACELOGGING`.
const TRACE_LOGGING: u8 = 11;

/// `EVENT_DATA_DESCRIPTOR`, with plain fields.
#[repr(C)]
#[derive(Clone, Copy)]
struct DataDescriptor {
    pointer: u64,
    size: u32,
    kind: u8,
    reserved_1: u8,
    reserved_2: u16,
}

/// The data descriptors of one event.
struct Descriptors {
    all: [DataDescriptor; MAX_DESCRIPTORS],
    count: u32,
}

impl Descriptors {
    const fn new() -> Self {
        const EMPTY: DataDescriptor =
            DataDescriptor { pointer: 0, size: 0, kind: 0, reserved_1: 0, reserved_2: 0 };
        Self { all: [EMPTY; MAX_DESCRIPTORS], count: 0 }
    }

    fn add(&mut self, bytes: &[u8], kind: u8) {
        if let Some(next) = self.all.get_mut(self.count as usize) {
            next.pointer = bytes.as_ptr().expose_provenance() as u64;
            next.size = bytes.len() as u32;
            next.kind = kind;
            self.count = self.count.wrapping_add(1);
        }
    }
}

fn event_descriptor(level: u8, keyword: u64, channel: u8) -> EVENT_DESCRIPTOR {
    EVENT_DESCRIPTOR {
        Id: u16::from(channel == 0),
        Version: 0,
        Channel: channel,
        Level: level,
        Opcode: 0,
        Task: 0,
        Keyword: keyword,
    }
}

/// Writes an event of level 4 with keyword 1 and without data.
pub fn one(handle: u64, activity: Option<&GUID>) -> u32 {
    let descriptor = event_descriptor(4, 1, 0);
    nt!(
        EtwWriteEx,
        handle,
        &raw const descriptor,
        0,
        0,
        activity.map_or(ptr::null(), ptr::from_ref),
        ptr::null(),
        0,
        ptr::null_mut(),
    )
    .cast_unsigned()
}

/// Writes events as specified by an [`Ask`].
pub fn many(ask: &Ask, metadata: &[u8]) -> Reply {
    let [size, count, keyword, rest] = ask.numbers;
    let Some(handle) = registrations::handle(ask.slot).filter(|_| size <= MAX_PAYLOAD) else {
        return registrations::refused(ask.operation);
    };
    let has = |bit: u32| ask.form & bit != 0;
    let mut descriptors = Descriptors::new();
    if has(write::METADATA) {
        descriptors.add(metadata, EVENT_METADATA);
    }
    let mut left = size as usize;
    while left > 0 {
        let part = PAYLOAD.get(..left).unwrap_or(&PAYLOAD);
        descriptors.add(part, 0);
        left = left.wrapping_sub(part.len());
    }
    if has(write::UNKNOWN_TYPE) {
        descriptors.add(PAYLOAD.get(..4).unwrap_or_default(), UNKNOWN_TYPE);
    }
    let channel = if has(write::METADATA) { TRACE_LOGGING } else { 0 };
    let descriptor = event_descriptor(rest as u8, keyword, channel);
    let flags = (rest >> 32) as u32;
    let related = guid_of(&ask.guid);
    let related = has(write::RELATED).then_some(&related);
    let activity = (!has(write::IMPLICIT_ACTIVITY)).then_some(&SET);
    let mut reply = reply_from_here(ask.operation);
    for number in 0..count {
        let status = nt!(
            EtwWriteEx,
            handle,
            &raw const descriptor,
            0,
            flags,
            activity.map_or(ptr::null(), ptr::from_ref),
            related.map_or(ptr::null(), ptr::from_ref),
            descriptors.count,
            descriptors.all.as_mut_ptr().cast(),
        );
        if number == 0 {
            reply.statuses[0] = status.cast_unsigned();
        }
        reply.statuses[1] = status.cast_unsigned();
        let tally = if NT_SUCCESS(status) { &mut reply.numbers[0] } else { &mut reply.numbers[1] };
        *tally = tally.wrapping_add(1);
    }
    reply
}
