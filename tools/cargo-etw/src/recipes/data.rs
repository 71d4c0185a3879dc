//! The tracing instructions as data, for programs that follow them on a test machine.

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::{
    filtered::Filtered,
    profile::{SELECTED_LEVEL, profiles},
    provider::{Traced, groups},
};

/// The version of the format.
const VERSION: u32 = 1;

/// An enable request in a recipe: the GUID of a provider or group, a level and a mask.
#[derive(Default, PartialEq, Eq, Serialize)]
pub(super) struct Enable<'a> {
    guid: &'a str,
    #[serde(rename = "group")]
    is_group: bool,
    level: u8,
    #[serde(rename = "match_any", serialize_with = "hexadecimal")]
    mask: u64,
    /// The ids of excluded events.
    except_ids: Vec<u16>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a field by reference")]
fn hexadecimal<S: Serializer>(mask: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{mask:#x}"))
}

/// A recipe: the commands that start and stop a session.
#[derive(Default, Serialize)]
pub(super) struct Recipe<'a> {
    name: String,
    /// The program or cmdlet that is required.
    needs: String,
    shell: Shell,
    pub(super) start: Vec<String>,
    /// Commands that run while the driver writes events, and that end without being stopped.
    pub(super) during: Vec<String>,
    pub(super) stop: Vec<String>,
    /// The file that contains the events.
    trace: String,
    enables: Vec<Enable<'a>>,
    /// True if the machine restarts between start and stop.
    boots: bool,
    /// True if the driver writes additional events that programs do not request.
    at_least: bool,
    /// True if the recipe records all events of its providers.
    whole: bool,
}

#[derive(Clone, Copy, Default, Serialize)]
#[serde(rename_all = "lowercase")]
enum Shell {
    #[default]
    Cmd,
    PowerShell,
}

/// Returns requests that enable all of the providers' events.
pub(super) fn everything(providers: &[Traced]) -> Vec<Enable<'_>> {
    providers.iter().map(whole).collect()
}

fn whole(provider: &Traced) -> Enable<'_> {
    let (level, mask) = (provider.highest_level(), provider.everything());
    Enable { guid: &provider.guid, level, mask, ..Enable::default() }
}

/// Returns the request that enables the first keyword of a provider, if it has one.
fn selected(provider: &Traced) -> Option<Enable<'_>> {
    let mask = provider.keywords.first()?.mask;
    Some(Enable { guid: &provider.guid, level: SELECTED_LEVEL, mask, ..Enable::default() })
}

/// Returns requests that enable the providers' groups.
pub(super) fn whole_groups(providers: &[Traced]) -> impl Iterator<Item = Enable<'_>> {
    let groups = groups(providers).into_iter();
    groups.map(|(guid, level)| Enable { guid, is_group: true, level, ..Enable::default() })
}

/// Returns the recipes, which contain the same commands as the instructions. `profile` is the file
/// with the Windows Performance Recorder profiles; `client` is the driver's own tracing program.
pub fn recipes(providers: &[Traced], session: &str, profile: &str, client: Option<&str>) -> Value {
    let mut all = vec![
        logman(session, everything(providers)),
        tracelog(session, everything(providers)),
        wpr("wpr", session, profile, "Everything", everything(providers)),
        power_shell("powershell", session, everything(providers)),
        xperf(session, everything(providers)),
    ];
    let mut recipe = logman(session, everything(providers));
    "logman-keyword".clone_into(&mut recipe.name);
    for enable in providers.iter().filter_map(selected) {
        recipe.start.push(format!(
            "logman update trace {session} -p \"{{{}}}\" {:#x} {} -ets",
            enable.guid, enable.mask, enable.level
        ));
        recipe.enables.retain(|one| one.guid != enable.guid);
        recipe.enables.push(enable);
    }
    if providers.iter().any(|one| !one.keywords.is_empty()) {
        all.push(recipe);
    }
    // The first recipe records everything; the second records the first keyword of each provider
    // that has keywords.
    let keywords = profiles(providers).into_iter().skip(1);
    for (number, (made, enable)) in keywords.zip(providers.iter().filter_map(selected)).enumerate()
    {
        let name = match number {
            0 => "wpr-keyword".to_owned(),
            more => format!("wpr-keyword-{}", more + 1),
        };
        all.push(wpr(&name, session, profile, &made.name, vec![enable]));
    }
    let groups: Vec<Enable<'_>> = whole_groups(providers).collect();
    if !groups.is_empty() {
        all.push(power_shell("powershell-group", session, groups));
        all.push(tracelog_group(providers, session));
    }
    all.extend(tracelog_filter(providers, session));
    let mut capture = tracelog(session, everything(providers));
    "tracelog-capture-state".clone_into(&mut capture.name);
    capture.start.push(capture_state(session));
    capture.at_least = true;
    all.push(capture);
    all.push(in_memory(session, everything(providers)));
    if let (Some(client), Some(provider)) = (client, providers.first()) {
        all.extend(client_recipes(client, session, provider));
    }
    all.push(cargo_etw(session, providers));
    let boot = Recipe {
        start: vec![format!("wpr -boottrace -addboot {profile}!Everything.Verbose -filemode")],
        stop: vec!["wpr -boottrace -stopboot boot.etl".to_owned()],
        trace: "boot.etl".to_owned(),
        boots: true,
        at_least: true,
        ..wpr("wpr-boot", session, profile, "Everything", everything(providers))
    };
    all.push(boot);
    all.push(autologger(providers, session));
    let whole = everything(providers);
    for recipe in &mut all {
        recipe.whole = whole.iter().all(|one| recipe.enables.contains(one));
    }
    json!({ "version": VERSION, "session": session, "recipes": all })
}

pub(super) fn logman<'a>(session: &str, enables: Vec<Enable<'a>>) -> Recipe<'a> {
    let start = |(number, one): (usize, &Enable<'_>)| {
        let verb = if number == 0 {
            format!("create trace {session} -ow -o {session}.etl")
        } else {
            format!("update trace {session}")
        };
        // In PowerShell, unquoted braces denote a script block.
        format!("logman {verb} -p \"{{{}}}\" {:#x} {} -ets", one.guid, one.mask, one.level)
    };
    Recipe {
        name: "logman".to_owned(),
        needs: "logman".to_owned(),
        start: enables.iter().enumerate().map(start).collect(),
        stop: ["query", "stop"].map(|verb| format!("logman {verb} {session} -ets")).into(),
        trace: format!("{session}.etl"),
        enables,
        ..Recipe::default()
    }
}

pub(super) fn tracelog<'a>(session: &str, enables: Vec<Enable<'a>>) -> Recipe<'a> {
    started_by_tracelog(session, &format!("-f {session}.etl"), enables)
}

/// Returns tracelog's recipe for a session that starts with these options.
fn started_by_tracelog<'a>(session: &str, options: &str, enables: Vec<Enable<'a>>) -> Recipe<'a> {
    let start = |(number, one): (usize, &Enable<'_>)| {
        let verb = if number == 0 {
            format!("-start {session} {options}")
        } else {
            format!("-enable {session}")
        };
        format!(
            "tracelog {verb} -guid #{} -matchanykw {:#x} -level {}",
            one.guid, one.mask, one.level
        )
    };
    Recipe {
        name: "tracelog".to_owned(),
        needs: "tracelog".to_owned(),
        start: enables.iter().enumerate().map(start).collect(),
        stop: vec![format!("tracelog -stop {session}")],
        trace: format!("{session}.etl"),
        enables,
        ..Recipe::default()
    }
}

fn wpr<'a>(
    name: &str,
    session: &str,
    profile: &str,
    selected: &str,
    enables: Vec<Enable<'a>>,
) -> Recipe<'a> {
    Recipe {
        name: name.to_owned(),
        needs: "wpr".to_owned(),
        start: vec![format!("wpr -start {profile}!{selected}.Verbose -filemode")],
        stop: vec![format!("wpr -stop {session}.etl")],
        trace: format!("{session}.etl"),
        enables,
        ..Recipe::default()
    }
}

pub(super) fn power_shell<'a>(name: &str, session: &str, enables: Vec<Enable<'a>>) -> Recipe<'a> {
    // The service that writes the session's file does not know the current folder.
    let trace = format!("C:\\{session}.etl");
    let mut start =
        vec![format!("Start-EtwTraceSession -Name {session} -LocalFilePath {trace} -NonPaged")];
    start.extend(enables.iter().map(|one| {
        let properties = if one.is_group {
            "-Property 0x20".to_owned()
        } else {
            format!("-MatchAnyKeyword {:#x}", one.mask)
        };
        format!(
            "Add-EtwTraceProvider -SessionName {session} -Guid '{{{}}}' -Level {} {properties}",
            one.guid, one.level
        )
    }));
    Recipe {
        name: name.to_owned(),
        needs: "Start-EtwTraceSession".to_owned(),
        shell: Shell::PowerShell,
        start,
        stop: vec![format!("Stop-EtwTraceSession -Name {session}")],
        trace,
        enables,
        ..Recipe::default()
    }
}

pub(super) fn xperf<'a>(session: &str, enables: Vec<Enable<'a>>) -> Recipe<'a> {
    let on: Vec<String> =
        enables.iter().map(|one| format!("{}:{:#x}:{}", one.guid, one.mask, one.level)).collect();
    Recipe {
        name: "xperf".to_owned(),
        needs: "xperf".to_owned(),
        start: vec![format!("xperf -start {session} -on {} -f {session}.etl", on.join("+"))],
        stop: vec![format!("xperf -stop {session}")],
        trace: format!("{session}.etl"),
        enables,
        ..Recipe::default()
    }
}

/// Returns the recipe that keeps the newest events in memory, in a ring of 64 buffers of 64 KB,
/// until a command writes them to a file.
pub(super) fn in_memory<'a>(session: &str, enables: Vec<Enable<'a>>) -> Recipe<'a> {
    let mut recipe = started_by_tracelog(session, "-buffering -b 64 -min 64", enables);
    "tracelog-memory".clone_into(&mut recipe.name);
    recipe.stop.insert(0, format!("tracelog -flush {session} -f {session}.etl"));
    recipe
}

/// Returns the command that makes the providers write their state.
pub(super) fn capture_state(session: &str) -> String {
    format!("tracelog -capturestate {session}")
}

/// Returns the recipe that enables provider groups in addition to providers.
fn tracelog_group<'a>(providers: &'a [Traced], session: &str) -> Recipe<'a> {
    let mut recipe = tracelog(session, everything(providers));
    "tracelog-group".clone_into(&mut recipe.name);
    for (group, level) in groups(providers) {
        recipe.start.push(format!(
            "tracelog -enable {session} -guid #{group} -level {level} -enableproperty 0x20"
        ));
    }
    recipe.enables.extend(whole_groups(providers));
    recipe
}

/// Returns the recipe that limits a session to some events of each provider, if possible.
fn tracelog_filter<'a>(providers: &'a [Traced], session: &str) -> Option<Recipe<'a>> {
    let mut recipe = tracelog(session, everything(providers));
    "tracelog-filter".clone_into(&mut recipe.name);
    let mut is_filtered = false;
    for (provider, enable) in providers.iter().zip(&mut recipe.enables) {
        if let Some(filtered) = Filtered::select(provider) {
            is_filtered = true;
            recipe.start.push(filtered.line(session, provider));
            enable.mask = filtered.mask;
            enable.except_ids = filtered.ids;
        }
    }
    is_filtered.then_some(recipe)
}

/// Returns the command that shows the events of a provider's first keyword as JSON, if it has
/// keywords.
pub(super) fn client_trace(client: &str, session: &str, provider: &Traced) -> Option<String> {
    let mask = provider.keywords.first()?.mask;
    Some(format!(
        "{client} trace --json --any {mask:#x} --level {SELECTED_LEVEL} --seconds 10 > {session}.jsonl"
    ))
}

/// Returns the command that records a provider's events.
pub(super) fn client_record(client: &str, session: &str) -> String {
    format!("{client} record --out {session}.etl --seconds 10")
}

/// Returns the recipes for the driver's own client, which traces the first provider.
fn client_recipes<'a>(client: &str, session: &str, provider: &'a Traced) -> Vec<Recipe<'a>> {
    let recipe = |name: &str, line, trace, enable| Recipe {
        name: name.to_owned(),
        needs: client.to_owned(),
        during: vec![line],
        trace,
        enables: vec![enable],
        ..Recipe::default()
    };
    let mut all = vec![recipe(
        "client-record",
        client_record(client, session),
        format!("{session}.etl"),
        whole(provider),
    )];
    let shown = client_trace(client, session, provider);
    if let (Some(line), Some(enable)) = (shown, selected(provider)) {
        all.push(recipe("client-trace", line, format!("{session}.jsonl"), enable));
    }
    all
}

/// Returns the `cargo etw` command that shows the providers' events.
pub(super) fn cargo_etw_trace(providers: &[Traced]) -> String {
    let names: Vec<String> =
        providers.iter().map(|provider| format!(" --provider {}", provider.guid)).collect();
    format!("cargo-etw trace{}", names.concat())
}

/// Returns the recipe of `cargo etw trace`.
pub(super) fn cargo_etw<'a>(session: &str, providers: &'a [Traced]) -> Recipe<'a> {
    let line = cargo_etw_trace(providers);
    Recipe {
        name: "cargo-etw".to_owned(),
        needs: "cargo-etw".to_owned(),
        during: vec![format!("{line} --seconds 10 --etl {session}.etl")],
        trace: format!("{session}.etl"),
        enables: everything(providers),
        ..Recipe::default()
    }
}

/// Returns the commands that make Windows start a session in memory, like [`in_memory`]'s, at boot.
pub(super) fn always_in_memory(providers: &[Traced], session: &str) -> Vec<String> {
    let mut start = autologger(providers, session).start;
    if let Some(first) = start.first_mut() {
        *first = format!(
            "New-AutologgerConfig -Name {session} -LogFileMode 0x400 -BufferSize 64 -MinimumBuffers 64 \
             -Start Enabled"
        );
    }
    start
}

/// Returns the recipe that records from the next boot of Windows.
pub(super) fn autologger<'a>(providers: &'a [Traced], session: &str) -> Recipe<'a> {
    let trace = "C:\\boot.etl".to_owned();
    let mut start = vec![format!(
        "New-AutologgerConfig -Name {session} -LogFileMode 0x1 -LocalFilePath {trace} -Start Enabled"
    )];
    start.extend(providers.iter().map(|provider| {
        format!(
            "Add-EtwTraceProvider -AutologgerName {session} -Guid '{{{}}}' -Level {} -MatchAnyKeyword {:#x}",
            provider.guid,
            provider.highest_level(),
            provider.everything()
        )
    }));
    Recipe {
        name: "powershell-boot".to_owned(),
        needs: "New-AutologgerConfig".to_owned(),
        shell: Shell::PowerShell,
        start,
        stop: vec![
            format!("Stop-EtwTraceSession -Name {session}"),
            format!("Remove-AutologgerConfig -Name {session}"),
        ],
        trace,
        enables: everything(providers),
        boots: true,
        at_least: true,
        ..Recipe::default()
    }
}
