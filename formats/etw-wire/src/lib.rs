//! The values that the ETW (Event Tracing for Windows) interfaces define: types without behavior,
//! numbers and names.
//!
//! Drivers, build scripts, decoders and the stand-in kernel share these definitions. The encoder
//! and the decoder are in separate crates, so that tests can check one against the other.
//!
//! - [`Guid`], and the hash that turns a provider's name into a GUID;
//! - [`NtStatus`], with the statuses' names;
//! - [`EventDescriptor`] and its parts: [`Level`], [`Opcode`], [`Channel`], [`Keyword`];
//! - [`InType`], [`OutType`] and [`TlgOutType`]: the codes of field types;
//! - [`autologger`]: the values of sessions that Windows starts while it boots;
//! - [`limits`]: the sizes that ETW does not exceed;
//! - [`winmeta`]: the names that every manifest can use without defining them.
//!
//! The crate is `no_std`, has no dependencies and does not allocate. Every function can be called
//! at any IRQL.

#![no_std]
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing,
        clippy::panic, clippy::unwrap_used
    )
)]

pub mod autologger;
mod descriptor;
mod guid;
pub mod limits;
mod sha1;
mod status;
mod types;
pub mod winmeta;

pub use crate::{
    descriptor::{Channel, EventDescriptor, Keyword, Level, Opcode},
    guid::{Guid, GuidError},
    status::NtStatus,
    types::{InType, OutType, TlgOutType},
};
