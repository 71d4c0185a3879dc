//! Tests a logger that is not installed because the driver has installed another one.

#![allow(clippy::significant_drop_tightening, reason = "a test's turn lasts as long as the test")]

use log::{LevelFilter, Log, Metadata, Record};
use mock_etw::{DISABLE, ENABLE, register, turn};
use wdk_etw::{Keyword, Notification, Provider, Registered};
use wdk_etw_log::EtwLogger;

#[wdk_etw::provider(
    name = "Test.Log.Refused",
    on_enable = super::sessions_changed,
    on_disable = super::sessions_changed,
)]
mod trace {}

static LOGGER: EtwLogger = EtwLogger::new(&trace::PROVIDER, Keyword::NONE).following_sessions();

fn sessions_changed(_provider: &Provider, _notification: &Notification<'_>) {
    LOGGER.sessions_changed();
}

/// The driver's other logger.
struct Other {
    _size: u8,
}

static OTHER: Other = Other { _size: 0 };

impl Log for Other {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, _: &Record<'_>) {}

    fn flush(&self) {}
}

#[test]
fn sessions_do_not_change_the_maximum_level_of_another_logger() {
    let etw = turn();
    log::set_logger(&OTHER).unwrap();
    log::set_max_level(LevelFilter::Info);
    assert!(LOGGER.install().is_err());
    assert_eq!(register(&trace::PROVIDER), Ok(Registered::Complete));
    etw.notify(ENABLE, 5, 0, 0);
    assert_eq!(log::max_level(), LevelFilter::Info);
    etw.notify(DISABLE, 0, 0, 0);
    assert_eq!(log::max_level(), LevelFilter::Info);
    trace::unregister().unwrap();
}
