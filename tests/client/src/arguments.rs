//! The command line.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use etl_file::Guid;
use etw_scenarios::{Filter, Ids, Source};

use crate::error::Failure;

/// The command line.
pub fn command() -> Command {
    Command::new("etw-sample-client")
        .about("Controls ETW sessions, shows their events, and uses the sample driver's device")
        .version(env!("CARGO_PKG_VERSION"))
        .after_help(
            "Sessions and the sample device are for administrators: run this from an elevated \
             prompt.\nWhere no provider is named, it is the sample driver's.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(scenarios())
        .subcommand(package(
            "install",
            "Install the driver from its package, and make its device",
        ))
        .subcommand(package(
            "uninstall",
            "Remove the device, and the driver's package",
        ))
        .subcommand(trace())
        .subcommand(record())
        .subcommand(send())
        .subcommand(Command::new("status").about(
            "Say whether the driver is there, what it has counted, and which sessions want what",
        ))
        .subcommand(
            with_source(with_filter(
                Command::new("enable").about("Enable a provider or group in a session that runs"),
            ))
            .arg(session()),
        )
        .subcommand(
            with_source(Command::new("disable").about("Disable a provider or group in a session"))
                .arg(session()),
        )
        .subcommand(
            with_source(
                Command::new("capture-state").about("Ask a provider or group for its state"),
            )
            .arg(session()),
        )
        .subcommand(group())
        .subcommand(
            Command::new("disallow")
                .about(
                    "Say which providers a session does not enable by their groups; show them if \
                     none is given",
                )
                .arg(session())
                .arg(
                    Arg::new("providers")
                        .value_name("GUID")
                        .help("A provider")
                        .num_args(0..)
                        .value_parser(parse_guid),
                )
                .arg(flag("none", "Disallow none").conflicts_with("providers")),
        )
}

fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .help(help)
        .action(ArgAction::SetTrue)
}

fn session() -> Arg {
    Arg::new("session")
        .value_name("SESSION")
        .help("The session's name")
        .required(true)
}

fn file_option(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name("FILE")
        .help(help)
        .value_parser(value_parser!(PathBuf))
}

fn seconds() -> Arg {
    Arg::new("seconds")
        .long("seconds")
        .value_name("N")
        .help("Stop after so many seconds; else with Ctrl+C")
        .value_parser(value_parser!(u64))
}

fn package(name: &'static str, about: &'static str) -> Command {
    Command::new(name).about(about).arg(
        Arg::new("inf")
            .value_name("INF")
            .help("The package's INF file")
            .required(true)
            .value_parser(value_parser!(PathBuf)),
    )
}

fn scenarios() -> Command {
    Command::new("scenarios")
        .about("Play the scenarios with the driver that is installed, and report")
        .arg(
            Arg::new("names")
                .value_name("NAME")
                .help("Scenarios; all of them if none is named")
                .num_args(0..),
        )
        .arg(flag("list", "List the scenarios and what each proves"))
        .arg(file_option("json", "Write the report as JSON"))
        .arg(file_option("junit", "Write the report as JUnit's XML"))
        .arg(
            file_option("traces", "The folder for the sessions' files")
                .value_name("FOLDER")
                .default_value("scenario-traces"),
        )
}

fn trace() -> Command {
    with_source(with_filter(
        Command::new("trace").about("Show events as they come, decoded by the system (TDH)"),
    ))
    .arg(flag(
        "json",
        "A JSON object for each event, on a line of its own",
    ))
    .arg(file_option(
        "man",
        "A manifest to decode by, beside those installed",
    ))
    .arg(
        Arg::new("session")
            .long("session")
            .value_name("SESSION")
            .help("The session's name")
            .default_value("EtwSampleClient trace"),
    )
    .arg(seconds())
}

fn record() -> Command {
    with_source(with_filter(
        Command::new("record").about("Record events to an .etl file"),
    ))
    .arg(file_option("out", "The file").short('o').required(true))
    .arg(
        Arg::new("session")
            .long("session")
            .value_name("SESSION")
            .help("The session's name")
            .default_value("EtwSampleClient record"),
    )
    .arg(seconds())
}

fn group() -> Command {
    with_filter(Command::new("group").about("Enable the sample driver's group in a session"))
        .arg(session())
        .arg(flag("off", "Disable it instead"))
}

fn send() -> Command {
    let text = || {
        Arg::new("text")
            .value_name("TEXT")
            .help("What to send")
            .required(true)
    };
    let number = |name: &'static str, help: &'static str| {
        Arg::new(name)
            .value_name("N")
            .help(help)
            .required(true)
            .value_parser(value_parser!(u32))
    };
    Command::new("send")
        .about("Send a request to the sample device")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("echo")
                .about("Have a text sent back")
                .arg(text())
                .arg(flag("dpc", "From a DPC, at DISPATCH_LEVEL")),
        )
        .subcommand(
            Command::new("write")
                .about("Write, for reads to return")
                .arg(text()),
        )
        .subcommand(
            Command::new("read")
                .about("Read what was written")
                .arg(number("length", "How many bytes, at most")),
        )
        .subcommand(
            Command::new("timer").about("Start or stop the timer").arg(
                Arg::new("run")
                    .value_name("STATE")
                    .help("What the timer is to do")
                    .required(true)
                    .value_parser(["on", "off"]),
            ),
        )
        .subcommand(
            Command::new("burst")
                .about("Have the driver write many events")
                .arg(number("count", "How many"))
                .arg(
                    number("sender", "What they say of who asked")
                        .required(false)
                        .default_value("0"),
                ),
        )
        .subcommand(
            Command::new("reads")
                .about("Have the driver simulate local and remote reads")
                .arg(number("local", "How many local ones"))
                .arg(number("remote", "How many remote ones")),
        )
        .subcommand(Command::new("wait").about("Wait to be woken; Ctrl+C cancels it"))
        .subcommand(Command::new("wake").about("Wake whoever has waited longest"))
        .subcommand(
            Command::new("control")
                .about("Send any device control")
                .arg(
                    Arg::new("code")
                        .value_name("CODE")
                        .help("The control code, as 0x22e000")
                        .required(true)
                        .value_parser(parse_code),
                )
                .arg(
                    Arg::new("input")
                        .value_name("HEX")
                        .help("What goes in, as hexadecimal digits")
                        .default_value("")
                        .value_parser(parse_bytes),
                )
                .arg(
                    Arg::new("room")
                        .long("room")
                        .value_name("BYTES")
                        .help("Room for what comes back")
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
                .help("A provider other than the sample driver's")
                .value_parser(parse_guid),
        )
        .arg(
            Arg::new("group")
                .long("group")
                .value_name("GUID")
                .help("A provider group instead of a provider; without a GUID the sample's")
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
                    "Events up to this level: 1 critical, 2 error, 3 warning, 4 information, 5 \
                       verbose; 0 for all",
                )
                .default_value("5")
                .value_parser(value_parser!(u8)),
        )
        .arg(keywords(
            "any",
            "Events with any of these keywords; 0 for all",
        ))
        .arg(keywords(
            "all",
            "Of those, events with all of these keywords",
        ))
        .arg(ids("ids", "Events with these ids only").conflicts_with("not-ids"))
        .arg(ids("not-ids", "Events with other ids only"))
}

/// Returns an argument that the command line requires or gives a default.
pub fn required<'a, T: Clone + Send + Sync + 'static>(
    arguments: &'a ArgMatches,
    name: &'static str,
) -> Result<&'a T, Failure> {
    let value = arguments.try_get_one::<T>(name).ok().flatten();
    value.ok_or(Failure::Argument(name))
}

/// What a command is about.
pub fn source(arguments: &ArgMatches) -> Source {
    let guid = |name| arguments.get_one::<Guid>(name).copied();
    guid("group").map_or_else(
        || Source::Provider(guid("provider").unwrap_or_else(etw_scenarios::provider)),
        Source::Group,
    )
}

/// What is wanted of it.
pub fn filter(arguments: &ArgMatches) -> Result<Filter, Failure> {
    let mask = |name| required::<u64>(arguments, name).copied();
    let ids = |name| {
        arguments
            .get_many::<u16>(name)
            .map(|ids| ids.copied().collect::<Vec<u16>>())
    };
    Ok(Filter {
        level: *required::<u8>(arguments, "level")?,
        any: mask("any")?,
        all: mask("all")?,
        ids: ids("ids")
            .map(Ids::Only)
            .or_else(|| ids("not-ids").map(Ids::Without)),
    })
}

fn parse_guid(text: &str) -> Result<Guid, String> {
    text.trim_start_matches('#')
        .parse()
        .map_err(|_| format!("\"{text}\" is no GUID, as in {}", etw_scenarios::provider()))
}

/// A number, in hexadecimal digits after 0x.
fn parse_mask(text: &str) -> Result<u64, String> {
    text.strip_prefix("0x")
        .or_else(|| text.strip_prefix("0X"))
        .map_or_else(|| text.parse(), |digits| u64::from_str_radix(digits, 16))
        .map_err(|error| format!("\"{text}\" is no mask, as in 0x3: {error}"))
}

fn parse_code(text: &str) -> Result<u32, String> {
    parse_mask(text)
        .ok()
        .and_then(|code| u32::try_from(code).ok())
        .ok_or_else(|| format!("\"{text}\" is no control code, as in 0x22e000"))
}

/// Bytes, as they are given on a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

fn parse_bytes(text: &str) -> Result<Bytes, String> {
    let digit = |unit: u8| {
        char::from(unit)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    text.as_bytes()
        .chunks(2)
        .map(|pair| match *pair {
            [high, low] => Some(digit(high)? << 4 | digit(low)?),
            _ => None,
        })
        .collect::<Option<Vec<u8>>>()
        .map(Bytes)
        .ok_or_else(|| format!("\"{text}\" is no row of hexadecimal digits in pairs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn what_is_wanted_is_understood() {
        let matches = command()
            .try_get_matches_from([
                "client",
                "enable",
                "S",
                "--level",
                "4",
                "--any",
                "0x30",
                "--all",
                "16",
                "--not-ids",
                "1,2",
                "--group",
            ])
            .unwrap();
        let (_, arguments) = matches.subcommand().unwrap();
        assert_eq!(source(arguments), Source::Group(etw_scenarios::group()));
        let expected = Filter {
            level: 4,
            any: 0x30,
            all: 16,
            ids: Some(Ids::Without(vec![1, 2])),
        };
        assert_eq!(filter(arguments).unwrap(), expected);
    }

    #[test]
    fn nonsense_is_refused() {
        for arguments in [
            &["client"][..],
            &["client", "enable"],
            &["client", "enable", "S", "--level", "256"],
            &["client", "enable", "S", "--any", "0xq"],
            &["client", "enable", "S", "--provider", "x"],
            &["client", "send", "control", "zz"],
            &["client", "send", "control", "0x22e000", "abc"],
            &["client", "send", "timer", "maybe"],
            &["client", "record"],
            &[
                "client",
                "disallow",
                "S",
                "--none",
                "802b686a-519d-5416-5280-4c0ead585fbb",
            ],
        ] {
            assert!(
                command().try_get_matches_from(arguments).is_err(),
                "{arguments:?}"
            );
        }
    }
}
