//! ETW (Event Tracing for Windows) for kernel-mode Rust drivers.
//!
//! A driver declares a [`Provider`] as a `static`, registers it in its
//! `DriverEntry`, writes events wherever it likes, at any IRQL, and unregisters it
//! when it is unloaded:
//!
//! ```no_run
//! use wdk_etw::{
//!     Event, EventDataDescriptor, Keyword, Level, Provider, WriteOptions, field, guid_of_name,
//!     tracelogging, traits, write_event,
//! };
//!
//! static PROVIDER: Provider = Provider::new(
//!     guid_of_name!("Contoso.Driver"),
//!     &traits!("Contoso.Driver"),
//! );
//!
//! static READ: Event = Event::tracelogging(
//!     Level::INFORMATION,
//!     Keyword::bit::<0>(),
//!     tracelogging!("Read", "Offset": field::U64, "Length": field::U32),
//! );
//!
//! fn driver_entry() {
//!     if let Err(error) = PROVIDER.register() {
//!         // The driver works without tracing; print the error and go on.
//!         let _text = error;
//!     }
//! }
//!
//! fn read(offset: u64, length: u32) {
//!     // Nothing between the brackets is evaluated unless somebody listens.
//!     write_event!(PROVIDER, READ, WriteOptions::new(), [
//!         EventDataDescriptor::of(&offset),
//!         EventDataDescriptor::of(&length),
//!     ]);
//! }
//! # fn main() { driver_entry(); read(0, 1); }
//! ```
//!
//! # What it promises
//!
//! - A write site of an event that nobody listens to costs one load, one test and
//!   one branch, and evaluates no argument.
//! - No allocation, no lock and no panic on any path that a caller or a controller
//!   can reach; [`Provider::unregister`] alone waits.
//! - A handle that was released never reaches ETW: `unregister` lets the writes
//!   that are under way finish, and every later write does nothing.
//! - What fails says so: errors carry the `NTSTATUS` and the routine, and writes
//!   that ETW did not take are counted, by status ([`Provider::failures`]).
//!
//! # What it does not do
//!
//! It is a provider only: it starts no sessions and reads no traces. It knows
//! x64 and arm64 Windows from version 10 2004 on; on other systems it compiles
//! for tests that link their own `Etw*` routines.

#![cfg_attr(not(loom), no_std)]
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unwrap_used
    )
)]

mod activity;
mod data;
mod descriptor;
mod event;
mod failures;
mod ffi;
mod filter;
mod guid;
pub mod metadata;
mod notification;
mod provider;
mod rundown;
mod state;
mod status;
mod sync;
mod traits;
mod types;
mod write;

pub use crate::{
    activity::{ActivityError, ActivityId, ActivityScope},
    data::{Counted, EventDataDescriptor, PlainData},
    descriptor::{Channel, EventDescriptor, Keyword, Level, Opcode},
    failures::Failures,
    filter::{FilterData, FilterHeader, SchematizedFilters},
    guid::{Guid, GuidError},
    metadata::field,
    notification::{Composite, Control, Notification},
    provider::{Hook, Hooks, Provider, RegisterError, Registered, TraitsFailure, UnregisterError},
    status::NtStatus,
    traits::{Traits, TraitsBuffer, TraitsError},
    types::{
        F32, F64, FileTime, HResult, Pointer, Port, ProcessId, Sid, SystemTime, ThreadId,
        UnicodeString, Utf16CStr, Win32Error,
    },
    write::{Event, MAX_DATA_DESCRIPTORS, WriteError, WriteFlags, WriteOptions},
};

pub use wdk_etw_macros::{event, provider};

#[doc(hidden)]
pub mod __macro {
    //! What the macros' expansions call. Not a stable interface.
    pub use crate::{
        event::{
            Cut, EventBlob, EventRef, Options, Packed, Plain, SocketBytes, Write, bytes_of, count,
            length,
        },
        write::cold,
    };
}

/// What the model checker drives.
#[cfg(loom)]
pub mod model {
    pub use crate::{rundown::Rundown, state::EnableState};
}
