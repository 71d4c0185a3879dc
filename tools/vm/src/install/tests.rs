use std::cell::RefCell;

use super::*;

/// Returns whether a base image installed `days` days ago is used, and the reported message.
fn is_used(iso: &str, days: Option<u64>) -> (bool, String) {
    let folder = tempfile::tempdir().unwrap();
    let iso = folder.path().join(iso);
    let installation = Installation {
        answer: answer(&iso, Some(Windows::Server2025), None, "en-US", false, None).unwrap(),
        iso,
        images: folder.path().to_owned(),
        disk: 1 << 30,
        settings: Settings {
            program: PathBuf::new(),
            accelerator: Accelerator::Tcg,
            processors: 1,
            memory: 64,
            extra: Vec::new(),
        },
        alternatives: Vec::new(),
        silence: None,
        total: None,
    };
    let installed = days.map(|days| now() - days * 24 * 60 * 60);
    let about = json!({ "system": "Windows", "accelerator": "kvm", "installed": installed });
    fs::write(folder.path().join("base.json"), about.to_string()).unwrap();
    fs::write(folder.path().join("base.qcow2"), "").unwrap();
    let told = RefCell::new(String::new());
    let tell = |line: &str| told.borrow_mut().push_str(line);
    let base = installation.installed(folder.path(), &tell).unwrap();
    (base.is_some(), told.take())
}

#[test]
fn an_evaluation_edition_is_installed_again_before_it_turns_itself_off() {
    let evaluation = "26100_SERVER_EVAL_x64FRE_en-us.iso";
    assert_eq!(is_used(evaluation, Some(0)), (true, String::new()));
    assert_eq!(is_used(evaluation, Some(8)), (true, String::new()));
    let (is_base, told) = is_used(evaluation, Some(10));
    assert!(!is_base);
    assert!(told.contains("is 10 days old"), "{told}");
    // A file without a time comes from a version that did not record it.
    assert!(!is_used(evaluation, None).0);
    // Other editions continue to run without activation.
    let consumer = "windows-server-2025.iso";
    assert_eq!(is_used(consumer, Some(400)), (true, String::new()));
}
