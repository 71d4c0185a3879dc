//! Checks that every seed serves its purpose: an input rejected at its first byte is useless to the
//! fuzzer.

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::{collections::BTreeSet, fmt::Debug, fs, path::Path};

use arbitrary::{Arbitrary, Unstructured};
use etl::compare::Form;
use etl_file::{decode::ProviderTraits, decode::schemas::Counts};
use etw_fuzz::{
    compare::{self, Compared},
    compression,
    etl_read::{self, Contents},
    etl_round_trip::{self, Session},
    filter_data, kernel,
    manifest::{self, Known},
    manifest_compile::{self, Compiled},
    pe_load,
    resources::{self, Resources},
    schemas, script,
    seeds::{self, Seed},
    tmf,
    tracelogging::{self, Described},
    traits, unwind,
};

/// The targets and the test of each target's seeds.
const TESTS: [(&str, fn()); 16] = [
    ("compare", compare_seeds),
    ("compression", compression_seeds),
    ("etl_read", etl_read_seeds),
    ("etl_round_trip", etl_round_trip_seeds),
    ("filter_data", filter_data_seeds),
    ("kernel", kernel_seeds),
    ("manifest", manifest_seeds),
    ("manifest_compile", manifest_compile_seeds),
    ("pe_load", pe_load_seeds),
    ("resources", resources_seeds),
    ("schemas", schemas_seeds),
    ("script", script_seeds),
    ("tmf", tmf_seeds),
    ("tracelogging", tracelogging_seeds),
    ("traits", traits_seeds),
    ("unwind", unwind_seeds),
];

/// Returns the names of the fuzz programs in `Cargo.toml`.
fn targets() -> BTreeSet<String> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let manifest: toml::Table = fs::read_to_string(manifest).unwrap().parse().unwrap();
    let programs = manifest["bin"].as_array().unwrap();
    programs.iter().map(|program| program["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_target_has_seeds_and_a_test() {
    let named = |names: &[&str]| -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    };
    assert_eq!(named(&TESTS.map(|(target, _)| target)), targets());
    let seeded: Vec<&str> = seeds::TARGETS.iter().map(|(target, _)| *target).collect();
    assert_eq!(named(&seeded), targets());
}

#[test]
fn the_seeds_replace_older_ones() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("seeds");
    let stale = folder.join("traits").join("stale");
    fs::create_dir_all(stale.parent().unwrap()).unwrap();
    fs::write(&stale, "old").unwrap();
    seeds::write(&folder).unwrap();
    assert!(!stale.exists());
    for target in targets() {
        let written: BTreeSet<String> = fs::read_dir(folder.join(&target))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let made = seeds_of(&target);
        let names = made.iter().map(|seed| seed.name.to_owned());
        assert_eq!(written, names.collect(), "{target}");
        assert_eq!(written.len(), made.len(), "{target}: two seeds have one name");
    }
}

fn seeds_of(target: &str) -> Vec<Seed> {
    let (_, make) = seeds::TARGETS
        .iter()
        .find(|(name, _)| *name == target)
        .unwrap_or_else(|| panic!("there are no seeds for {target}"));
    make()
}

/// The expected result for a seed, or a part of the error that rejects it.
type Outcome<T> = Result<T, &'static str>;

/// Runs a target's check on each of its seeds, and compares the results.
fn assert_reached<T: Debug + PartialEq>(
    target: &str,
    check: impl Fn(&[u8]) -> Result<T, String>,
    expected: &[(&str, Outcome<T>)],
) {
    let made = seeds_of(target);
    let names = |names: &mut dyn Iterator<Item = &str>| -> Vec<String> {
        names.map(str::to_owned).collect()
    };
    assert_eq!(
        names(&mut made.iter().map(|seed| seed.name)),
        names(&mut expected.iter().map(|(name, _)| *name)),
        "the seeds of {target}, and those that are expected"
    );
    for (seed, (name, expected)) in made.iter().zip(expected) {
        match (check(&seed.bytes), expected) {
            (Err(error), Err(words)) => {
                assert!(error.contains(words), "{target}, {name}: {error}");
            }
            (Ok(reached), Ok(expected)) => assert_eq!(reached, *expected, "{target}, {name}"),
            (reached, expected) => panic!("{target}, {name}: {reached:?} and not {expected:?}"),
        }
    }
}

#[test]
fn kernel_seeds() {
    let seeds = seeds_of("kernel");
    assert!(seeds.len() > 300, "{} layouts", seeds.len());
    for seed in seeds {
        let fields = kernel::check(&seed.bytes);
        assert!(fields.is_ok(), "{}: {fields:?}", seed.name);
    }
}

#[test]
fn compare_seeds() {
    let compared = |form, both, only_theirs, differences| {
        Ok(Compared { form, both, only_theirs, differences })
    };
    assert_reached(
        "compare",
        compare::check,
        &[
            // The output contains two of the trace's four events.
            ("tracerpt", compared(Form::Xml, 2, 0, 2)),
            ("winevent", compared(Form::XmlInJson, 1, 0, 3)),
            ("tdh", compared(Form::Lines, 2, 0, 2)),
            ("changed", compared(Form::Lines, 1, 0, 4)),
            ("empty", compared(Form::Empty, 0, 0, 4)),
            ("not_events", Err("the XML's root element is \"Other\"; expected Events or Event")),
        ],
    );
}

#[test]
fn compression_seeds() {
    assert_reached(
        "compression",
        compression::check,
        &[
            ("literals", Ok(26)),
            ("overlapping", Ok(300)),
            ("long_matches", Ok(70_580)),
            ("surplus_flags", Ok(32)),
            ("records", Ok(0x1000)),
            ("cut", Err("the compressed data ends after")),
            ("before_the_start", Err("a match starts 2 bytes back")),
            ("wrong_length", Err("21 is not a valid match length")),
        ],
    );
}

#[test]
fn etl_read_seeds() {
    let sound = |events, decoded, spans| Contents { events, decoded, spans, ..Contents::default() };
    let damaged = |events, spans, damages| Contents { damages, ..sound(events, events, spans) };
    // A damaged item's bytes count as user data after the last field.
    let with_item = Contents { decoded: 1, ..damaged(2, 1, 3) };
    let others = Contents { others: 11, ..Contents::default() };
    assert_reached(
        "etl_read",
        etl_read::check,
        &[
            ("qpc.etl", Ok(sound(4, 4, 1))),
            ("system_time.etl", Ok(sound(4, 4, 1))),
            ("cycles.etl", Ok(sound(4, 4, 1))),
            ("processors_and_losses.etl", Ok(sound(6, 6, 1))),
            ("cut_short.etl", Ok(damaged(5, 1, 1))),
            ("other_records.etl", Ok(others)),
            ("32_bit_header.etl", Ok(sound(2, 2, 0))),
            // These events have no fields.
            ("names.etl", Ok(sound(19, 0, 2))),
            ("every_item.etl", Ok(sound(1, 1, 0))),
            // One of these events has no fields.
            ("by_manifest.etl", Ok(sound(4, 3, 0))),
            ("undescribed.etl", Ok(sound(3, 0, 0))),
            ("packets.etl", Ok(sound(8, 0, 0))),
            // Bytes follow the last field of one of these events.
            ("types.etl", Ok(sound(3, 2, 0))),
            ("out_types.etl", Ok(sound(2, 2, 0))),
            ("unsuited_data.etl", Ok(sound(5, 0, 0))),
            ("odd_values.etl", Ok(sound(2, 2, 0))),
            // These events have no fields.
            ("odd_times.etl", Ok(sound(22, 0, 0))),
            ("unknown_clock.etl", Ok(damaged(2, 0, 1))),
            ("damaged_buffers.etl", Ok(damaged(2, 1, 3))),
            ("damaged_records.etl", Ok(with_item)),
            ("never_written.etl", Ok(damaged(4, 2, 1))),
            ("too_few_buffers.etl", Ok(damaged(4, 2, 1))),
            ("compressed_buffers.etl", Ok(sound(20, 20, 5))),
            ("compressed_damaged.etl", Ok(damaged(8, 2, 1))),
            ("compressed_cut.etl", Ok(damaged(8, 2, 1))),
            ("too_short.etl", Err("the file ends within the trace's header event")),
            ("no_buffer_size.etl", Err("a buffer cannot be 1031 bytes long")),
            ("compressed.etl", Err("the first buffer is compressed")),
            ("no_header_event.etl", Err("the first record is not a header event")),
        ],
    );
}

#[test]
fn etl_round_trip_seeds() {
    // `seeds_of` makes each seed from a session with the properties of its name.
    for seed in seeds_of("etl_round_trip") {
        // Like the fuzzer, decode a session from the seed's bytes.
        let session = Session::arbitrary_take_rest(Unstructured::new(&seed.bytes)).unwrap();
        let written = etl_round_trip::check(&session);
        assert_eq!(written.events == 0, seed.name == "empty", "{}: {written:?}", seed.name);
    }
}

#[test]
fn filter_data_seeds() {
    assert_reached(
        "filter_data",
        |bytes| Ok(filter_data::check(bytes)),
        &[
            ("one", Ok(Some(1))),
            ("two", Ok(Some(2))),
            ("far", Ok(Some(2))),
            // Data of another type is not parsed as filters.
            ("event_ids", Ok(None)),
        ],
    );
}

#[test]
fn manifest_seeds() {
    let known = |providers, events, decoded| Known { providers, events, decoded };
    assert_reached(
        "manifest",
        manifest::check,
        &[
            ("fixture.man", Ok(known(1, 4, 3))),
            // The provider and its event are also found by the control GUID.
            ("odd.man", Ok(known(2, 2, 2))),
            ("little_endian.man", Ok(known(1, 0, 0))),
            ("big_endian.man", Ok(known(1, 0, 0))),
        ],
    );
}

#[test]
fn manifest_compile_seeds() {
    let compiled = |events, imported| Compiled { providers: 1, events, imported, messages: true };
    assert_reached(
        "manifest_compile",
        manifest_compile::check,
        &[
            ("sound.man", Ok(compiled(4, 3))),
            ("translated.man", Ok(compiled(0, 0))),
            ("odd.man", Ok(compiled(1, 0))),
        ],
    );
}

#[test]
fn pe_load_seeds() {
    assert_reached(
        "pe_load",
        pe_load::check,
        &[("driver.sys", Ok(())), ("alone.sys", Ok(())), ("unknown_imports.sys", Ok(()))],
    );
}

#[test]
fn resources_seeds() {
    let known =
        |events, fields, maps, messages| Resources { named: true, events, fields, maps, messages };
    // Resources of version 3 cannot contain the name.
    let version_3 = Resources { named: false, ..known(4, 14, 2, 2) };
    assert_reached(
        "resources",
        resources::check,
        &[
            ("sound", Ok(known(4, 14, 2, 2))),
            ("sound_version_3", Ok(version_3)),
            ("fixture", Ok(known(4, 20, 3, 1))),
            ("odd", Ok(known(1, 7, 1, 1))),
            ("two_blocks_of_messages", Ok(known(1, 7, 1, 1))),
            ("cut", Err("ends inside")),
            ("no_tag", Err("has no CRIM")),
            ("version_4", Err("version 4.")),
            ("no_messages", Err("MESSAGETABLE ends inside")),
            ("types_1", Ok(known(16, 8 * 27, 0, 0))),
            ("types_2", Ok(known(16, 8 * 27, 0, 0))),
            ("types_3", Ok(known(16, 8 * 27, 0, 0))),
        ],
    );
}

#[test]
fn schemas_seeds() {
    let counts = |events, maps, manifests, defective| {
        Ok(Counts { events, maps, manifests, defective, ..Counts::default() })
    };
    assert_reached(
        "schemas",
        |bytes| Ok(schemas::check(bytes)),
        &[
            ("event_and_maps", counts(1, 2, 0, 0)),
            ("map_alone", counts(0, 1, 0, 0)),
            ("manifest_in_chunks", counts(0, 0, 1, 0)),
            ("no_manifest", counts(0, 0, 0, 1)),
            ("cut", counts(0, 0, 0, 1)),
            ("another_source", Ok(Counts { other_sources: 1, ..Counts::default() })),
            ("nested_without_end", counts(0, 0, 0, 1)),
        ],
    );
}

#[test]
fn script_seeds() {
    assert_reached(
        "script",
        script::check,
        &[
            ("every_step", Ok(17)),
            ("bad_second_line", Err("line 2: `writ` is not a step")),
            ("windows_lines", Ok(3)),
        ],
    );
}

#[test]
fn tmf_seeds() {
    assert_reached(
        "tmf",
        tmf::check,
        &[
            ("driver", Ok(4)),
            ("counted", Ok(1)),
            ("lists", Ok(1)),
            ("defects", Err("line 1: no GUID precedes the message")),
        ],
    );
}

#[test]
fn tracelogging_seeds() {
    let described = |fields, decoded, leftover| Ok(Described { fields, decoded, leftover });
    assert_reached(
        "tracelogging",
        tracelogging::check,
        &[
            ("fixture", described(8, 8, 0)),
            ("arrays_and_structures", described(5, 5, 0)),
            // The second field's encoding is private to the provider.
            ("tags_and_custom", described(2, 1, 0)),
            ("every_type", described(25, 25, 78)),
            ("every_out_type", described(55, 55, 0)),
            ("nested", described(4, 4, 0)),
            ("sized_values", described(11, 11, 0)),
            ("odd_text", described(6, 6, 0)),
            ("odd_numbers", described(8, 8, 0)),
            ("too_short", described(1, 0, 2)),
            ("unknown_type", described(1, 0, 2)),
            ("odd_length", described(1, 0, 3)),
            ("long_sid", described(1, 0, 8)),
            ("without_data", described(2, 0, 0)),
        ],
    );
}

#[test]
fn traits_seeds() {
    let group = "4aa09f40-b4fd-5f91-9ca5-dfddf6a31cea".parse().unwrap();
    let decode_guid = "dededede-dede-dede-dede-dededededede".parse().unwrap();
    let named = ProviderTraits { name: "Contoso.Sample".to_owned(), ..ProviderTraits::default() };
    let grouped = ProviderTraits { group: Some(group), ..named.clone() };
    let more = ProviderTraits {
        decode_guid: Some(decode_guid),
        others: vec![(0x80, b"lab".to_vec())],
        ..grouped.clone()
    };
    assert_reached(
        "traits",
        traits::check,
        &[("name", Ok(named)), ("group", Ok(grouped)), ("decode_guid_and_custom", Ok(more))],
    );
}

#[test]
fn unwind_seeds() {
    assert_reached(
        "unwind",
        unwind::check,
        &[
            ("leaf", Ok(2)),
            ("pushes", Ok(2)),
            ("frame", Ok(1)),
            ("chained", Ok(2)),
            ("endless", Err("continues in too many others, after 1 frames")),
            ("version_3", Err("unknown version 3")),
            ("outside", Err("is not in the image, after 1 frames")),
            ("short_stack", Err("the stack cannot be read at 0x")),
        ],
    );
}
