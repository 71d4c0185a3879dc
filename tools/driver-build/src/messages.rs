//! Shows the messages of a build.

use std::{
    collections::BTreeSet,
    io::{self, BufRead as _, BufReader, IsTerminal as _},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{
    missing::{missing_libraries, missing_names, undefined_symbols},
    process::line,
};

/// The form in which a build shows compiler messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Messages {
    /// For people, on standard error.
    Human,
    /// cargo's JSON messages on standard output, and a message with reason `driver-image` for the
    /// image.
    Json,
}

/// Runs cargo, shows its messages, and reports names that the stand-in lacks.
pub fn run(cargo: &mut Command, messages: Messages) -> Result<()> {
    let format = match messages {
        Messages::Human if io::stderr().is_terminal() => "json-diagnostic-rendered-ansi",
        Messages::Human | Messages::Json => "json",
    };
    let mut child = cargo
        .arg(format!("--message-format={format}"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start: {}", line(cargo)))?;
    let (mut missing, mut undefined) = (BTreeSet::new(), BTreeSet::new());
    let mut libraries = BTreeSet::new();
    if let Some(output) = child.stdout.take() {
        for text in BufReader::new(output).lines() {
            let text = text.context("cannot read cargo's messages")?;
            let message: Value = serde_json::from_str(&text).unwrap_or_default();
            missing.extend(missing_names(&message));
            let symbols = undefined_symbols(&message);
            let unknown = missing_libraries(&message);
            match messages {
                Messages::Json => println!("{text}"),
                // The error at the end names the symbols; the compiler's message shows the linker's
                // arguments.
                Messages::Human if !symbols.is_empty() || !unknown.is_empty() => {}
                Messages::Human => {
                    if let Some(rendered) = message["message"]["rendered"].as_str() {
                        eprint!("{rendered}");
                    }
                }
            }
            undefined.extend(symbols);
            libraries.extend(unknown);
        }
    }
    let status = child.wait().with_context(|| format!("cannot run: {}", line(cargo)))?;
    if status.success() {
        return Ok(());
    }
    if !libraries.is_empty() {
        bail!(
            "cannot link the driver: its build links {}, and neither the WDK's kernel libraries nor the \
             folders that build scripts add (`cargo::rustc-link-search`) have it; check the spelling, or \
             add the folder",
            Vec::from_iter(libraries).join(", ")
        );
    }
    if !undefined.is_empty() {
        bail!(
            "cannot link the driver: no crate defines {}, and no library that the driver links is known \
             to export it; link the library that does (`cargo::rustc-link-lib=fltmgr`), check the spelling, or name the module that exports it on the \
             `extern` block: \
             `#[link(name = \"MODULE.sys\", kind = \"raw-dylib\", modifiers = \"+verbatim\")]`; a \
             routine of a static library needs the WDK",
            Vec::from_iter(undefined).join(", ")
        );
    }
    if missing.is_empty() {
        bail!("cargo cannot build the driver ({status})");
    }
    bail!(
        "cargo cannot build the driver ({status}); the stand-in for wdk-sys lacks these names, \
         which the WDK's headers may have: {}",
        Vec::from_iter(missing).join(", ")
    )
}
