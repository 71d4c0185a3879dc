//! Tests the steps of scripts that do more than send a request.

use crate::common;

/// Runs a script against the sample driver. Returns its output if it succeeds.
fn run(script: &str, arguments: &[&str]) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let (good, said) = common::run(folder.path(), script, arguments);
    if good { Ok(said) } else { Err(said) }
}

fn passes(script: &str) -> String {
    run(script, &[]).unwrap_or_else(|said| panic!("{script}\n{said}"))
}

fn fails(script: &str, sentence: &str) {
    match run(script, &[]) {
        Ok(said) => panic!("{script}\nis expected to fail: {said}"),
        Err(said) => assert!(said.contains(sentence), "{script}\n{said}"),
    }
}

/// `IOCTL_WAIT` and `IOCTL_WAKE` of the sample driver.
const WAIT: &str = "ioctl 0x226014 8";
const WAKE: &str = "ioctl 0x22A018";

#[test]
fn requests_are_sent_in_the_background_and_cancelled() {
    let said = passes(&format!(
        "add-device\nopen\nstart {WAIT} as one\nstart {WAIT} as two\ncancel two\nwait two\n\
         expect STATUS_CANCELLED\n{WAKE}\nexpect success\nwait one\nexpect success\nclose\nremove"
    ));
    assert!(
        said.contains("line 6: request two ended with STATUS_CANCELLED (0xC0000120)"),
        "{said}"
    );
    assert!(said.contains("line 5: cancel two\n"), "{said}");
    let started = format!("add-device\nopen\nstart {WAIT} as slow\n");
    for (step, sentence) in [
        ("wait slwo", "line 4: no request was started as `slwo` (did you mean `slow`?)"),
        ("cancel other", "line 4: no request was started as `other`;"),
        ("start read 1 as slow", "line 4: a request was started as `slow` already"),
        ("wait slow", "line 4: the driver has not completed the request"),
    ] {
        fails(&format!("{started}{step}\ncancel slow\nclose"), sentence);
    }
    // Waiting for a pending request is an error in the script, not in the driver.
    fails(&format!("add-device\nopen\n{WAIT}"), "line 3: the driver has not completed the request");
    // Each client has its own requests.
    let all = format!(
        "add-device\nopen\nstart {WAIT} as mine\ncancel mine\nwait mine\n\
         expect STATUS_CANCELLED\nclose"
    );
    let said = run(&all, &["--clients", "2"]).unwrap();
    assert!(said.contains("line 5, client 2: request mine"), "{said}");
}

#[test]
fn a_device_is_removed_by_surprise() {
    let said = passes(
        "add-device\nopen\nsurprise-remove\nexpect-event SurpriseRemoved\nread 1\n\
         expect STATUS_INVALID_DEVICE_STATE\nclose",
    );
    assert!(said.contains(" SurpriseRemoved ["), "{said}");
    fails("surprise-remove", "line 1: there is no device");
    fails("add-device\nsurprise-remove\nremove", "line 3: there is no device");
}

#[test]
fn events_are_expected_with_their_fields() {
    let start = "add-device\nopen\nwrite \"hello\"\nread 3\n";
    // Events are expected in the order in which they were written; numbers are in any notation.
    passes(&format!(
        "{start}expect-event DriverLoaded\nexpect-event D0Entry State=\"D3 for good\"\n\
         expect-event WriteData Data=hex:68656C6c6f\n\
         expect-event Write Length=0x5 Status=STATUS_SUCCESS\n\
         expect-event Read Requested=3 Returned=3 Status=0\nclose\nremove"
    ));
    // Manifest-based events are named by their ids.
    passes(&format!("{start}expect-event 1\n"));
    let missing = format!("{start}expect-event Write Length=6");
    let Err(said) = run(&missing, &[]) else {
        panic!("there is no such event");
    };
    let (_, nearest) = said
        .split_once(
            "error: line 5: no event Write Length=6 was written since the last expected one",
        )
        .unwrap_or_else(|| panic!("{said}"));
    let first = nearest.lines().nth(1).unwrap();
    assert!(first.contains(" WdkEtw.SampleDriver Write [Information, Request] Length=5"), "{said}");
    // For a misspelled name, the error suggests the intended event.
    let Err(said) = run(&format!("{start}expect-event Raed"), &[]) else {
        panic!("there is no such event");
    };
    assert!(said.contains("the nearest:\n") && said.contains(" Read [Information"), "{said}");
    // An event can be expected only once.
    fails(
        &format!("{start}expect-event Read\nexpect-event Read"),
        "line 6: no event Read was written since the last expected one; no events were written at all",
    );
    let Err(said) = run(&format!("{start}expect-event Read\nclose"), &["--clients", "2"]) else {
        panic!("several clients");
    };
    assert!(said.contains("expect events after `close`"), "{said}");
}

#[test]
fn filters_are_set_again() {
    let said = passes(
        "filter WdkEtw.SampleDriver keep-names=Read,FileClosed drop-ids=1\n\
         add-device\nopen\nwrite \"a\"\nread 1\n\
         filter WdkEtw.SampleDriver level=4\nread 1\nclose\n\
         filter WdkEtw.SampleDriver any=0x2\nremove",
    );
    let names: Vec<&str> = said
        .lines()
        .filter_map(|line| line.split(" WdkEtw.SampleDriver ").nth(1))
        .filter_map(|rest| Some(rest.split_once(" [")?.0))
        .collect();
    // There are no events from loading, and at first only reads; then level 4 without the close;
    // then power.
    let expected = ["DeviceAdded", "D0Entry", "Read", "Read", "D0Exit"];
    assert_eq!(names, expected, "{said}");
    fails(
        "filter WdkEtw.SampleDriver data=1:0:\"x\"\nfilter A keep-ids=1,x",
        "line 2: `x` is not a number",
    );
}

#[test]
fn routines_fail_where_a_script_says_so() {
    fails("fault WdfDriverCreate STATUS_NO_MEMORY", "error: DriverEntry returned STATUS_NO_MEMORY");
    fails(
        "fault WdfDeviceCreate 0xC0000022 2\nadd-device",
        "error: line 2: adding the device returned STATUS_ACCESS_DENIED",
    );
    // If there is no count, a fault occurs once.
    let said = passes(
        "fault EtwWriteEx\nadd-device\nopen\nfault EtwWriteEx STATUS_NO_MEMORY 2\nread 1\nclose",
    );
    assert!(!said.contains("DriverLoaded"), "{said}");
    assert!(!said.contains(" Read ["), "{said}");
}

#[test]
fn parameters_are_set_before_the_load() {
    let folder = tempfile::tempdir().unwrap();
    let (good, said) = common::run(folder.path(), "parameter TraceTag \"lab 7\"\n", &[]);
    assert!(good, "{said}");
    let first = said.lines().next().unwrap();
    assert_eq!(first, "line 1: parameter TraceTag \"lab 7\"");
    // The driver puts the tag into its provider's traits, which are part of each event.
    let tag: Vec<u8> = "lab 7".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let trace = std::fs::read(folder.path().join("out.etl")).unwrap();
    assert!(trace.windows(tag.len()).any(|bytes| bytes == tag), "{said}");
}

#[test]
fn steps_are_repeated() {
    let said = passes("add-device\nrepeat 3\nopen\nrepeat 2\nread 1\nend\nclose\nend\nremove");
    assert_eq!(said.matches("line 5: read of 1 bytes").count(), 6, "{said}");
    assert_eq!(said.matches("line 7: close").count(), 3, "{said}");
}
