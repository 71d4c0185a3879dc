//! The routines of ntoskrnl.exe, except those of ETW.

pub mod context;
pub mod exports;
pub mod pool;
pub mod print;
pub mod system;
