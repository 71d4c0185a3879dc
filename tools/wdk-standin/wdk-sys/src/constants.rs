//! All constants of the bindings, and the variables that other modules define.

#[cfg(not(feature = "suppress-wdk-linking"))]
pub use crate::driver_entry::globals::*;
pub use crate::generated::base::constants::*;
pub use crate::version::WdfMinimumVersionRequired;

#[cfg(feature = "gpio")]
pub use crate::generated::gpio::constants::*;
#[cfg(feature = "hid")]
pub use crate::generated::hid::constants::*;
#[cfg(feature = "parallel-ports")]
pub use crate::generated::parallel_ports::constants::*;
#[cfg(feature = "spb")]
pub use crate::generated::spb::constants::*;
#[cfg(feature = "storage")]
pub use crate::generated::storage::constants::*;
#[cfg(feature = "usb")]
pub use crate::generated::usb::constants::*;
