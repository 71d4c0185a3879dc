//! Tests the events written for records, as ETW receives them and as decoders read them.

#![allow(clippy::significant_drop_tightening, reason = "a test's turn lasts as long as the test")]

use std::{cell::Cell, fmt, sync::Once};

use log::{Level, LevelFilter, Log, MetadataBuilder, Record};
use mock_etw::{DISABLE, ENABLE, Endless, NO_MEMORY, Turn};
use wdk_etw::{Guid, Keyword, Notification, Provider};
use wdk_etw_log::{EtwLogger, MAX_DATA, MAX_TEXT};

#[wdk_etw::provider(
    name = "Test.Log",
    on_enable = super::sessions_changed,
    on_disable = super::sessions_changed,
)]
mod trace {
    #[keyword]
    pub const LOG: Keyword = Keyword::bit(3);
    #[keyword]
    pub const DETAIL: Keyword = Keyword::bit(4);
}

static LOGGER: EtwLogger = EtwLogger::new(&trace::PROVIDER, trace::LOG)
    .with_trace_keyword(trace::DETAIL)
    .following_sessions();

static WITH_FILE: EtwLogger = EtwLogger::new(&trace::PROVIDER, Keyword::NONE).with_file();

fn sessions_changed(_provider: &Provider, _notification: &Notification<'_>) {
    LOGGER.sessions_changed();
}

/// Returns a turn with the logger installed and the provider registered, but not enabled.
fn registered() -> Turn {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| LOGGER.install().unwrap());
    let etw = mock_etw::registered(&trace::PROVIDER);
    etw.calls();
    etw
}

fn enabled(level: u8, keyword: Keyword) -> Turn {
    let etw = registered();
    etw.notify(ENABLE, level, keyword.bits(), 0);
    etw
}

#[test]
fn a_record_has_its_level_target_module_line_message_and_pairs() {
    let etw = enabled(5, Keyword::NONE);
    let line = line!() + 1;
    log::warn!(target: "disk", count = 3_u64, delta = -1, ready = true, name = "a"; "{} of {}", 1, 2);
    log::info!("plain");
    let writes = etw.writes();
    let expected = [
        "Level=\"WARN\"".to_owned(),
        "Target=\"disk\"".to_owned(),
        "Module=\"events\"".to_owned(),
        format!("Line={line}"),
        "Message=\"1 of 2\"".to_owned(),
        "count=3".to_owned(),
        "delta=-1".to_owned(),
        "ready=true".to_owned(),
        "name=\"a\"".to_owned(),
    ];
    assert_eq!(writes[0].described(), ("Log".to_owned(), expected.to_vec()));
    let plain = writes[1].described().1;
    assert_eq!(plain[1], "Target=\"events\"");
    assert_eq!(plain[4], "Message=\"plain\"");
    let event = writes[0].event;
    assert_eq!((event.level().0, event.keyword()), (3, trace::LOG));
    assert_eq!((event.id(), event.opcode().0, event.channel().0), (0, 0, 11));
}

#[test]
fn the_first_record_after_unregister_turns_the_level_off() {
    let _etw = enabled(5, Keyword::NONE);
    assert_eq!(log::max_level(), LevelFilter::Trace);
    trace::unregister().unwrap();
    log::error!("x");
    assert_eq!(log::max_level(), LevelFilter::Off);
}

#[test]
fn every_level_has_its_level_and_keyword() {
    let etw = enabled(5, Keyword::NONE);
    log::error!("x");
    log::warn!("x");
    log::info!("x");
    log::debug!("x");
    log::trace!("x");
    let writes = etw.writes();
    let told: Vec<_> = writes
        .iter()
        .map(|write| {
            let (_, fields) = write.described();
            (write.event.level().0, write.event.keyword(), fields[0].clone())
        })
        .collect();
    let expected = [
        (2, trace::LOG, "Level=\"ERROR\""),
        (3, trace::LOG, "Level=\"WARN\""),
        (4, trace::LOG, "Level=\"INFO\""),
        (5, trace::LOG, "Level=\"DEBUG\""),
        (5, trace::DETAIL, "Level=\"TRACE\""),
    ];
    let expected = expected.map(|(level, keyword, name)| (level, keyword, name.to_owned()));
    assert_eq!(told, expected);
}

#[test]
fn a_logger_can_add_the_file_and_have_no_keyword() {
    let etw = enabled(5, Keyword::NONE);
    let record = Record::builder()
        .args(format_args!("text"))
        .metadata(MetadataBuilder::new().level(Level::Debug).target("t").build())
        .file(Some("src/lib.rs"))
        .build();
    WITH_FILE.log(&record);
    let writes = etw.writes();
    let expected = ["Level=\"DEBUG\"", "Target=\"t\"", "File=\"src/lib.rs\"", "Message=\"text\""];
    assert_eq!(writes[0].described().1, expected);
    assert_eq!(writes[0].event.keyword(), Keyword::NONE);
}

#[test]
fn arguments_are_evaluated_only_up_to_the_level_that_a_session_enables() {
    let evaluated = Cell::new(0);
    let argument = || {
        evaluated.set(evaluated.get() + 1);
        evaluated.get()
    };
    let etw = registered();
    assert_eq!(log::max_level(), LevelFilter::Off);
    log::error!("{}", argument());
    etw.notify(ENABLE, 4, trace::LOG.bits(), 0);
    assert_eq!(log::max_level(), LevelFilter::Info);
    log::debug!("{}", argument());
    assert_eq!((evaluated.get(), etw.writes().len()), (0, 0));
    log::info!("{}", argument());
    assert_eq!((evaluated.get(), etw.writes().len()), (1, 1));
    // `Debug` and `Trace` have the same level and different keywords.
    etw.notify(ENABLE, 5, trace::LOG.bits(), 0);
    assert_eq!(log::max_level(), LevelFilter::Debug);
    etw.notify(ENABLE, 5, trace::DETAIL.bits(), 0);
    assert_eq!(log::max_level(), LevelFilter::Trace);
    // The logger filters records that `log`'s maximum level admits.
    log::debug!("not written");
    log::trace!("written");
    assert_eq!(etw.writes().len(), 1);
    etw.notify(DISABLE, 0, 0, 0);
    assert_eq!(log::max_level(), LevelFilter::Off);
}

#[test]
fn a_session_that_other_keywords_enable_gets_no_records() {
    let etw = enabled(5, Keyword::bit::<9>());
    let metadata = MetadataBuilder::new().level(Level::Error).build();
    assert!(!LOGGER.enabled(&metadata));
    LOGGER.log(&Record::builder().metadata(metadata).build());
    assert_eq!(etw.writes(), []);
}

/// A value whose long text is formatted in parts.
struct Long;

impl fmt::Display for Long {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (0..MAX_DATA).try_for_each(|_| f.write_str("ß"))
    }
}

#[test]
fn a_long_message_is_cut_between_characters_and_the_rest_of_the_event_is_there() {
    let etw = enabled(5, Keyword::NONE);
    let before = trace::PROVIDER.failures().cut();
    log::error!(after = 1_u64; "x{Long}");
    let writes = etw.writes();
    assert_eq!(writes[0].described().0, "FieldCut");
    let (_, fields) = writes[1].described();
    let kept = format!("Message=\"x{}\"", "ß".repeat((MAX_TEXT - 1) / 2));
    assert_eq!(fields[4], kept);
    assert_eq!(fields[5], "after=1");
    assert_eq!(trace::PROVIDER.failures().cut() - before, 1);
}

#[test]
fn a_message_without_an_end_is_formatted_until_it_is_full() {
    let etw = enabled(5, Keyword::NONE);
    let parts = Cell::new(0);
    log::error!("{}", Endless(&parts, "x"));
    assert_eq!((parts.get(), etw.writes().len()), (MAX_TEXT + 1, 2));
}

#[test]
fn records_that_etw_refuses_are_counted_and_records_without_a_registration_do_nothing() {
    let etw = enabled(5, Keyword::NONE);
    let before = trace::PROVIDER.failures().total();
    etw.set(|etw| etw.write_status = NO_MEMORY);
    log::error!("lost");
    assert_eq!(trace::PROVIDER.failures().total() - before, 1);
    etw.set(|etw| etw.write_status = 0);
    etw.calls();
    etw.notify(DISABLE, 0, 0, 0);
    trace::unregister().unwrap();
    etw.calls();
    log::set_max_level(LevelFilter::Trace);
    log::error!("nowhere");
    // `log`'s maximum level belongs to the whole process.
    log::set_max_level(LevelFilter::Off);
    LOGGER.flush();
    assert_eq!(etw.writes(), []);
}

#[test]
fn above_apc_level_a_record_has_no_activity() {
    let etw = enabled(5, Keyword::NONE);
    log::error!("at PASSIVE_LEVEL");
    etw.set(|etw| etw.irql = 2);
    log::error!("at DISPATCH_LEVEL");
    etw.set(|etw| etw.irql = 0);
    let writes = etw.writes();
    assert_eq!((writes[0].activity, writes[1].activity), (None, Some(Guid::NULL)));
}

#[test]
fn only_one_logger_can_be_installed() {
    let _etw = registered();
    assert!(WITH_FILE.install().is_err());
}
