//! The arguments and content of an event that a driver writes.

use etl_file::Guid;

/// `EVENT_DATA_DESCRIPTOR` types (ETW-6.6.1).
pub const EVENT_METADATA: u8 = 1;

pub const PROVIDER_METADATA: u8 = 2;

pub const TIMESTAMP_OVERRIDE: u8 = 3;

/// The arguments of a write.
pub struct WriteCall {
    pub handle: u64,
    /// The address of the `EVENT_DESCRIPTOR`.
    pub descriptor: u64,
    /// The activity id that the caller passed, or `None` for the thread's activity id.
    pub activity: Option<Guid>,
    /// The related activity id.
    pub related: Option<Guid>,
    /// The number of data descriptors.
    pub count: u32,
    /// The address of the data descriptors.
    pub data: u64,
    /// The bits of the sessions that the provider excludes.
    pub filter: u64,
    /// `EVENT_WRITE_FLAG_*`.
    pub flags: u32,
}

/// The content of an event, gathered from its data descriptors.
#[derive(Default)]
pub struct Content {
    pub payload: Vec<u8>,
    pub event_metadata: Option<Vec<u8>>,
    pub provider_metadata: Option<Vec<u8>>,
    pub timestamp: Option<i64>,
    /// True if the payload is a string without event metadata.
    pub string_only: bool,
}
