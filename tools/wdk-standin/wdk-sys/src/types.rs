//! All types of the bindings.

pub use crate::{
    generated::{base::types::*, framework::*},
    support::*,
};

#[cfg(feature = "gpio")]
pub use crate::generated::gpio::types::*;
#[cfg(feature = "hid")]
pub use crate::generated::hid::types::*;
#[cfg(feature = "parallel-ports")]
pub use crate::generated::parallel_ports::types::*;
#[cfg(feature = "spb")]
pub use crate::generated::spb::types::*;
#[cfg(feature = "storage")]
pub use crate::generated::storage::types::*;
#[cfg(feature = "usb")]
pub use crate::generated::usb::types::*;
