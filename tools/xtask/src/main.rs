//! The project's chores, run as `cargo xtask …`.
//!
//! `demo` shows everything from nothing, `test` runs every check that can run
//! here, `build` makes the driver's .sys alone, and `doctor` says what of all
//! this machine has.

mod api;
mod bench;
mod build;
mod cargo_etw;
mod citations;
mod client;
mod deep;
mod demo;
mod doctor;
mod environment;
mod fresh_machine;
mod fuzz;
mod goldens;
mod host;
mod link;
mod lock_files;
mod modules;
mod oldest_rust;
mod package;
mod packages;
mod process;
mod progress;
mod publish;
mod reproducible;
mod requirements;
mod standin;
mod test;
mod toolchain;
mod tree;
mod windows;

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use clap::{Arg, ArgAction, ArgMatches, Command, builder::PossibleValuesParser, value_parser};

use crate::{build::Profile, process::Told, toolchain::Machine};

/// An argument that is there or not.
fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .help(help)
        .action(ArgAction::SetTrue)
}

/// A file that must be given.
fn path(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .help(help)
        .required(true)
        .value_parser(value_parser!(PathBuf))
}

/// `cargo xtask manifest`.
fn manifest_chores() -> Command {
    Command::new("manifest")
        .about("Make, check and import instrumentation manifests")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("write")
                .about("Write the sample driver's manifest from its declaration")
                .arg(flag(
                    "check",
                    "Only say whether what is written is up to date",
                )),
        )
        .subcommand(
            Command::new("check")
                .about("Say whether a declaration or manifest decodes what an older one did")
                .arg(
                    Arg::new("base")
                        .long("base")
                        .help("The older one: a .man or a .rs")
                        .value_name("FILE")
                        .required(true)
                        .value_parser(value_parser!(PathBuf)),
                )
                .arg(
                    Arg::new("now")
                        .help("The newer one; the sample driver's declaration if not given")
                        .value_name("FILE")
                        .value_parser(value_parser!(PathBuf)),
                ),
        )
        .subcommand(
            Command::new("compile")
                .about("Make the resources of a .man, or of a .rs with a declaration")
                .arg(path("file", "The manifest, or the source"))
                .arg(
                    Arg::new("out")
                        .long("out")
                        .help("Where the resources go")
                        .value_name("FOLDER")
                        .default_value("target/manifest")
                        .value_parser(value_parser!(PathBuf)),
                )
                .arg(
                    Arg::new("format")
                        .long("format")
                        .help("The version of WEVT_TEMPLATE; old SDKs made 3")
                        .value_name("N")
                        .default_value("5")
                        .value_parser(["3", "5"]),
                ),
        )
        .subcommand(
            Command::new("import")
                .about("Write the declaration of a manifest's providers in Rust")
                .arg(path("file", "The manifest"))
                .arg(
                    Arg::new("out")
                        .long("out")
                        .help("Where it goes; else to the standard output")
                        .value_name("FILE")
                        .value_parser(value_parser!(PathBuf)),
                ),
        )
}

/// What is about the driver package.
fn package_chores(command: Command) -> Command {
    command
        .subcommand(
            Command::new("package")
                .about("Make the sample driver's package for a test machine, signed, as a zip"),
        )
        .subcommand(manifest_chores())
        .subcommand(
            Command::new("inf")
                .about("Check a stamped INF file against the driver's image")
                .arg(path("inf", "The INF file"))
                .arg(path("image", "The .sys")),
        )
        .subcommand(
            Command::new("recipes")
                .about("Write how to trace the sample driver, from its declaration")
                .arg(flag(
                    "check",
                    "Only say whether what is written is up to date",
                )),
        )
        .subcommand(Command::new("client").about("Build the client, a program for Windows"))
}

/// What tries out the project as a new user would.
fn new_user_chores(command: Command) -> Command {
    let command = command.subcommand(
        Command::new("reproducible")
            .about("Build the sample driver in two folders, and compare what is built"),
    );
    command.subcommand(
        Command::new("fresh-machine")
            .about("Run demo and test on new Debian systems, and print a table (needs root)")
            .arg(
                Arg::new("machine")
                    .long("machine")
                    .help("One of the machines; may be given several times")
                    .value_name("NAME")
                    .action(ArgAction::Append)
                    .value_parser(PossibleValuesParser::new(fresh_machine::names())),
            )
            .arg(
                Arg::new("jobs")
                    .long("jobs")
                    .help("How many machines are tried at the same time")
                    .value_name("N")
                    .default_value("1")
                    .value_parser(value_parser!(usize)),
            ),
    )
}

/// The command line. (clap's derive macros allow lints that this workspace forbids.)
fn command_line() -> Command {
    let command = Command::new("xtask")
        .bin_name("cargo xtask")
        .about("The project's chores")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("demo")
                .about(
                    "Build the driver, load it in the stand-in kernel, trace it, show the events",
                )
                .arg(
                    Arg::new("out")
                        .long("out")
                        .help("Where the .etl files go")
                        .value_name("FOLDER")
                        .default_value("target/demo")
                        .value_parser(value_parser!(PathBuf)),
                ),
        )
        .subcommand(
            Command::new("test")
                .about("Run every check that can run on this machine")
                .arg(flag(
                    "deep",
                    "Also those that take longer: sanitizers, many more cases and interleavings",
                )),
        )
        .subcommand(
            Command::new("bench")
                .about("Count what events cost, beside a peer")
                .arg(flag(
                    "quick",
                    "Only count, and show only goals that are missed",
                ))
                .arg(
                    flag("write", "Write the result to docs/benchmark.md").conflicts_with("quick"),
                ),
        )
        .subcommand(
            Command::new("goldens")
                .about("Fetch published packages whose resources mc.exe made, to compare with"),
        )
        .subcommand(
            Command::new("fuzz")
                .about("Throw made-up input at everything that reads bytes from elsewhere")
                .arg(
                    Arg::new("minutes")
                        .long("minutes")
                        .help("How long, all targets together")
                        .value_name("N")
                        .default_value("8")
                        .value_parser(value_parser!(u64).range(1..=10_000)),
                ),
        )
        .subcommand(
            Command::new("build")
                .about("Build a driver's .sys alone")
                .arg(
                    Arg::new("package")
                        .long("package")
                        .help("The driver's package in this workspace")
                        .value_name("PACKAGE")
                        .default_value(build::SAMPLE.0),
                )
                .arg(
                    Arg::new("machine")
                        .long("machine")
                        .help("What it is to run on")
                        .value_name("MACHINE")
                        .default_value(Machine::X64.name())
                        .value_parser([Machine::X64.name(), Machine::Arm64.name()]),
                )
                .arg(flag("release", "Optimized, as it would be shipped")),
        )
        .subcommand(
            Command::new("modules")
                .about("Show where modules of a crate use each other in a circle"),
        )
        .subcommand(
            Command::new("api")
                .about("Write the public API of the crates that others use to docs/api")
                .arg(flag("check", "Only say whether the texts are up to date")),
        )
        .subcommand(
            Command::new("lock")
                .about("Renew the lock files of all workspaces for manifests that changed")
                .arg(flag("check", "Only say whether they match their manifests")),
        )
        .subcommand(
            Command::new("doctor")
                .about("Say what is there of what the other chores need, and what is missing")
                .arg(flag("install", "Install what is missing")),
        );
    package_chores(new_user_chores(command))
}

fn run(chore: &str, arguments: &ArgMatches) -> Result<()> {
    host::check(chore)?;
    match chore {
        "demo" => demo::run(&required::<PathBuf>(arguments, "out")?),
        "test" => test::run(arguments.get_flag("deep")),
        "bench" => bench::run(
            match (arguments.get_flag("quick"), arguments.get_flag("write")) {
                (true, _) => bench::Mode::Quick,
                (_, true) => bench::Mode::Write,
                _ => bench::Mode::Whole,
            },
        ),
        "fresh-machine" => {
            let machines = arguments.get_many::<String>("machine");
            let machines: Vec<String> = machines.into_iter().flatten().cloned().collect();
            fresh_machine::run(&machines, required(arguments, "jobs")?)
        }
        "goldens" => goldens::run(),
        "reproducible" => reproducible::run(),
        "fuzz" => fuzz::run(required(arguments, "minutes")?),
        "build" => {
            let package: String = required(arguments, "package")?;
            let profile = if arguments.get_flag("release") {
                Profile::Release
            } else {
                Profile::Debug
            };
            let machine: String = required(arguments, "machine")?;
            let machine = [Machine::X64, Machine::Arm64]
                .into_iter()
                .find(|known| known.name() == machine)
                .with_context(|| format!("no driver is built for {machine}"))?;
            build::run(&package, profile, machine)
        }
        "api" => api::run(arguments.get_flag("check")),
        "modules" => modules::run(),
        "lock" => lock_files::run(arguments.get_flag("check")),
        "client" => client::run(),
        "package" => package::run(),
        "manifest" => run_manifest(arguments),
        "inf" => {
            let inf: PathBuf = required(arguments, "inf")?;
            cargo_etw::check_inf(&inf, &required::<PathBuf>(arguments, "image")?)
        }
        "recipes" => cargo_etw::write_recipes(arguments.get_flag("check")),
        "doctor" => doctor::run(arguments.get_flag("install")),
        // clap has let no other name through.
        other => anyhow::bail!("there is no chore named {other}"),
    }
}

fn run_manifest(arguments: &ArgMatches) -> Result<()> {
    let Some((chore, arguments)) = arguments.subcommand() else {
        anyhow::bail!("a command is missing; `cargo xtask manifest --help` lists them");
    };
    let path = |name| required::<PathBuf>(arguments, name);
    match chore {
        "write" => cargo_etw::write_manifest(arguments.get_flag("check")),
        "check" => {
            let now = arguments.get_one::<PathBuf>("now").map(PathBuf::as_path);
            cargo_etw::check_manifest(&path("base")?, now)
        }
        "compile" => {
            let format: String = required(arguments, "format")?;
            cargo_etw::compile_manifest(&path("file")?, &path("out")?, &format)
        }
        "import" => {
            let out = arguments.get_one::<PathBuf>("out").map(PathBuf::as_path);
            cargo_etw::import_manifest(&path("file")?, out)
        }
        other => anyhow::bail!("`cargo xtask manifest` has no command {other}"),
    }
}

/// Returns an argument that the command line requires or gives a default.
fn required<T: Clone + Send + Sync + 'static>(arguments: &ArgMatches, name: &str) -> Result<T> {
    let value = arguments
        .try_get_one::<T>(name)
        .with_context(|| format!("the argument {name} has another type"))?;
    let value = value.with_context(|| format!("the argument {name} is missing"))?;
    Ok(value.clone())
}

fn main() -> ExitCode {
    if let Some(code) = link::run_if_asked() {
        return code;
    }
    let matches = command_line().get_matches();
    let result = matches
        .subcommand()
        .map_or(Ok(()), |(chore, arguments)| run(chore, arguments));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if !error.is::<Told>() {
                eprintln!("error: {error:#}");
            }
            ExitCode::FAILURE
        }
    }
}
