//! Tests the enable state of a provider after notifications.

use std::sync::{
    Mutex,
    atomic::{AtomicU32, Ordering},
};

use mock_etw::{CAPTURE_STATE, DISABLE, ENABLE, register, registered, turn};
use wdk_etw::{
    __macro::{Hooks, StaticProvider},
    Control, EnableInfo, FilterHeader, Guid, Keyword, Level, Notification, Provider,
    RawNotification, Registered, event, guid_of_name, traits,
};

macro_rules! provider {
    ($hooks:expr) => {{
        static PROVIDER: StaticProvider =
            StaticProvider::new(guid_of_name!("Test"), &traits!("Test")).with_hooks($hooks);
        &PROVIDER
    }};
    () => {
        provider!(Hooks::NONE)
    };
}

const fn keyword(bits: u64) -> Keyword {
    Keyword::from_bits(bits)
}

// R-E1, R-E8, R-K3
#[test]
fn the_check_is_level_any_and_all() {
    let provider = provider!();
    let etw = registered(provider);
    assert!(!provider.is_enabled_fast(Level::CRITICAL, keyword(1)));
    etw.notify(ENABLE, 4, 0b0001, 0b0011);
    for level in 0..=255 {
        let level = Level(level);
        for bits in 0..8 {
            let passes = level.0 <= 4 && (bits == 0 || (bits & 1 != 0 && bits & 3 == 3));
            assert_eq!(provider.is_enabled(level, keyword(bits)), passes, "{level:?} {bits}");
            assert!(provider.is_enabled_fast(level, keyword(bits)) || !passes, "{level:?} {bits}");
        }
    }
    // The fast check ignores only the match-all keywords.
    assert!(provider.is_enabled_fast(Level(4), keyword(1)));
    assert!(
        !provider.is_enabled_fast(Level(4), keyword(2))
            && !provider.is_enabled_fast(Level(5), keyword(1))
    );
}

// R-O3
#[test]
fn session_level_zero_enables_all_levels() {
    let provider = provider!();
    let etw = registered(provider);
    etw.notify(ENABLE, 0, 1, 0);
    for level in [0, 1, 5, 6, 255] {
        assert!(provider.is_enabled_fast(Level(level), keyword(1)), "level {level}");
    }
}

// R-O3
#[test]
fn match_any_zero_means_all_keywords() {
    let provider = provider!();
    let etw = registered(provider);
    etw.notify(ENABLE, 5, 0, 0);
    for bits in [0, 1, 1 << 47, 1 << 63] {
        assert!(provider.is_enabled_fast(Level(5), keyword(bits)), "keyword {bits:x}");
    }
}

// R-E3
#[test]
fn a_notification_replaces_the_previous_state() {
    let provider = provider!();
    let etw = registered(provider);
    etw.notify(ENABLE, 5, 0xFF, 0);
    etw.notify(ENABLE, 2, 0x01, 0x01);
    assert_eq!(
        provider.enable_info(),
        Some(EnableInfo { level: Level(2), match_any: keyword(1), match_all: keyword(1) })
    );
    assert!(!provider.is_enabled_fast(Level(3), keyword(1)));
    etw.notify(DISABLE, 0, 0, 0);
    assert_eq!(provider.enable_info(), None);
    for level in 0..=255 {
        assert!(!provider.is_enabled_fast(Level(level), keyword(u64::MAX)));
        assert!(!provider.is_enabled_fast(Level(level), keyword(0)));
    }
}

// R-E1, R-E5
#[test]
fn other_codes_change_nothing() {
    let provider = provider!();
    let etw = registered(provider);
    etw.notify(ENABLE, 3, 7, 0);
    let before = provider.enable_info();
    for code in [CAPTURE_STATE, 3, 4, 1000, u32::MAX] {
        etw.notify(code, 1, 1, 1);
        assert_eq!(provider.enable_info(), before, "code {code}");
        assert!(provider.is_enabled_fast(Level(3), keyword(4)));
    }
}

// R-E9, R-E2
#[test]
fn callback_during_register_is_safe() {
    let etw = turn();
    let provider = provider!();
    etw.set(|etw| etw.enabled_before = Some((4, 2, 0)));
    assert_eq!(register(provider), Ok(Registered::Complete));
    assert!(provider.is_enabled_fast(Level(4), keyword(2)));
    provider.unregister().unwrap();
    assert!(!provider.is_enabled_fast(Level(1), keyword(2)));
    assert_eq!(provider.enable_info(), None);
}

static ENABLED: AtomicU32 = AtomicU32::new(0);
static DISABLED: AtomicU32 = AtomicU32::new(0);
static CAPTURED: AtomicU32 = AtomicU32::new(0);

fn count_enabled(provider: &Provider, notification: &Notification<'_>) {
    // The state is up to date when the hook runs.
    assert_eq!(notification.control, Control::Enable(provider.enable_info().unwrap()));
    ENABLED.fetch_add(1, Ordering::Relaxed);
}

fn disabled(provider: &Provider, notification: &Notification<'_>) {
    assert_eq!(provider.enable_info(), None);
    assert_eq!(notification.control, Control::Disable);
    assert!(notification.source.is_null() && notification.filter.is_none());
    DISABLED.fetch_add(1, Ordering::Relaxed);
}

fn captured(_provider: &Provider, notification: &Notification<'_>) {
    assert!(matches!(notification.control, Control::CaptureState(_)));
    CAPTURED.fetch_add(1, Ordering::Relaxed);
}

// R-E5, R-E7
#[test]
fn hooks_are_called_for_their_own_codes() {
    let provider = provider!(Hooks {
        on_enable: Some(count_enabled),
        on_disable: Some(disabled),
        on_capture_state: Some(captured),
    });
    let etw = registered(provider);
    etw.notify(ENABLE, 4, 1, 0);
    etw.notify(CAPTURE_STATE, 4, 1, 0);
    etw.notify(77, 4, 1, 0);
    etw.notify(DISABLE, 0, 0, 0);
    let counts = [&ENABLED, &DISABLED, &CAPTURED].map(|count| count.load(Ordering::Relaxed));
    assert_eq!(counts, [1, 1, 1]);
}

// R-E8, R-K3: no event that a session may want is dropped. With a match-any mask of 0, the
// match-all mask has no effect.
#[test]
fn events_that_match_all_excludes_are_left_to_etw() {
    let provider = provider!();
    let etw = registered(provider);
    for (any, excludes) in [(1, true), (0, false)] {
        etw.notify(ENABLE, 20, any, 3);
        etw.calls();
        event!(provider, "Read", level = Error, keyword = keyword(1));
        event!(provider, "Own", level = 16, keyword = keyword(1));
        assert_eq!(etw.writes().len(), 2);
        assert_eq!(provider.is_enabled(Level::ERROR, keyword(1)), !excludes);
    }
}

/// The raw arguments of the notifications that a hook received.
static RAW: Mutex<Vec<RawNotification>> = Mutex::new(Vec::new());

fn copy_raw(_provider: &Provider, notification: &Notification<'_>) {
    RAW.lock().unwrap().push(notification.raw);
}

// R-E1
#[test]
fn a_hook_receives_the_arguments_as_etw_passed_them() {
    let provider = provider!(Hooks {
        on_enable: Some(copy_raw),
        on_disable: Some(copy_raw),
        on_capture_state: Some(copy_raw),
    });
    let etw = registered(provider);
    // The enable info has the maximum values instead of zeros.
    etw.notify(ENABLE, 0, 0, 6);
    etw.notify_filtered(Guid::new(1, 2, 3, [4; 8]), 0x8000_0200, b"ids");
    etw.notify(CAPTURE_STATE, 4, 1, 0);
    etw.notify(DISABLE, 0, 0, 0);
    let raw: Vec<_> = RAW
        .lock()
        .unwrap()
        .iter()
        .map(|raw| (raw.control_code, raw.level, raw.match_any, raw.match_all))
        .collect();
    assert_eq!(raw[0], (ENABLE, 0, 0, 6));
    assert_eq!(raw[2..], [(CAPTURE_STATE, 4, 1, 0), (DISABLE, 0, 0, 0)]);
    let filters: Vec<_> =
        RAW.lock().unwrap().iter().map(|raw| (raw.filter_kind, raw.filter_size)).collect();
    assert_eq!(filters, [(0, 0), (0x8000_0200, 3), (0, 0), (0, 0)]);
}

/// Copies of the notifications that a hook received.
type Shown = (Guid, u32, Vec<u8>, Vec<(FilterHeader, Vec<u8>)>);

static SHOWN: Mutex<Vec<Option<Shown>>> = Mutex::new(Vec::new());

fn copy_filter(_provider: &Provider, notification: &Notification<'_>) {
    SHOWN.lock().unwrap().push(notification.filter.map(|filter| {
        (
            notification.source,
            filter.kind(),
            filter.bytes().to_vec(),
            filter
                .schematized()
                .into_iter()
                .flatten()
                .map(|(header, data)| (header, data.to_vec()))
                .collect(),
        )
    }));
}

// R-E1, R-E6
#[test]
fn a_hook_receives_every_sessions_filters() {
    const SCHEMATIZED: u32 = 0x8000_0000;
    let provider = provider!(Hooks { on_enable: Some(copy_filter), ..Hooks::NONE });
    let etw = registered(provider);
    let header = |id: u16, instance: u64, size: u32, next: u32| {
        let mut bytes = id.to_le_bytes().to_vec();
        bytes.extend([1, 0, 0, 0, 0, 0]);
        bytes.extend(instance.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(next.to_le_bytes());
        bytes
    };
    let chain =
        [header(1, 0b01, 26, 32), b"abpadded".to_vec(), header(2, 0b10, 25, 0), b"c".to_vec()]
            .concat();
    let endless = header(3, 0b100, 24, 24);
    let source = Guid::new(1, 2, 3, [4; 8]);
    etw.notify(ENABLE, 5, 1, 0);
    etw.notify_filtered(source, SCHEMATIZED, &chain);
    etw.notify_filtered(source, 0x8000_0200, b"\x01\0\x01\0\x07\0");
    etw.notify_filtered(source, SCHEMATIZED, &endless);
    etw.notify_filtered(source, SCHEMATIZED, &chain[..30]);
    etw.notify_filtered(source, SCHEMATIZED, b"");
    let found = |id, instance_id, data: &[u8]| {
        let header = FilterHeader { id, version: 1, instance_id };
        (header, data.to_vec())
    };
    let shown: Vec<_> = std::mem::take(&mut *SHOWN.lock().unwrap());
    let filters: Vec<_> =
        shown.iter().map(|shown| shown.as_ref().map(|shown| shown.3.clone())).collect();
    assert_eq!(
        filters,
        [
            None,
            Some(vec![found(1, 1, b"ab"), found(2, 2, b"c")]),
            Some(vec![]),
            Some(vec![found(3, 4, b"")]),
            Some(vec![found(1, 1, b"ab")]),
            Some(vec![]),
        ]
    );
    let ids = shown[2].as_ref().unwrap();
    assert_eq!((ids.0, ids.1, ids.2.as_slice()), (source, 0x8000_0200, &b"\x01\0\x01\0\x07\0"[..]));
}

// R-C5
#[test]
fn readers_never_see_a_mixture() {
    let provider = provider!();
    let etw = registered(provider);
    let one = EnableInfo { level: Level(2), match_any: keyword(0x1111), match_all: keyword(0x1) };
    let other = EnableInfo { level: Level(5), match_any: keyword(0x2222), match_all: keyword(0x2) };
    let states = [one, other];
    etw.notify(ENABLE, 2, 0x1111, 0x1);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        let read = provider.enable_info().unwrap();
                        assert!(
                            states.contains(&read) || read == EnableInfo::EVERYTHING,
                            "{read:?}"
                        );
                        // The event passes only if the level of one state is combined with the
                        // keyword of the other.
                        assert!(
                            !provider.is_enabled_fast(Level(3), keyword(0x1111)),
                            "level and keyword were read torn"
                        );
                    }
                })
            })
            .collect();
        for _ in 0..if cfg!(miri) { 20 } else { 20_000 } {
            for state in states {
                etw.notify(ENABLE, state.level.0, state.match_any.bits(), state.match_all.bits());
            }
        }
        done.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().unwrap();
        }
    });
}
