//! The routines of ntoskrnl.exe, except ETW's, grouped by name prefix.

pub mod cm;
pub mod context;
pub mod crt;
pub mod data;
pub mod dbg;
pub mod ex;
pub mod exports;
pub mod io;
pub mod irps;
pub mod ke;
pub mod left;
pub mod mm;
pub mod ob;
pub mod object_links;
pub mod object_names;
pub mod object_security;
pub mod po;
pub mod ps;
pub mod rtl;
pub mod se;
pub mod sections;
pub mod variables;
pub mod well_known;
pub mod wmi;
pub mod zw;
