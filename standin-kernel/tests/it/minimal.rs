//! Tests the driver in docs/instrument-your-driver.md, the starting point for users of the library.

use std::fs;

use crate::common;
use etl_file::{Catalog, Trace, decode};
use standin_kernel::{EnableParameters, Kernel, SessionConfig, Target};

/// The GUID of "Contoso.Minimal".
const PROVIDER: &str = "7f7a2fd1-1391-5401-f475-6c4e00ed0528";

// R-C2, R-T6, R-O4
#[test]
fn the_guides_driver_traces_its_life_cycle() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::new();
    let file = folder.path().join("minimal.etl");
    let session = kernel.start_session(SessionConfig::to_file("Minimal", file)).unwrap();
    let provider = Target::Provider(PROVIDER.parse().unwrap());
    let everything = EnableParameters { level: 5, ..EnableParameters::default() };
    kernel.enable(session, provider, everything).unwrap();
    let (driver, device) = common::started(&kernel, &common::minimal());
    common::leave(driver, &device);
    let report = kernel.stop_session(session).unwrap();
    let trace = Trace::open(&report.file).unwrap();
    let told: Vec<_> = trace
        .events()
        .map(|event| {
            let event = decode(event, &Catalog::default());
            assert_eq!(event.provider_name.as_deref(), Some("Contoso.Minimal"));
            let fields = event.fields.iter();
            let fields: Vec<_> = fields.map(|(name, value)| format!("{name}={value}")).collect();
            format!("{} {}", event.event_name.unwrap_or_default(), fields.join(" "))
        })
        .collect();
    let path =
        r#"RegistryPath="\Registry\Machine\System\CurrentControlSet\Services\etw_minimal_driver""#;
    assert_eq!(
        told,
        [format!("Loaded {path}").as_str(), "DeviceAdded Status=0x00000000", "Unloaded ",]
    );
}

// A provider that stays registered is a consequence of the failure.
#[test]
fn the_status_of_a_failing_entry_comes_first() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.txt");
    fs::write(&script, "fault EtwUnregister\nfault WdfDriverCreate STATUS_NO_MEMORY").unwrap();
    let mut command = common::run_command(common::minimal(), folder.path().join("out.etl"));
    let (good, said) = common::said(command.arg("--script").arg(&script));
    assert!(!good, "{said}");
    let place = |part: &str| said.find(part).unwrap_or_else(|| panic!("no {part}: {said}"));
    let status = place("error: DriverEntry returned STATUS_NO_MEMORY");
    assert!(status < place("was unloaded without EtwUnregister"), "{said}");
}
