//! ETW's limits for controllers.

/// The maximum number of sessions on a system (ETW-3.6.3).
pub const MAX_SESSIONS: usize = 64;

/// The maximum number of private sessions per process (R-O8; ETW-3.6.4 names both 4 and 8).
pub const MAX_PRIVATE: usize = 4;

/// The maximum number of sessions that can enable one provider (ETW-3.6.1, R-O8).
pub const MAX_PER_PROVIDER: usize = 8;

/// The maximum number of processes in a filter (ETW-1.1.12).
pub const MAX_PROCESSES: usize = 8;

/// The maximum size of a schematized filter in bytes (ETW-3.5.7).
pub const MAX_FILTER_BYTES: usize = 1024;
