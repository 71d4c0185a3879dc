//! `cargo etw completions`: writes shell completions.

use std::io::{self, Write as _};

use anyhow::{Context, Result, anyhow};
use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;

use crate::options::required;

/// The name of the program to complete.
const PROGRAM: &str = "cargo-etw";

/// The program's name in the bash functions.
const IN_BASH: &str = "cargo_etw";

/// The bash script that completes `cargo etw`, and leaves all other commands to cargo's
/// completions.
const BASH: &str = r#"
_cargo_etw_function() {
    complete -p "$1" 2>/dev/null | sed -n 's/.* -F \([^ ]*\) .*/\1/p'
}
_cargo_etw_own=$(_cargo_etw_function cargo-etw)
_cargo_etw_before=$(_cargo_etw_function cargo)
if [[ -z $_cargo_etw_before ]] && declare -F _completion_loader >/dev/null; then
    _completion_loader cargo >/dev/null 2>&1
    _cargo_etw_before=$(_cargo_etw_function cargo)
fi
_cargo_with_etw() {
    if [[ ${COMP_WORDS[1]} == etw && $COMP_CWORD -gt 1 ]]; then
        COMP_WORDS=(cargo-etw "${COMP_WORDS[@]:2}")
        COMP_CWORD=$((COMP_CWORD - 1))
        "$_cargo_etw_own" cargo-etw "$2" "${COMP_WORDS[COMP_CWORD - 1]}"
    elif [[ -n $_cargo_etw_before && $_cargo_etw_before != _cargo_with_etw ]]; then
        "$_cargo_etw_before" "$@"
    fi
}
complete -F _cargo_with_etw -o bashdefault -o default cargo
"#;

/// The fish script that completes `cargo etw`.
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

/// Writes the completions for `whole`, the complete command line.
pub fn run(matches: &ArgMatches, whole: &Command) -> Result<()> {
    let shell: Shell = required(matches, "shell")?;
    let etw = whole
        .find_subcommand("etw")
        .ok_or_else(|| anyhow!("the command line has no command etw"))?;
    // clap_complete's script uses inconsistent function names if the program's name contains a
    // hyphen.
    let name = if shell == Shell::Bash { IN_BASH } else { PROGRAM };
    let mut etw = etw.clone().name(name).bin_name(name);
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut etw, name, &mut script);
    let mut script = String::from_utf8(script).context("the completions are not UTF-8")?;
    match shell {
        Shell::Bash => {
            script = script.replace(&format!(" {name}\n"), &format!(" {PROGRAM}\n"));
            script.push_str(BASH);
        }
        Shell::Fish => script.push_str(FISH),
        _ => {}
    }
    io::stdout().write_all(script.as_bytes()).context("cannot write to standard output")
}
