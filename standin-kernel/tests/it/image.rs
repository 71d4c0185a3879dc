//! Tests the driver's image against the requirements of Windows, and the loader's errors.

use crate::common;
use std::{fs, process::Command};

use object::{
    LittleEndian as LE,
    pe::{
        IMAGE_DLLCHARACTERISTICS_DYNAMIC_BASE, IMAGE_DLLCHARACTERISTICS_NX_COMPAT,
        IMAGE_FILE_MACHINE_AMD64, IMAGE_FILE_MACHINE_ARM64, IMAGE_SCN_MEM_EXECUTE,
        IMAGE_SCN_MEM_WRITE, IMAGE_SUBSYSTEM_NATIVE,
    },
    read::pe::{ImageNtHeaders, ImageOptionalHeader, PeFile64},
};
use standin_kernel::{Kernel, KernelError, LoadError};

/// Every import that this project's drivers are allowed to have, with the first Windows version
/// that exports it, according to the WDK's documentation. `ExAllocatePool2` sets the minimum,
/// Windows 10 2004.
const KNOWN_IMPORTS: &[(&str, &str, Windows)] = &[
    ("ntoskrnl.exe", "DbgPrint", Windows::BeforeVista),
    ("ntoskrnl.exe", "EtwActivityIdControl", Windows::Vista),
    ("ntoskrnl.exe", "EtwEventEnabled", Windows::Vista),
    ("ntoskrnl.exe", "EtwProviderEnabled", Windows::Vista),
    ("ntoskrnl.exe", "EtwRegister", Windows::Vista),
    ("ntoskrnl.exe", "EtwSetInformation", Windows::Ten1507),
    ("ntoskrnl.exe", "EtwUnregister", Windows::Vista),
    ("ntoskrnl.exe", "EtwWriteEx", Windows::Seven),
    ("ntoskrnl.exe", "ExAllocatePool2", Windows::Ten2004),
    ("ntoskrnl.exe", "ExFreePool", Windows::BeforeVista),
    ("ntoskrnl.exe", "ExFreePoolWithTag", Windows::BeforeVista),
    ("ntoskrnl.exe", "KeBugCheckEx", Windows::BeforeVista),
    ("ntoskrnl.exe", "KeDelayExecutionThread", Windows::BeforeVista),
    // The headers for x64 read a register instead, but ntoskrnl.exe exports the routine.
    ("ntoskrnl.exe", "KeGetCurrentIrql", Windows::BeforeVista),
    ("ntoskrnl.exe", "KfRaiseIrql", Windows::BeforeVista),
    ("ntoskrnl.exe", "PsGetCurrentThreadId", Windows::BeforeVista),
    ("ntoskrnl.exe", "RtlCopyUnicodeString", Windows::BeforeVista),
    ("ntoskrnl.exe", "memcmp", Windows::BeforeVista),
    ("ntoskrnl.exe", "memcpy", Windows::BeforeVista),
    ("ntoskrnl.exe", "memmove", Windows::BeforeVista),
    ("ntoskrnl.exe", "memset", Windows::BeforeVista),
    ("ntoskrnl.exe", "strlen", Windows::BeforeVista),
    ("WDFLDR.SYS", "WdfVersionBind", Windows::BeforeVista),
    ("WDFLDR.SYS", "WdfVersionUnbind", Windows::BeforeVista),
];

/// The imports among [`KNOWN_IMPORTS`] that Windows on Arm lacks. A driver that has one does not load.
const NOT_ON_ARM: &[&str] = &["KeGetCurrentIrql"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Windows {
    BeforeVista,
    Vista,
    Seven,
    Ten1507,
    Ten2004,
}

/// Returns the PE checksum: a 16-bit one's complement sum of the file without the field itself,
/// plus the file's length (imagehlp's `CheckSumMappedFile`).
fn checksum(file: &[u8], field: usize) -> u32 {
    let mut sum = 0_u32;
    for (number, pair) in file.chunks(2).enumerate() {
        let at = number * 2;
        if at == field || at == field + 2 {
            continue;
        }
        let word = u16::from_le_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]);
        sum += u32::from(word);
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum + u32::try_from(file.len()).unwrap()
}

// R-C1
#[test]
fn the_image_is_what_windows_loads_as_a_driver() {
    for (profile, machine) in [
        ("debug", IMAGE_FILE_MACHINE_AMD64),
        ("release", IMAGE_FILE_MACHINE_AMD64),
        ("arm64/release", IMAGE_FILE_MACHINE_ARM64),
    ] {
        let path = common::driver(profile, "etw_sample_driver.sys");
        let data = fs::read(&path).unwrap();
        let pe = PeFile64::parse(&*data).unwrap();
        let header = pe.nt_headers().optional_header();
        assert_eq!(pe.nt_headers().file_header().machine.get(LE), machine);
        assert_eq!(header.subsystem(), IMAGE_SUBSYSTEM_NATIVE);
        let flags = header.dll_characteristics();
        assert!(flags.contains(IMAGE_DLLCHARACTERISTICS_DYNAMIC_BASE));
        assert!(flags.contains(IMAGE_DLLCHARACTERISTICS_NX_COMPAT));

        let exports = pe.export_table().unwrap().expect("exports").exports().unwrap();
        let entry = exports
            .iter()
            .find(|export| export.name == Some(b"FxDriverEntry"))
            .expect("FxDriverEntry is exported");
        let object::read::pe::ExportTarget::Address(address) = entry.target else {
            panic!("FxDriverEntry is forwarded");
        };
        assert_eq!(address, header.address_of_entry_point());

        let field = usize::try_from(pe.dos_header().e_lfanew.get(LE)).unwrap() + 24 + 64;
        assert_eq!(header.check_sum(), checksum(&data, field));
        assert_ne!(header.check_sum(), 0);

        for section in pe.section_table().iter() {
            let flags = section.characteristics.get(LE);
            assert!(
                !(flags.contains(IMAGE_SCN_MEM_WRITE) && flags.contains(IMAGE_SCN_MEM_EXECUTE)),
                "a section is writable and executable"
            );
        }
        let pdb = path.with_extension("pdb");
        assert!(fs::read(pdb).unwrap().starts_with(b"Microsoft C/C++ MSF 7.00"));
    }
}

#[test]
fn every_import_is_in_windows_10_2004() {
    for (profile, name) in [
        ("debug", "etw_sample_driver.sys"),
        ("release", "etw_sample_driver.sys"),
        ("release", "etw_rules_driver.sys"),
        ("arm64/release", "etw_sample_driver.sys"),
    ] {
        let data = fs::read(common::driver(profile, name)).unwrap();
        let pe = PeFile64::parse(&*data).unwrap();
        let table = pe.import_table().unwrap().expect("imports");
        let mut descriptors = table.descriptors().unwrap();
        let mut seen = 0;
        while let Some(descriptor) = descriptors.next().unwrap() {
            let module = str::from_utf8(table.name(descriptor.name.get(LE)).unwrap()).unwrap();
            let mut thunks = table.thunks(descriptor.original_first_thunk.get(LE)).unwrap();
            while let Some(thunk) = thunks.next::<object::pe::ImageNtHeaders64>().unwrap() {
                let import = table.import::<object::pe::ImageNtHeaders64>(thunk).unwrap();
                let object::read::pe::Import::Name(_, import) = import else {
                    panic!("{name} imports from {module} by ordinal");
                };
                let import = str::from_utf8(import).unwrap();
                assert_ne!(import, "__chkstk");
                let is_lacking = profile.starts_with("arm64") && NOT_ON_ARM.contains(&import);
                assert!(!is_lacking, "Windows on Arm has no {import}");
                let since = KNOWN_IMPORTS
                    .iter()
                    .find(|known| (known.0, known.1) == (module, import))
                    .unwrap_or_else(|| panic!("{name} imports {module}!{import}, not on the list"))
                    .2;
                assert!(since <= Windows::Ten2004);
                seen += 1;
            }
        }
        assert!(seen >= 8, "{name}: {seen} imports");
    }
}

#[test]
fn no_frame_is_so_large_that_the_stack_is_probed() {
    // Debug builds are not tested, because they may have larger frames, which require stack probes.
    for profile in ["release", "arm64/release"] {
        let pdb = common::driver(profile, "etw_sample_driver.pdb");
        let bytes = fs::read(pdb).unwrap();
        let probe = b"__chkstk";
        assert!(
            !bytes.windows(probe.len()).any(|window| window == probe),
            "the {profile} build has __chkstk"
        );
    }
}

// R-C1
#[test]
fn microsofts_crates_are_the_published_ones() {
    let output = Command::new(env!("CARGO"))
        .current_dir(etw_test_support::root())
        .env("RUSTC_BOOTSTRAP", "1")
        .args(["tree", "--package", "etw-sample-driver", "--edges", "normal,build"])
        .args(["--prefix", "none", "--format", "{p}"])
        .args(["--config", "tools/wdk-standin/config.toml", "-Zlockfile-path", "--locked"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    for (package, standin) in [
        ("wdk v0.5.", false),
        ("wdk-alloc v0.4.", false),
        ("wdk-panic v0.5.", false),
        ("wdk-macros v0.5.", false),
        ("wdk-sys v0.5.", true),
        ("wdk-build v0.6.", true),
    ] {
        let lines: Vec<&str> = tree.lines().filter(|line| line.starts_with(package)).collect();
        assert!(!lines.is_empty(), "{package} is not in the tree:\n{tree}");
        for line in lines {
            // A registry package has no path after its version.
            assert_eq!(line.contains("wdk-standin"), standin, "{line}");
            assert_eq!(line.contains('/'), standin, "{line}");
        }
    }
}

/// Loads bytes as a driver. This must fail. Returns the error.
fn refusal(bytes: &[u8]) -> LoadError {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.sys");
    fs::write(&path, bytes).unwrap();
    match Kernel::new().load(&path) {
        Err(KernelError::Load(error)) => error,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was loaded"),
    }
}

#[test]
fn an_image_for_another_machine_is_refused() {
    let data = fs::read(common::driver("arm64/release", "etw_sample_driver.sys")).unwrap();
    let refusal = refusal(&data).to_string();
    assert!(refusal.contains("x64"), "{refusal}");
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_refused() {
    let good = fs::read(common::sample()).unwrap();
    // The last bytes of the file may be unused padding.
    for length in (0..good.len() - 512).step_by(37) {
        let error = refusal(&good[..length]);
        assert!(matches!(error, LoadError::Malformed { .. }), "{length}: {error}");
    }
}

#[test]
fn another_kind_of_program_is_refused() {
    let good = fs::read(common::sample()).unwrap();
    let pe = usize::try_from(u32::from_le_bytes(good[60..64].try_into().unwrap())).unwrap();
    let with = |at: usize, value: u16| {
        let mut bytes = good.clone();
        bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
        refusal(&bytes)
    };
    let not_a_driver = |error: LoadError, what: &str| match error {
        LoadError::NotADriver { what: found, .. } => assert!(found.contains(what), "{found}"),
        error => panic!("{error}"),
    };
    not_a_driver(with(pe + 4, 0xAA64), "0xaa64");
    not_a_driver(with(pe + 24 + 68, 3), "3");
    not_a_driver(with(pe + 24 + 16, 0), "entry point");
}

#[test]
fn an_import_that_is_not_provided_is_named_when_it_is_called() {
    let mut bytes = fs::read(common::sample()).unwrap();
    let name = b"EtwSetInformation\0";
    let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
    bytes[at..at + 3].copy_from_slice(b"Xyz");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("unprovided.sys");
    fs::write(&path, &bytes).unwrap();
    let name = "ntoskrnl.exe!XyzSetInformation";
    assert_eq!(standin_kernel::check_image(&path).unwrap(), [name]);
    // The driver registers its provider in its entry point, and sets the provider's traits.
    match Kernel::new().load(&path) {
        Err(KernelError::BugCheck(bugcheck)) => {
            let message = bugcheck.message;
            assert!(
                message.starts_with(&format!("{name} was called from unprovided.sys+0x")),
                "{message}"
            );
            assert!(message.ends_with("does not provide it"), "{message}");
        }
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("the driver sets no traits"),
    }
}

#[test]
fn damaged_headers_are_refused_or_loaded_and_never_crash() {
    let good = fs::read(common::sample()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.sys");
    for at in 0..0x400 {
        for change in [0xFF_u8, 0x01, 0x80] {
            let mut bytes = good.clone();
            bytes[at] ^= change;
            fs::write(&path, &bytes).unwrap();
            // Only the mapping is tested, because damaged code must not run.
            let _result = standin_kernel::check_image(&path);
        }
    }
}
