//! The command line and its commands.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, anyhow, bail};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use etl_file::show::Escaped;
use etw_testkernel::{
    BugCheck, EnableParameters, Guid, Kernel, KernelConfig, KernelError, Script, SessionConfig,
    SessionHandle, SessionReport, Target, nearest, script::Clients,
};

fn command() -> Command {
    let enable = |name: &'static str, what: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name("NAME|GUID[:LEVEL[:ANY[:ALL]]]")
            .help(what)
            .action(ArgAction::Append)
    };
    let run = Command::new("run")
        .about("Load a driver, run a script against it, unload it, and write a trace")
        .arg(
            Arg::new("driver")
                .value_name("DRIVER.sys")
                .help("The driver to run; a .pdb file beside it provides function names and lines")
                .required(true)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(enable(
            "enable",
            "Enable a provider, by its GUID or by the name that its GUID is computed from",
        ))
        .arg(enable(
            "group",
            "Enable a provider group, by its GUID or by the name that its GUID is computed from",
        ))
        .arg(
            Arg::new("script")
                .long("script")
                .value_name("FILE")
                .help(
                    "The script to run; the default adds a device, power-cycles it and removes it",
                )
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("etl")
                .long("etl")
                .value_name("FILE")
                .help("The trace file to write")
                .default_value("testkernel.etl")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("session")
                .long("session")
                .value_name("NAME")
                .help("The session's name")
                .default_value("testkernel"),
        )
        .arg(
            Arg::new("clients")
                .long("clients")
                .value_name("N")
                .help(
                    "The number of clients that run the script's steps on an open device, \
                     interleaved",
                )
                .default_value("1")
                .value_parser(value_parser!(u32).range(1..=64)),
        )
        .arg(
            Arg::new("seed")
                .long("seed")
                .value_name("N")
                .help("The seed of the clients' interleaving; the same seed repeats the same run")
                .default_value("0")
                .value_parser(value_parser!(u64)),
        )
        .arg(
            Arg::new("special-pool")
                .long("special-pool")
                .help("Guard every pool block, to catch overruns and accesses to freed blocks")
                .action(ArgAction::SetTrue),
        )
        .arg(
            Arg::new("no-notes")
                .long("no-notes")
                .help("Do not print notes about style")
                .action(ArgAction::SetTrue),
        )
        .arg(
            Arg::new("service").long("service").value_name("NAME").help(
                "The driver's service name; the default is the file name without its extension",
            ),
        );
    Command::new("testkernel")
        .about("Run Windows drivers (.sys) in the stand-in kernel")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(run)
}

/// Parses a GUID, or computes the GUID of a provider name.
fn guid(text: &str) -> Result<Guid> {
    if let Ok(guid) = text.parse() {
        return Ok(guid);
    }
    Guid::of_name(text).map_err(|why| anyhow!("`{text}`: {why}"))
}

/// Reads `NAME|GUID[:LEVEL[:ANY[:ALL]]]`.
fn enable_info(text: &str) -> Result<(Guid, EnableParameters)> {
    let mut parts = text.split(':');
    let who = parts.next().unwrap_or_default();
    if who.is_empty() {
        bail!("`{text}` has no name or GUID; write NAME:LEVEL:ANY:ALL");
    }
    let mut number = |what: &str, most: u64, default: u64| {
        let Some(part) = parts.next() else {
            return Ok(default);
        };
        let parsed = part
            .strip_prefix("0x")
            .map_or_else(|| part.parse(), |digits| u64::from_str_radix(digits, 16));
        parsed.ok().filter(|number| *number <= most).ok_or_else(|| {
            anyhow!("in `{text}`, `{part}` is not a {what}; expected a number from 0 to {most}")
        })
    };
    let level = number("level", u64::from(u8::MAX), u64::from(u8::MAX))?;
    let parameters = EnableParameters {
        level: u8::try_from(level)?,
        match_any: number("match-any mask", u64::MAX, 0)?,
        match_all: number("match-all mask", u64::MAX, 0)?,
        ..EnableParameters::default()
    };
    if parts.next().is_some() {
        bail!("`{text}` has too many parts; write NAME:LEVEL:ANY:ALL");
    }
    Ok((guid(who)?, parameters))
}

/// Enables the providers and groups that the command line names for the session.
fn enable(
    kernel: &Kernel,
    session: SessionHandle,
    matches: &ArgMatches,
) -> Result<Vec<(SessionHandle, Target)>> {
    let mut enabled = Vec::new();
    let kinds = [
        ("enable", Target::Provider as fn(Guid) -> Target),
        ("group", Target::Group),
    ];
    for (argument, target) in kinds {
        for text in matches.get_many::<String>(argument).into_iter().flatten() {
            let (guid, parameters) = enable_info(text)?;
            let target = target(guid);
            kernel.enable(session, target, parameters)?;
            enabled.push((session, target));
        }
    }
    if enabled.is_empty() {
        bail!(
            "no provider is enabled; name one with `--enable NAME`, or a group with `--group NAME`"
        );
    }
    Ok(enabled)
}

fn run(matches: &ArgMatches) -> Result<()> {
    let path = |name: &str| matches.get_one::<PathBuf>(name).map(PathBuf::as_path);
    let sys = path("driver").context("the driver's path is missing")?;
    let etl = path("etl").context("the trace file's path is missing")?;
    let script = match path("script") {
        None => Script::life_of_a_device(),
        Some(path) => {
            let text = fs::read_to_string(path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            Script::parse(&text).with_context(|| path.display().to_string())?
        }
    };
    let kernel = Kernel::with_config(KernelConfig {
        special_pool: matches.get_flag("special-pool"),
        notes: !matches.get_flag("no-notes"),
        ..KernelConfig::default()
    });
    let name = matches
        .get_one::<String>("session")
        .map_or("testkernel", String::as_str);
    let session = kernel.start_session(SessionConfig::to_file(name, etl))?;
    let enabled = enable(&kernel, session, matches)?;
    let outcome = drive(&kernel, sys, matches, &script, &enabled);
    for line in kernel.debug_output().concat().lines() {
        println!("driver: {line}");
    }
    for note in kernel.notes() {
        println!("note: {note}");
    }
    for warning in kernel.warnings() {
        println!("warning: {warning}");
    }
    tell_of_missing_providers(&kernel, matches);
    if let Err(error) = &outcome {
        print_last_calls(error);
    }
    // Whatever failed, the trace so far is finished and named.
    let traced = kernel
        .stop_session(session)
        .map(|report| print_report(&kernel, &report));
    outcome?;
    Ok(traced?)
}

/// Names the providers that are enabled and did not register, and those that did.
fn tell_of_missing_providers(kernel: &Kernel, matches: &ArgMatches) {
    let registered = kernel.providers();
    let named: Vec<String> = registered
        .iter()
        .map(|(guid, name)| name.clone().unwrap_or_else(|| format!("{{{guid}}}")))
        .collect();
    for text in matches.get_many::<String>("enable").into_iter().flatten() {
        let name = text.split(':').next().unwrap_or_default();
        let is_missing =
            guid(name).is_ok_and(|wanted| registered.iter().all(|(guid, _)| *guid != wanted));
        if !is_missing {
            continue;
        }
        if named.is_empty() {
            println!("warning: the provider {name} did not register, and no other did");
            continue;
        }
        let near = nearest(name, named.iter().map(String::as_str))
            .map_or_else(String::new, |near| format!("; the nearest name is {near}"));
        println!(
            "warning: the provider {name} did not register; registered: {}{near}",
            named.join(", ")
        );
    }
}

/// Prints the driver's last calls of the kernel before a bugcheck.
fn print_last_calls(error: &anyhow::Error) {
    let bugcheck = error.chain().find_map(|cause| {
        cause
            .downcast_ref::<BugCheck>()
            .or_else(|| match cause.downcast_ref::<KernelError>() {
                Some(KernelError::BugCheck(bugcheck)) => Some(bugcheck),
                _ => None,
            })
    });
    let Some(bugcheck) = bugcheck.filter(|bugcheck| !bugcheck.calls.is_empty()) else {
        return;
    };
    println!("The last calls before the bugcheck, newest first:");
    for call in &bugcheck.calls {
        println!("    {call}");
    }
}

fn print_report(kernel: &Kernel, report: &SessionReport) {
    let statistics = kernel.statistics();
    println!(
        "{} kernel calls, {} pool blocks allocated and freed, {} enable notifications",
        statistics.calls, statistics.allocations, statistics.notifications
    );
    if let Some((what, bytes)) = kernel
        .stack_use()
        .into_iter()
        .max_by_key(|(_, bytes)| *bytes)
    {
        println!("peak kernel stack use: {bytes} of 24,576 bytes, in {what}");
    }
    println!(
        "{} events in {}, {} lost",
        report.events,
        report.file.display(),
        report.events_lost
    );
    println!("To print them: etl dump {}", report.file.display());
}

fn drive(
    kernel: &Kernel,
    sys: &Path,
    matches: &ArgMatches,
    script: &Script,
    enabled: &[(SessionHandle, Target)],
) -> Result<()> {
    let driver = match matches.get_one::<String>("service") {
        Some(service) => kernel.load_as(sys, service)?,
        None => kernel.load(sys)?,
    };
    if !driver.unprovided_imports().is_empty() {
        println!(
            "note: the stand-in kernel does not provide {}; a call is a bugcheck",
            Escaped(&driver.unprovided_imports().join(", "))
        );
    }
    let clients = Clients {
        count: matches.get_one("clients").copied().unwrap_or(1),
        seed: matches.get_one("seed").copied().unwrap_or(0),
    };
    match script.run(kernel, &driver, enabled, clients) {
        Ok(all) => {
            for done in all {
                println!("{done}");
            }
            driver.unload()?;
            Ok(())
        }
        Err(error) => {
            // What the driver leaks is of interest all the same, and a bugcheck was reported.
            if let Err(KernelError::Violations(violations)) = driver.unload() {
                println!("warning: {violations}");
            }
            Err(error.into())
        }
    }
}

/// Runs the command line.
pub fn main() -> ExitCode {
    let matches = command().get_matches();
    let result = match matches.subcommand() {
        Some(("run", matches)) => run(matches),
        // clap rejects every other command.
        _ => Err(anyhow!("unknown command")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
