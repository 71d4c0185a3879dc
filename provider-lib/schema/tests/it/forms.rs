//! Errors of forms of fields and of items that only manifests have.

use wdk_etw_schema::parse::source;

/// Returns the first error of a declaration with these items, and its line and column.
fn error(items: &str) -> (usize, usize, String) {
    let text = format!("#[provider(name = \"A\")]\nmod trace {{\n{items}\n}}");
    let error = source(&text).map(|_| ()).unwrap_err();
    let start = error.span().start();
    (start.line, start.column, error.to_string())
}

fn event(fields: &str) -> String {
    format!("#[event(id = 1, level = Info, keyword = none)]\nfn x({fields});")
}

#[test]
fn a_count_in_another_field_is_an_earlier_integer() {
    for fields in [
        "#[count(field = count)] values: &[u32], count: u32",
        "count: i32, #[count(field = count)] values: &[u32]",
        "count: [u8; 2], #[count(field = count)] values: &[u32]",
        "#[count(field = values)] values: &[u32]",
    ] {
        let (line, _, text) = error(&event(fields));
        assert_eq!(line, 4);
        assert!(
            text.contains("the length or count of `values` must be an earlier field"),
            "{fields}: {text}"
        );
    }
    let (_, _, text) = error(&event("n: u8, #[length(field = n)] address: SocketAddr"));
    assert!(text.contains("`out_type = \"win:SocketAddress\"`"), "{text}");
    let (_, _, text) = error(&event("n: u8, #[count(u8, field = n)] values: &[u32]"));
    assert!(text.contains("an earlier field has its own type and name"), "{text}");
    let (line, _, text) =
        error("#[structure]\nstruct S<'a> { n: u8, #[count(field = n)] values: &'a [u32] }");
    assert_eq!(line, 4);
    assert!(text.contains("a member of a structure cannot"), "{text}");
}

#[test]
fn a_length_or_count_has_a_name_of_its_own() {
    let (line, _, text) = error(&event("a: u8, #[count(name = \"A\")] values: &[u32]"));
    assert_eq!(line, 4);
    assert!(text.contains("is named `A`, as another field is"), "{text}");
}

#[test]
fn only_bytes_without_a_field_for_their_length_contain_it() {
    for fields in [
        "#[counted] a: u32",
        "#[counted] a: &str",
        "#[counted] #[length(u8)] a: &[u8]",
        "n: u16, #[counted] #[length(field = n)] a: &[u8]",
    ] {
        let (line, _, text) = error(&event(fields));
        assert_eq!(line, 4, "{fields}: {text}");
        assert!(text.contains("they contain their length"), "{fields}: {text}");
    }
}

#[test]
fn forms_that_only_manifests_have_are_refused_in_tracelogging_events() {
    for field in [
        "#[length(u8)] a: &[u8]", "#[count(u32)] a: &[u32]", "#[bytes] a: [u8; 2]",
        "#[text] a: [u16; 2]",
    ] {
        let items = format!("#[event(level = Info, keyword = none)]\nfn x({field});");
        let (line, column, text) = error(&items);
        assert_eq!((line, column), (4, 7), "{field}: {text}");
        assert!(text.contains("only manifest events"), "{field}: {text}");
    }
    let items = "#[event(level = Info, keyword = none)]\n\
                 fn x(#[out_type = \"win:ErrorCode\"] a: u32);";
    let (line, _, text) = error(items);
    assert_eq!(line, 4);
    assert!(text.contains("TraceLogging does not have the presentation `win:ErrorCode`"), "{text}");
}

#[test]
fn types_with_the_name_of_one_map_agree() {
    let second =
        |rest: &str| error(&format!("#[map]\nenum A {{ X = 1 }}\n#[map]\n#[name = \"A\"]\n{rest}"));
    let (_, _, text) = second("enum B { X = 1 }");
    assert!(text.contains("the map `B` has the name `A`, which `A` already has"), "{text}");
    let (line, _, text) = second("#[repr(u8)]\nenum B { Y = 1 }");
    assert_eq!(line, 8);
    assert!(text.contains("the value 1 is `Y` here, and another name in `A`"), "{text}");
    let (_, _, text) = error("#[bitmap]\nenum A { X = 3 }");
    assert!(text.contains("`0xC0` or `1 << 6 | 1 << 7`"), "{text}");
}

#[test]
fn opcodes_levels_and_channels_are_checked() {
    let (line, _, text) = error("#[opcodes(task = None)]\nenum O { X = 10 }");
    assert_eq!(line, 3);
    assert!(text.contains("the task `None` is not declared"), "{text}");
    let (_, _, text) = error("#[opcodes(of = None)]\nenum O { X = 10 }");
    assert!(text.contains("write `#[opcodes(task = …)]`"), "{text}");
    let (_, _, text) =
        error("#[tasks]\nenum T { A = 1 }\n#[opcodes(task = A)]\nenum O { X = 10, Y = 10 }");
    assert!(text.contains("`Y` has the number 10, which `X` already has"), "{text}");
    let (_, _, text) = error(
        "#[levels]\nenum L { Chatty = 20 }\n#[event(level = Chaty, keyword = none)]\nfn x();",
    );
    assert!(text.contains("unknown level `Chaty`; declared: `Chatty`; supported"), "{text}");
    for (kind, value) in [("Import", 16), ("Admin", 8), ("Import", 11), ("Admin", 12)] {
        let items = format!("#[channels]\nenum C {{ #[channel({kind})] X = {value} }}");
        let (line, _, text) = error(&items);
        assert_eq!(line, 4);
        assert!(text.contains("System (8), Application (9), Security (10)"), "{text}");
    }
    let (_, _, text) = error(
        "#[map]\nenum M { X = 1 }\n#[event(level = Info, keyword = none)]\n\
         fn x(#[out_type = \"xs:string\"] m: M);",
    );
    assert!(text.contains("cannot have the presentation `xs:string`"), "{text}");
}

#[test]
fn wrong_settings_of_channels_are_refused_with_the_right_form() {
    for (arguments, column, message) in [
        ("", 11, "expected the channel's kind, `Admin`"),
        ("Error", 11, "unknown kind of channel `Error`; supported: `Admin`"),
        ("Admin, on = true", 18, "a channel has no setting `on`; supported: `enabled`"),
        ("Admin, enabled", 25, "expected `enabled = true`, or `false`"),
        ("Admin, enabled = 1", 28, "expected `enabled = true`, or `false`"),
        ("Admin, enabled = true, enabled = true", 34, "`enabled` is given twice"),
        ("Admin, isolation = Kernel", 30, "expected `isolation = System`"),
        ("Admin, access = \"Everyone\"", 27, "a security descriptor in SDDL"),
        ("Admin, access = \"D:(A;;GA;;;WD\"", 27, "a security descriptor in SDDL"),
        ("Admin, access = \"D:%x%\"", 27, "a security descriptor in SDDL"),
        ("Admin, max_size = 65536", 29, "expected `max_size = 1048576` or more, in bytes"),
        ("Admin, max_size = \"1 MB\"", 29, "expected `max_size = 1048576` or more"),
        ("Admin, auto_backup = true", 18, "it needs `retention = true`"),
        ("Debug, retention = true, auto_backup = true", 36, "only `Admin` and `Operational`"),
        ("Import, enabled = true", 19, "a log of Windows has no setting `enabled`"),
    ] {
        let kind = if arguments.starts_with("Import") { 8 } else { 16 };
        let items = format!("#[channels] enum C {{\n#[channel({arguments})]\nX = {kind} }}");
        let (line, at, text) = error(&items);
        assert!(text.contains(message), "{arguments}: {text}");
        assert_eq!((line, at + 1), (4, column), "{arguments}: {text}");
    }
}
