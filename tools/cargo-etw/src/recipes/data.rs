//! The instructions for tracing as data, for programs that run them on a test machine.

use serde_json::{Value, json};

use super::{
    profile::{SELECTED_LEVEL, profiles},
    provider::{Traced, groups},
};

/// The version of the format.
const VERSION: u32 = 1;

/// What a recipe enables for a provider: its GUID, or that of its group, a level and a mask.
struct Enable<'a> {
    guid: &'a str,
    is_group: bool,
    level: u8,
    mask: u64,
}

impl Enable<'_> {
    fn json(&self) -> Value {
        let Self {
            guid,
            is_group,
            level,
            mask,
        } = self;
        json!({
            "guid": guid,
            "group": is_group,
            "level": level,
            "match_any": format!("{mask:#x}"),
        })
    }
}

/// A recipe: commands that start a session and stop it.
struct Recipe<'a> {
    name: &'static str,
    /// The program or cmdlet that the machine must have.
    needs: &'static str,
    shell: Shell,
    start: Vec<String>,
    stop: Vec<String>,
    /// The file with the events.
    trace: String,
    enables: Vec<Enable<'a>>,
    /// True if the machine starts again between start and stop.
    boots: bool,
}

#[derive(Clone, Copy)]
enum Shell {
    Cmd,
    PowerShell,
}

impl Recipe<'_> {
    fn json(&self) -> Value {
        let enables: Vec<Value> = self.enables.iter().map(Enable::json).collect();
        json!({
            "name": self.name,
            "needs": self.needs,
            "shell": match self.shell {
                Shell::Cmd => "cmd",
                Shell::PowerShell => "powershell",
            },
            "start": self.start,
            "stop": self.stop,
            "trace": self.trace,
            "enables": enables,
            "boots": self.boots,
        })
    }
}

/// Returns all events of the providers.
fn everything(providers: &[Traced]) -> Vec<Enable<'_>> {
    providers.iter().map(whole).collect()
}

fn whole(provider: &Traced) -> Enable<'_> {
    Enable {
        guid: &provider.guid,
        is_group: false,
        level: provider.highest_level(),
        mask: provider.everything(),
    }
}

/// Returns the events of the first keyword of a provider that has one.
fn selected(providers: &[Traced]) -> Option<Enable<'_>> {
    providers.iter().find_map(|provider| {
        let keyword = provider.keywords.first()?;
        Some(Enable {
            guid: &provider.guid,
            is_group: false,
            level: SELECTED_LEVEL,
            mask: keyword.mask,
        })
    })
}

/// Returns the recipes of the instructions, with the same commands. `profile` is the name of the
/// file with the profiles for Windows Performance Recorder.
pub fn recipes(providers: &[Traced], session: &str, profile: &str) -> Value {
    let mut all = vec![
        logman(session, everything(providers)),
        tracelog(session, everything(providers)),
        wpr("wpr", session, profile, "Everything", everything(providers)),
        power_shell("powershell", session, everything(providers)),
        xperf(session, everything(providers)),
    ];
    if let Some(enable) = selected(providers) {
        let mut recipe = logman(session, everything(providers));
        recipe.name = "logman-keyword";
        recipe.start.push(format!(
            "logman update {session} -p {{{}}} {:#x} {} -ets",
            enable.guid, enable.mask, enable.level
        ));
        recipe.enables.retain(|one| one.guid != enable.guid);
        recipe.enables.push(enable);
        all.push(recipe);
    }
    if let Some(name) = profiles(providers).get(1).map(|one| one.name.clone()) {
        let enables = selected(providers).into_iter().collect();
        all.push(wpr("wpr-keyword", session, profile, &name, enables));
    }
    let groups: Vec<Enable<'_>> = groups(providers)
        .into_iter()
        .map(|(guid, level)| Enable {
            guid,
            is_group: true,
            level,
            mask: 0,
        })
        .collect();
    if !groups.is_empty() {
        all.push(power_shell("powershell-group", session, groups));
    }
    let boot = Recipe {
        start: vec![format!(
            "wpr -boottrace -addboot {profile}!Everything.Verbose -filemode"
        )],
        stop: vec!["wpr -boottrace -stopboot boot.etl".to_owned()],
        trace: "boot.etl".to_owned(),
        boots: true,
        ..wpr(
            "wpr-boot",
            session,
            profile,
            "Everything",
            everything(providers),
        )
    };
    all.push(boot);
    let recipes: Vec<Value> = all.iter().map(Recipe::json).collect();
    json!({ "version": VERSION, "session": session, "recipes": recipes })
}

fn logman<'a>(session: &str, enables: Vec<Enable<'a>>) -> Recipe<'a> {
    let start = |(number, one): (usize, &Enable<'_>)| {
        let verb = if number == 0 {
            format!("start {session} -ow -o {session}.etl")
        } else {
            format!("update {session}")
        };
        format!(
            "logman {verb} -p {{{}}} {:#x} {} -ets",
            one.guid, one.mask, one.level
        )
    };
    Recipe {
        name: "logman",
        needs: "logman",
        shell: Shell::Cmd,
        start: enables.iter().enumerate().map(start).collect(),
        stop: vec![format!("logman stop {session} -ets")],
        trace: format!("{session}.etl"),
        enables,
        boots: false,
    }
}

fn tracelog<'a>(session: &str, enables: Vec<Enable<'a>>) -> Recipe<'a> {
    let start = |(number, one): (usize, &Enable<'_>)| {
        let verb = if number == 0 {
            format!("-start {session} -f {session}.etl")
        } else {
            format!("-enable {session}")
        };
        format!(
            "tracelog {verb} -guid #{} -matchanykw {:#x} -level {}",
            one.guid, one.mask, one.level
        )
    };
    Recipe {
        name: "tracelog",
        needs: "tracelog",
        shell: Shell::Cmd,
        start: enables.iter().enumerate().map(start).collect(),
        stop: vec![format!("tracelog -stop {session}")],
        trace: format!("{session}.etl"),
        enables,
        boots: false,
    }
}

fn wpr<'a>(
    name: &'static str,
    session: &str,
    profile: &str,
    selected: &str,
    enables: Vec<Enable<'a>>,
) -> Recipe<'a> {
    Recipe {
        name,
        needs: "wpr",
        shell: Shell::Cmd,
        start: vec![format!("wpr -start {profile}!{selected}.Verbose -filemode")],
        stop: vec![format!("wpr -stop {session}.etl")],
        trace: format!("{session}.etl"),
        enables,
        boots: false,
    }
}

fn power_shell<'a>(name: &'static str, session: &str, enables: Vec<Enable<'a>>) -> Recipe<'a> {
    // The session's service does not know the current folder.
    let trace = format!("C:\\{session}.etl");
    let mut start = vec![format!(
        "Start-EtwTraceSession -Name {session} -LocalFilePath {trace} -NonPaged"
    )];
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
        name,
        needs: "Start-EtwTraceSession",
        shell: Shell::PowerShell,
        start,
        stop: vec![format!("Stop-EtwTraceSession -Name {session}")],
        trace,
        enables,
        boots: false,
    }
}

fn xperf<'a>(session: &str, enables: Vec<Enable<'a>>) -> Recipe<'a> {
    let on: Vec<String> = enables
        .iter()
        .map(|one| format!("{}:{:#x}:{}", one.guid, one.mask, one.level))
        .collect();
    Recipe {
        name: "xperf",
        needs: "xperf",
        shell: Shell::Cmd,
        start: vec![format!(
            "xperf -start {session} -on {} -f {session}.etl",
            on.join("+")
        )],
        stop: vec![format!("xperf -stop {session}")],
        trace: format!("{session}.etl"),
        enables,
        boots: false,
    }
}
