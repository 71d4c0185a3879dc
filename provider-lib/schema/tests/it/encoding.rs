//! The limits of events: the sizes of their metadata, data and values, and the number of data descriptors.

use wdk_etw_schema::{
    BlockPart, Encoding, FieldType, Format, Layout, MAX_CONTENT, Provider, Scalar, Wire,
    parse::{Limit, ad_hoc, source},
    tracelogging::{Types, event_metadata},
};

fn provider(items: &str) -> Provider {
    let text = format!("#[provider(name = \"A\")]\nmod trace {{\n{items}\n}}");
    source(&text).unwrap().pop().unwrap()
}

fn error(items: &str) -> String {
    let text = format!("#[provider(name = \"A\")]\nmod trace {{\n{items}\n}}");
    source(&text).unwrap_err().to_string()
}

/// Declares a `TraceLogging` event.
fn traced(fields: &str) -> String {
    format!("#[event(level = Info, keyword = none)]\nfn x({fields});")
}

/// Declares a manifest event.
fn manifest(fields: &str) -> String {
    format!("#[event(id = 1, level = Info, keyword = none)]\nfn x({fields});")
}

/// Returns the metadata of a provider's last event.
fn metadata_of(provider: &Provider) -> Vec<u8> {
    let event = provider.events.last().unwrap();
    event_metadata(&event.name, event.tag, &event.fields, Types::of(provider)).unwrap()
}

/// Returns the layout of a provider's last event.
fn layout_of(provider: &Provider) -> Layout {
    let event = provider.events.last().unwrap();
    let size = match event.encoding {
        Encoding::Manifest => 0,
        Encoding::TraceLogging => metadata_of(provider).len(),
    };
    let span = event.ident.span();
    Layout::of(&event.fields, event.encoding, Types::of(provider), size, span).unwrap()
}

fn layout(items: &str) -> Layout {
    layout_of(&provider(items))
}

#[test]
fn a_structure_has_1_to_127_members() {
    let structure = |members: usize| {
        let members: Vec<String> = (0..members).map(|n| format!("m{n}: u8")).collect();
        let members = members.join(", ");
        format!("#[structure] struct S {{ {members} }}\n{}", traced("s: S"))
    };
    assert_eq!(metadata_of(&provider(&structure(127)))[8], 127);
    for members in [0, 128] {
        let text = error(&structure(members));
        assert!(text.contains(&format!("has {members} fields")), "{text}");
    }
}

#[test]
fn metadata_has_at_most_65_535_bytes() {
    // The bytes besides the field's name: the size; the event's tag, name and NUL; the field's NUL
    // and type.
    const OTHERS: usize = 2 + 1 + 2 + 2;
    let named = |length: usize| traced(&format!("#[name = \"{}\"] a: u8", "n".repeat(length)));
    let provider_of = |length| {
        let text = format!("#[provider(name = \"A\")]\nmod trace {{\n{}\n}}", named(length));
        source(&text).map(|_| ()).map_err(|error| error.to_string())
    };
    let text = provider_of(65_536 - OTHERS).unwrap_err();
    assert!(text.contains("is 65536 bytes long, but must not exceed 65,535"), "{text}");
    // Metadata of this size leaves no room for a field.
    let text = provider_of(65_535 - OTHERS).unwrap_err();
    assert!(text.contains("is 65535 bytes long, which leaves no room for data"), "{text}");
    // An event without fields has a header too.
    let text =
        error(&format!("#[event(level = Info, keyword = none)] fn {}();", "n".repeat(65_500)));
    assert!(text.contains("is 65504 bytes long, which leaves no room for data"), "{text}");
}

#[test]
fn a_write_takes_a_limited_part_of_the_stack() {
    const PAGE: &str = "#[structure] struct Page { offset: u64, bytes: [u8; 4_096] }\n";
    let several = |kind: &str, count: usize| {
        let fields: Vec<String> = (0..count).map(|at| format!("f{at}: {kind}, ")).collect();
        traced(&fields.concat())
    };
    assert_eq!(layout(&several("Arguments<'_>", 7)).by_reference, []);
    assert_eq!(layout(&(PAGE.to_owned() + &traced("page: &Page"))).by_reference, []);
    assert_eq!(layout(&traced("bytes: [u8; 4_096]")).by_reference, []);
    // A block is on the stack too, and an address. A number takes a place on the stack as an argument.
    assert!(error(&several("u8", 257)).contains("takes 2056 bytes of the kernel stack"));
    assert!(error(&several("u64", 257)).contains("takes 2056 bytes of the kernel stack"));
    assert!(error(&several("SocketAddr", 49)).contains("takes 2058 bytes of the kernel stack"));
}

#[test]
fn the_largest_event_fits_and_one_byte_more_does_not() {
    let largest = layout(&manifest(&format!("a: [u8; {MAX_CONTENT}]")));
    assert_eq!(largest.room, 0);
    let text = error(&manifest(&format!("a: [u8; {MAX_CONTENT}], b: u8")));
    let expected = format!("up to this one take {} bytes", MAX_CONTENT + 1);
    assert!(text.contains(&expected), "{text}");
}

#[test]
fn an_event_has_at_most_128_data_descriptors() {
    let arrays = |count: usize| {
        let fields: Vec<String> = (0..count).map(|n| format!("a{n}: [u8; 2]")).collect();
        fields.join(", ")
    };
    // Two descriptors are the provider's traits and the event's metadata.
    assert_eq!(layout(&traced(&arrays(126))).descriptors.len(), 126);
    let text = error(&traced(&arrays(127)));
    assert!(text.contains("has 129 data descriptors"), "{text}");
}

#[test]
fn a_part_that_is_not_in_a_block_has_no_size() {
    let leaves = layout(&traced("a: u8, s: &CStr")).leaves;
    for part in [BlockPart::Value(1), BlockPart::Nul(0), BlockPart::Value(99)] {
        assert_eq!(part.size(&leaves), 0);
    }
}

#[test]
fn only_addresses_have_a_format_that_changes_their_bytes() {
    let layout = layout(&traced("#[hex] a: u32, #[address] b: Pointer, c: Pointer"));
    let wires: Vec<Wire> = layout.leaves.iter().map(|leaf| leaf.wire.without_format()).collect();
    assert_eq!(
        wires,
        [
            Wire::Plain(Scalar::U32, Format::Default),
            Wire::Plain(Scalar::Pointer, Format::Address),
            Wire::Plain(Scalar::Pointer, Format::Default),
        ]
    );
    let array = Wire::Fixed(Scalar::U8, 2);
    assert_eq!(array.without_format(), array);
}

#[test]
fn an_event_at_its_call_site_has_its_arguments() {
    let event = |text: &str| ad_hoc(text.parse().unwrap());
    let all = event(
        "P, \"Name\", level = Warning, keyword = trace::READ, opcode = Start, tag = 0x10, every = 3, \
         activity = a, { n: u32 = 1, d: HexDump = d }",
    )
    .unwrap();
    assert_eq!((all.name.as_str(), all.level.0, all.opcode, all.tag), ("Name", 3, 1, 0x10));
    assert!(all.keyword.is_some());
    assert!(matches!(all.limit, Some(Limit::Every(_))));
    assert_eq!(all.options.len(), 1);
    assert_eq!((all.fields.len(), all.values.len()), (2, 2));
    let dump = &all.fields[1].kind;
    let FieldType::Named(dump) = dump else {
        panic!("{dump:?}");
    };
    assert!(all.types().structure(dump).is_some());
    let few = event("P, \"Name\", level = Info, keyword = none, once,").unwrap();
    assert!(few.keyword.is_none() && few.structures.is_empty());
    assert!(matches!(few.limit, Some(Limit::Once)));
    let own = event("P, \"Name\", level = Info, keyword = none, limit = LIMIT").unwrap();
    assert!(matches!(own.limit, Some(Limit::Named(_))));
    // `none` is a keyword's value only if it is the whole argument.
    let path = event("P, \"Name\", level = Info, keyword = none::READ").unwrap();
    assert!(path.keyword.is_some());
}
