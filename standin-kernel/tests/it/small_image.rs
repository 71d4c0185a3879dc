//! Tests the loader with small images.

use std::path::Path;

use etw_test_support::small_image::{IMPORTS, Image, OPTIONAL_HEADER, SECTIONS};
use standin_kernel::{LoadError, check_image_bytes};

fn checked(bytes: &[u8]) -> Result<Vec<String>, LoadError> {
    check_image_bytes(Path::new("small.sys"), bytes)
}

#[test]
fn a_small_driver_is_loaded_from_memory() {
    checked(&Image::default().build()).unwrap();
    let without = Image { relocations: false, ..Image::default() };
    checked(&without.build()).unwrap();
}

#[test]
fn errors_name_a_refused_image_as_the_caller_did() {
    let mut bytes = Image::default().build();
    // The field is SizeOfImage.
    bytes[OPTIONAL_HEADER + 56..][..4].fill(0);
    let error = checked(&bytes).unwrap_err().to_string();
    assert_eq!(
        error,
        "small.sys: not a loadable PE image: SizeOfImage is 0 bytes; it must be 1 to 268435456"
    );
}

#[test]
fn names_in_an_image_cannot_control_a_terminal() {
    let image = Image { imports: &[("\u{1b}[2J", &["\n"])], ..Image::default() };
    // The list contains the names unescaped; the code that prints the list escapes them.
    assert_eq!(checked(&image.build()).unwrap(), ["\u{1b}[2J!\n"]);
    let mut image = Image { code: b"\x1b[2J\0\0\0\0", ..Image::default() }.build();
    // The field is PointerToRawData of the first section.
    image[SECTIONS + 20..][..4].fill(0x7F);
    let error = checked(&image).unwrap_err().to_string();
    assert!(error.contains(r"section \u{1b}[2J at"), "{error}");
}

#[test]
fn an_import_that_is_not_provided_is_named_with_its_module() {
    let image =
        Image { imports: &[("ntoskrnl.exe", &["DbgPrint", "NoSuchRoutine"])], ..Image::default() };
    assert_eq!(checked(&image.build()).unwrap(), ["ntoskrnl.exe!NoSuchRoutine"]);
}

#[test]
fn modules_that_the_kernel_does_not_know_are_named_too() {
    let image = Image {
        imports: &[
            ("usbd.sys", &["USBD_ParseDescriptors"]),
            ("HAL.dll", &["KeQueryPerformanceCounter", "HalGetAdapter"]),
            ("storport.sys", &["StorPortNotification"]),
        ],
        ..Image::default()
    };
    // The stand-in kernel provides HAL.dll's exports in ntoskrnl.exe.
    assert_eq!(
        checked(&image.build()).unwrap(),
        [
            "HAL.dll!HalGetAdapter", "storport.sys!StorPortNotification",
            "usbd.sys!USBD_ParseDescriptors"
        ]
    );
}

#[test]
fn a_small_file_cannot_have_endless_imports() {
    let one: (&str, &[&str]) = ("ntoskrnl.exe", &["DbgPrint"]);
    let many = ["DbgPrint"; 100];
    let mut imports = [one; 200];
    imports[199] = ("ntoskrnl.exe", &many);
    let mut bytes = Image { imports: &imports, ..Image::default() }.build();
    checked(&bytes).unwrap();
    // All modules share the name list of the last module.
    let last = bytes[IMPORTS + 199 * 20..][..20].to_vec();
    for number in 0..199 {
        bytes[IMPORTS + number * 20..][..20].copy_from_slice(&last);
    }
    let error = checked(&bytes).unwrap_err().to_string();
    assert!(error.ends_with("it has more than 16384 imports"), "{error}");
}

#[test]
fn a_name_that_no_routine_can_have_is_not_copied() {
    let (long, longer) = ("x".repeat(4096), "x".repeat(4097));
    let with = |module: &str, name: &str| {
        let image = Image { imports: &[(module, &[name])], ..Image::default() };
        checked(&image.build())
    };
    assert_eq!(with(&long, &long).unwrap(), [format!("{long}!{long}")]);
    for refused in [with(&longer, "x"), with("x", &longer)] {
        let text = refused.unwrap_err().to_string();
        assert!(text.ends_with("a name is 4097 bytes long; the maximum is 4096"), "{text}");
    }
}

/// Returns the number of bytes mapped at image addresses. Kernels in concurrent tests reserve other
/// addresses.
#[cfg(target_os = "linux")]
fn mapped() -> u64 {
    const IMAGES: std::ops::Range<u64> = 0x2000_0000_0000..0x3000_0000_0000;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let number = |one: &str| u64::from_str_radix(one, 16).unwrap();
    let ranges = maps.lines().map(|line| {
        let (start, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
        number(start)..number(end)
    });
    let of_images = ranges.filter(|range| IMAGES.contains(&range.start));
    of_images.map(|range| range.end - range.start).sum()
}

#[cfg(target_os = "linux")]
#[test]
fn a_refused_images_mapping_is_released() {
    const SIZE: u32 = 8 << 20;
    const RELOCS_STRIPPED: u8 = 1;
    let without = Image { relocations: false, ..Image::default() };
    let mut bytes = without.build();
    // The fields are SizeOfImage, and the characteristics in the file header. Relocation follows
    // mapping.
    bytes[OPTIONAL_HEADER + 56..][..4].copy_from_slice(&SIZE.to_le_bytes());
    bytes[OPTIONAL_HEADER - 2] |= RELOCS_STRIPPED;
    let before = mapped();
    for _ in 0..100 {
        let error = checked(&bytes).unwrap_err().to_string();
        assert!(error.contains("relocations were stripped"), "{error}");
    }
    assert!(mapped() < before + 10 * u64::from(SIZE));
}
