//! Provider groups.

use etw_sample_interface::keyword;

use super::{
    scenario::{INFORMATION, Scenario, VERBOSE, count, group, names, provider, up_to},
    sessions,
};
use crate::{
    stage::{Failure, Stage, same},
    world::Filter,
};

pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "group-alone",
        proves: "a session that enables the group gets its member's events, by its level and \
                 keywords, from the first one on",
        requirements: &["R-G1", "R-C3"],
        run: alone,
    },
    Scenario {
        name: "group-and-provider",
        proves: "a provider is enabled directly and by its group at once, and knows the composite",
        requirements: &["R-G5"],
        run: both,
    },
    Scenario {
        name: "disallow-list",
        proves: "a session does not enable by its group whom it disallows; the list changes while \
                 the session runs; who is enabled directly is not concerned",
        requirements: &["R-G3"],
        run: disallow,
    },
];

fn alone(stage: &mut Stage<'_>) -> Result<(), Failure> {
    let session = stage.start("Group")?;
    let filter = Filter {
        any: keyword::LIFECYCLE,
        ..up_to(INFORMATION)
    };
    stage.enable(session, group(), &filter)?;
    stage.load_driver()?;
    let file = stage.open()?;
    stage.write(file, b"not asked for")?;
    stage.close(file)?;
    stage.disable(session, group())?;
    stage.unload_driver()?;
    let recording = stage.stop(session)?;
    same(
        "what it got",
        &vec!["DriverLoaded", "DeviceAdded"],
        &names(&recording),
    )
}

fn both(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.load_driver()?;
    let file = stage.open()?;
    let by_group = stage.start("ByGroup")?;
    stage.enable(by_group, group(), &up_to(INFORMATION))?;
    let direct = stage.start("Direct")?;
    stage.enable(direct, provider(), &up_to(VERBOSE))?;
    let wanted = sessions::statistics(stage, file)?;
    same("the composite's level", &u32::from(VERBOSE), &wanted.level)?;
    stage.write(file, b"x")?;
    stage.disable(direct, provider())?;
    let wanted = sessions::statistics(stage, file)?;
    same(
        "the group's part",
        &(1, u32::from(INFORMATION)),
        &(wanted.enabled, wanted.level),
    )?;
    stage.write(file, b"y")?;
    stage.disable(by_group, group())?;
    same(
        "enabled without either",
        &0,
        &sessions::statistics(stage, file)?.enabled,
    )?;
    let (by_group, direct) = (stage.stop(by_group)?, stage.stop(direct)?);
    let found = |recording| (count(recording, "Write"), count(recording, "WriteData"));
    same(
        "writes and their data, by the group",
        &(2, 0),
        &found(&by_group),
    )?;
    same("writes and their data, directly", &(1, 1), &found(&direct))
}

fn disallow(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.load_driver()?;
    let file = stage.open()?;
    let session = stage.start("Disallows")?;
    stage.disallow(session, &[crate::provider()])?;
    stage.enable(session, group(), &up_to(INFORMATION))?;
    stage.write(file, b"1")?;
    same(
        "enabled while disallowed",
        &0,
        &sessions::statistics(stage, file)?.enabled,
    )?;
    stage.disallow(session, &[])?;
    stage.write(file, b"22")?;
    stage.disallow(session, &[crate::provider()])?;
    stage.write(file, b"333")?;
    stage.enable(session, provider(), &up_to(INFORMATION))?;
    stage.write(file, b"4444")?;
    let recording = stage.stop(session)?;
    let lengths: Vec<String> = recording
        .events
        .iter()
        .filter(|seen| seen.event.event_name.as_deref() == Some("Write"))
        .filter_map(|seen| seen.event.fields.first())
        .map(|(_, value)| value.to_string())
        .collect();
    same(
        "lengths of the writes it saw",
        &vec!["2".to_owned(), "4".to_owned()],
        &lengths,
    )
}
