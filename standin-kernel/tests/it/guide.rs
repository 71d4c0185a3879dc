//! The lists in the guide `docs/test-your-driver.md`, which are generated from the code.

use std::fs;

use standin_kernel::{Rule, Script, Severity, script::StepSyntax};

const GUIDE: &str = "docs/test-your-driver.md";
const RENEW: &str = "WDK_ETW_RENEW";

/// Returns a table of steps or settings.
fn syntax(heading: &str, all: &[StepSyntax]) -> String {
    let rows = all.iter().map(|one| format!("| `{}` | {} |", one.form, one.effect));
    let head = [format!("| {heading} | effect |"), "| --- | --- |".to_owned()];
    head.into_iter().chain(rows).collect::<Vec<_>>().join("\n")
}

/// Returns the table of the verifier's rules.
fn rules() -> String {
    let rows = Rule::ALL.iter().map(|rule| {
        let number = rule.number().map_or_else(String::new, |number| {
            let anchor = number.to_lowercase();
            format!("[{number}](reference/etw-runtime.md#{anchor})")
        });
        let consequence = match rule.severity() {
            Severity::BugCheck => "bugcheck",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        let description = rule.description();
        format!("| `{rule:?}` | {number} | {consequence} | {description} |")
    });
    let head = [
        "| rule | number | consequence | what breaks it |".to_owned(),
        "| --- | --- | --- | --- |".to_owned(),
    ];
    head.into_iter().chain(rows).collect::<Vec<_>>().join("\n")
}

/// Replaces the text between a list's markers.
fn put(text: &str, list: &str, content: &str) -> String {
    let start = format!("<!-- list of {list}: `cargo xtask renew guide` writes it -->\n");
    let end = format!("\n<!-- end of the list of {list} -->");
    let (before, rest) =
        text.split_once(&start).unwrap_or_else(|| panic!("{GUIDE} has no {start}"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("{GUIDE} has no {end}"));
    format!("{before}{start}{content}{end}{after}")
}

#[test]
fn the_guide_lists_every_step_setting_and_rule() {
    let path = etw_test_support::root().join(GUIDE);
    let present = fs::read_to_string(&path).unwrap();
    let lists = [
        ("steps", syntax("step", Script::STEPS)),
        ("settings", syntax("setting", standin_kernel::script::FILTER_SETTINGS)),
        ("rules", rules()),
    ];
    let renewed =
        lists.iter().fold(present.clone(), |text, (list, content)| put(&text, list, content));
    if std::env::var_os(RENEW).is_some() {
        fs::write(&path, &renewed).unwrap();
        return;
    }
    assert!(renewed == present, "{GUIDE} is out of date: `cargo xtask renew guide` writes it");
}

#[test]
fn the_guides_script_is_one() {
    let guide = fs::read_to_string(etw_test_support::root().join(GUIDE)).unwrap();
    let (_, rest) = guide.split_once("## Scripts").unwrap();
    let (_, rest) = rest.split_once("```text\n").unwrap();
    let (script, _) = rest.split_once("```").unwrap();
    let parsed = Script::parse(script);
    assert!(parsed.is_ok(), "{parsed:?}");
}
