//! Tests events of a declaration that `cargo etw import-wpp` wrote.

// The file is as the command writes it.
#[rustfmt::skip]
#[path = "../../../tools/cargo-etw/tests/fixture/wpp.rs"]
mod wpp;

use std::path::Path;

use mock_etw::enabled;
use wdk_etw::{NtStatus, Pointer, Utf16CStr, emit};
use wdk_etw_build::manifest_of;
use wpp::trace;

use crate::decode::{FILES, catalog, decoded};

#[test]
fn the_resources_of_the_declaration_decode_the_events() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/cargo-etw/tests/fixture/wpp.rs");
    let (manifest, _) = manifest_of(&path, &FILES).unwrap();
    let catalog = catalog(&manifest);
    let turn = enabled(&trace::PROVIDER, 5);
    let request = Pointer::new(std::ptr::without_provenance::<u8>(0xABC));
    emit!(trace::request_of_bytes_failed_with(request, 512, NtStatus::ACCESS_DENIED));
    let name: Vec<u16> = "in".encode_utf16().collect();
    emit!(trace::queue_has_of(Utf16CStr::new(&name), 9, 0xF0, trace::StateValue::Busy));
    let fields: Vec<_> =
        turn.writes().iter().map(|write| decoded(write, trace::ID, &catalog).1).collect();
    assert_eq!(
        fields,
        [
            vec!["Request=0xabc", "Length=512", "Status=0xc0000022"],
            vec!["Name=\"in\"", "Value=9", "Mask=0xf0", "State=Busy(1)"],
        ]
    );
}
