//! ETW (Event Tracing for Windows) for kernel-mode Rust drivers.
//!
//! A driver declares its provider and everything that it can say in one module,
//! registers in its `DriverEntry`, writes events wherever it likes, at any IRQL, and
//! unregisters when it is unloaded:
//!
//! ```no_run
//! use wdk_etw::{NtStatus, emit};
//!
//! /// Everything that this driver can say.
//! #[wdk_etw::provider(name = "Contoso.Driver")]
//! mod trace {
//!     /// What users of the device ask for.
//!     #[keyword]
//!     pub const REQUEST: Keyword = Keyword::bit(0);
//!
//!     /// A read is done.
//!     #[event(level = Info, keyword = REQUEST)]
//!     pub fn read_complete(#[hex] offset: u64, length: u32, status: NtStatus);
//! }
//!
//! fn driver_entry() {
//!     if let Err(error) = trace::register() {
//!         // The driver works without tracing; print the error and go on.
//!         let _text = error;
//!     }
//! }
//!
//! fn read(offset: u64, length: u32) {
//!     // Nothing between the parentheses is evaluated unless somebody listens.
//!     emit!(trace::read_complete(offset, length, NtStatus::SUCCESS));
//! }
//!
//! fn unload() {
//!     let _result = trace::unregister();
//! }
//! # fn main() { driver_entry(); read(0, 1); unload(); }
//! ```
//!
//! [`provider`](macro@provider) says all that a declaration can have, and
//! [`event!`](macro@event) writes an event that is declared where it is written.
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
mod event;
mod failures;
mod ffi;
mod filter;
mod notification;
mod plain;
mod pool;
mod provider;
mod rundown;
mod state;
mod sync;
mod traits;
mod types;
mod write;

pub use crate::{
    activity::{Activity, ActivityError, ActivityId, ActivityScope},
    data::EventDataDescriptor,
    failures::Failures,
    filter::{FilterCopy, FilterData, FilterHeader, SchematizedFilters},
    notification::{Composite, Control, Notification},
    plain::PlainData,
    pool::POOL_TAG,
    provider::{Hook, Hooks, Provider, Refusals, RegisterError, Registered, UnregisterError},
    traits::{Traits, TraitsBuffer, TraitsError},
    types::{
        F32, F64, FileTime, HResult, Luid, Pointer, Port, ProcessId, Sid, SystemTime, ThreadId,
        UnicodeString, Utf16CStr, Win32Error,
    },
    write::{WriteError, WriteFlags, WriteOptions},
};

pub use etw_wire::{
    Channel, EventDescriptor, Guid, GuidError, Keyword, Level, NtStatus, Opcode, guid,
    guid_of_name, limits::MAX_DATA_DESCRIPTORS,
};

/// Writes a `TraceLogging` event that is declared where it is written, if somebody listens.
///
/// The provider, the event's name, its `level` and `keyword` (or `keyword = none`), then
/// what it has of `opcode`, `tag`, `activity`, `related`, `starts` and `flags`, and its fields, each
/// with its type and its value. Types and attributes are those of a declaration
/// ([`provider`](macro@provider)); maps and structures are not among them. Keywords are a
/// constant expression, so several are put together with
/// [`Keyword::union`]. Nothing is evaluated unless somebody listens.
///
/// ```
/// # #[wdk_etw::provider(name = "Contoso.Driver")]
/// # mod trace {
/// #     #[keyword]
/// #     pub const REQUEST: Keyword = Keyword::bit(0);
/// # }
/// use wdk_etw::event;
///
/// # fn example(offset: u64, name: &str) {
/// event!(trace::PROVIDER, "Retried", level = Warning, keyword = trace::REQUEST, {
///     #[hex] offset: u64 = offset,
///     name: &str = name,
/// });
/// # }
/// ```
///
/// # IRQL
///
/// Any. Above `APC_LEVEL` the values must lie in memory that cannot be paged out.
pub use wdk_etw_macros::event;

/// Declares a provider and everything that it can say.
///
/// The module becomes a provider with functions that write its events. In the attribute:
///
/// | | |
/// |---|---|
/// | `name = "…"` | the provider's name; its GUID is made of it by the standard hash |
/// | `guid = "…"` | another GUID |
/// | `group = "…"` | the GUID of the provider group that the provider is in |
/// | `trait_(128, b"…")` | a custom trait, of a type from 128 to 255 |
/// | `encoding = manifest` or `tracelogging` | for events that do not say it themselves |
/// | `manifest = "…"` | the file, from the package's folder, that `wdk-etw-build` makes the image's resources of instead of the declaration; both must agree |
/// | `binary_tracking` | [`Provider::with_binary_tracking`] |
/// | `on_enable`, `on_disable`, `on_capture_state` `= path` | a [`Hook`]; the path is seen from inside the module |
///
/// A provider all of whose events are in a manifest, in no group and without custom traits,
/// is registered without traits, which would travel with every event.
///
/// In the module:
///
/// ```no_run
/// #[wdk_etw::provider(name = "Contoso.Disk", on_capture_state = super::capture_state)]
/// mod trace {
///     /// A keyword is one of the bits 0 to 47.
///     #[keyword]
///     pub const TRANSFER: Keyword = Keyword::bit(0);
///
///     #[tasks]
///     enum Task {
///         Transfer = 1,
///     }
///
///     /// Opcodes of the provider's own are 10 to 239.
///     #[opcodes]
///     enum Opcode {
///         Split = 10,
///     }
///
///     /// Channels of the provider's own are 16 to 255; for events in the manifest.
///     #[channels]
///     enum Channel {
///         #[channel(Operational)]
///         Operational = 16,
///     }
///
///     /// Names for numbers. The type is a number of 32 bits, or as `repr` says.
///     #[map]
///     #[repr(u8)]
///     pub enum Direction {
///         Read = 1,
///         Write = 2,
///     }
///
///     /// Names for bits.
///     #[bitmap]
///     pub enum Flags {
///         Cached = 1 << 0,
///         Paging = 1 << 1,
///     }
///
///     /// Several fields together.
///     #[structure]
///     pub struct Extent {
///         #[hex]
///         pub start: u64,
///         pub length: u32,
///     }
///
///     /// An event with an id is in the manifest.
///     #[event(id = 1, version = 0, level = Info, keyword = TRANSFER, task = Transfer,
///         opcode = Start, channel = Operational, message = "%1 of %2 starts.")]
///     pub fn transfer_started(direction: Direction, extent: Extent);
///
///     /// One without describes itself.
///     #[event(level = Verbose, keyword = TRANSFER, name = "Split")]
///     pub fn split(parts: &[u32], flags: Flags, #[name = "Disk"] name: &str);
///
///     /// What a session gets that asks for the provider's state.
///     #[event(level = Info, keyword = none, opcode = DcStart)]
///     pub fn state(open_files: u32);
/// }
///
/// use wdk_etw::{Notification, Provider, emit};
///
/// fn capture_state(_provider: &Provider, _notification: &Notification<'_>) {
///     emit!(trace::state(3));
/// }
///
/// fn transfer() {
///     let extent = trace::Extent { start: 0, length: 512 };
///     emit!(trace::transfer_started(trace::Direction::Read, extent));
///     emit!(trace::split(&[256, 256], trace::Flags::Cached, "disk0"));
/// }
/// # fn main() { transfer(); }
/// ```
///
/// An event has a level (`Critical`, `Error`, `Warning`, `Info`, `Verbose`, `LogAlways`, or
/// one of the provider's own, 16 to 255) and keywords (`READ | WRITE`, or `none` on
/// purpose). Its name is the function's in Pascal case, as are its fields', unless `name`
/// says otherwise. `tag` gives an event, and `#[tag = …]` a field, a number of 28 bits that
/// travels in the event's description.
///
/// The types of fields:
///
#[doc = include_str!("field-types.md")]
///
/// What makes an event too large is cut: texts between characters, arrays between elements.
/// [`Failures::cut`] counts it, and an event `FieldCut` before the event tells which field
/// was cut, from what length to what.
///
/// Made are `PROVIDER`, `ID`, `GROUP`, `register()`, `unregister()`, the keywords, the
/// types, and for each event a function that writes it, and a module with its `DESCRIPTOR`,
/// `is_enabled()`, and `write(&options, …)`, which returns whether ETW took the event.
pub use wdk_etw_macros::provider;

#[doc(hidden)]
pub mod __macro {
    //! What the macros' expansions call. Not a stable interface.
    pub use crate::event::{
        Cut, EventBlob, EventRef, Options, Packed, Plain, SocketBytes, Write, bytes_of, count,
        length,
    };
}

/// What the model checker drives.
#[cfg(loom)]
pub mod model {
    pub use crate::{rundown::Rundown, state::EnableState};
}
