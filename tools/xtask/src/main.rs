//! The commands for working on this repository, run as `cargo xtask …`.
//!
//! `demo` builds and traces the sample driver, `test` runs every check that can run on this
//! machine, `build` builds only a driver's .sys file, and `doctor` lists the required tools that
//! were found and those that are missing.

mod api;
mod bench;
mod build;
mod c_drivers;
mod cargo_etw;
mod changed;
mod citations;
mod client;
#[cfg(test)]
mod commands;
mod deep;
mod demo;
mod doctor;
mod environment;
mod fresh_machine;
mod fuzz;
mod goldens;
mod guest;
mod host;
mod kit;
mod lint;
mod lock_files;
mod miri;
mod modules;
mod mutants;
mod oldest_rust;
mod package;
mod packages;
mod probes;
mod process;
mod progress;
mod publish;
mod renew;
mod reproducible;
mod requirements;
mod sample;
#[cfg(test)]
mod selections;
mod standin;
mod test;
mod tree;
mod untested;
mod unused;
mod vm;
mod windows;

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use clap::{Arg, ArgAction, ArgMatches, Command, builder::PossibleValuesParser, value_parser};

use driver_build::{link, toolchain::Machine};

use crate::{build::Profile, process::Told};

/// Returns an argument without a value.
fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).help(help).action(ArgAction::SetTrue)
}

/// Returns an argument that takes a value.
fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

/// Returns an argument whose value is the path of a file or folder.
fn path_option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    option(name, value, help).value_parser(value_parser!(PathBuf))
}

/// Returns a required positional argument for a path.
fn path(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).help(help).required(true).value_parser(value_parser!(PathBuf))
}

/// Returns an argument for the number of things to run at the same time.
fn jobs(help: &'static str) -> Arg {
    option("jobs", "N", help).value_parser(value_parser!(usize))
}

/// Returns a command.
fn chore(name: &'static str, about: &'static str) -> Command {
    Command::new(name).about(about)
}

/// Returns the command line of `cargo xtask kit`.
fn kit_chore() -> Command {
    let package = |name, help| path_option(name, "PACKAGE", help);
    chore("kit", "Create the folder from which a Windows machine runs the sample driver's stages")
        .arg(path_option("out", "FOLDER", "The folder to create").default_value("target/kit"))
        .arg(package(
            "package",
            "The driver's package, a .zip file or a folder [default: from `cargo xtask package`]",
        ))
        .arg(package(
            "catalog-2",
            "The same driver's package with a version 2 catalog [default: from `cargo xtask \
             package`, if `--package` is not given]",
        ))
        .arg(package("wdk", "The same driver, packaged by the WDK"))
        .arg(package(
            "probe",
            "The package of the probes' driver [default: from `cargo xtask package`, \
             if `--package` is not given]",
        ))
        .arg(path_option("client", "FILE", "The user-mode client [default: from the package]"))
        .arg(path_option(
            "etl",
            "FILE",
            "The program `etl` for Windows [default: from `cargo xtask package`, if \
             `--package` is not given]",
        ))
}

/// Returns the command line of `cargo xtask mutants`.
fn mutation_chore() -> Command {
    chore(
        "mutants",
        "Make one change to the code at a time, and find the changes that no test detects",
    )
    .arg(
        option("package", "PACKAGE", "A package to mutate; can be repeated [default: all]")
            .action(ArgAction::Append)
            .value_parser(PossibleValuesParser::new(mutants::names())),
    )
    .arg(
        option("files", "GLOB", "Mutate only files that match a pattern; can be repeated")
            .action(ArgAction::Append),
    )
    .arg(option(
        "shard",
        "K/N",
        "Test only share K, counted from 0, of N equal shares of each package's mutants",
    ))
    .arg(jobs("The number of mutants that run at the same time").default_value("2"))
}

/// Returns the commands for the driver package.
fn package_chores() -> [Command; 5] {
    [
        chore(
            "package",
            "Build the sample driver's signed package for a test machine, as a .zip file",
        ),
        chore("inf", "Check a stamped INF file against the driver that it installs")
            .arg(path("inf", "The INF file"))
            .arg(path("image", "The driver's image, a .sys file")),
        kit_chore(),
        chore("client", "Build the sample driver's client, a Windows program"),
        chore("vm", "Run the sample driver's stages on Windows in QEMU, as `cargo etw vm` does")
            .arg(
                Arg::new("arguments")
                    .help("The arguments of `cargo etw vm`; --iso is required")
                    .value_name("ARGUMENTS")
                    .num_args(1..)
                    .required(true)
                    .trailing_var_arg(true)
                    .allow_hyphen_values(true)
                    .value_parser(value_parser!(OsString)),
            ),
    ]
}

/// Returns the command line of `cargo xtask renew`.
fn renew_chore() -> Command {
    chore("renew", "Write the tracked files that are generated, and list those that changed")
        .arg(
            Arg::new("part")
                .help("The parts to renew [default: all]")
                .action(ArgAction::Append)
                .num_args(0..)
                .hide_possible_values(true)
                .value_parser(PossibleValuesParser::new(renew::names())),
        )
        .after_help(renew::help())
}

/// Returns the command line of `cargo xtask fresh-machine`.
fn fresh_machine_chore() -> Command {
    chore(
        "fresh-machine",
        "Run `demo` and `test` on new Debian systems and print a table of results (needs root)",
    )
    .arg(
        option("machine", "NAME", "A machine to run on; can be repeated [default: all]")
            .action(ArgAction::Append)
            .value_parser(PossibleValuesParser::new(fresh_machine::names())),
    )
    .arg(jobs("The number of machines that run at the same time").default_value("1"))
}

/// Returns the commands that check and measure.
fn test_chores() -> [Command; 5] {
    let test = chore("test", "Run every check that can run on this machine")
        .arg(flag("deep", "Also run the checks that take longer: sanitizers, Miri, more cases and interleavings"))
        .arg(
            option(
                "changed",
                "BASE",
                "Run only the checks that the changes since a commit can affect [default: the commit at which the branch left its upstream]",
            )
            .num_args(0..=1)
            .conflicts_with("deep"),
        )
        .arg(flag("again", "Run the checks even if all passed with the same files before"));
    let bench = chore(
        "bench",
        "Count the cost of writing an event and compare it with the `tracelogging` crate",
    )
    .arg(flag("quick", "Show only the missed goals"))
    .arg(
        flag(
            "loop",
            "Measure how fast cargo answers after an edit and after a change of the selected \
             packages, instead",
        )
        .conflicts_with("quick"),
    )
    .arg(
        flag(
            "write",
            "Write the result to docs/benchmark.md or, with `--loop`, to CONTRIBUTING.md",
        )
        .conflicts_with("quick"),
    );
    let goldens = "Fetch published packages with resources that mc.exe compiled, for comparison";
    let fuzz = chore("fuzz", "Fuzz every reader of untrusted bytes").arg(
        option("minutes", "N", "The total time for all targets, in minutes")
            .default_value("8")
            .value_parser(value_parser!(u64).range(1..=10_000)),
    );
    [test, bench, chore("goldens", goldens), fuzz, mutation_chore()]
}

/// Returns the command line. (clap's derive macros allow lints that this workspace forbids.)
fn command_line() -> Command {
    let demo = chore(
        "demo",
        "Build the sample driver, trace it in the stand-in kernel and show the events",
    )
    .arg(
        path_option("out", "FOLDER", "The folder to write the .etl files to")
            .default_value("target/demo"),
    );
    let probes = chore(
        "probes",
        "Run the probes of undocumented ETW behavior in the stand-in kernel, and write its answers",
    )
    .arg(
        path_option("out", "FILE", "The file to write the answers to")
            .default_value(probes::ANSWERS),
    );
    let build = chore("build", "Build only a driver's .sys file")
        .arg(
            option("package", "PACKAGE", "The driver's crate in this workspace, or etw-c-driver")
                .default_value(sample::DRIVER.0),
        )
        .arg(
            option("machine", "MACHINE", "The architecture to build for")
                .default_value(Machine::X64.name())
                .value_parser([Machine::X64.name(), Machine::Arm64.name()]),
        )
        .arg(flag("release", "Build with optimizations"));
    let doctor = chore(
        "doctor",
        "List which of the tools that the other commands need are found and which are missing",
    )
    .arg(flag("install", "Install the missing tools"));
    Command::new("xtask")
        .bin_name("cargo xtask")
        .about("The commands for working on this repository")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([demo, probes])
        .subcommands(test_chores())
        .subcommands([
            build,
            chore("modules", "List the dependency cycles between the modules of each crate"),
            renew_chore(),
            doctor,
            chore("reproducible", "Build the sample driver in two folders and compare the images"),
            fresh_machine_chore(),
        ])
        .subcommands(package_chores())
}

fn run(chore: &str, arguments: &ArgMatches) -> Result<()> {
    host::check(chore)?;
    match chore {
        "demo" => demo::run(&required::<PathBuf>(arguments, "out")?),
        "probes" => probes::run(&required::<PathBuf>(arguments, "out")?),
        "test" if arguments.contains_id("changed") => {
            test::run_changed(arguments.get_one::<String>("changed").map(String::as_str))
        }
        "test" => test::run(arguments.get_flag("deep"), arguments.get_flag("again")),
        "bench" if arguments.get_flag("loop") => bench::run_loop(arguments.get_flag("write")),
        "bench" => bench::run(match (arguments.get_flag("quick"), arguments.get_flag("write")) {
            (true, _) => bench::Mode::Quick,
            (_, true) => bench::Mode::Write,
            _ => bench::Mode::Print,
        }),
        "fresh-machine" => {
            fresh_machine::run(&several(arguments, "machine"), required(arguments, "jobs")?)
        }
        "goldens" => goldens::run(),
        "renew" => renew::run(&several(arguments, "part")),
        "reproducible" => reproducible::run(),
        "fuzz" => fuzz::run(required(arguments, "minutes")?),
        "build" => {
            let package: String = required(arguments, "package")?;
            let profile =
                if arguments.get_flag("release") { Profile::Release } else { Profile::Debug };
            let machine: String = required(arguments, "machine")?;
            let machine =
                [Machine::X64, Machine::Arm64].into_iter().find(|one| one.name() == machine);
            let machine = machine.context("clap accepts these machines only")?;
            if package == c_drivers::PACKAGE {
                return c_drivers::run();
            }
            build::run(&package, profile, machine)
        }
        "modules" => modules::run(),
        "mutants" => mutants::run(&mutants::Selection {
            groups: several(arguments, "package"),
            shard: arguments.get_one("shard").cloned(),
            files: several(arguments, "files"),
            jobs: required(arguments, "jobs")?,
        }),
        "client" => client::run(),
        "kit" => {
            let path = |name| arguments.get_one::<PathBuf>(name).cloned();
            kit::run(&kit::Contents {
                out: required(arguments, "out")?,
                package: path("package"),
                catalog_2: path("catalog-2"),
                wdk: path("wdk"),
                probe: path("probe"),
                client: path("client"),
                reader: path("etl"),
            })
        }
        "package" => package::run(),
        "vm" => {
            let words = arguments.get_many::<OsString>("arguments");
            vm::run(&words.into_iter().flatten().cloned().collect::<Vec<_>>())
        }
        "inf" => {
            let inf: PathBuf = required(arguments, "inf")?;
            cargo_etw::check_inf(&inf, &required::<PathBuf>(arguments, "image")?)
        }
        "doctor" => doctor::run(arguments.get_flag("install")),
        // clap rejects all other names.
        other => anyhow::bail!("`cargo xtask` has no command {other}"),
    }
}

/// Returns the values of a repeatable argument.
fn several(arguments: &ArgMatches, name: &str) -> Vec<String> {
    let values = arguments.get_many::<String>(name);
    values.into_iter().flatten().cloned().collect()
}

/// Returns an argument that is required or has a default.
fn required<T: Clone + Send + Sync + 'static>(arguments: &ArgMatches, name: &str) -> Result<T> {
    let value = arguments.get_one(name).cloned();
    value.with_context(|| format!("the argument {name} is missing"))
}

fn main() -> ExitCode {
    if let Some(code) = link::run_if_asked() {
        return code;
    }
    let matches = command_line().get_matches();
    let result = matches.subcommand().map_or(Ok(()), |(chore, arguments)| run(chore, arguments));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(Told(code)) = error.downcast_ref() {
                return ExitCode::from(*code);
            }
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
