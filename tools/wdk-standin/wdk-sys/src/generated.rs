//! The definitions that the build script generates. Like bindgen's output in the published crate,
//! they are included as text in one module, because types refer to one another.

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
    reason = "names, types and documentation come from the WDK's headers; not every feature has \
              items of every kind, and only unions need unsafe code for their bit fields"
)]

/// All constants in the bindings, and the variables that other modules define.
pub mod constants {
    use super::types::*;
    #[cfg(driver_model__driver_type = "KMDF")]
    pub use crate::version::WdfMinimumVersionRequired;

    include!(concat!(env!("OUT_DIR"), "/constants.rs"));
}

/// The functions in the headers, with a module for each feature.
pub mod functions {
    include!(concat!(env!("OUT_DIR"), "/functions.rs"));
}

/// All types in the bindings, and the framework's functions.
pub mod types {
    pub use crate::support::*;

    include!(concat!(env!("OUT_DIR"), "/types.rs"));
    include!(concat!(env!("OUT_DIR"), "/framework.rs"));
}
