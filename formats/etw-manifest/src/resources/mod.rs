//! The resources that decoders read: `WEVT_TEMPLATE` and the message table.
//!
//! Microsoft does not document their formats. `docs/reference/decoding-resources.md` describes
//! them, based on the libfwevt project's description and on the resources that mc.exe writes, with
//! which the encoder is compared byte for byte.

mod decode;
mod encode;
mod version;

pub use decode::{DecodeError, Decoded, decode};
pub use encode::{
    EncodeError, NO_MESSAGE, attributes, field_of, message_ids, message_table, resources,
    wevt_template,
};
pub use version::Version;
