//! ETW (Event Tracing for Windows) for kernel-mode Rust drivers and, with a feature, for programs.
//!
//! A driver declares its provider and its events in one module, registers the provider in
//! `DriverEntry`, writes events at any IRQL, and unregisters the provider when it is
//! unloaded:
//!
//! ```no_run
//! use wdk_etw::{NtStatus, debug_print, emit};
//!
//! /// The driver's events.
//! #[wdk_etw::provider(name = "Contoso.Driver")]
//! mod trace {
//!     /// Requests to the device.
//!     #[keyword]
//!     pub const REQUEST: Keyword = Keyword::bit(0);
//!
//!     /// A read request was completed.
//!     #[event(level = Info, keyword = REQUEST)]
//!     pub fn read_complete(#[hex] offset: u64, length: u32, status: NtStatus);
//! }
//!
//! fn driver_entry() {
//!     // SAFETY: `unload` unregisters the provider, and `driver_entry` does not fail after this.
//!     if let Err(error) = unsafe { trace::register() } {
//!         // The driver works without tracing.
//!         debug_print(format_args!("contoso_driver: {error}"));
//!     }
//! }
//!
//! fn read(offset: u64, length: u32) {
//!     // The arguments are evaluated only if a session enables the event.
//!     emit!(trace::read_complete(offset, length, NtStatus::SUCCESS));
//! }
//!
//! fn unload() {
//!     // An error is a defect of the driver, so print it in the debugger; see `unregister`.
//!     if let Err(error) = trace::unregister() {
//!         debug_print(format_args!("contoso_driver: {error}"));
//!     }
//! }
//! # fn main() { driver_entry(); read(0, 1); unload(); }
//! ```
//!
//! [`provider`](macro@provider) documents declarations. [`event!`](macro@event) declares and writes
//! an event in one statement. Events in a manifest are decoded with the image's resources, which
//! the driver's build script adds with the crate `wdk-etw-build`; `TraceLogging` events need no
//! resources.
//!
//! # IRQL
//!
//! Every function whose documentation has no IRQL section can be called at any IRQL. A function
//! that ETW limits to an IRQL checks it in every build for x64, and returns an error instead of
//! calling ETW. Builds for ARM64 do not check it, because no document says that the kernel exports
//! `KeGetCurrentIrql`: there a driver must not rely on `TooHighIrql` errors. Events' data must be
//! in system space, whatever the IRQL; see [`EventDataDescriptor`].
//!
//! Comments such as `ETW-2.14` refer to facts in the repository's `docs/reference`, which cites
//! their sources.
//!
//! # Guarantees
//!
//! - Writing an event that no session enables costs one load, one test and one branch, and
//!   evaluates no argument.
//! - Writing an event does not allocate, lock, wait or panic. Only functions that register or
//!   unregister a provider wait, and only [`Provider::register_with`] allocates.
//! - A released handle is never passed to ETW: `unregister` waits for the writes in progress,
//!   and every later write does nothing.
//! - Failures are reported: errors name the routine and its `NTSTATUS`, and failed writes are
//!   counted by status ([`Provider::failures`]). [`Provider::statistics`] returns all counters.
//!
//! # User mode
//!
//! With the feature `user-mode`, the crate calls advapi32.dll instead of ntoskrnl.exe, and the same
//! declarations and macros work in programs, services and UMDF drivers: the state, the hot path and
//! the interface are the same. The differences:
//!
//! - There is no IRQL. Statements about IRQLs, system space and non-pageable memory do not apply.
//! - Statuses are those that the kernel's routine returns in the same case. Other Win32 error codes
//!   become `0xC007` and the code (`NTSTATUS_FROM_WIN32`).
//! - [`Provider::register_with`] allocates from the process's heap instead of the pool.
//! - A thread's activity id belongs to the process's thread. The kernel keeps a separate id for the
//!   same thread, so pass an activity to a driver in the request.
//! - A DLL must unregister its providers before it is unloaded.
//!
//! The crate is compiled for one mode, and cargo compiles a dependency once for all packages of a
//! build: if one command builds a driver and a program for the same target, the program's feature
//! also applies to the driver. Build them with separate commands. The declaration rejects the wrong
//! mode, at compile time, in packages that `wdk-build` configures as a KMDF, WDM or UMDF driver,
//! and in programs for Windows without the feature. It cannot reject it in a library crate, which
//! can be part of either.
//!
//! # What it does not do
//!
//! The crate writes events. It does not start sessions or read traces. It supports x64 and arm64
//! Windows 10, version 2004 and later. It compiles for other systems, for tests that link their
//! own `Etw*` routines.

#![cfg_attr(not(loom), no_std)]
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing,
        clippy::panic, clippy::unwrap_used
    )
)]

// Fields of the types `usize`, `isize` and `Pointer` are 64 bits wide.
const _: () = assert!(
    size_of::<usize>() <= size_of::<u64>(),
    "events cannot have integers of this target's size"
);

mod activity;
mod counters;
mod data;
mod debugger;
mod dynamic;
mod event;
mod failures;
mod ffi;
mod filter;
mod hex_dump;
mod irql;
mod limit;
mod mirror;
mod mode;
mod notification;
mod opaque;
mod origin;
mod plain;
mod pool;
mod print;
mod provider;
mod rundown;
mod settle;
mod stack_index;
mod state;
mod statistics;
mod sync;
mod text;
mod traced;
mod traits;
mod types;
mod write;

pub use crate::{
    activity::{Activity, ActivityError, ActivityId, ActivityScope},
    data::EventDataDescriptor,
    debugger::debug_print,
    dynamic::{DynamicEvent, EventMetadata, EventMetadataError, FieldName},
    failures::Failures,
    filter::{FilterCopy, FilterData, FilterHeader, SchematizedFilters},
    hex_dump::HexDump,
    limit::RateLimit,
    notification::{Control, EnableInfo, Notification, RawNotification},
    plain::PlainData,
    pool::POOL_TAG,
    provider::{Hook, Provider, Refusals, RegisterError, Registered, UnregisterError},
    statistics::Statistics,
    traced::{HasStatus, Traced},
    traits::{Traits, TraitsBuffer, TraitsError},
    types::*,
    write::{WriteError, WriteFlags, WriteOptions},
};

/// In a driver: `wdk_etw::guid!("…")`.
pub use etw_wire::guid;
/// In a driver: `wdk_etw::guid_of_name!("…")`.
pub use etw_wire::guid_of_name;
pub use etw_wire::{
    Channel, EventDescriptor, Guid, GuidError, Keyword, Level, NtStatus, Opcode,
    limits::MAX_DATA_DESCRIPTORS,
};

/// Declares a `TraceLogging` event in a statement, and writes it if a session enables it.
///
/// The arguments are the provider, the event's name, its `level` and `keyword` (or `keyword =
/// none`), optionally `opcode`, `tag`, `activity`, `related`, `starts`, `flags` and
/// `except_sessions` (see [`WriteOptions`]), a rate limit anywhere among them (`every = 100`,
/// `once` or `limit = …`; see [`RateLimit`]), and the fields, each with its type and its value.
/// Fields have the types and attributes of a declaration ([`provider`](macro@provider)), except for
/// maps and the declaration's structures. The keyword is a constant expression, or several joined by
/// `|`. `level = runtime(…)` and `keyword = runtime(…)` take a [`Level`] and a [`Keyword`] that are known
/// only at run time. The other values are evaluated only if a session enables the event: first the
/// options, then the fields from left to right.
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
/// Any. The values must be in system space and, above `APC_LEVEL`, in non-pageable memory; see
/// [`EventDataDescriptor`].
#[macro_export]
macro_rules! event {
    ($($argument:tt)*) => {
        $crate::__macro::event!($crate $($argument)*)
    };
}

/// Declares a provider and its events.
///
/// The macro turns the module into a provider with functions that write its events. The
/// attribute's arguments:
///
/// | | |
/// |---|---|
/// | `name = "…"` | the provider's name; the standard hash derives the GUID from it |
/// | `guid = "…"` | the provider's GUID, instead of the hash of its name |
/// | `group = "…"` | the GUID of the provider group that the provider joins |
/// | `trait_(128, b"…")` | a custom trait, of a type from 128 to 255 |
/// | `encoding = manifest` or `tracelogging` | the default encoding of the provider's events |
/// | `manifest = "…"` | a manifest, relative to the package's folder, from which `wdk-etw-build` generates the image's resources; it must agree with the declaration |
/// | `autologger`, `autologger(session = "…", …)` | a session that Windows 11 starts while it boots (`AutoLogger`) and that enables the provider; `cargo etw inf new` writes it to the INF file |
/// | `binary_tracking` | every session that records the provider's events also records the path of the driver's image (`EventProviderBinaryTrackInfo`), so that decoders find the decoding resources in it |
/// | `statistics` | the provider counts the events that ETW accepts ([`Statistics::written`]), and writes an event `ProviderStatistics` when a session requests its state; this costs each written event some instructions and an atomic addition |
/// | `debugger` | debug builds of the driver's crate also print the provider's events in the debugger, whether or not a session enables them; see [below](#events-in-the-debugger) |
/// | `stripes = 1` | the number of cache lines in which writes in progress are tracked, a power of two up to 64; the default is 16; two threads share a line with a probability of 1 in this number; use 1 for a driver that writes few events, and 64 for a driver that writes from every processor of a large machine |
/// | `crate = path` | the path of this crate, if it is not `::wdk_etw`, for example in a crate that re-exports it |
/// | `rundown = none` | writes in progress are not tracked, so that a write has no atomic operation; `unregister` is then `unsafe`: no write may be in progress |
/// | `on_enable`, `on_disable`, `on_capture_state` `= path` | a [`Hook`] for notifications with [`Control::Enable`], [`Control::Disable`] and [`Control::CaptureState`]; the path is resolved inside the module |
///
/// ETW adds a provider's traits to each of its events. A provider that needs none (all its
/// events are in a manifest, and it has no group and no custom traits) is registered without
/// traits. A `TraceLogging` event that [`event!`](macro@event) or [`DynamicEvent`] writes to it contains the
/// provider's name all the same.
///
/// The module's items:
///
/// ```no_run
/// #[wdk_etw::provider(name = "Contoso.Disk", on_capture_state = super::capture_state)]
/// mod trace {
///     /// A keyword: one of the bits 0 to 47.
///     #[keyword]
///     pub const TRANSFER: Keyword = Keyword::bit(0);
///
///     #[tasks]
///     enum Task {
///         Transfer = 1,
///     }
///
///     /// The provider's own opcodes: 10 to 239.
///     #[opcodes]
///     enum Opcode {
///         Split = 10,
///     }
///
///     /// The provider's own channels, for events in the manifest: 16 to 255.
///     #[channels]
///     enum Channel {
///         #[channel(Operational, enabled = true)]
///         Operational = 16,
///     }
///
///     /// A value map: names for numbers. The underlying type is `u32` unless `repr` states one.
///     #[map]
///     #[repr(u8)]
///     pub enum Direction {
///         Read = 1,
///         Write = 2,
///     }
///
///     /// A bit map: names for bits.
///     #[bitmap]
///     pub enum Flags {
///         Cached = 1 << 0,
///         Paging = 1 << 1,
///     }
///
///     /// A structure of several fields.
///     #[structure]
///     pub struct Extent {
///         #[hex]
///         pub start: u64,
///         pub length: u32,
///     }
///
///     /// A manifest event, because it has an id.
///     #[event(id = 1, version = 0, level = Info, keyword = TRANSFER, task = Transfer,
///         opcode = Start, channel = Operational, message = "%1 of %2 starts.")]
///     pub fn transfer_started(direction: Direction, extent: Extent);
///
///     /// A `TraceLogging` event, because it has no id.
///     #[event(level = Verbose, keyword = TRANSFER, name = "Split")]
///     pub fn split(parts: &[u32], flags: Flags, #[name = "Disk"] name: &str);
///
///     /// The provider's state, written when a session requests it.
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
/// In a `message`, `%1` is the first field of the declaration, and `%%` a percent sign. A structure is
/// one field. Without `message`, viewers show the first paragraph of a manifest event's doc comment.
///
/// Every event has a level (`Critical`, `Error`, `Warning`, `Info`, `Verbose`, `LogAlways`, or
/// one that the provider defines, 16 to 255) and keywords (`READ | WRITE`, or explicitly `none`).
/// Without `version` the version is 0, and without `opcode` the opcode is `Info`.
/// The event's name is the function's name in Pascal case, and a field's name is the parameter's,
/// unless `name` is given. `tag` on an event and `#[tag = …]` on a field add a 28-bit tag to the
/// event metadata.
///
/// The field types:
///
#[doc = include_str!("field-types.md")]
///
/// Borrowed types can have a lifetime: `UnicodeString<'_>`. `usize`, `isize` and `Pointer` have 64 bits in the event, on x64 and on ARM64; `#[repr(u32)] length: usize`
/// has fewer. The declaration's own types take precedence over field types of the same name. A call passes
/// an array by reference: `&[1, 2, 3, 4]` for a field `[u32; 4]`. A structure contains its members, except
/// text and slices, which it borrows.
///
/// Attributes of a field change its metadata, for authors who follow a manifest:
///
/// | attribute | effect |
/// |---|---|
/// | `#[out_type = "win:HexInt64"]` | the presentation, by its name in manifests; `TraceLogging` has most of them |
/// | `#[length(u8)]`, `#[count(u32, name = "Entries")]` | the type (and, in manifests, the name) of the length or count before a string, bytes, a `SocketAddr` or an array; longer values are cut. The length of text in a field of its own counts characters. Manifest events only |
/// | `#[length(field = size)]`, `#[count(field = count)]` | the length or count is an earlier field, which several values can share; each value is cut to the length of the shortest. Manifest events only |
/// | `#[repr(u32)] usize`, `#[repr(i16)] isize` | the size in the event, 8 to 64 bits; the parameter stays a `usize` or `isize`. A number that does not fit [is limited](#fields-that-do-not-fit). Both encodings |
/// | `#[counted] &[u8]` | bytes that contain their length (`win:CountedBinary`), without a field for it |
/// | `#[bytes] [u8; 6]`, `#[text] [u16; 8]`, `#[text] [u8; 8]` | bytes or text of a fixed length, not an array. Manifest events only |
///
/// A map becomes a structure and not an enum, because a field can have values without a name:
/// `Direction(7)`. A map's `#[name = "…"]` is its name in the manifest. Two maps of the same name
/// and different integer types are one map in the manifest. An entry of a bit map may be a mask of
/// several bits, written in hexadecimal or with `|`. `#[opcodes(task = Transfer)]` lists the
/// opcodes of a task, and `#[levels]` names the provider's own levels.
///
/// [`HexDump`], a structure that the library provides, is the type of a field for a range of bytes
/// with its offset, such as part of a buffer or of a device's registers.
///
/// # Encodings
///
/// An event is in the manifest or describes itself; both kinds have the same fields. The
/// difference:
///
#[doc = include_str!("encodings.md")]
///
/// # Channels
///
/// A channel is a log in Event Viewer: `#[channel(Admin)]`, `Operational`, `Analytic` or `Debug`.
/// The log's name consists of the provider's and the variant's, such as `Contoso.Disk/Operational`.
/// `#[channel(Import)]` is a Windows log: `System = 8`, `Application = 9` or `Security = 10`. A
/// channel of the provider can have settings, as in `#[channel(Operational, enabled = true, isolation =
/// System)]`: `enabled`, `isolation`, `access`, `max_size`, `retention` and `auto_backup`. Without
/// `enabled = true`, Windows installs it disabled.
///
/// An event of a channel has the channel's keyword bit, which the macro adds to the event's keywords, also to
/// `none`. The events reach the log
/// on machines where the provider is installed: by the INF file, which `cargo etw inf new` writes, or by
/// the manifest, which `cargo etw manifest write` writes and `wevtutil im` installs.
///
/// # Conditional compilation
///
/// `#[cfg(…)]` and `#[cfg_attr(…)]` apply to the module, its items, the variants of tasks, opcodes,
/// channels and maps, and the fields of events and structures:
///
/// ```
/// #[wdk_etw::provider(name = "Contoso.Driver")]
/// mod trace {
///     #[event(level = Info, keyword = none)]
///     pub fn read_complete(length: u32, #[cfg(debug_assertions)] #[hex] address: u64);
///
///     #[cfg(target_arch = "x86_64")]
///     #[event(level = Verbose, keyword = none)]
///     pub fn stepped();
/// }
/// ```
///
/// An event has only the fields whose conditions are met, and a `message` counts only those. Parts
/// that are compiled out are not checked. A driver whose image has decoding resources can use the
/// conditions that its build script knows: the package's features, the target's properties and the
/// options in `RUSTFLAGS`. The build script reports any other condition, such as
/// `debug_assertions`, as an error; `wdk_etw_build::Image::cfg` tells it the value of an option
/// that is set elsewhere.
///
/// # Fields that do not fit
///
/// An event's data can be at most 62,895 bytes long, and less if its metadata exceeds 256 bytes. A
/// string or array that does not fit in the event is cut, between characters or elements.
/// [`Failures::cut`] counts the cuts, and the provider writes a `TraceLogging` event `FieldCut` before the
/// event, with the event's level and keywords. It contains the event's id and name, the field's index, and
/// the field's length before and after.
///
/// A `usize` or `isize` that does not fit in its `#[repr(…)]` type is written as the type's largest
/// or smallest number. This counts as a cut, and `FieldCut` contains the number before and after in
/// place of the lengths, as unsigned 64-bit numbers.
///
/// Strings whose length is an earlier field end at most three units before that length, so that no
/// character is cut. If they share the length and have no such end in common, they are cut at the
/// length itself, which counts as a cut.
///
/// # Kernel stack
///
/// An event whose values take more than 2,048 bytes of the stack does not compile: 272 for each
/// `Arguments` and 40 for each `SocketAddr`, the size of a structure that is declared by value, and
/// at least 8 for each number, which is copied. A structure that is declared as a reference (`page: &Page`)
/// and arrays take none. The data descriptors take 16 bytes each in addition. A write that cannot use
/// its stack's slot, or has to cut a value, copies numbers and socket addresses a second time, and
/// unoptimized code takes several times as much.
///
/// # Events in the debugger
///
/// With the argument `debugger`, a crate that is compiled with `debug_assertions` prints each event that
/// it declares or writes with [`event!`](macro@event) in the kernel debugger, in one line of at most 511
/// bytes, with `DbgPrintEx`, or with `OutputDebugStringA` in user mode:
///
/// ```text
/// Contoso.Disk ReadComplete Status=STATUS_SUCCESS (0x00000000) Offset=0x1000 Name="disk0"
/// ```
///
/// - Every event is printed, even while no session enables it and while the provider is not registered. So
///   the event's `is_enabled()` is always true, its arguments are always evaluated, and a rate limit
///   counts all occurrences. ETW receives an event only if a session enables it.
/// - A line shows at most 128 characters of a string, 32 bytes of a byte field and 16 elements of an array.
///   It ends with `...` if it is cut. An `Arguments` value is formatted a second time.
/// - The component is `DPFLTR_IHVDRIVER_ID`; the level is `DPFLTR_ERROR_LEVEL` for `Critical` and `Error`,
///   `DPFLTR_WARNING_LEVEL`, `DPFLTR_INFO_LEVEL` for `Info` and `LogAlways`, and `DPFLTR_TRACE_LEVEL` for
///   the others. Windows prints only errors unless the component's mask says otherwise.
/// - Nothing is printed above `DIRQL`, where `DbgPrintEx` can deadlock. On ARM64, where the library does not
///   read the IRQL, write no event of such a provider there.
/// - Events of [`DynamicEvent`], which the `log` and `tracing` facades write, are not printed.
///
/// A release build contains none of this.
///
/// # Generated items
///
/// The module has these public items:
///
/// - `PROVIDER`, a `static` that is a [`Provider`],
/// - `ID` and, if there is a group, `GROUP`, which are [`Guid`]s,
/// - `unsafe fn register() -> Result<Registered, RegisterError>`, which is [`Provider::register`],
/// - `fn unregister() -> Result<(), UnregisterError>`, which is [`Provider::unregister`]; with `rundown =
///   none` it is an `unsafe fn` and [`Provider::unregister_without_rundown`].
///
/// Keywords, maps and structures keep the visibility of their declarations. Maps and structures are
/// `Copy`; values of a bit map combine with `|`. A structure has lifetime parameters only. A structure of an
/// array is packed, so that code copies its members instead of borrowing them; it and maps are [`PlainData`].
/// Tasks, opcodes, channels and levels are names for the declaration only. Call methods on
/// `PROVIDER` as on a `&Provider`: `trace::PROVIDER.failures()`.
///
/// An event has a function `fn(fields)`, which writes it if a session enables it; [`emit!`](macro@emit) calls
/// the function and evaluates the arguments only then. It also has a module of the same name with its
/// `DESCRIPTOR`, `is_enabled()`, and `write(&options, fields)`, which returns a [`WriteError`] if ETW does not
/// accept the event.
pub use wdk_etw_macros::provider;

#[doc(hidden)]
pub mod __macro {
    //! The functions and types that the macros' expansions use. Not a stable interface.
    pub use crate::__plain as plain;
    pub use crate::counters::WrittenCounts;
    pub use crate::event::{
        Cut, EventBlob, EventRef, Packed, SocketBytes, Write, block_of_size, bytes_of,
        bytes_of_size, count, count_of_size, elements, first, least, length,
    };
    pub use crate::limit::FirstOption;
    pub use crate::mirror::{Line, bits, map, structure};
    pub use crate::mode::{USER_MODE, assert_kernel_mode, assert_user_mode};
    pub use crate::print::{Bytes, Narrow, Print};
    pub use crate::provider::{Hooks, StaticProvider};
    pub use crate::text::Formatted;
    pub use crate::write::{Options, Plain, Runtime};
    pub use core::compile_error;
    pub use wdk_etw_macros::event;
}

#[doc(hidden)]
pub mod __facade {
    //! The functions that `wdk-etw-log` and `wdk-etw-tracing` share. Not a stable interface.
    pub use crate::{
        irql::current as current_irql,
        mode::USER_MODE,
        origin::{Event, MAX_DATA, MAX_METADATA, MAX_STACK, MAX_TEXT, Origin},
        settle::settle,
    };
}

/// The types that the model checker tests.
#[cfg(loom)]
pub mod model {
    pub use crate::{
        rundown::{Rundown, Stripe},
        stack_index::{set_group, stack_index},
        state::EnableState,
    };
}
