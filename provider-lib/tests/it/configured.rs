//! Tests declarations whose parts depend on the configuration: the code, which the compiler
//! configures, and the resources, which a build script configures, contain the same events.

#[path = "../../build/tests/fixture/conditional.rs"]
mod conditional;

use conditional::trace;
use mock_etw::enabled;
use wdk_etw::emit;
use wdk_etw_build::{Configuration, manifest_in};

use crate::decode::{FILES, catalog, decoded, fixture};

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
    let (manifest, _) = manifest_in(&fixture("conditional.rs"), &FILES, &configuration()).unwrap();
    let events: Vec<u16> = manifest.providers[0].events.iter().map(|event| event.id).collect();
    assert_eq!(events, [1, 2]);
    let catalog = catalog(&manifest);

    let etw = enabled(&trace::PROVIDER, 255);
    assert_eq!(trace::READ.bits(), 1 << 3);
    assert_eq!(trace::OWN, 1_u32);
    emit!(trace::told(1, 2, trace::Kind::Write, trace::Place { x: 3, y: 4 }));
    emit!(trace::here());
    emit!(trace::described("text", 5));
    let writes = etw.writes();
    trace::unregister().unwrap();

    let fields = decoded(&writes[0], trace::ID, &catalog).1;
    assert_eq!(fields.join(", "), "A=1, C=0x2, Kind=Write(2), Place={X=3, Y=4}");
    assert_eq!(writes[0].event.task(), 2);
    assert_eq!(writes[1].event.id(), 2);
    assert_eq!(writes[1].event.level().0, 18);
    let schema = writes[2].schema().unwrap();
    let names: Vec<_> = schema.fields.iter().map(|field| &*field.name).collect();
    assert_eq!(names, ["Text", "Last"]);
}

#[test]
fn a_predicate_that_a_build_script_cannot_know_is_an_error() {
    let error = manifest_in(&fixture("conditional.rs"), &FILES, &Configuration::new()).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("conditional.rs:3:7: `cfg(test)` is unknown outside the compiler"),
        "{error}"
    );
}
