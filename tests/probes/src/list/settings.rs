//! Probes about `EtwSetInformation`.

use etw_probes_interface::{pointer, write};
use etw_scenarios::{HostError, Source};

use crate::{
    answers::Values,
    probe::Run,
    stage::{
        BINARY_TRACK_INFO, DENIED_GROUP, METADATA, Stage, USE_DESCRIPTOR_TYPE, Write, traits,
        traits_name,
    },
};

pub const RUN: &[(&str, Run)] = &[
    ("traits-set", traits_set),
    ("traits-again", traits_again),
    ("traits-large", traits_large),
    ("group-refused", group_refused),
    ("descriptor-type", descriptor_type),
    ("binary-tracking", binary_tracking),
    ("information-class", information_class),
];

fn traits_set(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    stage.register(0)?;
    let status = stage.set_traits(0, &traits("First", None, None))?;
    Ok(Values::default().status("status", status))
}

fn traits_again(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    let session = stage.enabled(5)?;
    stage.register(0)?;
    stage.need_traits(0, &traits("First", None, None))?;
    let status = stage.set_traits(0, &traits("Second", None, None))?;
    stage.write(Write::default())?;
    let recorded = stage.stop(session)?;
    let name = recorded.events.first().and_then(traits_name);
    Ok(Values::default().status("status", status).with("kept", name.as_deref().unwrap_or("none")))
}

fn traits_large(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    let mut values = Values::default();
    for size in [255, 256, 257, 4096_u16] {
        stage.register(0)?;
        let status = stage.set_traits(0, &traits("Large", None, Some(size)))?;
        values = values.status(&format!("status_{size:04}"), status);
        stage.unregister(0)?;
    }
    Ok(values)
}

fn group_refused(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    stage.host.deny_group(DENIED_GROUP)?;
    let by_group = stage.session()?;
    stage.enable(by_group, Source::Group(DENIED_GROUP), 5)?;
    let direct = stage.enabled(5)?;
    stage.register(0)?;
    let status = stage.set_traits(0, &traits("Denied", Some(DENIED_GROUP), None))?;
    stage.write(Write::default())?;
    let by_group = stage.stop(by_group)?;
    let direct = stage.stop(direct)?;
    let has_traits = direct.events.first().and_then(traits_name).is_some();
    Ok(Values::default()
        .status("status", status)
        .with("traits_set", has_traits)
        .with("joined", !by_group.events.is_empty()))
}

fn descriptor_type(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    const CLASS: u32 = USE_DESCRIPTOR_TYPE;
    let session = stage.enabled(5)?;
    stage.register(0)?;
    let mut values = Values::default();
    for (name, bytes) in
        [("true", &[1][..]), ("false", &[0]), ("two", &[2]), ("two_bytes", &[1, 0])]
    {
        values = values.status(name, stage.set(0, CLASS, bytes)?);
    }
    values = values.status("empty", stage.set_pointer(0, CLASS, pointer::NULL)?);
    stage.register(1)?;
    stage.need_traits(1, &traits("Types", None, None))?;
    values = values.status("false_after_traits", stage.set(1, CLASS, &[0])?);
    let write = Write { slot: 1, form: write::METADATA, size: 8, ..Write::default() };
    stage.write_with(write, &METADATA)?;
    let recorded = stage.stop(session)?;
    let payload = recorded.events.first().map_or(0, |event| event.user_data.len());
    Ok(values.with("payload_after_false", payload))
}

fn binary_tracking(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    stage.register(0)?;
    let null = stage.set_pointer(0, BINARY_TRACK_INFO, pointer::NULL)?;
    let dangling = stage.set_pointer(0, BINARY_TRACK_INFO, pointer::DANGLING)?;
    Ok(Values::default().status("null", null).status("dangling", dangling))
}

fn information_class(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    stage.register(0)?;
    let mut values = Values::default();
    for class in [4, 99] {
        let status = stage.set_pointer(0, class, pointer::NULL)?;
        values = values.status(&format!("class_{class}"), status);
    }
    Ok(values)
}
