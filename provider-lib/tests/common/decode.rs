//! The fields of written events as text, by the resources of their declaration.

use std::path::Path;

use etl_file::{Catalog, decode::Schema, read::PointerSize};
use wdk_etw_build::{
    declaration::Files,
    manifest::resources::{Version, message_table, wevt_template},
    manifest_of,
};

use crate::common::Written;

/// Returns the catalog of the resources of a declaration among the fixtures.
pub fn catalog(file: &str) -> Catalog {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("resources/tests/fixture");
    let files = Files { resources: "x.sys", messages: "x.sys" };
    let (manifest, _) = manifest_of(&folder.join(file), &files).unwrap();
    let templates = wevt_template(&manifest, Version::V5).unwrap();
    let messages = message_table(&manifest).unwrap().unwrap_or_default();
    let mut catalog = Catalog::new();
    catalog.add_resources(&templates, &messages).unwrap();
    catalog
}

/// Returns an event's fields as text. `id` is the provider.
pub fn decoded(written: &Written, id: wdk_etw::Guid, catalog: &Catalog) -> Vec<String> {
    let data = written.data.iter().filter(|(kind, _)| *kind == 0);
    let data: Vec<u8> = data.flat_map(|(_, bytes)| bytes.clone()).collect();
    let payload = metadata(written).map_or_else(
        || {
            let provider = etl_file::Guid::from_bytes(id.to_bytes());
            let event = catalog.provider(provider).unwrap();
            let event = event.event(written.event.id(), 0).unwrap();
            event.schema.decode(&data, PointerSize::Eight)
        },
        |schema| schema.decode(&data, PointerSize::Eight),
    );
    assert_eq!((payload.error, payload.leftover.len()), (None, 0));
    let fields = payload.fields.iter();
    fields.map(|(name, value)| format!("{name}={value}")).collect()
}

/// Returns what a `TraceLogging` event says of itself.
pub fn metadata(written: &Written) -> Option<Schema> {
    let (_, bytes) = written.data.iter().find(|(kind, _)| *kind == 1)?;
    Some(Schema::parse_trace_logging(bytes).unwrap())
}
