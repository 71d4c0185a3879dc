//! All constants of the bindings, and the variables that other modules define.

#![allow(
    missing_docs,
    clashing_extern_declarations,
    dead_code,
    improper_ctypes,
    improper_ctypes_definitions,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unused_imports,
    unused_unsafe,
    clippy::all,
    clippy::nursery,
    clippy::pedantic,
    reason = "names, types and documentation are those of the WDK's headers; not every feature has \
              items of every kind, and only unions need unsafe code for their bit fields"
)]

use crate::types::*;

#[cfg(driver_model__driver_type = "KMDF")]
pub use crate::version::WdfMinimumVersionRequired;

include!("generated/constants.rs");
