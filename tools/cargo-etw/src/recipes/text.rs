//! The instructions for tracing, as Markdown.

use std::{
    fmt,
    fmt::Write as _,
    path::{Path, PathBuf},
};

use super::{
    data,
    filtered::Filtered,
    profile::{SELECTED_LEVEL, profiles},
    provider::{Event, Traced, groups, level_name},
};
use etw_wire::winmeta;

/// The section about reading a trace. Words between at signs are placeholders.
const READING: &str = include_str!("reading.md.in");

/// The settings for one driver's tracing instructions.
#[derive(Debug)]
pub struct Recipes {
    /// The files that describe the providers, to name in comments.
    pub source: String,
    /// The Markdown file to write.
    pub text: PathBuf,
    /// The Windows Performance Recorder profile.
    pub profile: PathBuf,
    /// The folder that paths in the text are relative to.
    pub folder: PathBuf,
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
    /// The command to name as the files' generator.
    pub command: String,
}

/// Returns the link from one file to another.
fn link(from: &Path, to: &Path) -> String {
    let mut from = from.parent().unwrap_or_else(|| Path::new("")).components().peekable();
    let mut down = to.components().peekable();
    while from.peek().is_some() && from.peek() == down.peek() {
        from.next();
        down.next();
    }
    let down: Vec<String> =
        down.map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    "../".repeat(from.count()) + &down.join("/")
}

fn list(events: &[&Event]) -> String {
    let names: Vec<String> = events.iter().map(|event| format!("`{}`", event.name)).collect();
    names.join(", ")
}

/// Returns a comment's suffix that names the provider, if there are several.
fn provider_suffix(provider: &Traced, providers: &[Traced]) -> String {
    if providers.len() > 1 { format!(" of {}", provider.name) } else { String::new() }
}

impl Recipes {
    /// Returns a file's path relative to the workspace, with slashes.
    fn named(&self, path: &Path) -> String {
        let path = path.strip_prefix(&self.folder).unwrap_or(path);
        path.display().to_string().replace('\\', "/")
    }

    /// Returns the Markdown text.
    pub fn text(&self, providers: &[Traced]) -> Result<String, fmt::Error> {
        let mut out = String::new();
        self.head(providers, &mut out)?;
        for (number, provider) in providers.iter().enumerate() {
            if number > 0 {
                writeln!(out)?;
            }
            values(provider, providers.len() > 1, &mut out)?;
            tables(provider, &mut out)?;
        }
        writeln!(
            out,
            "\nA session records an event if the event's level is at most the session's level and \
             the\nevent's keywords include at least one bit of the match-any mask and all bits of \
             the\nmatch-all mask. A mask of 0 has no effect. Events without keywords pass both \
             masks.\n\n\
             A session must have its buffers in nonpaged memory. One in paged memory gets no events of \
             drivers.\n"
        )?;
        if !groups(providers).is_empty() {
            writeln!(
                out,
                "A provider that a session enables by itself and by its group is enabled twice: the \
                 session records\nwhat either of them passes, and each event once, as far as is known \
                 (Microsoft does not document it).\nTo record what the group alone passes, disable the \
                 provider or use a session of its own.\n"
            )?;
        }
        self.logman(providers, &mut out)?;
        self.tracelog(providers, &mut out)?;
        self.recorder(providers, &mut out)?;
        self.power_shell(providers, &mut out)?;
        self.xperf(providers, &mut out)?;
        self.in_memory(providers, &mut out)?;
        self.cargo_etw(providers, &mut out)?;
        self.own_client(providers, &mut out)?;
        self.reading(providers, &mut out)?;
        Ok(out)
    }

    /// Returns the recipes as JSON.
    pub fn data(&self, providers: &[Traced]) -> String {
        let profile = self.profile.file_name().unwrap_or_default();
        let profile = profile.display().to_string();
        let client = self.client.as_deref();
        let data = data::recipes(providers, &self.session, &profile, client);
        format!("{data:#}\n")
    }

    /// Writes the title.
    fn head(&self, providers: &[Traced], out: &mut String) -> fmt::Result {
        let title = self.title.clone().unwrap_or_else(|| match providers {
            [only] => format!("Trace {}", only.name),
            _ => format!("Trace {}", self.image),
        });
        let installed = self.guide.as_ref().map_or_else(
            || "after the driver\nis installed".to_owned(),
            |guide| format!("after the driver is installed\nas described in {guide}"),
        );
        writeln!(
            out,
            "<!-- Written by `{}` from {}. Do not edit this file;\n     \
             change the declaration or the generator. -->\n\
             # {title}\n\n\
             Commands for an elevated prompt on Windows, {installed}. The commands follow the \
             tools' documentation;\nthis project has not run them yet.\n",
            self.command, self.source
        )
    }

    fn logman(&self, providers: &[Traced], out: &mut String) -> fmt::Result {
        let session = &self.session;
        let everything = data::logman(session, data::everything(providers));
        writeln!(out, "## logman\n\n```bat\nrem Everything, into a file.")?;
        writeln!(out, "{}", everything.start.join("\n"))?;
        for provider in providers {
            if let Some(keyword) = provider.keywords.first() {
                writeln!(
                    out,
                    "rem From now on, record only {} events{}, up to level Info.\n\
                     logman update trace {session} -p \"{{{}}}\" {:#x} {SELECTED_LEVEL} -ets",
                    keyword.name,
                    provider_suffix(provider, providers),
                    provider.guid,
                    keyword.mask
                )?;
            }
        }
        writeln!(
            out,
            "{}\n\
             rem Lists the provider's registration and, if its manifest is installed, its names.",
            everything.stop.join("\n")
        )?;
        for provider in providers {
            let name = &provider.name;
            let name = if name.contains(' ') { format!("\"{name}\"") } else { name.clone() };
            writeln!(out, "logman query providers {name}")?;
        }
        writeln!(
            out,
            "```\n\n\
             The session has buffers in nonpaged memory, because `-mode pagedmemory` is missing. \
             logman\nsupports neither provider groups nor match-all masks nor filters.\n"
        )
    }

    fn tracelog(&self, providers: &[Traced], out: &mut String) -> fmt::Result {
        let session = &self.session;
        let everything = data::tracelog(session, data::everything(providers));
        writeln!(
            out,
            "## tracelog\n\nPart of the WDK. The first mask is match-any. Without `-paged` the session has \
             buffers in nonpaged\nmemory.\n\n```bat\n{}",
            everything.start.join("\n")
        )?;
        for provider in providers {
            if let Some(filtered) = Filtered::select(provider) {
                writeln!(
                    out,
                    "rem {}{}{}.\n{}",
                    filtered.names,
                    provider_suffix(provider, providers),
                    filtered.except(),
                    filtered.line(session, provider)
                )?;
            }
        }
        for (group, level) in groups(providers) {
            writeln!(
                out,
                "rem The whole group (EVENT_ENABLE_PROPERTY_PROVIDER_GROUP), besides what is enabled above.\n\
                 tracelog -enable {session} -guid #{group} -level {level} -enableproperty 0x20"
            )?;
        }
        writeln!(
            out,
            "rem Have the provider write its state.\n\
             {}\n{}\n```\n",
            data::capture_state(session),
            everything.stop.join("\n")
        )
    }

    /// Writes the section about Windows Performance Recorder.
    fn recorder(&self, providers: &[Traced], out: &mut String) -> fmt::Result {
        let session = &self.session;
        let file = self.profile.file_name().unwrap_or_default().display();
        let profiles = profiles(providers);
        let number = match profiles.len() {
            1 => "one profile".to_owned(),
            2 => "two profiles".to_owned(),
            many => format!("{many} profiles"),
        };
        writeln!(
            out,
            "## Windows Performance Recorder\n\n\
             [`{}`]({}) has {number}, with buffers in nonpaged memory\n(`NonPagedMemory`).\n\n```bat\n\
             wpr -start {file}!Everything.Verbose -filemode\n\
             wpr -stop {session}.etl",
            self.named(&self.profile),
            link(&self.text, &self.profile)
        )?;
        for profile in profiles.iter().skip(1) {
            let name = &profile.name;
            writeln!(
                out,
                "rem Only {}, up to level Info.\n\
                 wpr -start {file}!{name}.Verbose -filemode",
                profile.what
            )?;
        }
        writeln!(
            out,
            "rem Records from the next boot, before most drivers are loaded.\n\
             wpr -boottrace -addboot {file}!Everything.Verbose -filemode\n\
             wpr -boottrace -stopboot boot.etl\n```\n"
        )
    }

    fn power_shell(&self, providers: &[Traced], out: &mut String) -> fmt::Result {
        let session = &self.session;
        let everything = data::power_shell("", session, data::everything(providers));
        writeln!(
            out,
            "## PowerShell\n\n`-NonPaged`, and a log file mode without 0x1000000 \
             (`EVENT_TRACE_USE_PAGED_MEMORY`), make the buffers\nnonpaged.\n\n```powershell\n{}",
            everything.start.join("\n")
        )?;
        let groups = data::power_shell("", session, data::whole_groups(providers).collect());
        for line in groups.start.iter().skip(1) {
            writeln!(out, "# The whole group, besides what is enabled above.\n{line}")?;
        }
        let boot = data::autologger(providers, session);
        writeln!(
            out,
            "{}\n# Records from the next boot, before most drivers are loaded.\n{}\n\
             # After the restart.\n{}\n```\n",
            everything.stop.join("\n"),
            boot.start.join("\n"),
            boot.stop.join("\n")
        )
    }

    fn xperf(&self, providers: &[Traced], out: &mut String) -> fmt::Result {
        let everything = data::xperf(&self.session, data::everything(providers));
        let (start, stop) = (everything.start.join("\n"), everything.stop.join("\n"));
        writeln!(out, "## xperf\n\n```bat\n{start}\n{stop}\n```\n")
    }

    /// Writes the section on a session that is always on and is read from a crash dump.
    fn in_memory(&self, providers: &[Traced], out: &mut String) -> fmt::Result {
        let (session, reader) = (&self.session, &self.reader);
        let recipe = data::in_memory(session, data::everything(providers));
        let saved = format!("{reader} dump {}{session}.etl", self.image_option(providers));
        writeln!(
            out,
            "## Always on, in memory\n\n\
             A session in buffering mode (`EVENT_TRACE_BUFFERING_MODE`, 0x400) writes no file: it keeps the \
             newest events in\na ring of buffers in nonpaged memory, here 64 of 64 KB, and costs nothing but \
             that memory and the writes. logman\nhas no option for this mode.\n\n```bat\n{}\n\
             rem Something happened: save the ring to a file. The session continues.\n{}\n```\n\n\
             To start such a session with Windows, before most drivers are loaded:\n\n```powershell\n{}\n\
             # Ends it for the following starts.\nRemove-AutologgerConfig -Name {session}\n```\n\n\
             After a crash, the ring is in the memory dump, if the dump contains the kernel's memory (kernel, \
             automatic,\nactive or complete, not small). In WinDbg, with the dump open, the first command lists \
             the sessions, and the\nsecond one saves this session's buffers as a trace file:\n\n```text\n\
             !wmitrace.strdump\n\
             !wmitrace.logsave {session} C:\\{session}.etl\n```\n\nThen read it like any other:\n\n```sh\n\
             {saved}\n```\n",
            recipe.start.join("\n"),
            recipe.stop.join("\nrem End the session.\n"),
            data::always_in_memory(providers, session).join("\n"),
        )
    }

    /// Returns the option of the reader that names the driver's image, if its resources are needed.
    fn image_option(&self, providers: &[Traced]) -> String {
        let mut events = providers.iter().flat_map(|provider| &provider.events);
        if events.any(|event| !event.is_self_describing) {
            format!("--image {} ", self.image)
        } else {
            String::new()
        }
    }

    /// Writes the section about `cargo etw trace`.
    fn cargo_etw(&self, providers: &[Traced], out: &mut String) -> fmt::Result {
        let line = data::cargo_etw_trace(providers);
        let recorded = data::cargo_etw(&self.session, providers).during;
        writeln!(
            out,
            "## cargo etw\n\n\
             `cargo etw trace` shows the events as `cargo etw run` does. In the driver's folder, it needs no \
             provider.\nWithout cargo, the program is called `cargo-etw`.\n\n```bat\n\
             rem Show events live, until Ctrl+C, which stops the session.\n\
             {line}\n\
             rem For ten seconds, and keep them.\n{}\n\
             rem Record from the next boot, before most drivers are loaded.\n\
             {line} --at-boot on\n\
             rem After the restart. It names the trace file.\n\
             {line} --at-boot off\n```\n",
            recorded.join("\n")
        )
    }

    /// Writes the section about the driver's client.
    fn own_client(&self, providers: &[Traced], out: &mut String) -> fmt::Result {
        let (Some(client), Some(provider)) = (&self.client, providers.first()) else {
            return Ok(());
        };
        let session = &self.session;
        let (all, level) = (provider.everything(), provider.highest_level());
        writeln!(
            out,
            "## The client\n\n```bat\n\
             rem Show events live, until Ctrl+C.\n\
             {client} trace --any {all:#x} --level {level}"
        )?;
        if let Some(group) = &provider.group {
            writeln!(out, "{client} trace --group {group}")?;
        }
        if let Some(line) = data::client_trace(client, session, provider) {
            writeln!(out, "rem As JSON Lines, for ten seconds.\n{line}")?;
        }
        writeln!(
            out,
            "rem Record them for ten seconds.\n{}\n```\n",
            data::client_record(client, session)
        )
    }

    fn reading(&self, providers: &[Traced], out: &mut String) -> fmt::Result {
        let (session, reader, image) = (&self.session, &self.reader, &self.image);
        let option = self.image_option(providers);
        let pdb = Path::new(image).with_extension("pdb");
        let values = [
            ("@session@", session),
            ("@reader@", reader),
            ("@option@", &option),
            ("@pdb@", &pdb.display().to_string()),
        ];
        let text = values
            .into_iter()
            .fold(READING.to_owned(), |text, (name, value)| text.replace(name, value));
        out.write_str(&text)
    }
}

/// Writes a table of values that a provider defines.
fn values(provider: &Traced, has_others: bool, out: &mut String) -> fmt::Result {
    let Traced { name, guid, .. } = provider;
    if has_others {
        writeln!(out, "## The provider {name}\n")?;
    }
    writeln!(
        out,
        "| | |\n|---|---|\n\
         | provider | `{name}` |\n\
         | its GUID | `{{{guid}}}` |"
    )?;
    if let Some(group) = &provider.group {
        writeln!(out, "| its group's GUID | `{{{group}}}` |")?;
    }
    let level = provider.highest_level();
    writeln!(
        out,
        "| all keywords | `{:#x}` |\n\
         | highest level used | {level} ({}) |\n",
        provider.everything(),
        level_name(level)
    )
}

/// Writes tables of the provider's keywords and levels.
fn tables(provider: &Traced, out: &mut String) -> fmt::Result {
    if provider.keywords.is_empty() {
        writeln!(out, "The provider has no keywords.")?;
    } else {
        writeln!(out, "| keyword | mask | meaning | events |\n|---|--:|---|---|")?;
    }
    for keyword in &provider.keywords {
        let events: Vec<&Event> =
            provider.events.iter().filter(|event| event.mask & keyword.mask != 0).collect();
        writeln!(
            out,
            "| {} | `{:#x}` | {} | {} |",
            keyword.name,
            keyword.mask,
            keyword.meaning,
            list(&events)
        )?;
    }
    if provider.events.is_empty() {
        return writeln!(
            out,
            "\nThe provider declares no events: those that it writes at their places in the source are \
             self-describing."
        );
    }
    writeln!(out, "\n| level | number | events of exactly this level |\n|---|--:|---|")?;
    let mut levels: Vec<u8> = provider.events.iter().map(|event| event.level).collect();
    levels.extend(winmeta::LEVELS.iter().map(|level| level.value));
    levels.sort_unstable();
    levels.dedup();
    for level in levels {
        let events: Vec<&Event> =
            provider.events.iter().filter(|event| event.level == level).collect();
        if !events.is_empty() {
            writeln!(out, "| {} | {level} | {} |", level_name(level), list(&events))?;
        }
    }
    let (described, manifest): (Vec<&Event>, Vec<&Event>) =
        provider.events.iter().partition(|event| event.is_self_describing);
    match (described.len(), manifest.len()) {
        (_, 0) => writeln!(
            out,
            "\nAll events are self-describing TraceLogging events, which tools decode without the \
             driver's\nresources or manifest."
        ),
        (0, _) => {
            writeln!(out, "\nTo decode the events, tools need the driver's resources or manifest.")
        }
        (described, number) => writeln!(
            out,
            "\n{described} TraceLogging events are self-describing. To decode the other {number} \
             events, tools need the\ndriver's resources or manifest: {}.",
            list(&manifest)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::link;
    use std::path::Path;

    #[test]
    fn links_are_relative_to_the_text() {
        let link = |from: &str, to: &str| link(Path::new(from), Path::new(to));
        assert_eq!(link("docs/tracing.md", "inf/a.wprp"), "../inf/a.wprp");
        assert_eq!(link("/w/d/tracing.md", "/w/d/a.wprp"), "a.wprp");
        assert_eq!(link("/w/d/docs/t.md", "/w/d/inf/a.wprp"), "../inf/a.wprp");
        assert_eq!(link("tracing.md", "a.wprp"), "a.wprp");
    }
}
