//! Reads the demo's traces with third-party decoders.

use crate::common;
use etl_file::compare::{Comparison, Form, Other, Ours};
use etl_file::{Catalog, Selection, TraceFile};
use etl_fixtures::decoders;

// R-O1, R-O5, R-O12
#[test]
fn dissect_and_etl_parser_agree_on_the_demos_traces() {
    let folder = tempfile::tempdir().unwrap();
    let tour = etw_scenarios::drive(&common::sample(), folder.path(), &mut |_| ()).unwrap();
    for report in [&tour.everything, &tour.requests] {
        let events = decoders::assert_third_party_decoders_agree(&report.file);
        assert_eq!(events as u64, report.events, "{}", report.name);
    }
}

/// Compares the sample driver's events, as its resources describe them, with the forms of Windows
/// decoders. The expected forms come from another reader and from the manifest.
#[test]
fn other_decoders_forms_of_the_demos_traces_are_compared_field_by_field() {
    let folder = tempfile::tempdir().unwrap();
    let image = common::sample();
    let tour = etw_scenarios::drive(&image, folder.path(), &mut |_| ()).unwrap();
    let mut catalog = Catalog::new();
    catalog.load_image(&image).unwrap();
    let manifest = etw_test_support::root().join("inf/etw_sample_driver.man");
    let script = etw_test_support::oracle("event_xml.py");
    for report in [&tour.everything, &tour.requests] {
        let mut file = TraceFile::open(&report.file).unwrap();
        let ours = Ours::read(&mut file, &catalog, &Selection::default()).unwrap();
        assert_eq!(ours.events.len() as u64, report.events);
        for (name, form) in
            [("tracerpt", Form::Xml), ("winevent", Form::XmlInJson), ("tdh", Form::Lines)]
        {
            let written = etw_test_support::run_python([
                script.as_path(),
                name.as_ref(),
                &report.file,
                &manifest,
            ]);
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
