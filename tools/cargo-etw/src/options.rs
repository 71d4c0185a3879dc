//! Arguments that commands share, and the values of arguments.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Arg, ArgAction, ArgMatches, value_parser};

/// Returns an argument that is required or has a default.
pub fn required<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, name: &str) -> Result<T> {
    optional(matches, name)?.with_context(|| format!("the argument {name} is missing"))
}

/// Returns an argument, or `None` if it is not on the command line.
pub fn optional<T: Clone + Send + Sync + 'static>(
    matches: &ArgMatches,
    name: &str,
) -> Result<Option<T>> {
    let value = matches.try_get_one::<T>(name).with_context(|| {
        format!("cannot read the argument {name}: its type is not the declared one")
    })?;
    Ok(value.cloned())
}

/// Returns the values of a repeatable argument.
pub fn several<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, name: &str) -> Vec<T> {
    let values = matches.get_many(name);
    values.into_iter().flatten().cloned().collect()
}

/// Returns whether a command prints its result as JSON.
pub fn is_json(matches: &ArgMatches) -> Result<bool> {
    Ok(required::<String>(matches, "message-format")? == "json")
}

/// Returns a required positional argument for a file.
pub fn file(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).help(help).value_name("FILE").required(true).value_parser(value_parser!(PathBuf))
}

/// Returns an optional positional argument for a file.
pub fn optional_file(name: &'static str, help: &'static str) -> Arg {
    file(name, help).required(false)
}

/// Returns a named argument for a path.
pub fn path(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    text(name, value, help).value_parser(value_parser!(PathBuf))
}

/// Returns a named argument for a string.
pub fn text(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).help(help).value_name(value)
}

/// Returns the argument for the command to name as a written file's generator.
pub fn written_by(usual: &'static str) -> Arg {
    text("command", "COMMAND", "The command to name as the generator in the file's first comment")
        .default_value(usual)
}

/// Returns the argument for the format of a command's output.
pub fn message_format() -> Arg {
    text(
        "message-format",
        "FORMAT",
        "The format of the result: for people, or a JSON message on standard output",
    )
    .default_value("human")
    .value_parser(["human", "json"])
}

/// Returns an argument without a value.
pub fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).help(help).action(ArgAction::SetTrue)
}
