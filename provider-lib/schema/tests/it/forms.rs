//! Errors in the forms of fields and in items that only manifests support.

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
    assert!(text.contains("an earlier field already has a type and a name"), "{text}");
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
    assert!(text.contains("the value 1 is named `Y`, but differently in `A`"), "{text}");
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
        ("Admin, on = true", 18, "unknown setting `on` of a channel; supported: `enabled`"),
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
        ("Import, enabled = true", 19, "`enabled` cannot be set for a Windows log"),
    ] {
        let kind = if arguments.starts_with("Import") { 8 } else { 16 };
        let items = format!("#[channels] enum C {{\n#[channel({arguments})]\nX = {kind} }}");
        let (line, at, text) = error(&items);
        assert!(text.contains(message), "{arguments}: {text}");
        assert_eq!((line, at + 1), (4, column), "{arguments}: {text}");
    }
}

/// Returns all errors of a declaration with these items: line, column and text.
fn errors(items: &str) -> Vec<(usize, usize, String)> {
    let text = format!("#[provider(name = \"A\")]\nmod trace {{\n{items}\n}}");
    let errors = source(&text).map(|_| ()).unwrap_err().into_iter();
    let place = |error: &syn::Error| error.span().start();
    errors.map(|one| (place(&one).line, place(&one).column + 1, one.to_string())).collect()
}

#[test]
fn a_faulty_item_is_reported_and_its_uses_are_not() {
    let events = "\n#[event(level = Info, keyword = none)]\nfn a(x: Kind);\n\
                  #[event(level = Info, keyword = none)]\nfn b(x: Place, y: &[Place]);";
    for (items, line, text) in [
        ("#[map] enum Kind { A = 1, A = 2 }\n#[structure] struct Place { x: u8 }", 3, "twice"),
        ("#[map] enum Kind { A }\n#[structure] struct Place { x: Kind }", 3, "must have a value"),
        ("#[structure] struct Place { x: Kind }\n#[map] enum Kind {}", 4, "is empty"),
        ("#[map] enum Kind { A = 1 }\n#[structure] struct Place { x: f32 }", 4, "floating-point"),
        ("#[map] enum Kind { A = 1 }\n#[structure] struct Place(u8);", 4, "must have names"),
        ("#[map] enum Kind { A = 1 }\n#[structure] struct Place { x: &'a str }", 4, "in memory"),
    ] {
        let found = errors(&format!("{items}{events}"));
        assert_eq!(found.len(), 1, "{items}: {found:?}");
        assert!(found[0].0 == line && found[0].2.contains(text), "{items}: {found:?}");
    }
    for (item, argument) in [
        ("#[keyword] const K: Keyword = Keyword::bit(50);", "level = Info, keyword = K"),
        ("#[tasks] enum T { K = 0 }", "level = Info, keyword = none, task = K"),
        ("#[opcodes] enum T { K = 0 }", "level = Info, keyword = none, opcode = K"),
        ("#[levels] enum T { K = 3 }", "level = K, keyword = none"),
        ("#[channels] enum T { K = 16 }", "id = 1, level = Info, keyword = none, channel = K"),
    ] {
        let found = errors(&format!("{item}\n#[event({argument})]\nfn x();"));
        assert_eq!((found.len(), found[0].0), (1, 3), "{item}: {found:?}");
    }
    // Two structures that contain each other are one mistake; a type declared twice is one, too.
    let found = errors("#[structure] struct A { b: B }\n#[structure] struct B { a: A }");
    assert_eq!(found.len(), 1, "{found:?}");
    let found = errors("#[map] enum Kind { A = 1 }\n#[map] enum Kind { A = 1 }");
    assert_eq!(found.len(), 1, "{found:?}");
    // Other mistakes are all reported.
    let found = errors(
        "#[map] enum Kind { A }\n#[event(level = Info, keyword = none)]\nfn a(x: f64);\n\
         #[event(level = Info, keyword = none)]\nfn b(x: Missing);",
    );
    assert_eq!(found.len(), 3, "{found:?}");
}

#[test]
fn frequent_slips_get_the_form_to_write() {
    let event = |arguments: &str, fields: &str| format!("#[event({arguments})]\nfn x({fields});");
    let rest = "level = Info, keyword = none";
    for (items, at, text) in [
        (event("level = Level::Info, keyword = none", ""), (3, 17), "write `level = Info`"),
        (event("level = wdk_etw::Level::Info, keyword = none", ""), (3, 17), "`level = Info`"),
        (event(rest, "mut x: u32"), (4, 6), "a field cannot be `mut`"),
        (event(rest, "ref x: u32"), (4, 6), "a field cannot be `ref`"),
        (event(rest, "x: *mut u8"), (4, 9), "write `Pointer`"),
        (event(rest, "x: *const Device"), (4, 9), "write `Pointer`"),
        (event(rest, "x: &mut u8"), (4, 9), "write `&u8` or `u8`"),
        (event(rest, "x: &mut [u8]"), (4, 9), "write `&[u8]`"),
        ("#[map] enum u32 { A = 1 }".to_owned(), (3, 13), "a type of Rust"),
        ("#[structure] struct bool { a: u8 }".to_owned(), (3, 21), "a type of Rust"),
    ] {
        let found = errors(&items);
        assert_eq!(found.len(), 1, "{items}: {found:?}");
        assert!(found[0].2.contains(text), "{items}: {found:?}");
        assert_eq!((found[0].0, found[0].1), at, "{items}: {found:?}");
    }
}

#[test]
fn one_name_of_tracelogging_events_has_one_layout() {
    let two = |first: &str, second: &str| {
        format!(
            "#[event(level = Info, keyword = none, name = \"Same\")]\nfn a({first});\n\
             #[event(level = Error, keyword = none, name = \"Same\")]\nfn b({second});"
        )
    };
    let found = errors(&two("x: u32", "x: u64"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].0, found[0].1), (6, 4), "{found:?}");
    assert!(found[0].2.contains("the name `Same` of the event `a`"), "{found:?}");
    let text = format!("#[provider(name = \"A\")] mod trace {{ {} }}", two("x: u32", "x: u32"));
    assert_eq!(source(&text).unwrap()[0].events.len(), 2);
    // The events of an activity share a name.
    let text = format!(
        "#[provider(name = \"A\")] mod trace {{ {} }}",
        two("x: u32", "x: u64").replacen("Info", "Info, opcode = Start", 1)
    );
    assert_eq!(source(&text).unwrap()[0].events.len(), 2);
}

#[test]
fn traits_that_are_too_large_are_reported_at_the_cause() {
    let at = |name: usize, trait_: usize| {
        let (name, data) = ("n".repeat(name), "d".repeat(trait_));
        let text = format!("#[provider(name = \"{name}\",\ntrait_(128, \"{data}\"))]\nmod t {{}}");
        source(&text).map(|_| ()).map_err(|error| error.span().start().line)
    };
    assert_eq!(at(10, 10), Ok(()));
    assert_eq!(at(10, 70_000), Err(2));
    assert_eq!(at(70_000, 10), Err(1));
}
