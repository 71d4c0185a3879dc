//! `cargo xtask recipes`: how to trace the sample driver with Windows' tools, computed from the
//! driver's declaration.

use std::{fmt::Write as _, fs, path::PathBuf};

use anyhow::{Context, Result, bail, ensure};
use etw_wire::winmeta;
use wdk_etw_schema::{Encoding, Event, Provider};

use crate::process::root;

/// `docs/tracing.md` and the profile for Windows Performance Recorder.
const TEXT: &str = "docs/tracing.md";
const PROFILE: &str = "inf/etw_sample_driver.wprp";

/// The sample driver's declaration.
pub fn declaration() -> Result<Provider> {
    let path = root().join("driver/src/trace.rs");
    let text =
        fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    let mut providers = wdk_etw_schema::parse::source(&text)
        .with_context(|| format!("{} is no declaration", path.display()))?;
    ensure!(
        providers.len() == 1,
        "{} declares {} providers, and must declare one",
        path.display(),
        providers.len()
    );
    Ok(providers.remove(0))
}

/// Writes the files, or checks that they are what would be written.
pub fn run(only_check: bool) -> Result<()> {
    let provider = declaration()?;
    for (path, wanted) in [(TEXT, text(&provider)?), (PROFILE, profile(&provider)?)] {
        let path: PathBuf = root().join(path);
        if only_check {
            let there = fs::read_to_string(&path).unwrap_or_default();
            if there != wanted {
                bail!(
                    "{} is stale: run `cargo xtask recipes` and commit what it writes",
                    path.display()
                );
            }
        } else {
            fs::write(&path, wanted)
                .with_context(|| format!("{} cannot be written", path.display()))?;
            println!("{}", path.display());
        }
    }
    Ok(())
}

fn level_name(level: u8) -> String {
    let named = winmeta::LEVELS.iter().find(|named| named.value == level);
    named.map_or_else(|| level.to_string(), |named| named.ident.to_owned())
}

/// The bits of all keywords.
pub fn every_keyword(provider: &Provider) -> u64 {
    provider
        .keywords
        .iter()
        .fold(0, |mask, keyword| mask | 1 << keyword.bit)
}

/// The highest level of an event.
fn deepest_level(provider: &Provider) -> u8 {
    let levels = provider.events.iter().map(|event| event.level.0);
    levels.max().unwrap_or(0)
}

fn list(events: &[&Event]) -> String {
    let names: Vec<String> = events
        .iter()
        .map(|event| format!("`{}`", event.name))
        .collect();
    names.join(", ")
}

/// The keywords and levels of the declaration.
fn tables(provider: &Provider, out: &mut String) -> Result<()> {
    writeln!(out, "| keyword | mask | what | events |\n|---|--:|---|---|")?;
    for keyword in &provider.keywords {
        let mask = 1_u64 << keyword.bit;
        let events: Vec<&Event> = provider
            .events
            .iter()
            .filter(|event| event.keyword & mask != 0)
            .collect();
        writeln!(
            out,
            "| {} | `{mask:#x}` | {} | {} |",
            keyword.name,
            keyword.docs.join(" ").trim(),
            list(&events)
        )?;
    }
    writeln!(
        out,
        "\n| level | number | events of exactly this level |\n|---|--:|---|"
    )?;
    for level in winmeta::LEVELS {
        let name = level.ident;
        let events: Vec<&Event> = provider
            .events
            .iter()
            .filter(|event| event.level.0 == level.value)
            .collect();
        if !events.is_empty() {
            writeln!(out, "| {name} | {} | {} |", level.value, list(&events))?;
        }
    }
    let (described, manifest): (Vec<&Event>, Vec<&Event>) = provider
        .events
        .iter()
        .partition(|event| event.encoding == Encoding::TraceLogging);
    writeln!(
        out,
        "\n{} events describe themselves (TraceLogging); decoders need nothing for them. {} have\n\
         ids and need the driver's resources, or its manifest: {}.",
        described.len(),
        manifest.len(),
        list(&manifest)
    )?;
    Ok(())
}

/// The guide.
#[expect(clippy::too_many_lines, reason = "it is one text after the other")]
fn text(provider: &Provider) -> Result<String> {
    let guid = provider.guid;
    let name = &provider.name;
    let level = deepest_level(provider);
    let all = every_keyword(provider);
    let first = provider
        .keywords
        .first()
        .context("the provider has no keyword")?;
    let (some, some_name) = (1_u64 << first.bit, &first.name);
    let last = provider.keywords.last().unwrap_or(first);
    let (both, both_names) = (
        some | 1_u64 << last.bit,
        format!("{} or {}", first.name, last.name),
    );
    let group = provider.group.context("the provider is in no group")?;
    let mut out = String::new();
    writeln!(
        out,
        "<!-- Written by `cargo xtask recipes` from driver/src/trace.rs. Change that, or the\n     \
         program, not this file. -->\n\
         # Trace the sample driver\n\n\
         Commands for an elevated prompt on Windows, with the driver of\n\
         [the VM guide](vm-guide.md) installed. Written after the tools' documentation; none of \
         them has\nbeen run by this project yet.\n\n\
         | | |\n|---|---|\n\
         | provider | `{name}` |\n\
         | its GUID | `{{{guid}}}` |\n\
         | its group's GUID | `{{{group}}}` |\n\
         | every keyword | `{all:#x}` |\n\
         | the deepest level | {level} ({}) |\n",
        level_name(level)
    )?;
    tables(provider, &mut out)?;
    writeln!(
        out,
        "\nAn event is recorded if its level is no deeper than the session's and it has one of \
         the\nkeywords of the session's mask. A mask of 0 stands for all. An event of several \
         keywords\nneeds one of them in the match-any mask, and all of those in the match-all \
         mask.\n"
    )?;
    writeln!(
        out,
        "## logman\n\n```bat\n\
         rem Everything, into a file.\n\
         logman start sample -ow -o sample.etl -p {{{guid}}} {all:#x} {level} -ets\n\
         rem From now on only {some_name}, no deeper than Info.\n\
         logman update sample -p {{{guid}}} {some:#x} 4 -ets\n\
         logman query sample -ets\n\
         logman stop sample -ets\n\
         rem What the system knows of the provider; its names, once it is installed.\n\
         logman query providers {name}\n```\n\n\
         It knows no groups, no match-all masks and no filters.\n"
    )?;
    writeln!(
        out,
        "## tracelog\n\nPart of the WDK. The first mask is match-any.\n\n```bat\n\
         tracelog -start sample -f sample.etl -guid #{guid} -matchanykw {all:#x} -level {level}\n\
         rem {both_names}, and without two of the events by their ids.\n\
         tracelog -enable sample -guid #{guid} -matchanykw {both:#x} -level {level} -EventIdFilter \
         -out 2 1 2\n\
         rem The whole group instead of the provider (EVENT_ENABLE_PROPERTY_PROVIDER_GROUP).\n\
         tracelog -enable sample -guid #{group} -level {level} -enableproperty 0x20\n\
         rem Have the provider write its state.\n\
         tracelog -capturestate sample\n\
         tracelog -stop sample\n```\n"
    )?;
    writeln!(
        out,
        "## Windows Performance Recorder\n\n\
         [`{PROFILE}`](../{PROFILE}) has two profiles. A driver's provider needs buffers in \
         memory\nthat is not paged (`NonPagedMemory`).\n\n```bat\n\
         wpr -start etw_sample_driver.wprp!Everything.Verbose -filemode\n\
         wpr -stop sample.etl\n\
         rem Only {some_name}, down to Info.\n\
         wpr -start etw_sample_driver.wprp!{some_name}.Verbose -filemode\n\
         rem From the next start of the system on, before most drivers are loaded.\n\
         wpr -boottrace -addboot etw_sample_driver.wprp!Everything.Verbose -filemode\n\
         wpr -boottrace -stopboot boot.etl\n```\n"
    )?;
    writeln!(
        out,
        "## PowerShell\n\n```powershell\n\
         New-EtwTraceSession -Name sample -LocalFilePath C:\\sample.etl\n\
         Add-EtwTraceProvider -SessionName sample -Guid '{{{guid}}}' -Level {level} \
         -MatchAnyKeyword {all:#x}\n\
         # The whole group.\n\
         Add-EtwTraceProvider -SessionName sample -Guid '{{{group}}}' -Level {level} -Property \
         0x20\n\
         Stop-EtwTraceSession -Name sample\n\
         # Before most drivers are loaded, from the next start of the system on.\n\
         New-AutologgerConfig -Name sample -LocalFilePath C:\\boot.etl -Start Enabled\n\
         Add-EtwTraceProvider -AutologgerName sample -Guid '{{{guid}}}' -Level {level} \
         -MatchAnyKeyword {all:#x}\n\
         Remove-AutologgerConfig -Name sample\n```\n"
    )?;
    writeln!(
        out,
        "## xperf\n\n```bat\n\
         xperf -start sample -on {guid}:{all:#x}:{level} -f sample.etl\n\
         xperf -stop sample\n```\n"
    )?;
    writeln!(
        out,
        "## The client\n\n```bat\n\
         rem Live, as a table; or as JSON lines.\n\
         etw-sample-client trace --any {all:#x} --level {level}\n\
         etw-sample-client trace --json --any {some:#x} --level 4\n\
         etw-sample-client trace --group {group}\n\
         etw-sample-client record --out sample.etl --seconds 10\n```\n"
    )?;
    writeln!(
        out,
        "## Reading a trace\n\n```bat\n\
         tracerpt sample.etl -o sample.xml -of XML -lr\n\
         powershell Get-WinEvent -Path sample.etl -Oldest\n\
         wpa sample.etl\n```\n\n\
         And anywhere, with this project's reader:\n\n```sh\n\
         cargo run -q -p etl-file --bin etl -- dump --image etw_sample_driver.sys sample.etl\n```"
    )?;
    Ok(out)
}

/// The profile for Windows Performance Recorder.
fn profile(provider: &Provider) -> Result<String> {
    let guid = provider.guid;
    let level = deepest_level(provider);
    let first = provider
        .keywords
        .first()
        .context("the provider has no keyword")?;
    let profiles = [
        ("Everything", every_keyword(provider), level),
        (first.name.as_str(), 1 << first.bit, 4),
    ];
    let mut out = String::new();
    writeln!(
        out,
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n\
         <!-- Written by `cargo xtask recipes` from driver/src/trace.rs. -->\n\
         <WindowsPerformanceRecorder Version=\"1.0\" Author=\"wdk-etw\">\n  \
         <Profiles>\n    \
         <EventCollector Id=\"Collector\" Name=\"{} collector\">\n      \
         <BufferSize Value=\"64\"/>\n      \
         <Buffers Value=\"32\"/>\n    \
         </EventCollector>",
        provider.name
    )?;
    for (name, mask, level) in profiles {
        writeln!(
            out,
            "    <EventProvider Id=\"Provider.{name}\" Name=\"{guid}\" Level=\"{level}\" \
             NonPagedMemory=\"true\">\n      \
             <Keywords>\n        \
             <Keyword Value=\"{mask:#x}\"/>\n      \
             </Keywords>\n    \
             </EventProvider>"
        )?;
    }
    for (name, _, _) in profiles {
        for mode in ["File", "Memory"] {
            writeln!(
                out,
                "    <Profile Id=\"{name}.Verbose.{mode}\" Name=\"{name}\" \
                 Description=\"{}: {name}\" DetailLevel=\"Verbose\" LoggingMode=\"{mode}\">\n      \
                 <Collectors>\n        \
                 <EventCollectorId Value=\"Collector\">\n          \
                 <EventProviders>\n            \
                 <EventProviderId Value=\"Provider.{name}\"/>\n          \
                 </EventProviders>\n        \
                 </EventCollectorId>\n      \
                 </Collectors>\n    \
                 </Profile>",
                provider.name
            )?;
        }
    }
    writeln!(out, "  </Profiles>\n</WindowsPerformanceRecorder>")?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_committed_is_what_the_declaration_makes() {
        run(true).unwrap();
    }

    #[test]
    fn masks_and_levels_are_the_declarations() {
        let source = r#"
            #[provider(name = "A", group = "2e651177-aeab-5ffc-66e2-144601de7da8")]
            mod one {
                #[keyword]
                const FIRST: Keyword = Keyword::bit(4);
                #[keyword]
                const LAST: Keyword = Keyword::bit(9);
                #[event(level = Error, keyword = FIRST | LAST)]
                fn x();
            }
        "#;
        let provider = wdk_etw_schema::parse::source(source).unwrap().remove(0);
        let text = text(&provider).unwrap();
        assert!(
            text.contains(&format!("-p {{{}}} 0x210 2 -ets", provider.guid)),
            "{text}"
        );
        assert!(text.contains("| First | `0x10` |"), "{text}");
        assert!(text.contains("| Error | 2 | `X` |"), "{text}");
        let profile = profile(&provider).unwrap();
        assert!(profile.contains("<Keyword Value=\"0x210\"/>"), "{profile}");
    }
}
