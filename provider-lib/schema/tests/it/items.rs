//! The items of a declaration: their names, values, doc comments and conditions.

use wdk_etw_schema::{
    ChannelSettings, Configuration, Encoding, Evaluate as _, Evaluated, FieldType, Isolation,
    MapKind, Named, Provider, Scalar,
    parse::{predicates, source, source_in},
};

fn parsed(arguments: &str, items: &str) -> Result<Provider, String> {
    let text = format!("#[provider(name = \"A\"{arguments})]\nmod trace {{\n{items}\n}}");
    let mut providers = source(&text).map_err(|error| error.to_string())?;
    assert_eq!(providers.len(), 1);
    Ok(providers.remove(0))
}

fn provider(items: &str) -> Provider {
    parsed("", items).unwrap_or_else(|error| panic!("{items}: {error}"))
}

fn error(items: &str) -> String {
    parsed("", items).expect_err(items)
}

/// Returns names and values.
fn values<T: Copy>(entries: &[Named<T>]) -> Vec<(&str, T)> {
    entries.iter().map(|entry| (entry.name.as_str(), entry.value)).collect()
}

#[test]
fn items_have_the_lines_of_their_doc_comments() {
    let provider = provider(
        "/// A keyword.
        ///
        /// Of two paragraphs.
        #[keyword] const READ: Keyword = Keyword::bit(0);
        #[keyword] const WRITE: Keyword = Keyword::bit(1);
        #[tasks] enum T { /// A task.
            Transfer = 1 }
        /// A map.
        #[map] enum Kind { /// An entry.
            Read = 1 }
        /// A structure.
        #[structure] struct Place { /// A member.
            x: u8 }
        /// An event.
        #[event(level = Info, keyword = READ)] fn x(/** A field. */ a: u8);",
    );
    assert_eq!(provider.keywords[0].docs, ["A keyword.", "", "Of two paragraphs."]);
    assert!(provider.keywords[1].docs.is_empty());
    assert_eq!(provider.tasks[0].docs, ["A task."]);
    assert_eq!(provider.maps[0].docs, ["A map."]);
    assert_eq!(provider.maps[0].entries[0].docs, ["An entry."]);
    assert_eq!(provider.structures[0].docs, ["A structure."]);
    assert_eq!(provider.structures[0].fields[0].docs, ["A member."]);
    assert_eq!(provider.events[0].docs, ["An event."]);
    assert_eq!(provider.events[0].fields[0].docs, ["A field."]);
}

#[test]
fn the_text_of_a_doc_comment_is_known() {
    const REFUSED: &str =
        "support doc comments only, because the macro reads their text; write `/// …`";
    for doc in
        ["#[doc(hidden)]", "#[doc = concat!(\"a\", \"b\")]", "#[doc = include_str!(\"a.md\")]"]
    {
        for items in [
            format!("{doc} #[keyword] const READ: Keyword = Keyword::bit(0);"),
            format!("#[map] enum Kind {{ {doc} Read = 1 }}"),
            format!("#[structure] struct Place {{ {doc} x: u8 }}"),
            format!("{doc} #[event(level = Info, keyword = none)] fn x();"),
            format!("#[event(level = Info, keyword = none)] fn x({doc} a: u8);"),
        ] {
            assert!(error(&items).contains(REFUSED), "{items}");
        }
    }
}

// The lines and stars that rustdoc omits. A star that begins a list's item stays.
#[test]
fn a_block_comment_has_no_frame() {
    for (comment, lines) in [
        ("/** First.\n\nSecond. */", &["First.", "", "Second."][..]),
        ("/** First.\n * Second. */", &["First.", "Second."]),
        ("/**\n * First.\n *\n * Second.\n */", &["First.", "", "Second.", ""]),
        ("/** First.\n***/", &["First."]),
        ("/**\n\t* First.\n\t** of all\n\t*/", &["First.", "* of all", ""]),
        ("/** List:\n * one\n   * inside\n */", &["List:", "* one", "* inside", ""]),
        ("/** List:\n\n * one\n text */", &["List:", "", "* one", "text"]),
        ("/**\n *first*\n */", &["*first*", ""]),
        ("/** * one */", &["* one"]),
        ("#[doc = \"List:\n * one\"]", &["List:", "* one"]),
        ("/**\n\n*/", &["", ""]),
    ] {
        let items = format!("{comment} #[event(level = Info, keyword = none)] fn x();");
        assert_eq!(provider(&items).events[0].docs, lines, "{comment}");
    }
}

#[test]
fn items_have_their_names_and_values() {
    let provider = provider(
        "#[keyword] const READ: Keyword = Keyword::bit(47);
        #[keyword] #[name = \"Both\"] const READ_WRITE: Keyword = 0x8;
        #[tasks] enum T { Transfer = 1, #[name = \"Last One\"] Last = 65535 }
        #[opcodes] enum O { First = 10, Last = 239 }
        #[opcodes(task = Transfer)] enum P { First = 10, Split = 11 }
        #[opcodes(task = Last)] enum Q { Split = 12 }
        #[levels] enum L { Chatty = 16, Silent = 255 }
        #[channels] enum C { #[channel(Admin)] Mine = 16, #[channel(Import)] Windows = 8 }
        #[map] #[name = \"The Kind\"] #[repr(u8)] enum Kind { None = 0, #[name = \"\"] Most = 255 }
        #[bitmap] #[repr(u16)] enum Flags { Low = 1, Both = 0xC0 | 0x80, High = (1 << 14 | 1 << 15) }
        #[map] #[repr(u32)] enum Large { Most = 0xFFFF_FFFF }",
    );
    let keywords: Vec<_> =
        provider.keywords.iter().map(|keyword| (keyword.name.as_str(), keyword.bit)).collect();
    assert_eq!(keywords, [("Read", 47), ("Both", 3)]);
    assert_eq!(values(&provider.tasks), [("Transfer", 1), ("Last One", 65535)]);
    assert_eq!(values(&provider.opcodes), [("First", 10), ("Last", 239)]);
    let of_tasks: Vec<_> = provider
        .task_opcodes
        .iter()
        .map(|list| (list.task.to_string(), values(&list.opcodes)))
        .collect();
    assert_eq!(
        of_tasks,
        [
            ("Transfer".to_owned(), vec![("First", 10), ("Split", 11)]),
            ("Last".to_owned(), vec![("Split", 12)])
        ]
    );
    assert_eq!(values(&provider.levels), [("Chatty", 16), ("Silent", 255)]);
    let channels: Vec<_> = provider
        .channels
        .iter()
        .map(|channel| (channel.named.name.as_str(), channel.named.value, channel.kind.as_str()))
        .collect();
    assert_eq!(channels, [("Mine", 16, "Admin"), ("System", 8, "Import")]);
    let [kind, flags, large] = &provider.maps[..] else {
        panic!();
    };
    assert_eq!((large.scalar, values(&large.entries)), (Scalar::U32, vec![("Most", u32::MAX)]));
    assert_eq!(
        (kind.name.as_str(), kind.scalar, kind.kind),
        ("The Kind", Scalar::U8, MapKind::Value)
    );
    assert_eq!(values(&kind.entries), [("None", 0), ("", 255)]);
    assert_eq!(
        (flags.name.as_str(), flags.scalar, flags.kind),
        ("Flags", Scalar::U16, MapKind::Bits)
    );
    assert_eq!(values(&flags.entries), [("Low", 1), ("Both", 0xC0), ("High", 0xC000)]);
}

#[test]
fn values_outside_their_range_are_refused() {
    for (items, part) in [
        ("#[tasks] enum T { A = 0 }", "from 1 to 65535"),
        ("#[tasks] enum T { A = 65536 }", "from 1 to 65535"),
        ("#[tasks] enum T { A }", "from 1 to 65535"),
        ("#[tasks] enum T { A = 1 + 1 }", "from 1 to 65535"),
        ("#[tasks] enum T { A = 1 << 64 }", "from 1 to 65535"),
        ("#[opcodes] enum O { A = 9 }", "from 10 to 239"),
        ("#[opcodes] enum O { A = 240 }", "from 10 to 239"),
        ("#[levels] enum L { A = 15 }", "from 16 to 255"),
        ("#[levels] enum L { A = 256 }", "from 16 to 255"),
        ("#[map] #[repr(u8)] enum M { A = 256 }", "from 0 to 255"),
        ("#[map] #[repr(u16)] enum M { A = 65536 }", "from 0 to 65535"),
        ("#[map] enum M { A = 0x1_0000_0000 }", "from 0 to 4294967295"),
        ("#[map] #[repr(i8)] enum M { A = 1 }", "cannot have the type `i8`"),
        ("#[map] enum M {}", "the map `M` is empty"),
        ("#[map] enum M { A(u8) = 1 }", "`A` has fields"),
        ("#[tasks] enum T { #[name = \"\"] A = 1 }", "the name is empty"),
        ("#[tasks] enum T { #[name = \"a\\0\"] A = 1 }", "contains a NUL"),
        ("#[map] enum M { #[name = \"a\\0\"] A = 1 }", "contains a NUL"),
        ("#[bitmap] enum M { A = 0 }", "must be a single bit"),
        ("#[keyword] const A: Keyword = Keyword::bit(48);", "bits 0 to 47"),
        ("#[keyword] const A: Keyword = Keyword::bits(4);", "bits 0 to 47"),
        ("#[keyword] const A: Keyword = Keyword::bit(4, 5);", "bits 0 to 47"),
        ("#[keyword] const A: Keyword = 3;", "bits 0 to 47"),
        ("#[keyword] const A: Keyword = 0;", "bits 0 to 47"),
        ("#[keyword] const A: Keyword = 0x1_0000_0000_0000;", "bits 0 to 47"),
        ("#[keyword] const A: Keyword = \"1\";", "bits 0 to 47"),
    ] {
        let text = error(items);
        assert!(text.contains(part), "{items}: {text}");
    }
}

#[test]
fn numbers_and_names_are_not_used_twice() {
    const EVENT: &str = "#[event(level = Info, keyword = none)]";
    for (items, part) in [
        ("#[keyword] const A: Keyword = 1; #[keyword] const B: Keyword = 1;", "bit 0, which `A`"),
        ("#[tasks] enum T { A = 1, B = 1 }", "number 1, which `A`"),
        ("#[tasks] enum T { A = 1, A = 2 }", "`A` is declared twice"),
        ("#[opcodes] enum O { A = 10, B = 10 }", "number 10, which `A`"),
        ("#[levels] enum L { A = 16, B = 16 }", "number 16, which `A`"),
        (
            "#[channels] enum C { #[channel(Debug)] A = 16, #[channel(Debug)] B = 16 }",
            "number 16, which `A`",
        ),
        ("#[map] enum M { A = 1, B = 1 }", "value 1, which `A`"),
        (
            "#[tasks] enum T { A = 1 } #[opcodes(task = A)] enum O { X = 10 } #[opcodes(task = A)] enum P { Y = 10 }",
            "number 10, which `X`",
        ),
    ] {
        let text = error(items);
        assert!(text.contains(part), "{items}: {text}");
    }
    provider("#[tasks] enum T { A = 1 } #[opcodes(task = A)] enum O { X = 10 }");
    let text = error("#[tasks] enum T { A = 1 } #[opcodes(task = B)] enum O { X = 10 }");
    assert!(text.contains("the task `B` is not declared"), "{text}");
    // Each of these items takes the event's or the map's name.
    for other in [
        "const x: u8 = 0;", "fn x() {}", "static x: u8 = 0;", "struct x(u8);", "struct x;",
        "mod x {}", "enum x { A }", "struct x { a: u8 }", "trait x {}", "type x = u8;",
        "union x { a: u8 }",
    ] {
        let text = error(&format!("{EVENT} fn x(); {other}"));
        assert!(text.contains("is already used in this declaration"), "{other}: {text}");
        assert_eq!(text.matches("already used").count(), 1, "{other}: {text}");
        // An item that the compiler may remove does not take it.
        provider(&format!("{EVENT} fn x(); #[cfg(any())] {other}"));
        provider(&format!("{EVENT} fn y(); #[allow(dead_code)] {other}"));
    }
    // A structure with named fields is not a value, and a function is not a type.
    provider("struct A { a: u8 } #[keyword] const A: Keyword = 1;");
    provider("fn A() {} #[structure] struct A { a: u8 }");
    assert!(error("struct A; #[keyword] const A: Keyword = 1;").contains("already used"));
    for name in ["register", "PROVIDER", "__wdk_etw_x", "__write_x"] {
        let text = error(&format!("fn {name}() {{}}"));
        assert!(text.contains("is reserved"), "{name}: {text}");
    }
    provider("struct ID { a: u8 }");
    assert!(error("#[keyword] const none: Keyword = 1;").contains("means no keyword"));
    assert!(error("#[opcodes] enum O { Start = 10 }").contains("standard opcode"));
}

#[test]
fn an_attribute_of_a_declaration_on_another_item_is_refused() {
    for item in [
        "#[map] const A: u8 = 1;", "#[structure] enum A { X }", "#[event] fn a() {}",
        "#[map] mod a {}", "#[keyword] static A: u8 = 1;", "#[map] struct A;", "#[map] trait A {}",
        "#[map] type A = u8;", "#[structure] union A { a: u8 }", "#[map] use a::b;",
        "#[map] a! {}",
    ] {
        let text = error(item);
        let is_event = item.starts_with("#[event]");
        let part = if is_event { "has a body" } else { "does not apply to this item" };
        assert!(text.contains(part), "{item}: {text}");
    }
    let provider = provider("#[inline] fn a() {} use a::b;");
    assert_eq!(provider.others.len(), 2);
}

#[test]
fn a_map_for_two_widths_is_one_map() {
    let two = |second: &str| format!("#[map] enum A {{ X = 1 }} #[name = \"A\"] {second}");
    provider(&two("#[map] #[repr(u8)] enum B { X = 1, Y = 2 }"));
    provider(&two("#[map] #[repr(u8)] enum B { Y = 2 }"));
    for second in [
        "#[map] enum B { X = 1 }", "#[bitmap] #[repr(u8)] enum B { X = 1 }",
        "#[bitmap] enum B { X = 1 }",
    ] {
        let text = error(&two(second));
        assert!(text.contains("`A` already has"), "{second}: {text}");
    }
    let text = error(&two("#[map] #[repr(u8)] enum B { Z = 1 }"));
    assert!(text.contains("the value 1 is named `Z`"), "{text}");
}

#[test]
fn a_structure_that_contains_itself_is_refused() {
    for items in [
        "#[structure] struct A { a: A }",
        "#[structure] struct A { b: B } #[structure] struct B { c: C } #[structure] struct C { a: A }",
    ] {
        let text = error(items);
        assert!(text.contains("`A` contains itself"), "{items}: {text}");
    }
    // A cycle that does not include the first structure.
    let text = error("#[structure] struct A { b: B } #[structure] struct B { b: B }");
    assert!(text.contains("`B` contains itself"), "{text}");
    provider(
        "#[structure] struct A { b: B, c: B } #[structure] struct B { c: C } #[structure] struct C { x: u8 }",
    );
}

#[test]
fn a_template_has_at_most_99_fields() {
    const PLACE: &str = "#[structure] struct Place { x: u8 }";
    let event =
        |fields: &str| format!("#[event(id = 1, level = Info, keyword = none)] fn x({fields});");
    let bytes = |count: usize, rest: &str| {
        let mut fields: Vec<String> = (0..count).map(|n| format!("a{n}: u8")).collect();
        fields.push(rest.to_owned());
        event(&fields.join(", "))
    };
    // A field with a length or count before it counts as two.
    for (rest, fields) in [
        ("", 0),
        ("b: u8", 1),
        ("b: &[u32]", 2),
        ("b: &[u8]", 2),
        ("b: SocketAddr", 2),
        ("b: &[Place]", 2),
        ("#[counted] b: &[u8]", 1),
        ("b: &str", 1),
        ("#[length(u8)] b: &str", 2),
        ("#[count(field = a0)] b: &[u32]", 1),
        ("#[length(field = a0)] b: &str", 1),
        ("b: [u32; 2]", 1),
    ] {
        provider(&format!("{PLACE}{}", bytes(99 - fields, rest)));
        let text = error(&format!("{PLACE}{}", bytes(100 - fields, rest)));
        assert!(text.contains("has 100 fields"), "{rest}: {text}");
    }
}

#[test]
fn a_length_or_count_is_the_field_of_its_name() {
    let event =
        |fields: &str| format!("#[event(id = 1, level = Info, keyword = none)] fn x({fields});");
    provider(&event("m: i8, n: u64, #[count(field = n)] a: &[u32]"));
    for fields in
        ["n: u8, m: i8, #[count(field = m)] a: &[u32]", "m: &[u8], #[count(field = m)] a: &[u32]"]
    {
        let text = error(&event(fields));
        assert!(text.contains("`m` is not"), "{fields}: {text}");
    }
}

#[test]
fn ids_may_repeat_only_where_they_are_none() {
    const TLG: &str = "encoding = tracelogging";
    let pair = |first: &str, second: &str| {
        format!(
            "#[event({first}, level = Info, keyword = none)] fn x();
             #[event({second}, level = Info, keyword = none)] fn y();"
        )
    };
    provider(&pair(TLG, TLG));
    provider(&pair("id = 1", "id = 1, version = 1"));
    for (first, second) in [
        ("id = 0", "id = 0"),
        ("id = 1", "id = 1"),
        ("id = 1", "id = 1, encoding = tracelogging"),
        ("id = 1, encoding = tracelogging", "id = 1, encoding = tracelogging"),
    ] {
        let text = error(&pair(first, second));
        assert!(text.contains("which the event `x` already has"), "{first}: {text}");
    }
}

#[test]
fn events_refer_to_the_items_that_they_name() {
    let provider = provider(
        "#[keyword] const READ: Keyword = Keyword::bit(0);
        #[keyword] const WRITE: Keyword = Keyword::bit(4);
        #[tasks] enum T { Transfer = 7, Other = 8 }
        #[opcodes] enum O { Split = 20, Join = 21 }
        #[opcodes(task = Transfer)] enum P { Split = 10 }
        #[levels] enum L { Chatty = 20 }
        #[channels] enum C { #[channel(Admin)] First = 16, #[channel(Admin)] Second = 17 }
        #[event(id = 1, version = 2, level = Chatty, keyword = READ | WRITE, task = Transfer, opcode = Split,
                channel = Second, name = \"Name\", message = \"%1\")]
        fn x(a: u8);
        #[event(level = 30, keyword = none, task = Other, opcode = Split)] fn y_z();
        #[event(level = LogAlways, keyword = WRITE, opcode = Stop)] fn z();",
    );
    let [x, y, z] = &provider.events[..] else {
        panic!();
    };
    assert_eq!((x.id, x.version, x.level.0, x.keyword), (1, 2, 20, 0x11));
    assert_eq!((x.task, x.opcode, x.channel), (7, 10, 17));
    assert_eq!(
        (x.name.as_str(), x.message.as_deref(), x.encoding),
        ("Name", Some("%1"), Encoding::Manifest)
    );
    assert_eq!((y.id, y.version, y.level.0, y.keyword), (0, 0, 30, 0));
    assert_eq!((y.task, y.opcode, y.channel), (8, 20, 0));
    assert_eq!((y.name.as_str(), y.encoding), ("YZ", Encoding::TraceLogging));
    assert_eq!((z.level.0, z.keyword, z.task, z.opcode), (0, 0x10, 0, 2));
    // The highest keyword bits are the channels', beginning with the highest.
    assert_eq!(provider.keyword_mask(x), 0x11 | 1 << 62);
    assert_eq!(provider.keyword_mask(y), 0);
    assert_eq!(provider.keyword_mask(z), 0x10);
}

// R-T6: a provider sets traits if it has a group, traits, or events that need its name.
#[test]
fn a_provider_sets_traits_if_something_needs_them() {
    const MANIFEST: &str = "#[event(id = 1, level = Info, keyword = none)] fn x();";
    const TLG: &str = "#[event(level = Info, keyword = none)] fn y();";
    let sets = |arguments: &str, items: &str| parsed(arguments, items).unwrap().sets_traits();
    assert!(!sets("", MANIFEST));
    assert!(sets("", ""));
    assert!(sets("", TLG));
    assert!(sets("", &format!("{MANIFEST}{TLG}")));
    assert!(sets(", group = \"4f50731a-89cf-4782-b3e0-dce8c90476ba\"", MANIFEST));
    assert!(sets(", trait_(128, b\"x\")", MANIFEST));
}

#[test]
fn traits_have_at_most_255_bytes() {
    const GROUP: &str = "group = \"4f50731a-89cf-4782-b3e0-dce8c90476ba\"";
    // The blob's size, the name and its NUL; a trait's size and type before its data.
    let head = 2 + 2 + 3;
    let with = |rest: &str, data: usize| {
        parsed(&format!(", trait_(255, \"{}\"), {rest}", "x".repeat(data)), "")
    };
    with("", 255 - head).unwrap();
    assert!(with("", 256 - head).unwrap_err().contains("are 256 bytes long"));
    with(GROUP, 255 - head - 19).unwrap();
    assert!(with(GROUP, 256 - head - 19).unwrap_err().contains("are 256 bytes long"));
    let two = parsed(", trait_(128, b\"ab\"), trait_(200, b\"c\"),", "").unwrap();
    let traits: Vec<_> = two.traits.iter().map(|one| (one.kind, one.data.as_slice())).collect();
    assert_eq!(traits, [(128, &b"ab"[..]), (200, b"c")]);
    assert!(
        parsed(", trait_(128, b\"a\"), trait_(128, b\"b\")", "")
            .unwrap_err()
            .contains("already has a trait")
    );
    assert!(parsed(", trait_(1, b\"a\")", "").unwrap_err().contains("write `group"));
    assert!(parsed(", trait_(127, b\"a\")", "").unwrap_err().contains("128 to 255"));
    assert!(parsed(", trait_(128, b\"a\", 3)", "").unwrap_err().contains("two arguments"));
    assert_eq!(parsed(" = \"B\"", "").unwrap_err(), "expected `,`");
}

#[test]
fn a_declarations_types_have_precedence_and_the_librarys_are_added() {
    const EVENT: &str = "#[event(level = Info, keyword = none)] fn x(a: HexDump);";
    let library = provider(EVENT);
    assert_eq!(library.structures.len(), 1);
    assert!(library.structures[0].in_library);
    let names: Vec<_> =
        library.structures[0].fields.iter().map(|field| field.name.as_str()).collect();
    assert_eq!(names, ["Offset", "Size", "Bytes"]);
    for own in ["#[structure] struct HexDump { x: u8 }", "#[map] enum HexDump { X = 1 }"] {
        let provider = provider(&format!("{own} {EVENT}"));
        assert!(provider.structures.iter().all(|one| !one.in_library), "{own}");
    }
    let inside = provider("#[structure] struct A { d: HexDump, x: u8 }");
    assert_eq!(inside.structures.len(), 2);
    assert!(
        provider("#[structure] struct A { x: u8 }").structures.iter().all(|one| !one.in_library)
    );
    // A declaration's own type may have the name of a field type.
    let own = provider(
        "#[structure] struct Luid { x: u8 } #[event(level = Info, keyword = none)] fn x(a: Luid);",
    );
    assert!(matches!(own.events[0].fields[0].kind, FieldType::Named(_)));
    // A type from outside the declaration does not take precedence.
    for other in ["struct Luid { x: u8 }", "enum Luid { X = 1 }"] {
        let event = "#[event(level = Info, keyword = none)] fn x(a: Luid);";
        let provider = provider(&format!("{other} {event}"));
        assert!(
            matches!(provider.events[0].fields[0].kind, FieldType::Values(Scalar::Luid, ..)),
            "{other}"
        );
    }
}

#[test]
fn a_name_needs_its_prefix_only_where_it_is_a_keyword() {
    let provider = provider(
        "#[map] enum r#Read { A = 1 } #[map] enum r#type { A = 1 } #[map] enum r#gen { A = 1 }",
    );
    let idents: Vec<_> = provider.maps.iter().map(|map| &map.ident).collect();
    // `gen` is a keyword only in newer editions, and stays as written.
    assert_eq!(idents, ["Read", "r#type", "r#gen"]);
}

#[test]
fn the_compilers_markers_are_taken_as_its_values() {
    let predicates: Vec<proc_macro2::TokenStream> =
        ["feature = \"a\"", "test", "all(test , windows)"].map(|text| text.parse().unwrap()).into();
    let markers = Evaluated::markers(&predicates).to_string();
    assert_eq!(markers.matches("cfg_attr").count(), 3);
    for predicate in &predicates {
        assert!(markers.contains(&predicate.to_string()), "{markers}");
    }
    // The compiler keeps the markers of the predicates that are true.
    let module =
        "#[doc = \"__wdk_etw_cfg_0\"] #[doc = \"About\"] #[doc = \"__wdk_etw_cfg_2\"] mod a {}";
    let mut attributes = syn::parse_str::<syn::ItemMod>(module).unwrap().attrs;
    let evaluated = Evaluated::take(&predicates, &mut attributes);
    assert_eq!(attributes.len(), 1);
    let value = |text: &str| evaluated.evaluate(&text.parse().unwrap()).ok();
    assert_eq!(value("feature=\"a\""), Some(true));
    assert_eq!(value("test"), Some(false));
    assert_eq!(value("all(test, windows)"), Some(true));
    assert_eq!(value("windows"), None);
}

#[test]
fn the_predicates_of_a_module_are_found_once() {
    let module = "mod a {
        #[cfg(test)] #[keyword] const A: Keyword = 1;
        #[tasks] enum T { #[cfg(feature = \"a\")] X = 1, #[cfg( test )] Y = 2 }
        #[structure] struct S { #[cfg(windows)] x: u8 }
        #[cfg_attr(unix, event(level = Info, keyword = none))] fn x(#[cfg(miri)] a: u8);
        #[cfg(other)] fn own() {}
        #[cfg(other)] const OWN: u8 = 1;
        #[cfg(other)] enum Own {}
        #[cfg(other)] struct OwnFields { #[cfg(other)] x: u8 }
    }";
    // The compiler evaluates the attributes of the author's own items.
    let found = predicates(module.parse().unwrap()).unwrap();
    let found: Vec<String> = found.iter().map(|one| one.to_string().replace(' ', "")).collect();
    assert_eq!(found, ["test", "feature=\"a\"", "windows", "unix", "miri"]);
}

#[test]
fn an_option_of_the_profile_is_not_known() {
    let evaluate =
        |text: &str| Configuration::new().evaluate(&text.parse().unwrap()).unwrap_err().to_string();
    assert!(evaluate("debug_assertions").contains("the profile's value"));
    assert!(evaluate("panic = \"abort\"").contains("the profile's value"));
    assert!(evaluate("windows").contains("`Image::cfg`"));
}

#[test]
fn a_provider_has_the_settings_that_are_given() {
    let with = |arguments: &str| parsed(arguments, "").unwrap();
    let hooks = |provider: &Provider| {
        let hooks = &provider.hooks;
        [&hooks.on_enable, &hooks.on_disable, &hooks.on_capture_state].map(|path| {
            let last = path.as_ref()?.segments.last()?;
            Some(last.ident.to_string())
        })
    };
    let none = with("");
    assert!(!none.binary_tracking && !none.statistics && !none.debugger);
    assert_eq!(hooks(&none), [None, None, None]);
    assert!(with(", binary_tracking").binary_tracking);
    assert!(with(", statistics").statistics);
    assert!(with(", debugger").debugger);
    assert_eq!((none.stripes, with(", stripes = 8").stripes), (None, Some(8)));
    let all = with(", on_enable = super::first, on_disable = second, on_capture_state = third");
    let names = ["first", "second", "third"].map(|name| Some(name.to_owned()));
    assert_eq!(hooks(&all), names);
    let error = parsed(", colour = 1", "").unwrap_err();
    for known in [
        "name", "guid", "group", "trait_(type, b\"data\")", "encoding", "manifest",
        "binary_tracking", "statistics", "debugger", "stripes", "on_enable", "on_disable",
        "on_capture_state",
    ] {
        assert!(error.contains(&format!("`{known}`")), "{known}: {error}");
    }
}

// An unknown option is an error only where a provider depends on it.
#[test]
fn modules_that_are_no_providers_may_have_unknown_options() {
    let provider = "#[provider(name = \"A\")] mod trace {}";
    let read = |other: &str| source_in(&format!("{provider}\n{other}"), &Configuration::new());
    for other in [
        "#[cfg_attr(lab, allow(dead_code))] #[cfg(lab)] mod other {}",
        "#[note(provider)] #[cfg(lab)] mod other {}",
    ] {
        let providers = read(other).unwrap_or_else(|error| panic!("{other}: {error}"));
        assert_eq!(providers.len(), 1, "{other}");
    }
    let error = read("#[cfg_attr(lab, provider(name = \"B\"))] mod other {}").unwrap_err();
    assert!(error.to_string().contains("lab"), "{error}");
}

#[test]
fn channels_have_settings() {
    let provider = provider(
        "#[channels] enum C {
            #[channel(Admin, enabled = true, isolation = System)] Mine = 16,
            #[channel(
                Operational, enabled = false, isolation = Custom, access = \"O:BAG:SYD:(A;;0x7;;;BA)\",
                max_size = 20 * 1024 * 1024, retention = true, auto_backup = true,
            )]
            Whole = 17,
            #[channel(Analytic, max_size = 1 << 20)] Least = 18,
            #[channel(Import)] System = 8,
        }",
    );
    let settings: Vec<_> = provider.channels.iter().map(|one| one.settings.clone()).collect();
    let none = ChannelSettings::default();
    let mine =
        ChannelSettings { enabled: Some(true), isolation: Some(Isolation::System), ..none.clone() };
    let whole = ChannelSettings {
        enabled: Some(false),
        isolation: Some(Isolation::Custom),
        access: Some("O:BAG:SYD:(A;;0x7;;;BA)".to_owned()),
        max_size: Some(20 << 20),
        retention: Some(true),
        auto_backup: Some(true),
    };
    let least = ChannelSettings { max_size: Some(1 << 20), ..none.clone() };
    assert_eq!(settings, [mine, whole, least, none]);
}
