//! Tests that the commands decode by images.

use crate::run::Folder;
use etl_file::ClockType;
use etl_file::write::Losses;
use etl_fixtures::resources::{image_with, resource, tag};
use etl_fixtures::trace;

#[test]
fn damaged_parts_of_an_images_resources_are_reported() {
    let mut damaged = resource();
    let map = tag(&damaged, b"VMAP");
    damaged[map] = b'X';
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    let folder = Folder::with("sample.etl", trace::file(header, 1, Losses::default()).0);
    let image = image_with(&folder.path(""), "x64", damaged);
    let image = image.to_str().unwrap();
    let ran = folder.etl(&["stats", "sample.etl", "--image", image]).ok();
    let expected = format!(
        "warning: {image}: skipping a part of the resources: the resource WEVT_TEMPLATE has no VMAP \
         at offset {map:#x}\n"
    );
    assert_eq!(ran.said, expected);
}
