//! The size of an event.

use wdk_etw::DynamicEvent;

/// The size in bytes of the metadata of an event: the names and types of its fields.
pub const MAX_METADATA: usize = 512;

/// The size in bytes of the data of an event: the values of its fields.
pub const MAX_DATA: usize = 1024;

/// The maximum size in bytes of a text in an event.
pub const MAX_TEXT: usize = MAX_DATA / 2;

/// The stack in bytes that writing a record uses at most, without the calls of ETW and of the
/// arguments' `Display` and `Debug` implementations.
pub const MAX_STACK: usize = 3072;

/// An event in the logger's buffers.
pub type Event = DynamicEvent<MAX_METADATA, MAX_DATA>;

const _: () = assert!(size_of::<Event>() + 1024 <= MAX_STACK);
