//! Writes the records of the [`log`] crate as ETW events of a kernel-mode driver.
//!
//! Many `no_std` crates report their actions through `log`. With this crate as the logger, their
//! records are events of the driver's own provider, in the same trace as its declared events:
//!
//! ```no_run
//! use wdk_etw::{Notification, Provider};
//! use wdk_etw_log::EtwLogger;
//!
//! #[wdk_etw::provider(
//!     name = "Contoso.Driver",
//!     on_enable = super::sessions_changed,
//!     on_disable = super::sessions_changed,
//! )]
//! mod trace {
//!     /// Records of the crates that the driver uses.
//!     #[keyword]
//!     pub const LOG: Keyword = Keyword::bit(15);
//! }
//!
//! static LOGGER: EtwLogger = EtwLogger::new(&trace::PROVIDER, trace::LOG).following_sessions();
//!
//! fn sessions_changed(_provider: &Provider, _notification: &Notification<'_>) {
//!     LOGGER.sessions_changed();
//! }
//!
//! fn driver_entry() {
//!     // Fails only if the driver has installed another logger.
//!     let _result = LOGGER.install();
//!     // SAFETY: the driver's unload routine unregisters the provider.
//!     let _result = unsafe { trace::register() };
//!     log::info!("loaded");
//! }
//! # fn main() { driver_entry(); }
//! ```
//!
//! # Events
//!
//! A record becomes a `TraceLogging` event with the name `Log`, the keyword that [`EtwLogger::new`]
//! received, and these fields:
//!
//! | field | type | contents |
//! |---|---|---|
//! | `Level` | text | `ERROR`, `WARN`, `INFO`, `DEBUG` or `TRACE` |
//! | `Target` | text | the record's target, which is the module unless the call names another |
//! | `Module` | text | the module, if the record has it |
//! | `File` | text | the source file, with [`EtwLogger::with_file`] |
//! | `Line` | number | the source line, if the record has it |
//! | `Message` | text | the formatted message |
//! | the keys of the record | number, Boolean or text | the values, with the feature `kv` |
//!
//! This table lists the corresponding ETW levels. `Debug` and `Trace` are both `Verbose`; the field
//! `Level` distinguishes them. The keyword also does so if [`EtwLogger::with_trace_keyword`] sets
//! another one for `Trace`.
//!
//! | `log` | ETW |
//! |---|---|
//! | `Error` | 2, `Error` |
//! | `Warn` | 3, `Warning` |
//! | `Info` | 4, `Information` |
//! | `Debug`, `Trace` | 5, `Verbose` |
//!
//! # IRQL
//! and memory
//!
//! Records can be written at any IRQL at which the caller can format its arguments: above
//! `APC_LEVEL`, the arguments must be in non-pageable memory. (They are copied, so unlike a
//! declared event's fields, they need not be in system space.) Writing does not allocate, lock or
//! wait, and panics only if the `Display` or `Debug` implementation of an argument panics. An event
//! is assembled on the stack, in less than [`MAX_STACK`] bytes. A string longer than [`MAX_TEXT`]
//! bytes is cut, between characters, and its formatting ends there with an error that
//! implementations of `Display` and `Debug` must propagate; fields that do not fit in [`MAX_DATA`]
//! bytes are omitted. [`Failures::cut`](wdk_etw::Failures::cut) of the provider counts both, and
//! an event `FieldCut` before the event describes the first string that was cut.
//!
//! At `APC_LEVEL` and below, an event belongs to the thread's activity. At a higher IRQL it has
//! none, because the current thread may be one that was interrupted.
//!
//! # What a facade cannot do
//!
//! - **Laziness.** `log` evaluates the arguments of every record up to its maximum level. With
//!   [`EtwLogger::following_sessions`], that is the highest level that a session enables for the
//!   logger's keywords, so nothing is evaluated while no session listens. A session that listens
//!   receives the records of all targets. `emit!` of `wdk-etw` evaluates nothing unless a session
//!   enables the event's own level and keywords.
//! - **Metadata at compile time.** The names and types of the fields are assembled for each event,
//!   and the message is formatted in the driver. A declared event has constant metadata, and its
//!   values are formatted by the decoder, if at all. `docs/benchmark.md` in the repository compares
//!   both.
//! - **Keywords and names for each event.** All records have the logger's keyword and the same
//!   name. Filter by `Target` and `Level` in the decoder.

#![no_std]
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing,
        clippy::panic, clippy::unwrap_used
    )
)]

#[cfg(feature = "kv")]
mod kv;

use core::{
    ptr,
    sync::atomic::{Ordering, fence},
};

use log::{LevelFilter, Log, Metadata, Record, SetLoggerError};
use wdk_etw::{
    __facade::{Event, Origin, settle},
    EventDescriptor, FieldName, Keyword, Level, Provider, WriteOptions,
};

pub use wdk_etw::__facade::{MAX_DATA, MAX_METADATA, MAX_STACK, MAX_TEXT};

/// A logger that writes records as a provider's events.
#[derive(Clone, Copy)]
pub struct EtwLogger {
    provider: &'static Provider,
    keyword: Keyword,
    trace_keyword: Keyword,
    has_file: bool,
    follows_sessions: bool,
}

impl EtwLogger {
    /// Creates a logger whose events have this keyword, or no keyword
    /// ([`Keyword::NONE`](wdk_etw::Keyword::NONE)).
    #[must_use]
    pub const fn new(provider: &'static Provider, keyword: Keyword) -> Self {
        Self { provider, keyword, trace_keyword: keyword, has_file: false, follows_sessions: false }
    }

    /// Sets another keyword for records of the level `Trace`, so that sessions can enable `Debug`
    /// records alone.
    #[must_use]
    pub const fn with_trace_keyword(mut self, keyword: Keyword) -> Self {
        self.trace_keyword = keyword;
        self
    }

    /// Adds the field `File`: the path of the source file.
    #[must_use]
    pub const fn with_file(mut self) -> Self {
        self.has_file = true;
        self
    }

    /// Makes `log`'s maximum level follow the sessions, so that no argument is evaluated while no
    /// session listens. The provider's hooks `on_enable` and `on_disable` must then call
    /// [`Self::sessions_changed`]. [`Provider::unregister`] calls no hook: the first record after it
    /// turns the level off.
    #[must_use]
    pub const fn following_sessions(mut self) -> Self {
        self.follows_sessions = true;
        self
    }

    /// Makes this the logger of the driver's image, and sets `log`'s maximum level.
    ///
    /// The logger cannot be removed. Records before [`Provider::register`] and after
    /// [`Provider::unregister`] are not written.
    ///
    /// # Errors
    ///
    /// Returns an error if a logger is already installed.
    pub fn install(&'static self) -> Result<(), SetLoggerError> {
        log::set_logger(self)?;
        if self.follows_sessions {
            self.sessions_changed();
        } else {
            log::set_max_level(LevelFilter::Trace);
        }
        Ok(())
    }

    /// Sets `log`'s maximum level to the highest one that a session enables for the logger's
    /// keywords, if the logger is installed and follows the sessions. Call this in the provider's
    /// hooks.
    pub fn sessions_changed(&self) {
        if !self.follows_sessions || !self.is_installed() {
            return;
        }
        settle(|| log::set_max_level(self.max_level()), || log::max_level() == self.max_level());
    }

    /// Returns whether this is the logger of the driver's image. The maximum level belongs to the
    /// image's logger, which may be another logger.
    ///
    /// Because of the fence, if a caller that has changed the enable state sees that this logger is
    /// not yet installed, the thread that installs it reads the new state afterwards.
    fn is_installed(&self) -> bool {
        fence(Ordering::SeqCst);
        ptr::addr_eq(ptr::from_ref(log::logger()), ptr::from_ref(self))
    }

    /// Returns the highest level that a session enables.
    fn max_level(&self) -> LevelFilter {
        log::Level::iter()
            .filter(|level| {
                let (etw, keyword) = self.target_of(*level);
                self.provider.is_enabled(etw, keyword)
            })
            .last()
            .map_or(LevelFilter::Off, |level| level.to_level_filter())
    }

    /// Returns the ETW level and the keyword for records of this level.
    const fn target_of(&self, level: log::Level) -> (Level, Keyword) {
        match level {
            log::Level::Error => (Level::ERROR, self.keyword),
            log::Level::Warn => (Level::WARNING, self.keyword),
            log::Level::Info => (Level::INFO, self.keyword),
            log::Level::Debug => (Level::VERBOSE, self.keyword),
            log::Level::Trace => (Level::VERBOSE, self.trace_keyword),
        }
    }

    /// Writes a record. Out of line, so that only enabled records use stack space for it.
    #[inline(never)]
    fn write(&self, record: &Record<'_>, level: Level, keyword: Keyword) {
        const MESSAGE: FieldName<'_> = FieldName::new("Message");
        let mut event = Event::new();
        event.start("Log");
        let origin = Origin {
            level: record.level().as_str(),
            target: record.target(),
            module: record.module_path(),
            file: record.file().filter(|_| self.has_file),
            line: record.line(),
        };
        origin.describe(&mut event);
        match record.args().as_str() {
            Some(message) => event.str(MESSAGE, message),
            None => event.format(MESSAGE, *record.args()),
        }
        #[cfg(feature = "kv")]
        kv::add(&mut event, record);
        // The provider counts a failure; `log` expects no result.
        let _result = event.write(
            self.provider,
            &EventDescriptor::new(0, 0, level, keyword),
            &WriteOptions::at_current_irql(),
        );
    }
}

impl Log for EtwLogger {
    /// Returns whether a session enables records of this level, ignoring the match-all keywords.
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let (level, keyword) = self.target_of(metadata.level());
        self.provider.is_enabled_fast(level, keyword)
    }

    /// Writes a record, if a session enables its level.
    ///
    /// # IRQL
    ///
    /// Any. Above `APC_LEVEL` the record and its arguments must be in non-pageable memory. They are
    /// copied to the stack before ETW reads them.
    fn log(&self, record: &Record<'_>) {
        let (level, keyword) = self.target_of(record.level());
        if self.provider.is_enabled_fast(level, keyword) {
            self.write(record, level, keyword);
        } else if self.follows_sessions && record.level() > self.max_level() {
            // The provider was unregistered, which calls no hook.
            self.sessions_changed();
        }
    }

    /// Does nothing: ETW buffers events.
    fn flush(&self) {}
}
