//! The command line.

use std::{ffi::OsString, path::PathBuf};

use clap::{
    ArgAction, Args, Error, Parser, Subcommand,
    builder::{PossibleValuesParser, TypedValueParser as _},
};
use etl_file::Guid;
use etw_sample_interface::PROVIDER_GROUP;
use etw_scenarios::{Filter, Ids, Source};

/// Controls ETW sessions, shows their events, and sends requests to the sample driver's device.
#[derive(Debug, Parser)]
#[command(
    name = "etw-sample-client",
    version,
    after_help = "Controlling sessions and opening the sample device require administrator rights: run this from \
                  an elevated prompt.\nCommands without --provider and --group apply to the sample driver's \
                  provider."
)]
struct Client {
    #[command(subcommand)]
    action: Action,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Run the scenarios with the installed driver and report the results.
    Scenarios(ScenarioOptions),
    /// Install the driver package and create the sample device.
    Install {
        /// The INF file of the driver package.
        inf: PathBuf,
    },
    /// Remove the sample device and the driver package.
    Uninstall {
        /// The INF file of the driver package.
        inf: PathBuf,
    },
    #[command(about = "Probe undocumented ETW behavior of this Windows with the driver \
                       etw_probes_driver, and write the answers")]
    Probes(ProbeOptions),
    /// Show events in real time or from a file, decoded by the system (TDH).
    Trace(TraceOptions),
    /// Record events to an .etl file.
    Record(RecordOptions),
    /// Send a request to the sample device.
    #[command(subcommand)]
    Send(Request),
    /// Show whether the driver is loaded, its counters, and which sessions enable its provider.
    Status,
    /// Enable a provider or group in a running session.
    Enable(EnableOptions),
    /// Disable a provider or group in a running session.
    Disable(SourceInSession),
    /// Ask a provider or group to write its state to a running session.
    CaptureState(SourceInSession),
    /// Enable the sample driver's provider group in a running session.
    Group(GroupOptions),
    /// Set or show the providers that a session does not enable through their groups.
    Disallow(DisallowOptions),
}

/// The arguments of `scenarios`.
#[derive(Debug, Args)]
pub struct ScenarioOptions {
    /// Scenarios to run; all if none is named.
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// List the scenarios with the statement that each proves.
    #[arg(long)]
    pub list: bool,
    /// Write the report as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    #[arg(long, value_name = "FILE", help = "Write the report as JUnit XML")]
    pub junit: Option<PathBuf>,
    /// The folder for the sessions' files.
    #[arg(long, value_name = "FOLDER", default_value = "scenario-traces")]
    pub traces: PathBuf,
}

/// The arguments of `probes`.
#[derive(Debug, Args)]
pub struct ProbeOptions {
    /// Probes to run; all if none is named.
    #[arg(value_name = "PROBE")]
    pub ids: Vec<String>,
    /// A probe not to run; can be repeated.
    #[arg(long, value_name = "PROBE")]
    pub except: Vec<String>,
    /// List the probes.
    #[arg(long)]
    pub list: bool,
    /// The file to write the answers to, as JSON.
    #[arg(long, value_name = "FILE", default_value = "answers.json")]
    pub out: PathBuf,
    /// A file with earlier answers, to which the new answers are added.
    #[arg(long, value_name = "FILE")]
    pub with: Option<PathBuf>,
    /// The folder for the sessions' files.
    #[arg(long, value_name = "FOLDER", default_value = "probe-traces")]
    pub traces: PathBuf,
}

/// The arguments of `trace`.
#[derive(Debug, Args)]
pub struct TraceOptions {
    /// Print each event as a JSON object on its own line.
    #[arg(long)]
    pub json: bool,
    /// A manifest to decode with, in addition to the installed ones.
    #[arg(long, value_name = "FILE")]
    pub man: Option<PathBuf>,
    /// Show the provider's events from this recorded file instead of a session.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seconds", "group"])]
    pub file: Option<PathBuf>,
    /// The name of the session.
    #[arg(long, default_value = "EtwSampleClient trace")]
    pub session: String,
    /// The events.
    #[command(flatten)]
    pub live: LiveEvents,
}

/// The arguments of `record`.
#[derive(Debug, Args)]
pub struct RecordOptions {
    /// The file to record to.
    #[arg(short, long, value_name = "FILE")]
    pub out: PathBuf,
    /// The name of the session.
    #[arg(long, default_value = "EtwSampleClient record")]
    pub session: String,
    /// The events.
    #[command(flatten)]
    pub live: LiveEvents,
}

/// The events of a session that `trace` and `record` start.
#[derive(Debug, Args)]
pub struct LiveEvents {
    /// The provider or group that the session enables.
    #[command(flatten)]
    pub target: Target,
    /// The filter.
    #[command(flatten)]
    pub filter: FilterOptions,
    /// Stop after this many seconds; without it, Ctrl+C stops.
    #[arg(long, value_name = "N")]
    pub seconds: Option<u64>,
}

/// The arguments of `enable`.
#[derive(Debug, Args)]
pub struct EnableOptions {
    /// The session and what it enables.
    #[command(flatten)]
    pub target: SourceInSession,
    /// The filter.
    #[command(flatten)]
    pub filter: FilterOptions,
}

/// A provider or group in a running session.
#[derive(Debug, Args)]
pub struct SourceInSession {
    /// The name of the session.
    pub session: String,
    /// The provider or group.
    #[command(flatten)]
    pub target: Target,
}

/// The arguments of `group`.
#[derive(Debug, Args)]
pub struct GroupOptions {
    /// The name of the session.
    pub session: String,
    /// Disable the group instead of enabling it.
    #[arg(long)]
    pub off: bool,
    /// The filter.
    #[command(flatten)]
    pub filter: FilterOptions,
}

/// The arguments of `disallow`.
#[derive(Debug, Args)]
pub struct DisallowOptions {
    /// The name of the session.
    pub session: String,
    /// The providers to disallow; without any, the current list is shown.
    #[arg(value_name = "GUID", value_parser = parse_guid)]
    pub providers: Vec<Guid>,
    /// Clear the list.
    #[arg(long, conflicts_with = "providers")]
    pub none: bool,
}

/// The requests that the device serves.
#[derive(Debug, Subcommand)]
pub enum Request {
    /// Send a string and print the bytes that the driver returns.
    Echo {
        /// The string to send.
        text: String,
        #[arg(long, help = "Make the driver complete the request in a DPC, at DISPATCH_LEVEL")]
        dpc: bool,
    },
    /// Write a string that later reads return.
    Write {
        /// The string to send.
        text: String,
    },
    /// Read the last written string.
    Read {
        /// The maximum number of bytes to read.
        #[arg(value_name = "N")]
        length: u32,
    },
    /// Start or stop the driver's periodic timer.
    Timer {
        /// The new state of the timer.
        #[arg(
            value_name = "STATE",
            action = ArgAction::Set,
            value_parser = PossibleValuesParser::new(["on", "off"]).map(|state| state == "on")
        )]
        on: bool,
    },
    /// Make the driver write a burst of events.
    Burst {
        /// The number of events.
        #[arg(value_name = "N")]
        count: u32,
        /// The number that the events carry as their sender.
        #[arg(value_name = "N", default_value_t = 0)]
        sender: u32,
    },
    /// Make the driver simulate local and remote reads.
    Reads {
        /// The number of local reads.
        #[arg(value_name = "N")]
        local: u32,
        /// The number of remote reads.
        #[arg(value_name = "N")]
        remote: u32,
    },
    /// Wait until `wake` is sent; Ctrl+C cancels the request.
    Wait,
    /// Complete the `wait` request that has been pending longest.
    Wake,
    /// Send a device control request with any control code.
    Control {
        /// The control code, such as 0x22e000.
        #[arg(value_parser = parse_code)]
        code: u32,
        /// The input bytes, in hexadecimal.
        #[arg(value_name = "HEX", default_value = "", value_parser = parse_bytes)]
        input: Bytes,
        /// The size of the output buffer.
        #[arg(long, value_name = "BYTES", default_value_t = 0)]
        room: u32,
    },
}

/// The provider or group that a command applies to.
#[derive(Debug, Args)]
pub struct Target {
    /// A provider; the default is the sample driver's.
    #[arg(long, value_name = "GUID", value_parser = parse_guid)]
    provider: Option<Guid>,
    /// A provider group instead of a provider; without a GUID, the sample driver's.
    #[arg(
        long,
        value_name = "GUID",
        num_args = 0..=1,
        default_missing_value = PROVIDER_GROUP,
        conflicts_with = "provider",
        value_parser = parse_guid
    )]
    group: Option<Guid>,
}

impl Target {
    /// Returns the provider or group.
    pub fn source(&self) -> Source {
        self.group.map_or_else(
            || Source::Provider(self.provider.unwrap_or_else(etw_scenarios::provider)),
            Source::Group,
        )
    }
}

/// The events that a session records.
#[derive(Debug, Args)]
pub struct FilterOptions {
    /// The highest level to record: 1 critical, 2 error, 3 warning, 4 information, 5 verbose; 0 records all.
    #[arg(long, value_name = "N", default_value_t = 5)]
    level: u8,
    /// Match-any: record events that have at least one of these keywords; 0 records all.
    #[arg(long, value_name = "MASK", default_value = "0", value_parser = parse_mask)]
    any: u64,
    /// Match-all: record only events that also have all of these keywords.
    #[arg(long, value_name = "MASK", default_value = "0", value_parser = parse_mask)]
    all: u64,
    /// Record only events with these ids.
    #[arg(long, value_name = "ID,…", value_delimiter = ',', conflicts_with = "not_ids")]
    ids: Option<Vec<u16>>,
    /// Record only events with other ids.
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    not_ids: Option<Vec<u16>>,
}

impl FilterOptions {
    /// Returns the filter.
    pub fn filter(&self) -> Filter {
        let without = || self.not_ids.clone().map(Ids::Without);
        let ids = self.ids.clone().map(Ids::Only).or_else(without);
        Filter { level: self.level, any: self.any, all: self.all, ids }
    }
}

/// Bytes that are specified in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

fn parse_guid(text: &str) -> Result<Guid, String> {
    text.trim_start_matches('#')
        .parse()
        .map_err(|_| format!("expected a GUID such as {}", etw_scenarios::provider()))
}

/// Parses a decimal number, or a hexadecimal number after 0x.
fn parse_mask(text: &str) -> Result<u64, String> {
    text.strip_prefix("0x")
        .or_else(|| text.strip_prefix("0X"))
        .map_or_else(|| text.parse(), |digits| u64::from_str_radix(digits, 16))
        .map_err(|error| format!("expected a number such as 3 or 0x3: {error}"))
}

fn parse_code(text: &str) -> Result<u32, String> {
    parse_mask(text)
        .ok()
        .and_then(|code| u32::try_from(code).ok())
        .ok_or_else(|| "expected a 32-bit control code such as 0x22e000".to_owned())
}

fn parse_bytes(text: &str) -> Result<Bytes, String> {
    let digit = |unit: u8| char::from(unit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    text.as_bytes()
        .chunks(2)
        .map(|pair| match *pair {
            [high, low] => Some(digit(high)? << 4 | digit(low)?),
            _ => None,
        })
        .collect::<Option<Vec<u8>>>()
        .map(Bytes)
        .ok_or_else(|| "expected an even number of hexadecimal digits".to_owned())
}

/// Parses the program's arguments. The first argument is the program's name.
pub fn parse<T: Into<OsString> + Clone>(
    arguments: impl IntoIterator<Item = T>,
) -> Result<Action, Error> {
    Ok(Client::try_parse_from(arguments)?.action)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Client::command().debug_assert();
    }

    /// Parses arguments that are separated by spaces.
    fn parse_line(line: &str) -> Result<Action, Error> {
        parse(std::iter::once("client").chain(line.split_whitespace()))
    }

    #[test]
    fn source_and_filter_are_parsed() {
        let action =
            parse_line("enable S --level 4 --any 0x30 --all 16 --not-ids 1,2 --group").unwrap();
        let Action::Enable(EnableOptions { target, filter }) = action else {
            panic!("{action:?}");
        };
        assert_eq!(target.session, "S");
        assert_eq!(target.target.source(), Source::Group(etw_scenarios::group()));
        let expected = Filter { level: 4, any: 0x30, all: 16, ids: Some(Ids::Without(vec![1, 2])) };
        assert_eq!(filter.filter(), expected);
    }

    #[test]
    fn defaults_are_the_documented_ones() {
        let action = parse_line("enable S").unwrap();
        let Action::Enable(EnableOptions { target, filter }) = action else {
            panic!("{action:?}");
        };
        assert_eq!(target.target.source(), Source::Provider(etw_scenarios::provider()));
        let expected = Filter { level: 5, ..Filter::default() };
        assert_eq!(filter.filter(), expected);
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
