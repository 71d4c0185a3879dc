//! Scenarios about provider groups.

use etl_file::Guid;
use etw_sample_interface::keyword;

use super::{
    scenario::{INFORMATION, Scenario, VERBOSE, count, group, names, provider, up_to},
    sessions,
};
use crate::{
    host::Filter,
    stage::{Failure, Stage, expect_equal},
};

/// A provider that does not exist.
const ANOTHER: Guid = Guid::from_u128(0x51d9_0c43_7a52_4ee7_8b4f_0a5f_3a11_93c6);

pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "group-alone",
        proves: "a session that enables a group records the events of its members that pass its \
                 level and keywords, from the first event on",
        requirements: &["R-G1", "R-C3"],
        run: alone,
    },
    Scenario {
        name: "group-and-provider",
        proves: "a provider that is enabled directly and through its group receives the combined \
                 level and keywords",
        requirements: &["R-G5"],
        run: both,
    },
    Scenario {
        name: "disallow-list",
        proves: "a session does not enable disallowed providers through their groups; the list can \
                 change while the session runs; it does not affect providers that are enabled \
                 directly",
        requirements: &["R-G3"],
        run: disallow,
    },
];

fn alone(stage: &mut Stage<'_>) -> Result<(), Failure> {
    let session = stage.start("Group")?;
    let filter = Filter { any: keyword::LIFECYCLE, ..up_to(INFORMATION) };
    stage.enable(session, group(), &filter)?;
    stage.load_driver()?;
    let file = stage.open()?;
    stage.write(file, b"not asked for")?;
    stage.close(file)?;
    stage.disable(session, group())?;
    stage.unload_driver()?;
    let recording = stage.stop(session)?;
    expect_equal("the events", &vec!["DriverLoaded", "DeviceAdded"], &names(&recording))
}

fn both(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.load_driver()?;
    let file = stage.open()?;
    let by_group = stage.start("ByGroup")?;
    stage.enable(by_group, group(), &up_to(INFORMATION))?;
    let direct = stage.start("Direct")?;
    stage.enable(direct, provider(), &up_to(VERBOSE))?;
    let wanted = sessions::statistics(stage, file)?;
    expect_equal("the composite level", &u32::from(VERBOSE), &wanted.level)?;
    stage.write(file, b"x")?;
    stage.disable(direct, provider())?;
    let wanted = sessions::statistics(stage, file)?;
    expect_equal(
        "enabled and level with the group alone",
        &(1, u32::from(INFORMATION)),
        &(wanted.enabled, wanted.level),
    )?;
    stage.write(file, b"y")?;
    stage.disable(by_group, group())?;
    expect_equal("enabled with neither", &0, &sessions::statistics(stage, file)?.enabled)?;
    let (by_group, direct) = (stage.stop(by_group)?, stage.stop(direct)?);
    let found = |recording| (count(recording, "Write"), count(recording, "WriteData"));
    expect_equal(
        "Write and WriteData events of the session that enables the group",
        &(2, 0),
        &found(&by_group),
    )?;
    expect_equal(
        "Write and WriteData events of the session that enables the provider",
        &(1, 1),
        &found(&direct),
    )
}

fn disallow(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.load_driver()?;
    let file = stage.open()?;
    let session = stage.start("Disallows")?;
    stage.disallow(session, &[crate::provider()])?;
    stage.enable(session, group(), &up_to(INFORMATION))?;
    stage.write(file, b"1")?;
    expect_equal(
        "`enabled` in the statistics while the provider is disallowed",
        &0,
        &sessions::statistics(stage, file)?.enabled,
    )?;
    stage.disallow(session, &[ANOTHER])?;
    stage.write(file, b"22")?;
    stage.disallow(session, &[crate::provider()])?;
    stage.write(file, b"333")?;
    stage.enable(session, provider(), &up_to(INFORMATION))?;
    stage.write(file, b"4444")?;
    stage.try_to_disallow_none(session);
    let recording = stage.stop(session)?;
    let lengths: Vec<String> = recording
        .events
        .iter()
        .filter(|seen| seen.event.event_name.as_deref() == Some("Write"))
        .filter_map(|seen| seen.event.fields.first())
        .map(|(_, value)| value.to_string())
        .collect();
    expect_equal("lengths of the recorded writes", &vec!["2".to_owned(), "4".to_owned()], &lengths)
}
