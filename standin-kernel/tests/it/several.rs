//! Tests a driver with several providers: two in its own modules, and one in a library crate. Its
//! image describes the events of all three.

use std::fs;

use crate::common;
use etl_file::{Catalog, Guid, Trace, decode};
use standin_kernel::{EnableParameters, Kernel, SessionConfig, Target};

const PROVIDERS: [&str; 3] =
    ["Contoso.Several.Driver", "Contoso.Several.Devices", "Contoso.Several.Library"];

#[test]
fn the_events_of_all_providers_are_decoded_by_the_image() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::new();
    let file = folder.path().join("several.etl");
    let session = kernel.start_session(SessionConfig::to_file("Several", file)).unwrap();
    let everything = EnableParameters { level: 5, ..EnableParameters::default() };
    for name in PROVIDERS {
        let provider = Target::Provider(Guid::of_name(name).unwrap());
        kernel.enable(session, provider, everything.clone()).unwrap();
    }
    let driver = kernel.load(&common::several()).unwrap();
    for _ in 0..2 {
        driver.add_device().unwrap().remove().unwrap();
    }
    let counting = Target::Provider(Guid::of_name(PROVIDERS[0]).unwrap());
    kernel.capture_state(session, counting, None).unwrap();
    driver.unload().unwrap();
    let report = kernel.stop_session(session).unwrap();

    let mut catalog = Catalog::new();
    assert_eq!(catalog.load_image(common::several()).unwrap(), []);
    let trace = Trace::open(&report.file).unwrap();
    let events: Vec<_> = trace
        .events_by_time()
        .into_iter()
        .map(|event| decode(event, &catalog))
        .map(|event| {
            let fields = event.fields.iter();
            let fields: Vec<_> = fields.map(|(name, value)| format!("{name}={value}")).collect();
            format!(
                "{} {} {} | {}",
                event.provider_name.unwrap_or_default(),
                event.descriptor.id,
                fields.join(" "),
                event.message.unwrap_or_default()
            )
        })
        .collect();
    assert_eq!(
        events,
        [
            "Contoso.Several.Driver 1  | Loaded.",
            "Contoso.Several.Library 1 Length=4 Start={Offset=0x1, Size=4, BytesLength=3, \
             Bytes=hex:010203} | Received 4 bytes.",
            "Contoso.Several.Library 1 Length=1 Start={Offset=0x1, Size=1, BytesLength=0, \
             Bytes=hex:} | Received 1 bytes.",
            "Contoso.Several.Library 2 Status=0xc000000d | Refused: 0xc000000d.",
            "Contoso.Several.Devices 1 Arrival=Added(0) | Device: Added.",
            "Contoso.Several.Devices 0  | ",
            "Contoso.Several.Devices 1 Arrival=Added(0) | Device: Added.",
            "Contoso.Several.Driver 0 Written=1 Failed={NoMemory=0, BufferOverflow=0, \
             IntegerOverflow=0, LogFileFull=0, InvalidHandle=0, InvalidParameter=0, Other=0} \
             FieldsCut=0 DroppedWhileUnregistered=0 LeftOut=0 | ",
            "Contoso.Several.Driver 2  | Unloaded.",
        ]
    );
}

/// The devices' provider has `debugger`. No session is running.
#[test]
fn only_a_debug_build_prints_events_and_has_the_code_for_it() {
    let lines = ["Added", "", "Added"].map(|arrival| match arrival {
        "" => "Contoso.Several.Devices FirstDevice\n".to_owned(),
        arrival => format!("Contoso.Several.Devices DeviceAdded Arrival={arrival}\n"),
    });
    for (profile, printed) in [("debug", lines.concat()), ("release", String::new())] {
        let image = common::driver(profile, "etw_several_driver.sys");
        let kernel = Kernel::new();
        let driver = kernel.load(&image).unwrap();
        for _ in 0..2 {
            driver.add_device().unwrap().remove().unwrap();
        }
        driver.unload().unwrap();
        assert_eq!(kernel.debug_output().concat(), printed, "{profile}");
        let image = fs::read(image).unwrap();
        let is_imported = image.windows(11).any(|name| name == b"DbgPrintEx\0");
        assert_eq!(is_imported, profile == "debug");
    }
}
