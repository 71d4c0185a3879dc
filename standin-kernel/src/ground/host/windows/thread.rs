//! The registers of a thread that user-mode code cannot set.

/// Windows keeps the thread's own block in GS, so instructions that use it are replaced instead
/// (see [`super::code`]).
pub const fn set_gs(_base: u64) {}
