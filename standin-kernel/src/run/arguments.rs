//! The arguments that several command lines share.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail};
use clap::{Arg, ArgAction, ArgMatches, Command, builder::ArgPredicate, value_parser};
use etl_file::Guid;

use super::{
    config::{Confine, Format, RunConfig},
    enable::Enabled,
};
use crate::{
    harness::{
        registry_file::{RegistryFile, parse_parameter},
        script::{Clients, Script},
    },
    services::{etw::state::Target, managers::registry::value::RegistryValue},
};

/// Adds the arguments that control a driver's run to a command.
#[must_use]
pub fn add_arguments(command: Command) -> Command {
    bounds(surroundings(command))
        .arg(option(
            "script",
            "FILE",
            "The script to run; by default, a device is added, taken out of D0 and back, and \
             removed",
        ).value_parser(value_parser!(PathBuf)))
        .arg(option("etl", "FILE", "The trace file to write").value_parser(value_parser!(PathBuf)))
        .arg(enable(
            "enable",
            "Enable a provider with these parameters, by its GUID or by the name that its GUID is \
             computed from; can be repeated",
        ))
        .arg(enable(
            "group",
            "Enable a provider group, by its GUID or by the name that its GUID is computed from; \
             can be repeated",
        ))
        .arg(
            option(
                "tmf",
                "FOLDER|FILE",
                "Show WPP messages by this TMF file, or by those in this folder, in addition to the \
                 PDB beside the image; can be repeated",
            )
            .action(ArgAction::Append)
            .value_parser(value_parser!(PathBuf)),
        )
        .arg(flag(
            "only",
            "Enable only what `--enable` and `--group` name, instead of every provider that the \
             driver registers",
        ))
        .arg(option("session", "NAME", "The session's name").default_value("standin-kernel"))
        .arg(option(
            "service",
            "NAME",
            "The driver's service name; the default is the file name without its extension",
        ))
        .arg(
            option(
                "clients",
                "N",
                "The number of clients that run the script's steps on the open device, interleaved",
            )
            .default_value("1")
            .value_parser(value_parser!(u32).range(1..=64)),
        )
        .arg(
            option(
                "seed",
                "N",
                "The seed of the clients' interleaving; the same seed repeats the same run",
            )
            .default_value("0")
            .value_parser(value_parser!(u64)),
        )
        .arg(flag(
            "special-pool",
            "Guard every pool block, to catch overruns and accesses to freed blocks",
        ))
        .arg(flag("no-notes", "Do not report notes about style"))
        .arg(
            option(
                "message-format",
                "FORMAT",
                "The form of the output: for people, or one JSON object for each line",
            )
            .default_value("human")
            .value_parser(["human", "json"]),
        )
}

/// Adds the arguments that limit the driver's time and rights.
fn bounds(command: Command) -> Command {
    command
        .arg(
            option(
                "max-silence",
                "SECONDS",
                "The time after which the driver's process is ended if it neither calls the kernel \
                 nor reports anything",
            )
            .default_value("120")
            .value_parser(value_parser!(u64).range(1..)),
        )
        .arg(
            option(
                "time-limit",
                "SECONDS",
                "The processor time that the driver may use without calling the kernel; it may use \
                 six times as much if it calls the kernel; the default is 10, or 2 with `--script`",
            )
            .hide_default_value(true)
            .default_value_if("script", ArgPredicate::IsPresent, "2")
            .default_value("10")
            .value_parser(value_parser!(u64).range(1..)),
        )
        .arg(
            option(
                "confinement",
                "WHICH",
                "Keep the driver from programs, sockets, other processes and files other than its \
                 own: as far as this system can, with a note about each limitation (`available`); \
                 completely, or do not run it (`required`); or not at all (`none`)",
            )
            .default_value("available")
            .value_parser(["available", "required", "none"]),
        )
}

/// Adds the arguments that describe the system around the driver.
fn surroundings(command: Command) -> Command {
    command
        .arg(
            option(
                "folder",
                "FOLDER",
                "The folder that the driver finds as the volume C:, which also contains \
                 \\SystemRoot; without one, there is no volume",
            )
            .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            option(
                "registry",
                "FILE",
                "Apply this Registry Editor file (.reg) to the registry before the driver \
                 is loaded; can be repeated",
            )
            .action(ArgAction::Append)
            .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            option(
                "parameter",
                "NAME=TYPE:VALUE",
                "Set a value of the service's parameters key in the registry, before the driver is \
                 loaded: dword:N, qword:N, sz:TEXT, expand_sz:TEXT, multi_sz:TEXT|TEXT or \
                 binary:DIGITS; can be repeated",
            )
            .action(ArgAction::Append),
        )
}

impl Format {
    /// Returns the output format that the arguments select.
    ///
    /// # Errors
    ///
    /// Fails if the arguments were not added by [`add_arguments`].
    pub fn from_arguments(matches: &ArgMatches) -> Result<Self> {
        let name: String = required(matches, "message-format")?;
        match name.as_str() {
            "human" => Ok(Self::Human),
            "json" => Ok(Self::Json),
            other => bail!("`{other}` is not a message format; expected human or json"),
        }
    }
}

impl RunConfig {
    /// Returns the configuration that the arguments describe, for the image `image`. `etl` is the trace file if
    /// the arguments do not name one.
    ///
    /// # Errors
    ///
    /// Fails if the script or a registry file cannot be read, if the folder for files is not a folder, or if
    /// a provider or parameter has the wrong syntax.
    pub fn from_arguments(matches: &ArgMatches, image: &Path, etl: PathBuf) -> Result<Self> {
        let script = match optional::<PathBuf>(matches, "script")? {
            None => None,
            Some(path) => {
                let text = fs::read_to_string(&path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                Some(Script::parse(&text).with_context(|| path.display().to_string())?)
            }
        };
        let kinds = [("enable", Target::Provider as fn(Guid) -> Target), ("group", Target::Group)];
        let mut enabled = Vec::new();
        for (argument, target) in kinds {
            for text in matches.get_many::<String>(argument).into_iter().flatten() {
                enabled.push(Enabled::parse(text, target)?);
            }
        }
        let every_provider = !matches.get_flag("only");
        if enabled.is_empty() && !every_provider {
            bail!("no provider is enabled; name one with `--enable`, or omit `--only`");
        }
        let folder = optional::<PathBuf>(matches, "folder")?;
        if let Some(folder) = folder.as_ref().filter(|folder| !folder.is_dir()) {
            bail!("`--folder` requires a folder, but {} is not a folder", folder.display());
        }
        let stem = || {
            let stem = image.file_stem().unwrap_or_default();
            stem.to_string_lossy().into_owned()
        };
        Ok(Self {
            image: image.to_owned(),
            service: optional(matches, "service")?.unwrap_or_else(stem),
            folder,
            registry: registry_files(matches)?,
            parameters: parameters(matches)?,
            script,
            etl: optional(matches, "etl")?.unwrap_or(etl),
            session: required(matches, "session")?,
            enabled,
            every_provider,
            formats: matches.get_many::<PathBuf>("tmf").into_iter().flatten().cloned().collect(),
            clients: Clients {
                count: required(matches, "clients")?,
                seed: required(matches, "seed")?,
            },
            special_pool: matches.get_flag("special-pool"),
            notes: !matches.get_flag("no-notes"),
            max_silence: Duration::from_secs(required(matches, "max-silence")?),
            time_limit: Duration::from_secs(required(matches, "time-limit")?),
            confine: confine(matches)?,
        })
    }
}

/// Returns the confinement that the arguments specify.
fn confine(matches: &ArgMatches) -> Result<Confine> {
    let name: String = required(matches, "confinement")?;
    match name.as_str() {
        "available" => Ok(Confine::Available),
        "required" => Ok(Confine::Required),
        "none" => Ok(Confine::None),
        other => bail!("`{other}` is not a confinement; expected available, required or none"),
    }
}

/// Reads the Registry Editor files that the arguments name.
fn registry_files(matches: &ArgMatches) -> Result<Vec<RegistryFile>> {
    let paths = matches.get_many::<PathBuf>("registry");
    let read = |path: &PathBuf| {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        RegistryFile::parse(&bytes).with_context(|| path.display().to_string())
    };
    paths.into_iter().flatten().map(read).collect()
}

/// Returns the service parameters that the arguments set.
fn parameters(matches: &ArgMatches) -> Result<Vec<(String, RegistryValue)>> {
    let texts = matches.get_many::<String>("parameter");
    let parse = |text: &String| {
        parse_parameter(text).map_err(|error| anyhow!("cannot set a parameter: {error}"))
    };
    texts.into_iter().flatten().map(parse).collect()
}

/// Returns the trace file of an image in the current folder: `NAME.etl` for `NAME.sys`.
#[must_use]
pub fn etl_here(image: &Path) -> PathBuf {
    let mut name = image.file_stem().unwrap_or_default().to_owned();
    name.push(".etl");
    PathBuf::from(name)
}

/// Returns an argument that is required or has a default value.
fn required<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, name: &str) -> Result<T> {
    optional(matches, name)?.with_context(|| format!("the argument {name} is missing"))
}

/// Returns an argument, or `None` if it is not on the command line.
fn optional<T: Clone + Send + Sync + 'static>(
    matches: &ArgMatches,
    name: &str,
) -> Result<Option<T>> {
    let value = matches
        .try_get_one::<T>(name)
        .with_context(|| format!("cannot read the argument {name}"))?;
    Ok(value.cloned())
}

/// Returns an option that names a provider or group.
fn enable(name: &'static str, help: &'static str) -> Arg {
    option(name, "NAME|GUID[:LEVEL[:ANY[:ALL]]]", help).action(ArgAction::Append)
}

fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

/// Returns an argument that takes no value.
fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).help(help).action(ArgAction::SetTrue)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_has_less_time() {
        let cases: [(&[&str], u64); 3] = [
            (&[], 10),
            (&["--script", "steps.txt"], 2),
            (&["--time-limit", "7", "--script", "steps.txt"], 7),
        ];
        for (given, expected) in cases {
            let command = add_arguments(Command::new("run").no_binary_name(true));
            let matches = command.try_get_matches_from(given).unwrap();
            assert_eq!(required::<u64>(&matches, "time-limit").unwrap(), expected, "{given:?}");
        }
    }
}
