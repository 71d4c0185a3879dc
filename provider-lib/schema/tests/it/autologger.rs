//! Tests the session that a provider's declaration requests.

use wdk_etw_schema::{AutoLogger, Guid, parse::source};

/// Parses a declaration with the argument and a keyword for each bit.
fn parsed(argument: &str) -> Result<AutoLogger, (usize, String)> {
    let text = format!(
        "#[provider(name = \"Contoso.Driver\",\n{argument})]\nmod trace {{\n\
         #[keyword] const READ: Keyword = Keyword::bit(0);\n\
         #[keyword] const WRITE: Keyword = Keyword::bit(4);\n\
         #[levels] enum Level {{ Packets = 16 }}\n}}"
    );
    match source(&text) {
        Ok(mut providers) => Ok(providers.remove(0).autologger.unwrap()),
        Err(error) => {
            assert_eq!(error.clone().into_iter().count(), 1, "{error}");
            Err((error.span().start().line, error.to_string()))
        }
    }
}

#[test]
fn the_word_alone_is_a_session_for_all_events() {
    let found = parsed("autologger").unwrap();
    let name = "Contoso.Driver-Boot";
    assert_eq!(
        found,
        AutoLogger {
            session: name.to_owned(),
            guid: Guid::of_name(name).unwrap(),
            file: None,
            values: vec![("Start", 1)],
            provider_values: vec![("Enabled", 1), ("EnableLevel", 0xFF)],
        }
    );
    assert_eq!(parsed("autologger()").unwrap(), found);
    let none = source("#[provider(name = \"A\")] mod trace {}").unwrap();
    assert_eq!(none[0].autologger, None);
}

#[test]
fn settings_have_names_and_numbers() {
    let found = parsed(
        "autologger(session = \"Contoso (boot)\", guid = \"0f6fd5b8-ac6b-5b8e-0de2-a35ba38fa4c8\", \
         file_name = \"Contoso\\\\boot.etl\", start = false, clock_type = System, \
         log_file_mode = Circular | 0x100, max_file_size = 4 * 16, enable_level = Packets, \
         match_any_keyword = READ | WRITE, match_all_keyword = 1 << 4, enable_property = 0x4,)",
    )
    .unwrap();
    assert_eq!(found.session, "Contoso (boot)");
    assert_eq!(found.guid.to_string(), "0f6fd5b8-ac6b-5b8e-0de2-a35ba38fa4c8");
    assert_eq!(found.file.as_deref(), Some(r"Contoso\boot.etl"));
    let values = [("Start", 0), ("ClockType", 2), ("LogFileMode", 0x102), ("MaxFileSize", 64)];
    assert_eq!(found.values, values);
    assert_eq!(
        found.provider_values,
        [
            ("Enabled", 1),
            ("EnableLevel", 16),
            ("MatchAnyKeyword", 0x11),
            ("MatchAllKeyword", 0x10),
            ("EnableProperty", 4)
        ]
    );
}

#[test]
fn the_order_of_settings_does_not_matter() {
    let one = parsed("autologger(max_file_size = 4, log_file_mode = Circular, start = false)");
    let other = parsed("autologger(start = false, log_file_mode = Circular, max_file_size = 4)");
    assert_eq!(one, other);
}

#[test]
fn wrong_settings_are_refused_with_the_right_form() {
    for (argument, message) in [
        (
            "autologger(name = \"x\")",
            "unknown setting `name` of an autologger; supported: `session`",
        ),
        ("autologger(enabled = true)", "unknown setting `enabled` of an autologger"),
        ("autologger(start = 1)", "expected `start = …` with `true` or `false`"),
        ("autologger(start = true, start = true)", "`start` is given twice"),
        ("autologger(buffer_size = 1024)", "with a number from 1 to 1023"),
        (
            "autologger(enable_level = Loud)",
            "with `LogAlways`, `Critical`, `Error`, `Warning`, `Info`, `Verbose`, or a number from 0 to 255",
        ),
        (
            "autologger(log_file_mode = Round)",
            "`Sequential`, `Circular`, `RealTime`, `Buffering`, or a number",
        ),
        (
            "autologger(match_any_keyword = REED)",
            "a mask, or keywords of the provider (`READ`, `WRITE`) joined by `|`",
        ),
        ("autologger(session = \"Contoso\\\\Boot\")", "cannot be the name of a session"),
        ("autologger(session = \"\")", "cannot be the name of a session"),
        ("autologger(session = \" Boot\")", "without a space at either end"),
        ("autologger(session = \"Boot \")", "without a space at either end"),
        ("autologger(session = \"Boot.\")", "or a period at the end"),
        (
            "autologger(session = \"CONTOSO.Driver\")",
            "has the GUID of the provider Contoso.Driver, {}; name it otherwise, for example \
             `CONTOSO.Driver-Boot`",
        ),
        ("autologger(guid = \"1\")", "`1` is not a GUID"),
        ("autologger(file_name = \"C:\\\\boot.etl\")", "is not a path below %DriverData%"),
        ("autologger(file_name = \"..\\\\boot.etl\")", "is not a path below %DriverData%"),
        ("autologger(file_name = \"Contoso \\\\boot.etl\")", "is not a path below %DriverData%"),
        ("autologger(file_name = \"Contoso\\\\boot.\")", "is not a path below %DriverData%"),
        (
            "autologger(log_file_mode = NewFile)",
            "`Sequential`, `Circular`, `RealTime`, `Buffering`",
        ),
        ("autologger(log_file_mode = 0x8)", "`file_max` begins a file at each start"),
        ("autologger(log_file_mode = Sequential | Circular)", "which excludes 0x2 (circular)"),
        ("autologger(log_file_mode = Buffering, file_name = \"boot.etl\")", "remove FileName"),
        (
            "autologger(minimum_buffers = 8, maximum_buffers = 4)",
            "the autologger cannot be used: MaximumBuffers is less than MinimumBuffers",
        ),
        ("autologger = true", "the argument `autologger` has no value"),
    ] {
        let (line, text) = parsed(argument).unwrap_err();
        let of_provider = Guid::of_name("Contoso.Driver").unwrap().to_string();
        let message = &message.replace("{}", &of_provider);
        assert!(text.contains(message), "{argument}: {text}");
        assert_eq!(line, 2, "{argument}: {text}");
    }
    // The default name is the provider's name.
    let error = source("#[provider(name = \"A|B\", autologger)] mod trace {}").unwrap_err();
    assert!(error.to_string().contains("\"A|B-Boot\" cannot be the name of a session"), "{error}");
}

#[test]
fn a_faulty_keyword_is_the_only_error() {
    let error = source(
        "#[provider(name = \"A\", autologger(match_any_keyword = READ))] mod trace {\n\
         #[keyword] const READ: Keyword = Keyword::bit(48);\n}",
    )
    .unwrap_err();
    assert_eq!(error.clone().into_iter().count(), 1, "{error}");
    assert_eq!(error.span().start().line, 2);
}
