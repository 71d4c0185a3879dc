//! `cargo etw recipes`: writes instructions for tracing a driver with Windows tools from its
//! declaration.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use etw_wire::winmeta;
use wdk_etw_schema::{Encoding, Event, Provider};

use crate::manifest;

/// The settings for one driver's tracing instructions.
#[derive(Debug)]
pub struct Recipes {
    /// The source file with the declaration.
    pub declaration: PathBuf,
    /// The Markdown file for the instructions.
    pub text: PathBuf,
    /// The Windows Performance Recorder profile.
    pub profile: PathBuf,
    /// The driver's file name.
    pub image: String,
    /// The name of sessions and trace files.
    pub session: String,
    /// The text's title.
    pub title: Option<String>,
    /// A Markdown link to the installation instructions.
    pub guide: Option<String>,
    /// The driver's own tracing program.
    pub client: Option<String>,
    /// The command that reads `.etl` files.
    pub reader: String,
    /// The command that the files name as their generator.
    pub command: String,
}

/// Writes the files, or checks that they are up to date.
pub fn run(recipes: &Recipes, only_check: bool) -> Result<()> {
    let provider = manifest::provider(&recipes.declaration)?;
    for (path, wanted) in [
        (&recipes.text, recipes.text(&provider)?),
        (&recipes.profile, recipes.profile(&provider)?),
    ] {
        if only_check {
            let found = fs::read_to_string(path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            if found != wanted {
                bail!(
                    "{} is stale: run `{}` and commit what it writes",
                    path.display(),
                    recipes.command
                );
            }
        } else {
            fs::write(path, wanted).with_context(|| format!("cannot write {}", path.display()))?;
            println!("{}", path.display());
        }
    }
    Ok(())
}

impl Recipes {
    /// Returns the Markdown text.
    fn text(&self, provider: &Provider) -> Result<String> {
        let values = Values::new(provider)?;
        let mut out = String::new();
        self.head(provider, &values, &mut out)?;
        tables(provider, &mut out)?;
        writeln!(
            out,
            "\nAn event is recorded if its level is no deeper than the session's and it has one of \
             the\nkeywords of the session's mask. A mask of 0 stands for all. An event of several \
             keywords\nneeds one of them in the match-any mask, and all of those in the match-all \
             mask.\n"
        )?;
        self.logman_and_tracelog(provider, &values, &mut out)?;
        self.recorder(&values, &mut out)?;
        self.other_tools(provider, &values, &mut out)?;
        self.reading(&mut out)?;
        Ok(out)
    }

    /// Writes the title and the provider's values.
    fn head(&self, provider: &Provider, values: &Values<'_>, out: &mut String) -> Result<()> {
        let name = &provider.name;
        let title = self
            .title
            .clone()
            .unwrap_or_else(|| format!("Trace {name}"));
        let installed = self.guide.as_ref().map_or_else(
            || "with the driver\ninstalled".to_owned(),
            |guide| format!("with the driver of\n{guide} installed"),
        );
        writeln!(
            out,
            "<!-- Written by `{}` from {}. Change that, or the\n     \
             program, not this file. -->\n\
             # {title}\n\n\
             Commands for an elevated prompt on Windows, {installed}. Written after the tools' \
             documentation; none of them has\nbeen run by this project yet.\n\n\
             | | |\n|---|---|\n\
             | provider | `{name}` |\n\
             | its GUID | `{{{}}}` |",
            self.command,
            self.declaration.display(),
            provider.guid
        )?;
        if let Some(group) = provider.group {
            writeln!(out, "| its group's GUID | `{{{group}}}` |")?;
        }
        writeln!(
            out,
            "| every keyword | `{:#x}` |\n\
             | the deepest level | {} ({}) |\n",
            values.all,
            values.level,
            level_name(values.level)
        )?;
        Ok(())
    }

    fn logman_and_tracelog(
        &self,
        provider: &Provider,
        values: &Values<'_>,
        out: &mut String,
    ) -> Result<()> {
        let Values {
            guid,
            all,
            some,
            some_name,
            both,
            both_names,
            level,
        } = values;
        let (name, session) = (&provider.name, &self.session);
        writeln!(
            out,
            "## logman\n\n```bat\n\
             rem Everything, into a file.\n\
             logman start {session} -ow -o {session}.etl -p {{{guid}}} {all:#x} {level} -ets\n\
             rem From now on only {some_name}, no deeper than Info.\n\
             logman update {session} -p {{{guid}}} {some:#x} 4 -ets\n\
             logman query {session} -ets\n\
             logman stop {session} -ets\n\
             rem What the system knows of the provider; its names, once it is installed.\n\
             logman query providers {name}\n```\n\n\
             It knows no groups, no match-all masks and no filters.\n"
        )?;
        writeln!(
            out,
            "## tracelog\n\nPart of the WDK. The first mask is match-any.\n\n```bat\n\
             tracelog -start {session} -f {session}.etl -guid #{guid} -matchanykw {all:#x} -level \
             {level}\n\
             rem {both_names}, and without two of the events by their ids.\n\
             tracelog -enable {session} -guid #{guid} -matchanykw {both:#x} -level {level} \
             -EventIdFilter -out 2 1 2"
        )?;
        if let Some(group) = provider.group {
            writeln!(
                out,
                "rem The whole group instead of the provider \
                 (EVENT_ENABLE_PROPERTY_PROVIDER_GROUP).\n\
                 tracelog -enable {session} -guid #{group} -level {level} -enableproperty 0x20"
            )?;
        }
        writeln!(
            out,
            "rem Have the provider write its state.\n\
             tracelog -capturestate {session}\n\
             tracelog -stop {session}\n```\n"
        )?;
        Ok(())
    }

    /// Writes the section on Windows Performance Recorder.
    fn recorder(&self, values: &Values<'_>, out: &mut String) -> Result<()> {
        let (session, some_name) = (&self.session, values.some_name);
        let file = self.profile.file_name().unwrap_or_default().display();
        writeln!(
            out,
            "## Windows Performance Recorder\n\n\
             [`{}`]({}) has two profiles. A driver's provider needs buffers in memory\nthat is not \
             paged (`NonPagedMemory`).\n\n```bat\n\
             wpr -start {file}!Everything.Verbose -filemode\n\
             wpr -stop {session}.etl\n\
             rem Only {some_name}, down to Info.\n\
             wpr -start {file}!{some_name}.Verbose -filemode\n\
             rem From the next start of the system on, before most drivers are loaded.\n\
             wpr -boottrace -addboot {file}!Everything.Verbose -filemode\n\
             wpr -boottrace -stopboot boot.etl\n```\n",
            self.profile.display(),
            link(&self.text, &self.profile)
        )?;
        Ok(())
    }

    /// Writes the sections on PowerShell, xperf and the driver's own client.
    fn other_tools(
        &self,
        provider: &Provider,
        values: &Values<'_>,
        out: &mut String,
    ) -> Result<()> {
        let Values {
            guid,
            all,
            some,
            level,
            ..
        } = values;
        let session = &self.session;
        let add = format!("Add-EtwTraceProvider -SessionName {session}");
        writeln!(
            out,
            "## PowerShell\n\n```powershell\n\
             New-EtwTraceSession -Name {session} -LocalFilePath C:\\{session}.etl\n\
             {add} -Guid '{{{guid}}}' -Level {level} -MatchAnyKeyword {all:#x}"
        )?;
        if let Some(group) = provider.group {
            writeln!(
                out,
                "# The whole group.\n\
                 {add} -Guid '{{{group}}}' -Level {level} -Property 0x20"
            )?;
        }
        writeln!(
            out,
            "Stop-EtwTraceSession -Name {session}\n\
             # Before most drivers are loaded, from the next start of the system on.\n\
             New-AutologgerConfig -Name {session} -LocalFilePath C:\\boot.etl -Start Enabled\n\
             Add-EtwTraceProvider -AutologgerName {session} -Guid '{{{guid}}}' -Level {level} \
             -MatchAnyKeyword {all:#x}\n\
             Remove-AutologgerConfig -Name {session}\n```\n"
        )?;
        writeln!(
            out,
            "## xperf\n\n```bat\n\
             xperf -start {session} -on {guid}:{all:#x}:{level} -f {session}.etl\n\
             xperf -stop {session}\n```\n"
        )?;
        let Some(client) = &self.client else {
            return Ok(());
        };
        writeln!(
            out,
            "## The client\n\n```bat\n\
             rem Show events live, as a table or as JSON Lines.\n\
             {client} trace --any {all:#x} --level {level}\n\
             {client} trace --json --any {some:#x} --level 4"
        )?;
        if let Some(group) = provider.group {
            writeln!(out, "{client} trace --group {group}")?;
        }
        writeln!(
            out,
            "{client} record --out {session}.etl --seconds 10\n```\n"
        )?;
        Ok(())
    }

    fn reading(&self, out: &mut String) -> Result<()> {
        let (session, reader, image) = (&self.session, &self.reader, &self.image);
        writeln!(
            out,
            "## Reading a trace\n\n```bat\n\
             tracerpt {session}.etl -o {session}.xml -of XML -lr\n\
             powershell Get-WinEvent -Path {session}.etl -Oldest\n\
             wpa {session}.etl\n```\n\n\
             And anywhere, with this project's reader:\n\n```sh\n\
             {reader} dump --image {image} {session}.etl\n```"
        )?;
        Ok(())
    }

    /// Returns the Windows Performance Recorder profile.
    fn profile(&self, provider: &Provider) -> Result<String> {
        let values = Values::new(provider)?;
        let (guid, level) = (&values.guid, values.level);
        let profiles = [
            ("Everything", values.all, level),
            (values.some_name, values.some, 4),
        ];
        let mut out = String::new();
        writeln!(
            out,
            "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n\
             <!-- Written by `{}` from {}. -->\n\
             <WindowsPerformanceRecorder Version=\"1.0\" Author=\"wdk-etw\">\n  \
             <Profiles>\n    \
             <EventCollector Id=\"Collector\" Name=\"{} collector\">\n      \
             <BufferSize Value=\"64\"/>\n      \
             <Buffers Value=\"32\"/>\n    \
             </EventCollector>",
            self.command,
            self.declaration.display(),
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
}

/// The values of a declaration that the instructions use.
struct Values<'a> {
    guid: String,
    /// The mask of all keywords.
    all: u64,
    /// The mask of one keyword, and the keyword's name.
    some: u64,
    some_name: &'a str,
    /// The mask of two keywords, and the keywords' names.
    both: u64,
    both_names: String,
    level: u8,
}

impl<'a> Values<'a> {
    fn new(provider: &'a Provider) -> Result<Self> {
        let [first, ..] = provider.keywords.as_slice() else {
            bail!(
                "{} declares no keyword, and the instructions filter by one: declare it with #[keyword]",
                provider.name
            );
        };
        let last = provider.keywords.last().unwrap_or(first);
        let some = 1_u64 << first.bit;
        Ok(Self {
            guid: provider.guid.to_string(),
            all: every_keyword(provider),
            some,
            some_name: &first.name,
            both: some | 1_u64 << last.bit,
            both_names: format!("{} or {}", first.name, last.name),
            level: deepest_level(provider),
        })
    }
}

/// Returns the link from one file to another; both paths are relative to the same folder.
fn link(from: &Path, to: &Path) -> String {
    let up = from
        .parent()
        .map_or(0, |folder| folder.components().count());
    let down = to.display().to_string().replace('\\', "/");
    if to.is_absolute() {
        down
    } else {
        "../".repeat(up) + &down
    }
}

fn level_name(level: u8) -> String {
    let named = winmeta::LEVELS.iter().find(|named| named.value == level);
    named.map_or_else(|| level.to_string(), |named| named.ident.to_owned())
}

/// Returns the mask of all keywords.
fn every_keyword(provider: &Provider) -> u64 {
    provider
        .keywords
        .iter()
        .fold(0, |mask, keyword| mask | 1 << keyword.bit)
}

/// Returns the highest level of an event.
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

/// Writes tables of the declaration's keywords and levels.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn recipes() -> Recipes {
        Recipes {
            declaration: "src/trace.rs".into(),
            text: "docs/tracing.md".into(),
            profile: "driver.wprp".into(),
            image: "driver.sys".to_owned(),
            session: "trace".to_owned(),
            title: None,
            guide: None,
            client: None,
            reader: "etl".to_owned(),
            command: "cargo etw recipes".to_owned(),
        }
    }

    #[test]
    fn a_provider_without_a_group_or_client_has_recipes_without_them() {
        let source = r#"
            #[provider(name = "A")]
            mod one {
                #[keyword]
                const FIRST: Keyword = Keyword::bit(4);
                #[event(level = Error, keyword = FIRST)]
                fn x();
            }
        "#;
        let provider = wdk_etw_schema::parse::source(source).unwrap().remove(0);
        let text = recipes().text(&provider).unwrap();
        assert!(text.contains("# Trace A\n"), "{text}");
        assert!(!text.contains("group's"), "{text}");
        assert!(!text.contains("0x20"), "{text}");
        assert!(!text.contains("client"), "{text}");
        assert!(text.contains("[`driver.wprp`](../driver.wprp)"), "{text}");
    }

    #[test]
    fn a_provider_without_keywords_is_refused_with_what_to_do() {
        let source = r#"#[provider(name = "A")] mod one {}"#;
        let provider = wdk_etw_schema::parse::source(source).unwrap().remove(0);
        let error = recipes().text(&provider).unwrap_err().to_string();
        assert!(error.contains("A declares no keyword"), "{error}");
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
        let text = recipes().text(&provider).unwrap();
        assert!(
            text.contains(&format!("-p {{{}}} 0x210 2 -ets", provider.guid)),
            "{text}"
        );
        assert!(text.contains("| First | `0x10` |"), "{text}");
        assert!(text.contains("| Error | 2 | `X` |"), "{text}");
        let profile = recipes().profile(&provider).unwrap();
        assert!(profile.contains("<Keyword Value=\"0x210\"/>"), "{profile}");
    }
}
