use super::*;

fn session() -> AutoLogger {
    let filter = |any| Filter { level: 4, any, all: 0x10, ids: None };
    AutoLogger {
        session: "wdk-etw test".to_owned(),
        file: r"C:\boot.etl".to_owned(),
        enables: vec![
            (Source::Provider(Guid::from_u128(1)), filter(0xFFFF_0000_0000_0003)),
            (Source::Group(Guid::from_u128(2)), filter(0)),
        ],
    }
}

#[test]
fn the_values_are_those_that_windows_reads() {
    let session = session();
    assert_eq!(session.key(), format!(r"{KEY}\wdk-etw test"));
    let values = session.values();
    let of = |below: &str| -> Vec<_> {
        let own = values.iter().filter(|(key, ..)| key == below);
        own.map(|(_, name, data)| (*name, data.clone())).collect()
    };
    let guid = format!("{{{}}}", Guid::of_name("wdk-etw test").unwrap());
    let expected = [
        ("Guid", Data::Text(guid)),
        ("FileName", Data::Text(r"C:\boot.etl".to_owned())),
        ("LogFileMode", Data::Number(1)),
        ("MaxFileSize", Data::Number(0)),
        ("ClockType", Data::Number(1)),
        ("Start", Data::Number(1)),
    ];
    assert_eq!(of(""), expected);
    let enabled = |any, property| {
        [
            ("Enabled", Data::Number(1)),
            ("EnableLevel", Data::Number(4)),
            ("MatchAnyKeyword", Data::Mask(any)),
            ("MatchAllKeyword", Data::Mask(0x10)),
            ("EnableProperty", Data::Number(property)),
        ]
    };
    let provider = "{00000000-0000-0000-0000-000000000001}";
    assert_eq!(of(provider), enabled(0xFFFF_0000_0000_0003, 0));
    assert_eq!(of("{00000000-0000-0000-0000-000000000002}"), enabled(0, 0x20));
    // A partly written session does not start.
    assert_eq!(values.last().map(|(_, name, _)| *name), Some("Start"));
}

/// The registry of Wine or Windows stores the values.
#[cfg(windows)]
#[test]
fn a_session_is_added_replaced_and_removed() {
    use crate::mock::{self, Mock};

    let _mock = Mock::new();
    let mut session = session();
    assert!(remove(&session.session).unwrap().is_none());
    install(&session).unwrap();
    session.file = format!(r"C:\{}.etl", "long".repeat(200));
    session.enables.pop();
    install(&session).unwrap();
    // The mock's sessions are those that Windows started.
    mock::start_at_boot(&session.session);
    let removed = remove(&session.session).unwrap().unwrap();
    assert_eq!(removed.file, session.file);
    assert_eq!(removed.status, None);
    assert!(removed.stopped.is_some());
    assert_eq!(mock::running(), Vec::<String>::new());
    // A session that Windows has not started is also removed.
    install(&session).unwrap();
    assert!(remove(&session.session).unwrap().unwrap().stopped.is_none());
    assert!(remove(&session.session).unwrap().is_none());
}
