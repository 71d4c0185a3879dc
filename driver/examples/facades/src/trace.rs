//! The driver's provider, its events, and the facades that write to it.

use wdk_etw::{Notification, Provider, debug_print};
use wdk_etw_log::EtwLogger;
use wdk_etw_tracing::EtwSubscriber;

pub use self::provider::{frame_received, request_completed};

#[wdk_etw::provider(
    name = "Contoso.Facades",
    on_enable = super::sessions_changed,
    on_disable = super::sessions_changed,
)]
mod provider {
    /// Requests to the device.
    #[keyword]
    pub const REQUEST: Keyword = Keyword::bit(0);

    /// Spans and events of the `tracing` crate.
    #[keyword]
    pub const TRACING: Keyword = Keyword::bit(14);

    /// Records of the `log` crate, which the driver's dependencies use.
    #[keyword]
    pub const LOG: Keyword = Keyword::bit(15);

    /// A client wrote the bytes of a frame.
    #[event(level = Info, keyword = REQUEST)]
    pub fn frame_received(bytes: &[u8]);

    /// A request was completed.
    #[event(level = Info, keyword = REQUEST)]
    pub fn request_completed(status: NtStatus, used: u64);
}

/// Writes the records of all crates in this image.
static LOGGER: EtwLogger = EtwLogger::new(&provider::PROVIDER, provider::LOG).following_sessions();

/// Writes the spans and events of all crates in this image.
static SUBSCRIBER: EtwSubscriber =
    EtwSubscriber::new(&provider::PROVIDER, provider::TRACING).following_sessions();

/// Updates the facades' maximum levels, so that disabled records cost one comparison.
fn sessions_changed(_provider: &Provider, _notification: &Notification<'_>) {
    LOGGER.sessions_changed();
    SUBSCRIBER.sessions_changed();
}

/// Installs the facades and registers the provider. The driver works without tracing.
///
/// # Safety
///
/// The driver must call [`stop`] before it is unloaded, even if `DriverEntry` fails.
pub unsafe fn start() {
    let _result = LOGGER.install();
    let _result = SUBSCRIBER.install();
    // SAFETY: `stop` unregisters the provider before the driver is unloaded.
    if let Err(error) = unsafe { provider::register() } {
        debug_print(format_args!("etw_facades_driver: {error}"));
    }
}

/// Unregisters the provider and removes the subscriber.
///
/// # Safety
///
/// The driver must have no spans, and none of its code except the caller may run during this call
/// or later.
pub unsafe fn stop() {
    match provider::unregister() {
        // SAFETY: the caller guarantees that nothing uses `tracing`, and hooks no longer run.
        Ok(()) => unsafe { SUBSCRIBER.uninstall() },
        Err(error) => debug_print(format_args!("etw_facades_driver: {error}")),
    }
}
