//! The definition of the command line.

use std::path::PathBuf;

use clap::{
    Arg, ArgAction, Command,
    builder::{PossibleValuesParser, TypedValueParser},
    value_parser,
};
use etl_file::Guid;

/// Returns the definition of the command line.
pub fn command() -> Command {
    Command::new("etw-sample-client")
        .about(
            "Controls ETW sessions, shows their events, and sends requests to the sample driver's \
             device",
        )
        .version(env!("CARGO_PKG_VERSION"))
        .after_help(
            "Controlling sessions and opening the sample device require administrator rights: run \
             this from an elevated prompt.\nCommands without --provider and --group apply to the \
             sample driver's provider.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(scenarios())
        .subcommand(package("install", "Install the driver package and create the sample device"))
        .subcommand(package("uninstall", "Remove the sample device and the driver package"))
        .subcommand(probes())
        .subcommand(trace())
        .subcommand(record())
        .subcommand(send())
        .subcommand(Command::new("status").about(
            "Show whether the driver is loaded, its counters, and which sessions enable its \
             provider",
        ))
        .subcommand(
            with_source(with_filter(
                Command::new("enable").about("Enable a provider or group in a running session"),
            ))
            .arg(session()),
        )
        .subcommand(
            with_source(
                Command::new("disable").about("Disable a provider or group in a running session"),
            )
            .arg(session()),
        )
        .subcommand(
            with_source(
                Command::new("capture-state")
                    .about("Ask a provider or group to write its state to a running session"),
            )
            .arg(session()),
        )
        .subcommand(group())
        .subcommand(
            Command::new("disallow")
                .about(
                    "Set or show the providers that a session does not enable through their \
                     groups",
                )
                .arg(session())
                .arg(
                    Arg::new("providers")
                        .value_name("GUID")
                        .help("The providers to disallow; without any, the current list is shown")
                        .num_args(0..)
                        .value_parser(parse_guid),
                )
                .arg(flag("none", "Clear the list").conflicts_with("providers")),
        )
}

/// Bytes that are specified in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).help(help).action(ArgAction::SetTrue)
}

fn session() -> Arg {
    Arg::new("session").value_name("SESSION").help("The name of the session").required(true)
}

fn file_option(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name("FILE").help(help).value_parser(value_parser!(PathBuf))
}

fn seconds() -> Arg {
    Arg::new("seconds")
        .long("seconds")
        .value_name("N")
        .help("Stop after this many seconds; without it, Ctrl+C stops")
        .value_parser(value_parser!(u64))
}

fn package(name: &'static str, about: &'static str) -> Command {
    Command::new(name).about(about).arg(
        Arg::new("inf")
            .value_name("INF")
            .help("The INF file of the driver package")
            .required(true)
            .value_parser(value_parser!(PathBuf)),
    )
}

fn scenarios() -> Command {
    Command::new("scenarios")
        .about("Run the scenarios with the installed driver and report the results")
        .arg(
            Arg::new("names")
                .value_name("NAME")
                .help("Scenarios to run; all if none is named")
                .num_args(0..),
        )
        .arg(flag("list", "List the scenarios with the statement that each proves"))
        .arg(file_option("json", "Write the report as JSON"))
        .arg(file_option("junit", "Write the report as JUnit XML"))
        .arg(
            file_option("traces", "The folder for the sessions' files")
                .value_name("FOLDER")
                .default_value("scenario-traces"),
        )
}

fn probes() -> Command {
    Command::new("probes")
        .about(
            "Probe undocumented ETW behavior of this Windows with the driver \
             etw_probes_driver, and write the answers",
        )
        .arg(
            Arg::new("ids")
                .value_name("PROBE")
                .help("Probes to run; all if none is named")
                .num_args(0..),
        )
        .arg(
            Arg::new("except")
                .long("except")
                .value_name("PROBE")
                .help("A probe not to run; can be repeated")
                .action(ArgAction::Append),
        )
        .arg(flag("list", "List the probes"))
        .arg(
            file_option("out", "The file to write the answers to, as JSON")
                .default_value("answers.json"),
        )
        .arg(file_option("with", "A file with earlier answers, to which the new answers are added"))
        .arg(
            file_option("traces", "The folder for the sessions' files")
                .value_name("FOLDER")
                .default_value("probe-traces"),
        )
}

fn trace() -> Command {
    with_source(with_filter(
        Command::new("trace")
            .about("Show events in real time or from a file, decoded by the system (TDH)"),
    ))
    .arg(flag("json", "Print each event as a JSON object on its own line"))
    .arg(file_option("man", "A manifest to decode with, in addition to the installed ones"))
    .arg(
        file_option(
            "file",
            "Show the provider's events from this recorded file instead of a session",
        )
        .conflicts_with_all(["seconds", "group"]),
    )
    .arg(
        Arg::new("session")
            .long("session")
            .value_name("SESSION")
            .help("The name of the session")
            .default_value("EtwSampleClient trace"),
    )
    .arg(seconds())
}

fn record() -> Command {
    with_source(with_filter(Command::new("record").about("Record events to an .etl file")))
        .arg(file_option("out", "The file to record to").short('o').required(true))
        .arg(
            Arg::new("session")
                .long("session")
                .value_name("SESSION")
                .help("The name of the session")
                .default_value("EtwSampleClient record"),
        )
        .arg(seconds())
}

fn group() -> Command {
    with_filter(
        Command::new("group")
            .about("Enable the sample driver's provider group in a running session"),
    )
    .arg(session())
    .arg(flag("off", "Disable the group instead of enabling it"))
}

fn send() -> Command {
    let text = || Arg::new("text").value_name("TEXT").help("The string to send").required(true);
    let number = |name: &'static str, help: &'static str| {
        Arg::new(name).value_name("N").help(help).required(true).value_parser(value_parser!(u32))
    };
    Command::new("send")
        .about("Send a request to the sample device")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("echo")
                .about("Send a string and print the bytes that the driver returns")
                .arg(text())
                .arg(flag(
                    "dpc",
                    "Make the driver complete the request in a DPC, at DISPATCH_LEVEL",
                )),
        )
        .subcommand(
            Command::new("write").about("Write a string that later reads return").arg(text()),
        )
        .subcommand(
            Command::new("read")
                .about("Read the last written string")
                .arg(number("length", "The maximum number of bytes to read")),
        )
        .subcommand(
            Command::new("timer").about("Start or stop the driver's periodic timer").arg(
                Arg::new("run")
                    .value_name("STATE")
                    .help("The new state of the timer")
                    .required(true)
                    .value_parser(
                        PossibleValuesParser::new(["on", "off"]).map(|state| state == "on"),
                    ),
            ),
        )
        .subcommand(
            Command::new("burst")
                .about("Make the driver write a burst of events")
                .arg(number("count", "The number of events"))
                .arg(
                    number("sender", "The number that the events carry as their sender")
                        .required(false)
                        .default_value("0"),
                ),
        )
        .subcommand(
            Command::new("reads")
                .about("Make the driver simulate local and remote reads")
                .arg(number("local", "The number of local reads"))
                .arg(number("remote", "The number of remote reads")),
        )
        .subcommand(
            Command::new("wait").about("Wait until `wake` is sent; Ctrl+C cancels the request"),
        )
        .subcommand(
            Command::new("wake").about("Complete the `wait` request that has been pending longest"),
        )
        .subcommand(
            Command::new("control")
                .about("Send a device control request with any control code")
                .arg(
                    Arg::new("code")
                        .value_name("CODE")
                        .help("The control code, such as 0x22e000")
                        .required(true)
                        .value_parser(parse_code),
                )
                .arg(
                    Arg::new("input")
                        .value_name("HEX")
                        .help("The input bytes, in hexadecimal")
                        .default_value("")
                        .value_parser(parse_bytes),
                )
                .arg(
                    Arg::new("room")
                        .long("room")
                        .value_name("BYTES")
                        .help("The size of the output buffer")
                        .default_value("0")
                        .value_parser(value_parser!(u32)),
                ),
        )
}

fn with_source(command: Command) -> Command {
    command
        .arg(
            Arg::new("provider")
                .long("provider")
                .value_name("GUID")
                .help("A provider; the default is the sample driver's")
                .value_parser(parse_guid),
        )
        .arg(
            Arg::new("group")
                .long("group")
                .value_name("GUID")
                .help("A provider group instead of a provider; without a GUID, the sample driver's")
                .num_args(0..=1)
                .default_missing_value(etw_sample_interface::PROVIDER_GROUP)
                .conflicts_with("provider")
                .value_parser(parse_guid),
        )
}

fn with_filter(command: Command) -> Command {
    let keywords = |name: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name("MASK")
            .help(help)
            .default_value("0")
            .value_parser(parse_mask)
    };
    let ids = |name: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name("ID,…")
            .help(help)
            .value_delimiter(',')
            .value_parser(value_parser!(u16))
    };
    command
        .arg(
            Arg::new("level")
                .long("level")
                .value_name("N")
                .help(
                    "The highest level to record: 1 critical, 2 error, 3 warning, 4 information, \
                     5 verbose; 0 records all",
                )
                .default_value("5")
                .value_parser(value_parser!(u8)),
        )
        .arg(keywords(
            "any",
            "Match-any: record events that have at least one of these keywords; 0 records all",
        ))
        .arg(keywords("all", "Match-all: record only events that also have all of these keywords"))
        .arg(ids("ids", "Record only events with these ids").conflicts_with("not-ids"))
        .arg(ids("not-ids", "Record only events with other ids"))
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }
}
