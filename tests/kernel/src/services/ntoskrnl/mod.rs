//! The routines of ntoskrnl.exe, ETW aside.

pub mod bare;
pub mod context;
pub mod exports;
pub mod pool;
pub mod print;
pub mod system;
