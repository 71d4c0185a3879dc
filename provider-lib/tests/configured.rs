//! Tests declarations whose parts depend on the configuration: the code, which the compiler
//! configures, and the resources, which a build script configures, have the same events.

#![allow(clippy::significant_drop_tightening, reason = "a test's turn lasts as long as the test")]

mod common;

#[path = "../build/tests/fixture/conditional.rs"]
mod conditional;

use std::path::Path;

use common::{ENABLE, turn};
use conditional::trace;
use etl_file::{Catalog, decode::Schema, read::PointerSize};
use wdk_etw::{Registered, emit};
use wdk_etw_build::{
    Configuration,
    declaration::Files,
    manifest::resources::{Version, message_table, wevt_template},
    manifest_in,
};

const FILES: Files<'_> = Files { resources: "x.sys", messages: "x.sys" };

fn path() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("resources/tests/fixture/conditional.rs")
}

/// Returns the configuration of the tests.
fn configuration() -> Configuration {
    let mut configuration = Configuration::new();
    configuration.set("test", None, true);
    configuration.set("target_pointer_width", Some(&usize::BITS.to_string()), true);
    configuration.close("target_pointer_width");
    configuration
}

#[test]
fn the_code_and_the_resources_have_the_same_events() {
    let (manifest, _) = manifest_in(&path(), &FILES, &configuration()).unwrap();
    let events: Vec<u16> = manifest.providers[0].events.iter().map(|event| event.id).collect();
    assert_eq!(events, [1, 2]);
    let mut catalog = Catalog::new();
    let templates = wevt_template(&manifest, Version::V5).unwrap();
    let messages = message_table(&manifest).unwrap().unwrap();
    catalog.add_resources(&templates, &messages).unwrap();

    let etw = turn();
    assert_eq!(trace::register(), Ok(Registered::Complete));
    etw.notify(ENABLE, 255, 0, 0);
    etw.calls();
    assert_eq!(trace::READ.bits(), 1 << 3);
    assert_eq!(trace::OWN, 1_u32);
    emit!(trace::told(1, 2, trace::Kind::Write, trace::Place { x: 3, y: 4 }));
    emit!(trace::here());
    emit!(trace::described("text", 5));
    let writes = etw.writes();
    trace::unregister().unwrap();

    let provider = etl_file::Guid::from_bytes(trace::ID.to_bytes());
    let told = catalog.provider(provider).unwrap().event(1, 0).unwrap();
    let payload = told.schema.decode(&writes[0].data[0].1, PointerSize::Eight);
    assert_eq!((payload.error, payload.leftover.len()), (None, 0));
    let fields: Vec<String> =
        payload.fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(fields.join(", "), "A=1, C=0x2, Kind=Write(2), Place={X=3, Y=4}");
    assert_eq!(writes[0].event.task(), 2);
    assert_eq!(writes[1].event.id(), 2);
    assert_eq!(writes[1].event.level().0, 18);
    let schema = Schema::parse_trace_logging(&writes[2].data[1].1).unwrap();
    let names: Vec<_> = schema.fields.iter().map(|field| &*field.name).collect();
    assert_eq!(names, ["Text", "Last"]);
}

#[test]
fn a_predicate_that_a_build_script_cannot_know_is_an_error() {
    let error = manifest_in(&path(), &FILES, &Configuration::new()).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("conditional.rs:3:7: `cfg(test)` is not known outside the compiler"),
        "{error}"
    );
}
