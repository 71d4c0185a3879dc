//! Tests that the commands decode by images.

use std::fs;
use std::process::Command;

use etl_file::ClockType;
use etl_file::write::Losses;
use etl_fixtures::resources::{image_with, resource, tag};
use etl_fixtures::trace;

#[test]
fn damaged_parts_of_an_images_resources_are_reported() {
    let mut damaged = resource();
    let map = tag(&damaged, b"VMAP");
    damaged[map] = b'X';
    let folder = tempfile::tempdir().unwrap();
    let image = image_with(folder.path(), "x64", damaged);
    let trace = folder.path().join("sample.etl");
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    fs::write(&trace, trace::file(header, 1, Losses::default()).0).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_etl"))
        .arg("stats")
        .arg(&trace)
        .arg("--image")
        .arg(&image)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        format!(
            "warning: {}: skipping a part of the resources: the resource WEVT_TEMPLATE has no VMAP \
             at offset {map:#x}\n",
            image.display()
        )
    );
}
