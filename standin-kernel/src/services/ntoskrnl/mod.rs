//! The routines of ntoskrnl.exe, except ETW's.
//!
//! A routine lies in the folder of the manager that owns the object it works on. That is the folder
//! of the routine's prefix, unless the object has another owner: `ZwCreateFile` is in `io`, and
//! `IoAllocateMdl` in `mm`. A module that uses several managers, such as `object_names`, lies beside
//! them, since managers do not use each other in circles.

pub mod cm;
pub mod context;
pub mod crt;
pub mod dbg;
pub mod ex;
pub mod exports;
pub mod fsrtl;
pub mod io;
pub mod ke;
pub mod kernel_variables;
pub mod leaks;
pub mod live_irps;
pub mod mm;
pub mod ob;
pub mod object_links;
pub mod object_names;
pub mod object_security;
pub mod object_waits;
pub mod po;
pub mod ps;
pub mod rtl;
pub mod se;
pub mod sections;
pub mod variables;
pub mod well_known;
