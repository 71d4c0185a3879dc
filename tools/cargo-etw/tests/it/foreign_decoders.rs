//! Compares the sample driver's traces with other decoders' forms, as `cargo etw vm` does with those
//! of Windows.

use etl::compare::{Comparison, Form, Other, Ours};
use etl_file::{Catalog, Selection, TraceFile};
use etw_test_support as support;

/// Compares the sample driver's events, as its resources describe them, with the forms of Windows
/// decoders. The expected forms come from another reader and from the manifest.
#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn other_decoders_forms_of_the_demos_traces_are_compared_field_by_field() {
    let folder = tempfile::tempdir().unwrap();
    let image = support::drivers("release").join("etw_sample_driver.sys");
    let tour = etw_scenarios::drive(&image, folder.path(), &mut |_| ()).unwrap();
    let mut catalog = Catalog::new();
    catalog.load_image(&image).unwrap();
    let manifest = support::root().join("inf/etw_sample_driver.man");
    let script = support::oracle("event_xml.py");
    for report in [&tour.everything, &tour.requests] {
        let mut file = TraceFile::open(&report.file).unwrap();
        let ours = Ours::read(&mut file, &catalog, &Selection::default()).unwrap();
        assert_eq!(ours.events.len() as u64, report.events);
        for (name, form) in
            [("tracerpt", Form::Xml), ("winevent", Form::XmlInJson), ("tdh", Form::Lines)]
        {
            let written =
                support::run_python([script.as_path(), name.as_ref(), &report.file, &manifest]);
            let other = Other::parse(&written).unwrap();
            assert_eq!(other.form, form);
            let result = Comparison::new(&ours, &other, 10);
            assert_eq!(result.listed, [], "{name} of {}", report.name);
            assert!(result.agrees(), "{name}");
            assert_eq!(result.compared, report.events, "{name}");
            assert!(result.fields > result.compared, "{name}: {}", result.fields);
            assert_eq!(result.unstated, [], "{name}");
        }
    }
}
