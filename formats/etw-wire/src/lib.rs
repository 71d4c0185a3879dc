//! The values that ETW (Event Tracing for Windows) fixes for everyone: types without behaviour,
//! numbers and names.
//!
//! Drivers, build scripts, decoders and the stand-in kernel share these definitions. The crate has
//! no encoder and no decoder: these are in separate crates, because tests check one against the
//! other.
//!
//! - [`Guid`] and the hash that makes a GUID of a provider's name;
//! - [`NtStatus`], with names;
//! - [`EventDescriptor`] and its parts: [`Level`], [`Opcode`], [`Channel`], [`Keyword`];
//! - [`InType`], [`OutType`] and [`TlgOutType`]: the codes of field types;
//! - [`limits`]: the sizes that ETW refuses to exceed;
//! - [`winmeta`]: the names that every manifest may use without defining them.
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
