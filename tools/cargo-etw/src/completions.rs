//! `cargo etw completions`: writes completions for a shell.

use std::io::{self, Write as _};

use anyhow::{Context, Result, anyhow};
use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;

use crate::arguments::{self, required};

/// The program's name, which shells complete.
const PROGRAM: &str = "cargo-etw";

/// Completes `cargo etw` in bash: cargo's completions for everything else.
const BASH: &str = r#"
_cargo_etw_before=$(complete -p cargo 2>/dev/null | sed -n 's/.* -F \([^ ]*\) .*/\1/p')
if [[ -z $_cargo_etw_before ]] && declare -F _completion_loader >/dev/null; then
    _completion_loader cargo >/dev/null 2>&1
    _cargo_etw_before=$(complete -p cargo 2>/dev/null | sed -n 's/.* -F \([^ ]*\) .*/\1/p')
fi
_cargo_with_etw() {
    if [[ ${COMP_WORDS[1]} == etw && $COMP_CWORD -gt 1 ]]; then
        COMP_WORDS=(cargo-etw "${COMP_WORDS[@]:2}")
        COMP_CWORD=$((COMP_CWORD - 1))
        _cargo-etw cargo-etw "$2" "${COMP_WORDS[COMP_CWORD - 1]}"
    elif [[ -n $_cargo_etw_before && $_cargo_etw_before != _cargo_with_etw ]]; then
        "$_cargo_etw_before" "$@"
    fi
}
complete -F _cargo_with_etw -o bashdefault -o default cargo
"#;

/// Completes `cargo etw` in fish.
const FISH: &str = r#"
complete -c cargo -n "__fish_seen_subcommand_from etw" -f -a "(complete -C (string replace -r '^\s*cargo\s+etw' 'cargo-etw' -- (commandline -cp)))"
"#;

/// Returns the command line.
pub fn command() -> Command {
    Command::new("completions")
        .about("Write completions for a shell to standard output")
        .after_help(
            "bash: cargo etw completions bash > ~/.local/share/cargo-etw.bash, and source that file \
             in ~/.bashrc.\n\
             zsh: cargo etw completions zsh > a file _cargo-etw in a folder of $fpath.\n\
             fish: cargo etw completions fish > ~/.config/fish/conf.d/cargo-etw.fish.\n\
             powershell: add the output to $PROFILE; it completes the program's own name, cargo-etw.",
        )
        .arg(
            Arg::new("shell")
                .help("The shell")
                .value_name("SHELL")
                .required(true)
                .value_parser(value_parser!(Shell)),
        )
}

/// Writes the completions.
pub fn run(matches: &ArgMatches) -> Result<()> {
    let shell: Shell = required(matches, "shell")?;
    let whole = arguments::command();
    let etw = whole
        .find_subcommand("etw")
        .ok_or_else(|| anyhow!("the command line has no command etw"))?;
    let mut etw = etw.clone().name(PROGRAM).bin_name(PROGRAM);
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut etw, PROGRAM, &mut script);
    match shell {
        Shell::Bash => script.extend_from_slice(BASH.as_bytes()),
        Shell::Fish => script.extend_from_slice(FISH.as_bytes()),
        _ => {}
    }
    io::stdout()
        .write_all(&script)
        .context("cannot write to standard output")
}
