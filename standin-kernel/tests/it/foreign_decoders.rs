//! Reads the demo's traces with third-party decoders.

use crate::common;
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
