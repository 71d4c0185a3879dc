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

include!("generated/base/constants.rs");

#[cfg(feature = "gpio")]
include!("generated/gpio/constants.rs");
#[cfg(feature = "hid")]
include!("generated/hid/constants.rs");
#[cfg(feature = "parallel-ports")]
include!("generated/parallel_ports/constants.rs");
#[cfg(feature = "spb")]
include!("generated/spb/constants.rs");
#[cfg(feature = "storage")]
include!("generated/storage/constants.rs");
#[cfg(feature = "usb")]
include!("generated/usb/constants.rs");
