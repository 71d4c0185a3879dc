//! The arguments of the program as typed values.

use std::{ffi::OsString, path::PathBuf};

use clap::{ArgMatches, Error, error::ErrorKind};
use etl_file::Guid;
use etw_scenarios::{Filter, Ids, Source};

use crate::command_line::{self, Bytes};

/// The commands.
#[derive(Debug)]
pub enum Action {
    /// Runs scenarios.
    Scenarios(ScenarioOptions),
    /// Runs the probes of undocumented behavior.
    Probes(ProbeOptions),
    /// Installs the driver package with this INF.
    Install(PathBuf),
    /// Removes the driver package with this INF.
    Uninstall(PathBuf),
    /// Shows events in real time.
    Trace(TraceOptions),
    /// Records events to a file.
    Record(RecordOptions),
    /// Sends a request to the device.
    Send(Request),
    /// Shows the state of the driver.
    Status,
    /// Enables a provider or group with a filter.
    Enable(SourceInSession, Filter),
    /// Disables a provider or group.
    Disable(SourceInSession),
    /// Requests a state capture from a provider or group.
    CaptureState(SourceInSession),
    /// Enables or disables the sample driver's group.
    Group(GroupOptions),
    /// Sets or shows the disallow list of a session.
    Disallow(DisallowOptions),
}

/// The arguments of `scenarios`.
#[derive(Debug)]
pub struct ScenarioOptions {
    /// The scenarios to run; an empty list means all.
    pub names: Vec<String>,
    /// True to list the scenarios instead of running them.
    pub list: bool,
    /// The file for the report in JSON.
    pub json: Option<PathBuf>,
    /// The file for the report in `JUnit` XML.
    pub junit: Option<PathBuf>,
    /// The folder for the sessions' files.
    pub traces: PathBuf,
}

/// The arguments of `probes`.
#[derive(Debug)]
pub struct ProbeOptions {
    /// The probes to run; an empty list means all.
    pub ids: Vec<String>,
    /// The probes not to run.
    pub except: Vec<String>,
    /// A file with earlier answers, to which the new answers are added.
    pub with: Option<PathBuf>,
    /// True to list the probes instead of running them.
    pub list: bool,
    /// The file for the answers.
    pub out: PathBuf,
    /// The folder for the sessions' files.
    pub traces: PathBuf,
}

/// The arguments of `trace`.
#[derive(Debug)]
pub struct TraceOptions {
    /// True to print JSON instead of a table.
    pub json: bool,
    /// A manifest to decode with.
    pub man: Option<PathBuf>,
    /// A recorded file to show instead of a live session.
    pub file: Option<PathBuf>,
    /// The live session.
    pub live: LiveSession,
}

/// The arguments of `record`.
#[derive(Debug)]
pub struct RecordOptions {
    /// The file to record to.
    pub out: PathBuf,
    /// The live session.
    pub live: LiveSession,
}

/// A session that `trace` and `record` start.
#[derive(Debug)]
pub struct LiveSession {
    /// The name of the session.
    pub session: String,
    /// The provider or group that the session enables.
    pub source: Source,
    /// The filter.
    pub filter: Filter,
    /// The duration; if there is none, Ctrl+C stops the session.
    pub seconds: Option<u64>,
}

/// A provider or group in a running session.
#[derive(Debug)]
pub struct SourceInSession {
    /// The name of the session.
    pub session: String,
    /// The provider or group.
    pub source: Source,
}

/// The arguments of `group`.
#[derive(Debug)]
pub struct GroupOptions {
    /// The name of the session.
    pub session: String,
    /// True to disable the group instead of enabling it.
    pub off: bool,
    /// The filter.
    pub filter: Filter,
}

/// The arguments of `disallow`.
#[derive(Debug)]
pub struct DisallowOptions {
    /// The name of the session.
    pub session: String,
    /// The providers to disallow.
    pub providers: Vec<Guid>,
    /// True to clear the list.
    pub none: bool,
}

/// The requests that the device serves.
#[derive(Debug)]
pub enum Request {
    /// Returns a string, from a DPC if `dpc` is true.
    Echo { text: String, dpc: bool },
    /// Writes a string.
    Write { text: String },
    /// Reads at most `length` bytes.
    Read { length: u32 },
    /// Starts or stops the timer.
    Timer { on: bool },
    /// Makes the driver write `count` events.
    Burst { count: u32, sender: u32 },
    /// Makes the driver simulate reads.
    Reads { local: u32, remote: u32 },
    /// Waits for a wake request.
    Wait,
    /// Completes a waiting request.
    Wake,
    /// Sends any control code.
    Control { code: u32, input: Bytes, room: u32 },
}

/// Parses the program's arguments. The first argument is the program's name.
pub fn parse<T: Into<OsString> + Clone>(
    arguments: impl IntoIterator<Item = T>,
) -> Result<Action, Error> {
    let matches = command_line::command().try_get_matches_from(arguments)?;
    let (name, matches) = matches.subcommand().ok_or_else(missing_command)?;
    Ok(match name {
        "scenarios" => Action::Scenarios(ScenarioOptions {
            names: list(matches, "names"),
            list: matches.get_flag("list"),
            json: optional(matches, "json"),
            junit: optional(matches, "junit"),
            traces: value(matches, "traces")?,
        }),
        "probes" => Action::Probes(ProbeOptions {
            ids: list(matches, "ids"),
            except: list(matches, "except"),
            with: optional(matches, "with"),
            list: matches.get_flag("list"),
            out: value(matches, "out")?,
            traces: value(matches, "traces")?,
        }),
        "install" => Action::Install(value(matches, "inf")?),
        "uninstall" => Action::Uninstall(value(matches, "inf")?),
        "trace" => Action::Trace(TraceOptions {
            json: matches.get_flag("json"),
            man: optional(matches, "man"),
            file: optional(matches, "file"),
            live: live_session(matches)?,
        }),
        "record" => Action::Record(RecordOptions {
            out: value(matches, "out")?,
            live: live_session(matches)?,
        }),
        "send" => Action::Send(request(matches)?),
        "status" => Action::Status,
        "enable" => Action::Enable(source_in_session(matches)?, filter(matches)?),
        "disable" => Action::Disable(source_in_session(matches)?),
        "capture-state" => Action::CaptureState(source_in_session(matches)?),
        "group" => Action::Group(GroupOptions {
            session: value(matches, "session")?,
            off: matches.get_flag("off"),
            filter: filter(matches)?,
        }),
        "disallow" => Action::Disallow(DisallowOptions {
            session: value(matches, "session")?,
            providers: list(matches, "providers"),
            none: matches.get_flag("none"),
        }),
        _ => return Err(missing_command()),
    })
}

fn request(matches: &ArgMatches) -> Result<Request, Error> {
    let (name, matches) = matches.subcommand().ok_or_else(missing_command)?;
    Ok(match name {
        "echo" => Request::Echo { text: value(matches, "text")?, dpc: matches.get_flag("dpc") },
        "write" => Request::Write { text: value(matches, "text")? },
        "read" => Request::Read { length: value(matches, "length")? },
        "timer" => Request::Timer { on: value(matches, "run")? },
        "burst" => {
            Request::Burst { count: value(matches, "count")?, sender: value(matches, "sender")? }
        }
        "reads" => {
            Request::Reads { local: value(matches, "local")?, remote: value(matches, "remote")? }
        }
        "wait" => Request::Wait,
        "wake" => Request::Wake,
        "control" => Request::Control {
            code: value(matches, "code")?,
            input: value(matches, "input")?,
            room: value(matches, "room")?,
        },
        _ => return Err(missing_command()),
    })
}

fn live_session(matches: &ArgMatches) -> Result<LiveSession, Error> {
    Ok(LiveSession {
        session: value(matches, "session")?,
        source: source(matches),
        filter: filter(matches)?,
        seconds: optional(matches, "seconds"),
    })
}

fn source_in_session(matches: &ArgMatches) -> Result<SourceInSession, Error> {
    Ok(SourceInSession { session: value(matches, "session")?, source: source(matches) })
}

fn source(matches: &ArgMatches) -> Source {
    optional(matches, "group").map_or_else(
        || Source::Provider(optional(matches, "provider").unwrap_or_else(etw_scenarios::provider)),
        Source::Group,
    )
}

fn filter(matches: &ArgMatches) -> Result<Filter, Error> {
    let ids = |name| matches.contains_id(name).then(|| list(matches, name));
    Ok(Filter {
        level: value(matches, "level")?,
        any: value(matches, "any")?,
        all: value(matches, "all")?,
        ids: ids("ids").map(Ids::Only).or_else(|| ids("not-ids").map(Ids::Without)),
    })
}

/// Returns the value of an argument that is required or has a default.
fn value<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, id: &str) -> Result<T, Error> {
    optional(matches, id).ok_or_else(|| {
        Error::raw(
            ErrorKind::MissingRequiredArgument,
            format!("the argument \"{id}\" is missing\n"),
        )
    })
}

fn optional<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, id: &str) -> Option<T> {
    matches.get_one(id).cloned()
}

/// Returns the values of an argument that can be repeated or omitted.
fn list<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, id: &str) -> Vec<T> {
    matches.get_many(id).into_iter().flatten().cloned().collect()
}

fn missing_command() -> Error {
    Error::raw(ErrorKind::MissingSubcommand, "a command is missing\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses arguments that are separated by spaces.
    fn parse_line(line: &str) -> Result<Action, Error> {
        parse(std::iter::once("client").chain(line.split_whitespace()))
    }

    #[test]
    fn source_and_filter_are_parsed() {
        let action =
            parse_line("enable S --level 4 --any 0x30 --all 16 --not-ids 1,2 --group").unwrap();
        let Action::Enable(target, filter) = action else {
            panic!("{action:?}");
        };
        assert_eq!(target.session, "S");
        assert_eq!(target.source, Source::Group(etw_scenarios::group()));
        let expected = Filter { level: 4, any: 0x30, all: 16, ids: Some(Ids::Without(vec![1, 2])) };
        assert_eq!(filter, expected);
    }

    #[test]
    fn defaults_are_the_documented_ones() {
        let action = parse_line("enable S").unwrap();
        let Action::Enable(target, filter) = action else {
            panic!("{action:?}");
        };
        assert_eq!(target.source, Source::Provider(etw_scenarios::provider()));
        let expected = Filter { level: 5, ..Filter::default() };
        assert_eq!(filter, expected);
        let action = parse_line("send burst 3").unwrap();
        assert!(
            matches!(action, Action::Send(Request::Burst { count: 3, sender: 0 })),
            "{action:?}"
        );
    }

    #[test]
    fn every_command_is_parsed() {
        for line in [
            "scenarios",
            "probes --out x.json traits-again",
            "probes --with x.json --except timer --except traits-again",
            "install x.inf",
            "uninstall x.inf",
            "trace",
            "trace --json --file x.etl",
            "record -o x.etl",
            "status",
            "disable S",
            "capture-state S",
            "group S --off",
            "disallow S",
            "send echo x",
            "send write x",
            "send read 1",
            "send timer on",
            "send reads 1 2",
            "send wait",
            "send wake",
            "send control 0x22e000",
        ] {
            assert!(parse_line(line).is_ok(), "{line}");
        }
    }

    #[test]
    fn invalid_arguments_are_rejected() {
        for line in [
            "",
            "enable",
            "enable S --level 256",
            "enable S --any 0xq",
            "enable S --provider x",
            "enable S --ids 1 --not-ids 2",
            "send",
            "send control zz",
            "send control 0x22e000 abc",
            "send timer maybe",
            "record",
            "trace --file x.etl --seconds 5",
            "disallow S --none 802b686a-519d-5416-5280-4c0ead585fbb",
        ] {
            assert!(parse_line(line).is_err(), "{line}");
        }
    }
}
