//! Probes about `EtwSetInformation`.

use etw_probes_interface::{pointer, write};
use etw_scenarios::{HostError, Source};

use crate::{
    answers::Values,
    probe::{Confidence, Probe},
    stage::{
        BINARY_TRACK_INFO, DENIED_GROUP, METADATA, Stage, USE_DESCRIPTOR_TYPE, Write, traits,
        traits_name,
    },
};

pub const PROBES: &[Probe] = &[
    Probe {
        id: "traits-set",
        text: "What does EtwSetInformation return for valid traits?",
        about: &["ETW-4.3.1"],
        source: "TraceLoggingProvider.h",
        confidence: Confidence::High,
        documented: "STATUS_SUCCESS",
        assumed: "STATUS_SUCCESS",
        varies: false,
        risky: false,
        stage: traits_set,
    },
    Probe {
        id: "traits-again",
        text: "What does a second attempt to set traits return, and which traits do events carry?",
        about: &["O3", "ETW-4.3.2", "ETW-4.3.3"],
        source: "Microsoft Learn, \"Provider traits\"",
        confidence: Confidence::Low,
        documented: "it fails; the status is not documented",
        assumed: "STATUS_INVALID_PARAMETER, and the first traits stay",
        varies: false,
        risky: false,
        stage: traits_again,
    },
    Probe {
        id: "traits-large",
        text: "What does EtwSetInformation return for traits of 255, 256, 257 and 4096 bytes?",
        about: &["ETW-4.3.4"],
        source: "Microsoft Learn, \"Provider traits\"",
        confidence: Confidence::Medium,
        documented: "the advice is to stay below 256 bytes; no error is documented",
        assumed: "STATUS_SUCCESS up to 65,535 bytes",
        varies: false,
        risky: false,
        stage: traits_large,
    },
    Probe {
        id: "group-refused",
        text: "What happens to traits that name a group which the provider may not join?",
        about: &["O3", "ETW-5.8"],
        source: "Microsoft Learn, \"Provider traits\"",
        confidence: Confidence::Low,
        documented: "membership is denied; the status, and the fate of the other traits, are not \
                     documented",
        assumed: "STATUS_ACCESS_DENIED, and no traits are set",
        varies: false,
        risky: false,
        stage: group_refused,
    },
    Probe {
        id: "descriptor-type",
        text: "What does EventProviderUseDescriptorType accept, and what does FALSE do after traits \
               were set?",
        about: &["ETW-1.3.11", "ETW-4.3.6", "ETW-4.3.8"],
        source: "evntprov.h; Microsoft Learn, EVENT_INFO_CLASS",
        confidence: Confidence::Low,
        documented: "one byte, 0 or 1; FALSE after traits is not documented",
        assumed: "one byte, 0 or 1; FALSE after traits makes metadata a part of the payload",
        varies: false,
        risky: false,
        stage: descriptor_type,
    },
    Probe {
        id: "binary-tracking",
        text: "Does EventProviderBinaryTrackInfo accept null and dangling pointers of length 0?",
        about: &["ETW-1.3.10", "ETW-1.3.11"],
        source: "Microsoft Learn, EventSetInformation",
        confidence: Confidence::Medium,
        documented: "a null buffer of length 0 is acceptable; other pointers are not documented",
        assumed: "STATUS_SUCCESS for both: no pointer of length 0 is read",
        varies: false,
        risky: true,
        stage: binary_tracking,
    },
    Probe {
        id: "information-class",
        text: "What does EtwSetInformation return for a class that does not exist?",
        about: &["ETW-1.3.8"],
        source: "Microsoft Learn, EtwSetInformation",
        confidence: Confidence::High,
        documented: "STATUS_INVALID_DEVICE_REQUEST",
        assumed: "STATUS_INVALID_DEVICE_REQUEST",
        varies: false,
        risky: false,
        stage: information_class,
    },
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
