//! The functions of the headers, by the feature that they belong to.

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

/// Functions of ntifs.h and ntddk.h.
pub mod ntddk {
    use crate::types::*;
    include!("generated/base/functions.rs");
}

/// Functions of the headers for GPIO controllers. These headers declare none.
#[cfg(feature = "gpio")]
pub mod gpio {
    use crate::types::*;
    include!("generated/gpio/functions.rs");
}

/// Functions of the headers for human interface devices.
#[cfg(feature = "hid")]
pub mod hid {
    use crate::types::*;
    include!("generated/hid/functions.rs");
}

/// Functions of the headers for parallel and serial ports. These headers declare none.
#[cfg(feature = "parallel-ports")]
pub mod parallel_ports {
    use crate::types::*;
    include!("generated/parallel_ports/functions.rs");
}

/// Functions of the headers for simple peripheral buses. These headers declare none.
#[cfg(feature = "spb")]
pub mod spb {
    use crate::types::*;
    include!("generated/spb/functions.rs");
}

/// Functions of the headers for storage devices.
#[cfg(feature = "storage")]
pub mod storage {
    use crate::types::*;
    include!("generated/storage/functions.rs");
}

/// Functions of the headers for USB devices.
#[cfg(feature = "usb")]
pub mod usb {
    use crate::types::*;
    include!("generated/usb/functions.rs");
}
