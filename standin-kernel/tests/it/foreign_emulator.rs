//! Runs the same image in a third-party emulator.

use crate::common;
use serde_json::Value;

// R-C2, R-O2
#[test]
fn speakeasy_reaches_the_framework_and_etw() {
    let script = etw_test_support::oracle("speakeasy_report.py");
    let output = etw_test_support::run_python([script, common::sample()]);
    let report: Value = serde_json::from_slice(&output).unwrap();
    assert_eq!(report["filetype"], "driver");
    assert_eq!(report["arch"], "x64");
    let entry = &report["entry_points"][0];
    let calls: Vec<&Value> = entry["apis"].as_array().unwrap().iter().collect();
    let place = |name: &str| {
        calls
            .iter()
            .position(|call| call["api_name"].as_str().is_some_and(|api| api.ends_with(name)))
            .unwrap_or_else(|| panic!("{name} was not reached: {calls:?}"))
    };
    let bind = place(".WdfVersionBind");
    let register = place(".EtwRegister");
    let create = place(".WdfDriverCreate");
    assert!(bind < create && create < register);
    let provider = calls[register]["args"][0].as_str().unwrap().to_lowercase();
    assert_eq!(provider.trim_matches(['{', '}']), etw_scenarios::provider().to_string());
}
