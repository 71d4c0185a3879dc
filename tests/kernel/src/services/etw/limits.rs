//! The limits that ETW has for controllers.

/// The most sessions on a system (ETW-3.6.3).
pub const MAX_SESSIONS: usize = 64;

/// The most private sessions of a process (R-O8; ETW-3.6.4 names both 4 and 8).
pub const MAX_PRIVATE: usize = 4;

/// The most sessions that enable one provider (ETW-3.6.1, R-O8).
pub const MAX_PER_PROVIDER: usize = 8;

/// The most processes that a filter can list (ETW-1.1.12).
pub const MAX_PROCESSES: usize = 8;

/// The most bytes of a schematized filter (ETW-3.5.7).
pub const MAX_FILTER_BYTES: usize = 1024;
