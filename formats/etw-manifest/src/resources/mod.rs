//! The resources that decoders read: `WEVT_TEMPLATE` and the message table.
//!
//! Microsoft does not document their formats. `docs/reference/decoding-resources.md` describes
//! them, based on the libfwevt project's documentation and the output of mc.exe. Tests compare the
//! encoder's output with mc.exe's byte for byte.

mod decode;
mod encode;
mod version;

pub use decode::{DecodeError, Decoded, decode};
pub use encode::{
    EncodeError, NO_MESSAGE, attributes, field_of, message_ids, message_table, resources,
    wevt_template,
};
pub use version::Version;
