//! Tests the rules for INF files with the sample driver's file.

use std::fs;

use driver_package::inf::{Driver, Inf, Stamp, check};

fn driver() -> Driver {
    Driver {
        image: "etw_sample_driver.sys".to_owned(),
        service: "etw_sample_driver".to_owned(),
        hardware_id: r"Root\EtwSampleDriver".to_owned(),
        framework: (1, 31),
        provider: "802b686a-519d-5416-5280-4c0ead585fbb".to_owned(),
        provider_name: "WdkEtw.SampleDriver".to_owned(),
        sddl: "D:P(A;;GA;;;SY)(A;;GA;;;BA)".to_owned(),
    }
}

fn stamped() -> String {
    let stamp = Stamp {
        architecture: "amd64",
        framework: "1.31",
        date: "11/21/2026",
        version: "0.1.0.0",
    };
    let path = etw_test_support::root().join("inf/etw_sample_driver.inx");
    stamp.apply(&fs::read_to_string(path).unwrap())
}

#[test]
fn the_sample_drivers_file_is_sound() {
    let inf = Inf::read(&stamped()).unwrap();
    assert_eq!(check(&inf, &driver()), Vec::<String>::new());
}

#[test]
fn every_mistake_is_found() {
    for (from, to, finding) in [
        ("$WINDOWS NT$", "$CHICAGO$", "Signature is $CHICAGO$"),
        ("Class       = System", "Class = Sample", "Class is Sample"),
        ("[Strings]", "[ClassInstall32]\n[Strings]", "infverif 1285"),
        (
            "Provider               = \"wdk-etw\"",
            "Provider = \"Microsoft\"",
            "infverif 1204",
        ),
        (
            "CatalogFile = etw_sample_driver.cat",
            "",
            "has no CatalogFile",
        ),
        ("11/21/2026", "21/11/2026", "DriverVer is not"),
        ("0.1.0.0", "0.1.0", "DriverVer is not"),
        ("PnpLockdown = 1", "PnpLockdown = 0", "PnpLockdown is 0"),
        (
            "DefaultDestDir = 13",
            "DefaultDestDir = 12",
            "DefaultDestDir is 12",
        ),
        ("sys = 1,,", "sys = 2,,", "has no disk 2"),
        (
            "NTamd64.10.0...19041",
            "NTamd64.10.0...17763",
            "the oldest supported build is",
        ),
        (
            "NTamd64.10.0...19041",
            "NTx86.10.0...19041",
            "NTx86 is not a supported architecture",
        ),
        (r"Root\EtwSampleDriver", r"Root\Other", "the hardware id is"),
        ("[Files]", "[Others]", "the section [Files] is missing"),
        (
            "(A;;GA;;;BA)",
            "(A;;GA;;;WD)",
            "the device's security descriptor is",
        ),
        (
            "0x00000002\r\nProvider",
            "0x00000000\r\nProvider",
            "AddService has the flags",
        ),
        ("StartType     = 3", "StartType = 0", "StartType is 0"),
        (
            r"%13%\etw_sample_driver.sys",
            r"%12%\x.sys",
            "ServiceBinary is",
        ),
        (
            "KmdfLibraryVersion = 1.31",
            "KmdfLibraryVersion = 1.33",
            "expected 1.31",
        ),
        ("{802b686a", "{802b686b", "names the ETW provider {802b686b"),
        (
            "= WdkEtw.SampleDriver",
            "= WdkEtw.Sample",
            "ProviderName is",
        ),
        ("HKR,,Security", "HKLM,,Security", "infverif 1304"),
        (
            "[Strings]",
            "[Unused]\r\n[Strings]",
            "nothing refers to [Unused]",
        ),
        ("= 1.31", "= $KMDFVERSION$", "has not been stamped"),
        (
            "AddService = etw_sample_driver",
            "AddService = other",
            "the service is other",
        ),
        (
            "[EtwSampleDriver.NTamd64.Wdf]",
            "[EtwSampleDriver.NTamd64.CoInstallers]\r\n[EtwSampleDriver.NTamd64.Wdf]",
            "infverif 1303",
        ),
    ] {
        let text = stamped();
        assert!(text.contains(from), "{from}");
        let inf = Inf::read(&text.replace(from, to)).unwrap();
        let findings = check(&inf, &driver());
        assert!(
            findings.iter().any(|found| found.contains(finding)),
            "{to}: {findings:?}"
        );
    }
}
