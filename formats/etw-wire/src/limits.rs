//! The sizes that ETW does not exceed.

/// The maximum number of data descriptors of one event
/// (`MAX_EVENT_DATA_DESCRIPTORS` in evntprov.h).
pub const MAX_DATA_DESCRIPTORS: usize = 128;

/// The maximum size of an event in bytes: the header, extended data items and user data. A record's
/// size field has 16 bits.
pub const MAX_EVENT_SIZE: usize = 0xFFFF;

/// The size of `EVENT_HEADER` in bytes. It counts towards [`MAX_EVENT_SIZE`].
pub const EVENT_HEADER_SIZE: usize = 80;

/// The maximum size of a provider's traits in bytes, including the size field.
pub const MAX_TRAITS_SIZE: usize = 255;

/// The type of the trait that names the provider group (`EtwProviderTraitTypeGroup`).
pub const TRAIT_TYPE_GROUP: u8 = 1;

/// The lowest trait type that is not reserved for Microsoft.
pub const MIN_CUSTOM_TRAIT_TYPE: u8 = 128;

/// The maximum number of members of a structure in `TraceLogging` metadata, which is stored in
/// seven bits.
pub const MAX_STRUCT_MEMBERS: u8 = 127;

/// The maximum size of a security identifier in bytes (`SECURITY_MAX_SID_SIZE`).
pub const MAX_SID_SIZE: usize = 68;

/// The maximum size of a socket address that ETW decodes, in bytes (`SOCKADDR_IN6`).
pub const MAX_SOCKADDR_SIZE: usize = 28;

/// The maximum number of trace sessions that can enable one provider.
pub const MAX_SESSIONS_PER_PROVIDER: usize = 8;
