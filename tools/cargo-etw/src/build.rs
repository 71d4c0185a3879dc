//! `cargo etw build`: builds a driver without the WDK.

use std::{
    io::{self, IsTerminal as _, Write as _},
    path::PathBuf,
};

use anyhow::{Result, bail};
use clap::ArgMatches;
use driver_build::{
    driver::{Driver, Image, Messages, Options, machine},
    toolchain::{Machine, Toolchain},
};

use crate::options::{optional, required, several};

/// Builds the driver, and prints the paths of its files.
pub fn run(matches: &ArgMatches) -> Result<()> {
    let messages = match required::<String>(matches, "message-format")?.as_str() {
        "human" => Messages::Human,
        "json" => Messages::Json,
        other => bail!("`{other}` is not a message format; expected human or json"),
    };
    let machine = machine(&required::<String>(matches, "machine")?)?;
    let image = build(matches, machine, messages)?;
    if messages == Messages::Human {
        println!("{}", image.sys.display());
        println!("{}", image.pdb.display());
    }
    Ok(())
}

/// Builds the driver that the arguments select, and returns its files.
pub fn build(matches: &ArgMatches, machine: Machine, messages: Messages) -> Result<Image> {
    let manifest: Option<PathBuf> = optional(matches, "manifest-path")?;
    let package: Option<String> = optional(matches, "package")?;
    let mut driver = Driver::find(manifest.as_deref(), package.as_deref())?;
    if let Some(folder) = optional::<PathBuf>(matches, "target-dir")? {
        driver = driver.with_target(&folder)?;
    }
    driver.check_model()?;
    let toolchain = toolchain(machine, matches.get_flag("install"))?;
    if !matches.get_flag("quiet") {
        eprintln!(
            "Building {} for {} with {}",
            driver.package,
            machine.target(),
            toolchain.describe()
        );
    }
    driver.build_with(&toolchain, &options(matches)?, messages)
}

/// Returns the cargo options among the arguments.
fn options(matches: &ArgMatches) -> Result<Options> {
    let is_release = matches.get_flag("release");
    let profile: Option<String> = optional(matches, "profile")?;
    let mut features = Vec::new();
    for list in several::<String>(matches, "features") {
        features.extend(["--features".to_owned(), list]);
    }
    for name in ["all-features", "no-default-features"] {
        features.extend(matches.get_flag(name).then(|| format!("--{name}")));
    }
    let is_frozen = matches.get_flag("frozen");
    let mut output = vec!["--verbose".to_owned(); usize::from(matches.get_count("verbose"))];
    output.extend(matches.get_flag("quiet").then(|| "--quiet".to_owned()));
    Ok(Options {
        profile: profile.unwrap_or_else(|| if is_release { "release" } else { "dev" }.to_owned()),
        features,
        is_locked: is_frozen || matches.get_flag("locked"),
        is_offline: is_frozen || matches.get_flag("offline"),
        output,
    })
}

/// Returns the toolchain for a machine type. Installs operating system packages if `may_install` is
/// true or the user agrees.
pub fn toolchain(machine: Machine, may_install: bool) -> Result<Toolchain> {
    Toolchain::find_or_ask(machine, |command| may_install || agrees(command))
}

/// Asks the user whether to run a command, if there is a terminal.
fn agrees(command: &str) -> bool {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return false;
    }
    eprint!("Building drivers needs more packages. Run `{command}`? [y/N] ");
    let mut answer = String::new();
    let is_read = io::stderr().flush().and_then(|()| io::stdin().read_line(&mut answer));
    is_read.is_ok() && ["y", "yes"].contains(&answer.trim().to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::command;

    fn parsed(words: &[&str]) -> Options {
        let words = ["cargo", "etw", "build"].iter().chain(words);
        let matches = command().try_get_matches_from(words).unwrap();
        let (_, etw) = matches.subcommand().unwrap();
        let (_, build) = etw.subcommand().unwrap();
        options(build).unwrap()
    }

    #[test]
    fn the_options_are_those_of_cargo() {
        let options = parsed(&["-r", "-F", "a,b", "--features", "c", "--all-features", "-vv"]);
        assert_eq!(options.profile, "release");
        let features = ["--features", "a,b", "--features", "c", "--all-features"];
        assert_eq!(options.features, features);
        assert_eq!(options.output, ["--verbose", "--verbose"]);
        assert!(!options.is_locked && !options.is_offline);
        let options = parsed(&["--frozen", "--no-default-features", "-q", "--profile", "ship"]);
        assert!(options.is_locked && options.is_offline);
        assert_eq!(options.profile, "ship");
        assert_eq!(options.features, ["--no-default-features"]);
        assert_eq!(options.output, ["--quiet"]);
        assert_eq!(parsed(&[]).profile, "dev");
    }

    #[test]
    fn options_that_contradict_each_other_are_refused() {
        for words in [["--release", "--profile=x"], ["--verbose", "--quiet"]] {
            let words = ["cargo", "etw", "build"].into_iter().chain(words);
            assert!(command().try_get_matches_from(words).is_err());
        }
    }
}
