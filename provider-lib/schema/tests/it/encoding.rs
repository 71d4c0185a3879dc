//! Compares the bytes and the layout of events with handwritten values from `TraceLogging` and ETW.

use wdk_etw_schema::{
    BlockPart, DataDescriptor, Encoding, FieldType, Format, Layout, Leaf, MAX_CONTENT, Provider,
    Scalar, Wire, elements,
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

/// Returns a metadata blob: its size followed by the rest.
fn blob(rest: &[&[u8]]) -> Vec<u8> {
    let rest = rest.concat();
    let size = u16::try_from(rest.len() + 2).unwrap();
    [size.to_le_bytes().as_slice(), &rest].concat()
}

// R-O5: the metadata equals the metadata that TraceLoggingProvider.h writes.
#[test]
fn types_of_fields_are_their_codes() {
    for (field, expected) in [
        ("a: u32", &b"A\0\x08"[..]),
        ("#[hex] a: u32", b"A\0\x14"),
        ("a: bool", b"A\0\x84\x03"),
        ("a: &str", b"A\0\x97\x23"),
        ("a: &[u32]", b"A\0\x48"),
        ("a: [u32; 0x102]", b"A\0\x28\x02\x01"),
        ("a: &[NtStatus]", b"A\0\xC8\x0E"),
        ("a: [NtStatus; 2]", b"A\0\xA8\x0E\x02\0"),
        ("#[tag = 1] a: u32", b"A\0\x88\x80\x80\x80\x80\x01"),
        ("#[tag = 0xFEDCBA9] a: bool", b"A\0\x84\x83\xFF\xB7\x97\x29"),
        ("#[name = \"other\"] a: u8", b"other\0\x04"),
    ] {
        let found = metadata_of(&provider(&traced(field)));
        assert_eq!(found, blob(&[b"\0X\0", expected]), "{field}: {found:02x?}");
    }
}

#[test]
fn an_events_tag_has_as_few_bytes_as_it_needs() {
    for (tag, expected) in [
        (0x000_0000, &b"\0"[..]),
        (0xFE0_0000, b"\x7F"),
        (0x020_0000, b"\x01"),
        (0x010_0000, b"\x80\x40"),
        (0x000_4000, b"\x80\x01"),
        (0x000_0080, b"\x80\x80\x01"),
        (0x000_0001, b"\x80\x80\x80\x01"),
        (0xFFF_FFFF, b"\xFF\xFF\xFF\x7F"),
    ] {
        let items = format!("#[event(level = Info, keyword = none, tag = {tag:#x})]\nfn x();");
        let found = metadata_of(&provider(&items));
        assert_eq!(found, blob(&[expected, b"X\0"]), "{tag:#x}: {found:02x?}");
    }
    let text = error("#[event(level = Info, keyword = none, tag = 0x10000000)]\nfn x();");
    assert!(text.contains("0 to 0xFFFFFFF"), "{text}");
}

const PLACE: &str = "#[structure] struct Place { x: u8, y: u16 }\n";
const MAPS: &str =
    "#[map] enum Kind { Read = 1 }\n#[bitmap] #[repr(u8)] enum Flags { Hot = 1 << 0 }\n";

#[test]
fn structures_and_maps_have_their_codes() {
    for (fields, expected) in [
        ("p: Place, q: u8", &b"P\0\x98\x02X\0\x04Y\0\x06Q\0\x04"[..]),
        ("p: &[Place]", b"P\0\xD8\x02X\0\x04Y\0\x06"),
        ("p: [Place; 3]", b"P\0\xB8\x02\x03\0X\0\x04Y\0\x06"),
        ("#[tag = 2] p: Place", b"P\0\x98\x82\x80\x80\x80\x02X\0\x04Y\0\x06"),
        ("k: Kind, f: Flags", b"K\0\x08F\0\x84\x04"),
    ] {
        let items = format!("{PLACE}{MAPS}{}", traced(fields));
        let found = metadata_of(&provider(&items));
        let expected = blob(&[b"\0X\0", expected]);
        assert_eq!(found, expected, "{fields}: {found:02x?}");
    }
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
    let texts = |count| several("Arguments<'_>", count);
    assert_eq!(layout(&texts(7)).by_reference, []);
    let text = error(&texts(8));
    let expected = "a write of this event takes 2192 bytes of the kernel stack for its values, but at \
                    most 2048 are allowed; the largest parts are 274 for `f0`, 274 for `f1`, 274 for \
                    `f2`, 274 for `f3`; take a structure by reference (`page: &Page`)";
    assert!(text.contains(expected), "{text}");
    let text = error(&(PAGE.to_owned() + &traced("first: u8, page: Page")));
    assert!(text.contains("takes 4120 bytes of the kernel stack"), "{text}");
    assert!(text.contains("4112 for `page`, 8 for `first`;"), "{text}");
    assert_eq!(layout(&(PAGE.to_owned() + &traced("page: &Page"))).by_reference, []);
    assert_eq!(layout(&traced("bytes: [u8; 4_096]")).by_reference, []);
    // A write function takes a structure by reference unless it is passed in registers.
    let structures = "#[structure] struct Small { a: u64, b: u64 }\n\
                      #[structure] struct Large { a: u64, b: Small }\n";
    let of = |fields| layout(&(structures.to_owned() + &traced(fields))).by_reference;
    assert_eq!(of("s: Small, l: Large, r: &Large"), [1]);
    // A block is on the stack too, and an address. A number takes a place on the stack as an argument.
    assert!(error(&several("u8", 257)).contains("takes 2056 bytes of the kernel stack"));
    assert!(error(&several("u64", 257)).contains("takes 2056 bytes of the kernel stack"));
    assert!(error(&several("SocketAddr", 49)).contains("takes 2058 bytes of the kernel stack"));
}

// Fixed-size fields are collected in one block.
#[test]
fn fields_are_gathered_in_blocks() {
    use {
        BlockPart::{Length, Nul, Value},
        DataDescriptor::{Block, InPlace},
    };
    for (fields, expected) in [
        ("", vec![]),
        ("a: u8, b: u64, k: Kind", vec![Block(vec![Value(0), Value(1), Value(2)])]),
        (
            "a: u8, b: &str, c: u8",
            vec![Block(vec![Value(0), Length(1)]), InPlace(1), Block(vec![Value(2)])],
        ),
        (
            "a: &[u32], b: &[u8]",
            vec![Block(vec![Length(0)]), InPlace(0), Block(vec![Length(1)]), InPlace(1)],
        ),
        ("a: [u32; 2], b: Sid", vec![InPlace(0), InPlace(1)]),
        ("a: u8, b: [u32; 2]", vec![Block(vec![Value(0)]), InPlace(1)]),
        ("a: &CStr, b: u8", vec![InPlace(0), Block(vec![Nul(0), Value(1)])]),
        ("a: u8, b: Ipv6Addr", vec![Block(vec![Value(0), Length(1), Value(1)])]),
        ("a: SocketAddr", vec![Block(vec![Length(0)]), InPlace(0)]),
        ("a: &[Place], b: [Place; 2]", vec![Block(vec![Length(0)]), InPlace(0), InPlace(1)]),
        ("p: Place, a: u8", vec![Block(vec![Value(0), Value(1), Value(2)])]),
    ] {
        let layout = layout(&format!("{PLACE}{MAPS}{}", traced(fields)));
        assert_eq!(layout.descriptors, expected, "{fields}");
    }
    // In a manifest, an IPv6 address has a fixed length, and a count can be an earlier field.
    let layout = layout(&manifest("a: Ipv6Addr"));
    assert_eq!(layout.descriptors, [Block(vec![Value(0)])]);
    assert_eq!(layout.leaves[0].wire, Wire::Plain(Scalar::Ipv6Addr, Format::Default));
    let layout = self::layout(&manifest("n: u8, m: u16, #[count(field = m)] a: &[u32], b: u8"));
    assert_eq!(
        layout.descriptors,
        [Block(vec![Value(0), Value(1)]), InPlace(2), Block(vec![Value(3)])]
    );
    assert_eq!(layout.leaves[2].counted_by, Some(1));
    assert_eq!(layout.leaves[2].counter, None);
}

#[test]
fn leaves_lead_from_a_field_to_its_members() {
    let items = format!(
        "{PLACE}#[structure] struct Line {{ from: Place, to: Place }}\n{}",
        traced("a: u8, line: Line, b: u8")
    );
    let layout = layout(&items);
    let paths: Vec<(usize, String)> = layout
        .leaves
        .iter()
        .map(|leaf| {
            let path: Vec<String> = leaf.path.iter().map(ToString::to_string).collect();
            (leaf.field, path.join("."))
        })
        .collect();
    let expected = [
        (0, "a"),
        (1, "line.from.x"),
        (1, "line.from.y"),
        (1, "line.to.x"),
        (1, "line.to.y"),
        (2, "b"),
    ];
    assert_eq!(paths, expected.map(|(field, path)| (field, path.to_owned())));
}

#[test]
fn every_part_of_a_block_has_its_size() {
    let fields = "a: u8, b: NtStatus, c: Guid, d: Pointer, k: Kind, e: Port, f: Ipv4Addr, g: bool, \
                  h: usize, i: Ipv6Addr, s: &CStr, t: Utf16CStr";
    let layout = layout(&format!("{MAPS}{}", traced(fields)));
    let size = |part: BlockPart| part.size(&layout.leaves);
    let values: Vec<usize> = (0..10).map(|at| size(BlockPart::Value(at))).collect();
    assert_eq!(values, [1, 4, 16, 8, 4, 2, 4, 1, 8, 16]);
    assert_eq!(size(BlockPart::Length(9)), 2);
    assert_eq!(size(BlockPart::Nul(10)), 1);
    assert_eq!(size(BlockPart::Nul(11)), 2);
    // Values outside any block, and a leaf that does not exist.
    assert_eq!(size(BlockPart::Value(10)), 0);
    assert_eq!(size(BlockPart::Nul(0)), 0);
    assert_eq!(size(BlockPart::Value(99)), 0);
    let layout = self::layout(&manifest("#[length(u8)] a: &[u8], #[count(u64)] b: &[u32]"));
    assert_eq!(BlockPart::Length(0).size(&layout.leaves), 1);
    assert_eq!(BlockPart::Length(1).size(&layout.leaves), 8);
}

#[test]
fn a_length_of_one_byte_limits_its_value() {
    let fields = "#[length(u8)] a: &[u8], #[count(u8)] b: &[u32], #[count(u16)] c: &[u32], \
                  #[length(u8)] d: &[u16], e: &str, f: &[Place], g: SocketAddr, h: u32";
    let layout = layout(&format!("{PLACE}{}", manifest(fields)));
    let limits: Vec<_> = layout.leaves.iter().map(Leaf::limit).collect();
    let limited = [Some(255), Some(255 * 4), None, Some(255 * 2)];
    assert_eq!(limits[..4], limited);
    assert_eq!(limits[4..], [None; 4]);
    let units: Vec<usize> = layout.leaves.iter().map(Leaf::unit).collect();
    assert_eq!(units, [1, 4, 4, 2, 1, 3, 1, 1]);
}

// An event that ETW would refuse does not compile.
#[test]
fn the_room_is_what_the_fixed_parts_leave() {
    for (fields, used) in [
        ("", 0),
        ("a: u8, b: Guid, k: Kind", 21),
        ("a: &str, b: &[u32]", 4),
        ("a: [u32; 5]", 20),
        ("a: Ipv6Addr", 18),
        ("a: SocketAddr", 30),
        ("a: Sid", 68),
        ("a: &CStr, b: Utf16CStr", 3),
        ("a: &[Place], b: [Place; 4]", 14),
        ("p: Place", 3),
    ] {
        let layout = layout(&format!("{PLACE}{MAPS}{}", traced(fields)));
        assert_eq!(layout.room, MAX_CONTENT - used, "{fields}");
    }
    for (fields, used) in [
        ("a: Ipv6Addr", 16),
        ("#[length(u8)] a: &[u8], #[count(u64)] #[array] b: &[u8]", 9),
        ("#[length(u8)] a: SocketAddr", 29),
        ("n: u32, #[length(field = n)] a: &[u8], #[count(field = n)] b: &[u32]", 4),
    ] {
        let layout = layout(&manifest(fields));
        assert_eq!(layout.room, MAX_CONTENT - used, "{fields}");
    }
    // Metadata beyond 256 bytes reduces the room too.
    let name = "n".repeat(300);
    let provider = provider(&traced(&format!("#[name = \"{name}\"] a: u8")));
    let size = metadata_of(&provider).len();
    assert_eq!(size, 2 + 1 + 2 + 301 + 1);
    assert_eq!(layout_of(&provider).room, MAX_CONTENT - (size - 256) - 1);
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
fn elements_of_arrays_and_their_members_are_known() {
    let items = format!(
        "{PLACE}#[structure] struct Inner {{ x: u8 }}\n#[structure] struct Outer {{ inner: Inner, n: u8 }}\n{}",
        traced("p: Place, o: &[Outer], n: u8")
    );
    let provider = provider(&items);
    let mut names: Vec<String> = elements(&provider).iter().map(ToString::to_string).collect();
    names.sort();
    assert_eq!(names, ["Inner", "Outer"]);
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
    for (text, part) in [
        ("P, \"Name\", level = Info, keyword = none, once, every = 2", "only one rate limit"),
        ("P, \"Name\", level = Info, keyword = none, opcode = Strat", "the opcode `Strat`"),
        ("P, \"Name\", level = Info, keyword = none, colour = 2", "unknown argument `colour`"),
        ("P, \"Name\", level = Info, keyword = none, { k: Kind = 2 }", "Kind"),
        (
            "P, \"Name\", level = Info, keyword = none, { k: other::Kind = 2 }",
            "a field cannot have this type; supported: ",
        ),
        ("P, \"Name\", level = Info, level = Info, keyword = none", "`level` is given twice"),
        (
            "P, \"Name\", level = Info, keyword = none, { a: u8 = 1, a: u8 = 1 }",
            "already named `a`",
        ),
    ] {
        let error = event(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}
