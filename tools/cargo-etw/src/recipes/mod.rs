//! `cargo etw recipes`: writes instructions for tracing a driver with Windows tools.

mod data;
mod filtered;
mod profile;
mod provider;
mod text;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::{ArgMatches, Command};
use driver_build::files;

use crate::{
    configuration,
    options::{flag, optional, optional_file, path, required, text as text_argument, written_by},
    selected_driver::{self, SelectedDriver},
};

pub use self::provider::Traced;
use self::text::Recipes;

/// Returns the command line.
pub fn command() -> Command {
    let command = Command::new("recipes")
        .about("Write instructions for tracing the driver with logman, tracelog, wpr, PowerShell and xperf")
        .arg(optional_file(
            "declaration",
            "The source file with the declaration [default: the driver's, found in its source]",
        ))
        .arg(path(
            "text",
            "FILE",
            "The Markdown file to write the instructions to [default: tracing.md beside the driver's \
             Cargo.toml]",
        ))
        .arg(path(
            "profile",
            "FILE",
            "The .wprp file to write the Windows Performance Recorder profile to [default: NAME.wprp \
             beside the INF file]",
        ))
        .arg(path(
            "data",
            "FILE",
            "A JSON file to write the instructions' commands to, for programs that run them on a test \
             machine",
        ))
        .arg(path(
            "image",
            "FILE",
            "An image whose resources describe the providers, instead of a declaration",
        ))
        .arg(text_argument(
            "session",
            "NAME",
            "The name of the sessions and trace files [default: the driver's name]",
        ))
        .arg(text_argument(
            "title",
            "TEXT",
            "The title of the instructions [default: `Trace` and the provider's name]",
        ))
        .arg(text_argument(
            "guide",
            "LINK",
            "A Markdown link to the installation instructions",
        ))
        .arg(text_argument(
            "client",
            "PROGRAM",
            "A program with the commands `trace` and `record` to include in the instructions",
        ))
        .arg(
            text_argument("reader", "COMMAND", "The command that reads .etl files")
                .default_value("etl"),
        )
        .arg(written_by("cargo etw recipes"))
        .arg(flag(
            "check",
            "Report whether the files are up to date, without writing them",
        ));
    selected_driver::arguments(command)
}

/// Writes the files, or checks that they are up to date.
pub fn run(matches: &ArgMatches) -> Result<()> {
    let image: Option<PathBuf> = optional(matches, "image")?;
    let driver = match SelectedDriver::select(matches) {
        Ok(driver) => Some(driver),
        // The image contains the descriptions, so no package is needed.
        Err(_) if image.is_some() => None,
        Err(error) => return Err(error),
    };
    let (providers, source) = providers(matches, driver.as_ref(), image.as_deref())?;
    let recipes = recipes(matches, driver.as_ref(), image.as_deref(), source)?;
    let [text, profile] = [recipes.text(&providers)?, profile_text(&recipes, &providers)?];
    let data: Option<PathBuf> = optional(matches, "data")?;
    let data = data.map(|path| (path, recipes.data(&providers)));
    let data = data.iter().map(|(path, text)| (path, text.clone()));
    for (path, wanted) in
        [(&recipes.text, text), (&recipes.profile, profile)].into_iter().chain(data)
    {
        if matches.get_flag("check") {
            let found = files::read_to_string(path)?;
            if found != wanted {
                bail!(
                    "{} is stale: run `{}` and commit the result",
                    path.display(),
                    recipes.command
                );
            }
        } else {
            files::write(path, wanted)?;
            println!("{}", path.display());
        }
    }
    Ok(())
}

/// Returns the providers and the names of the files that describe them: the image or declaration on
/// the command line, otherwise the driver's declarations, otherwise the last built image.
fn providers(
    matches: &ArgMatches,
    driver: Option<&SelectedDriver>,
    image: Option<&Path>,
) -> Result<(Vec<Traced>, String)> {
    let named = |path: &Path| {
        driver.map_or_else(|| path.display().to_string(), |driver| driver.named(path))
    };
    if let Some(path) = optional::<PathBuf>(matches, "declaration")? {
        let found = wdk_etw_build::declared_in(&path, &configuration::read(&path)?)?;
        let providers = found.iter().map(Traced::declared).collect();
        return Ok((providers, path.display().to_string()));
    }
    if image.is_none()
        && let Some(driver) = driver
    {
        let declarations = driver.declarations()?;
        let files: Vec<String> = declarations.iter().map(|one| named(&one.path)).collect();
        let found = declarations.iter().flat_map(|one| &one.providers);
        let providers: Vec<Traced> = found.map(Traced::declared).collect();
        if !providers.is_empty() {
            return Ok((providers, files.join(", ")));
        }
    }
    let built = driver.and_then(SelectedDriver::image);
    let Some(image) = image.or(built.as_deref()) else {
        bail!(
            "the driver's source declares no provider, and the driver has not been built; name an \
             image with `--image`, or build the driver with `cargo etw build`"
        );
    };
    let providers = Traced::described(&selected_driver::described(image)?);
    ensure!(!providers.is_empty(), "the resources of {} describe no provider", image.display());
    Ok((providers, named(image)))
}

fn recipes(
    matches: &ArgMatches,
    driver: Option<&SelectedDriver>,
    image: Option<&Path>,
    source: String,
) -> Result<Recipes> {
    let stem = match (driver, image) {
        (_, Some(image)) => image.file_stem().unwrap_or_default().display().to_string(),
        (Some(driver), None) => driver.driver.image.clone(),
        (None, None) => bail!("the driver's name is unknown"),
    };
    let here = std::path::absolute(".").context("cannot find the current folder")?;
    let file = |name: &str, usual: Result<PathBuf>| -> Result<PathBuf> {
        let named: Option<PathBuf> = optional(matches, name)?;
        let path = named.map_or(usual, Ok)?;
        std::path::absolute(&path)
            .with_context(|| format!("cannot find the folder of {}", path.display()))
    };
    Ok(Recipes {
        source,
        text: file(
            "text",
            Ok(driver.map_or_else(|| here.join("tracing.md"), SelectedDriver::recipes)),
        )?,
        profile: file(
            "profile",
            driver.map_or_else(|| Ok(here.join(format!("{stem}.wprp"))), SelectedDriver::profile),
        )?,
        folder: driver.map_or_else(|| here.clone(), |driver| driver.driver.workspace.clone()),
        image: format!("{stem}.sys"),
        session: optional(matches, "session")?.unwrap_or(stem),
        title: optional(matches, "title")?,
        guide: optional(matches, "guide")?,
        client: optional(matches, "client")?,
        reader: required(matches, "reader")?,
        command: required(matches, "command")?,
    })
}

/// Returns the Windows Performance Recorder profile.
fn profile_text(recipes: &Recipes, providers: &[Traced]) -> Result<String> {
    let title = match providers {
        [only] => &only.name,
        _ => &recipes.image,
    };
    let comment = format!("Written by `{}` from {}.", recipes.command, recipes.source);
    Ok(profile::text(providers, title, &comment)?)
}

/// Returns the profile for a driver's package.
pub fn profile_of(providers: &[Traced], image: &str) -> Result<String> {
    let comment = "Written by `cargo etw package`.";
    Ok(profile::text(providers, image, comment)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipes() -> Recipes {
        Recipes {
            source: "src/trace.rs".to_owned(),
            text: "/w/docs/tracing.md".into(),
            profile: "/w/driver.wprp".into(),
            folder: "/w".into(),
            image: "driver.sys".to_owned(),
            session: "trace".to_owned(),
            title: None,
            guide: None,
            client: None,
            reader: "etl".to_owned(),
            command: "cargo etw recipes".to_owned(),
        }
    }

    fn declared(source: &str) -> Vec<Traced> {
        let providers = wdk_etw_schema::parse::source(source).unwrap();
        providers.iter().map(Traced::declared).collect()
    }

    #[test]
    fn a_provider_without_a_group_or_client_has_recipes_without_them() {
        let providers = declared(
            r#"
            #[provider(name = "A")]
            mod one {
                #[keyword]
                const FIRST: Keyword = Keyword::bit(4);
                #[event(level = Error, keyword = FIRST)]
                fn x();
            }
            "#,
        );
        let text = recipes().text(&providers).unwrap();
        assert!(text.contains("# Trace A\n"), "{text}");
        assert!(!text.contains("group's") && !text.contains("by its group"), "{text}");
        // A session in paged memory receives no events from drivers.
        assert!(text.contains("-LocalFilePath C:\\trace.etl -NonPaged\n"), "{text}");
        let autologger = "New-AutologgerConfig -Name trace -LogFileMode 0x1 -Local";
        assert!(text.contains(autologger), "{text}");
        assert!(!text.contains(" -paged ") && !text.contains("-mode pagedmemory -"), "{text}");
        assert!(!text.contains("0x20"), "{text}");
        assert!(!text.contains("client"), "{text}");
        assert!(text.contains("[`driver.wprp`](../driver.wprp)"), "{text}");
        // The provider's events are self-describing and have no ids.
        assert!(text.contains("All events are self-describing"), "{text}");
        assert!(text.contains("etl dump trace.etl"), "{text}");
        let timeline = "etl dump --format perfetto --out trace.pftrace trace.etl";
        assert!(text.contains(timeline), "{text}");
        assert!(!text.contains("EventIdFilter"), "{text}");
    }

    /// The data contains the same commands as the text.
    #[test]
    fn the_data_has_the_commands_of_the_text() {
        let providers = declared(
            r#"
            #[provider(name = "A", group = "2e651177-aeab-5ffc-66e2-144601de7da8")]
            mod one {
                #[keyword]
                const FIRST: Keyword = Keyword::bit(4);
                #[event(level = Error, keyword = FIRST)]
                fn x();
            }
            #[provider(name = "B")]
            mod two {
                #[keyword]
                const LAST: Keyword = Keyword::bit(9);
                #[event(id = 7, level = 17, keyword = LAST)]
                fn y();
            }
            "#,
        );
        let recipes = Recipes { client: Some("client".to_owned()), ..recipes() };
        let text = recipes.text(&providers).unwrap();
        let data: serde_json::Value = serde_json::from_str(&recipes.data(&providers)).unwrap();
        assert_eq!(data["version"], 1);
        let all = data["recipes"].as_array().unwrap();
        let names: Vec<&str> = all.iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(
            names,
            [
                "logman", "tracelog", "wpr", "powershell", "xperf", "logman-keyword",
                "wpr-keyword", "wpr-keyword-2", "powershell-group", "tracelog-group",
                "tracelog-filter", "tracelog-capture-state", "tracelog-memory", "client-record",
                "client-trace", "cargo-etw", "wpr-boot", "powershell-boot"
            ]
        );
        let mut commands = Vec::new();
        for recipe in all {
            let steps = ["start", "during", "stop"].map(|step| recipe[step].as_array().unwrap());
            for command in steps.into_iter().flatten() {
                let command = command.as_str().unwrap();
                commands.push(command);
                let line = format!("{command}\n");
                assert!(text.contains(&line), "no {line:?} in:\n{text}");
            }
        }
        let left_out = left_out(&text, &commands);
        assert_eq!(left_out, [] as [&str; 0], "lines that are in no recipe");
        let recipe = |name: &str| all.iter().find(|one| one["name"] == name).unwrap();
        let group = &recipe("powershell-group")["enables"];
        assert_eq!(
            *group,
            serde_json::json!([{
                "guid": "2e651177-aeab-5ffc-66e2-144601de7da8",
                "group": true,
                "level": 2,
                "match_any": "0x0",
                "except_ids": [],
            }])
        );
        assert_eq!(all[5]["enables"].as_array().unwrap().len(), 2);
        let filtered = &recipe("tracelog-filter")["enables"];
        assert_eq!(filtered[0]["except_ids"], serde_json::json!([]));
        assert_eq!(filtered[1]["except_ids"], serde_json::json!([7]));
        for (name, boots, at_least) in [
            ("tracelog-capture-state", false, true),
            ("client-record", false, false),
            ("powershell-boot", true, true),
        ] {
            assert_eq!(recipe(name)["boots"], boots, "{name}");
            assert_eq!(recipe(name)["at_least"], at_least, "{name}");
        }
        // A script without a client's requests can expect events only if all of them are recorded.
        for (name, whole) in [
            ("logman", true),
            ("wpr-boot", true),
            ("tracelog-group", true),
            ("cargo-etw", true),
            ("logman-keyword", false),
            ("powershell-group", false),
            ("tracelog-filter", false),
            ("client-trace", false),
        ] {
            assert_eq!(recipe(name)["whole"], whole, "{name}");
        }
    }

    /// The starts of command lines in the text that belong to no recipe, with the reasons.
    const EXCEPTIONS: [(&str, &str); 8] = [
        ("cargo-etw trace --provider ", "shows events until Ctrl+C, or asks for a restart"),
        ("client trace --any ", "shows events until Ctrl+C, which no script sends"),
        ("client trace --group ", "shows events until Ctrl+C, which no script sends"),
        ("New-AutologgerConfig -Name trace -LogFileMode 0x400 ", "writes a trace only on request"),
        ("logman query providers ", "traces nothing: the stage uninstall runs it"),
        ("tracerpt ", "reads a trace: the stage decode runs it"),
        ("powershell Get-WinEvent ", "reads a trace: the stage decode runs it"),
        ("wpa ", "is a window"),
    ];

    /// Returns the command lines in `text` that no recipe contains and that are not exceptions.
    fn left_out<'a>(text: &'a str, commands: &[&str]) -> Vec<&'a str> {
        let mut language = None;
        let mut found = Vec::new();
        for line in text.lines() {
            if let Some(info) = line.strip_prefix("```") {
                language = language.is_none().then_some(info);
                continue;
            }
            let is_command = matches!(language, Some("bat" | "powershell"))
                && !line.starts_with("rem ")
                && !line.starts_with('#');
            let is_exception = EXCEPTIONS.iter().any(|(start, _)| line.starts_with(start));
            if is_command && !is_exception && !commands.contains(&line) {
                found.push(line);
            }
        }
        for (start, why) in EXCEPTIONS {
            assert!(
                text.lines().any(|line| line.starts_with(start)),
                "no line {start} any more: {why}"
            );
        }
        found
    }

    #[test]
    fn a_provider_without_keywords_and_events_is_traced_as_a_whole() {
        let providers = declared(r#"#[provider(name = "A")] mod one {}"#);
        let text = recipes().text(&providers).unwrap();
        let guid = &providers[0].guid;
        assert!(text.contains(&format!("-p \"{{{guid}}}\" 0x0 5 -ets")), "{text}");
        assert!(text.contains("has no keywords"), "{text}");
        assert!(text.contains("has one profile"), "{text}");
        assert!(!text.contains("rem From now on"), "{text}");
        let profile = profile_text(&recipes(), &providers).unwrap();
        assert!(profile.contains("<Keyword Value=\"0x0\"/>"), "{profile}");
    }

    #[test]
    fn masks_and_levels_are_the_declarations() {
        let providers = declared(
            r#"
            #[provider(name = "A", group = "2e651177-aeab-5ffc-66e2-144601de7da8")]
            mod one {
                #[keyword]
                const FIRST: Keyword = Keyword::bit(4);
                #[keyword]
                const LAST: Keyword = Keyword::bit(9);
                #[event(level = Error, keyword = FIRST | LAST)]
                fn x();
                #[event(id = 7, level = 17, keyword = none)]
                fn y();
            }
            "#,
        );
        let text = recipes().text(&providers).unwrap();
        assert!(
            text.contains(&format!("-p \"{{{}}}\" 0x210 17 -ets", providers[0].guid)),
            "{text}"
        );
        assert!(text.contains("| First | `0x10` |"), "{text}");
        // Enabling a group does not affect what is enabled for the provider itself.
        assert!(!text.contains("instead of the provider"), "{text}");
        assert!(text.contains("and by its group is enabled twice"), "{text}");
        assert!(text.contains("| Error | 2 | `X` |"), "{text}");
        assert!(text.contains("| 17 | 17 | `Y` |"), "{text}");
        assert!(text.contains("except for one event id.\n"), "{text}");
        assert!(text.contains("-EventIdFilter -out 1 7\n"), "{text}");
        let profile = profile_text(&recipes(), &providers).unwrap();
        assert!(profile.contains("<Keyword Value=\"0x210\"/>"), "{profile}");
    }

    #[test]
    fn every_provider_is_in_every_tools_commands() {
        let providers = declared(
            r#"
            #[provider(name = "Contoso.Io")]
            mod io {
                #[keyword]
                const READ: Keyword = Keyword::bit(0);
                #[event(level = Info, keyword = READ)]
                fn x();
            }
            #[provider(name = "Contoso.Power more")]
            mod power {
                #[keyword]
                const READ: Keyword = Keyword::bit(40);
                #[event(id = 3, level = Verbose, keyword = READ)]
                fn y();
            }
            "#,
        );
        let text = recipes().text(&providers).unwrap();
        let [one, two] = [&providers[0].guid, &providers[1].guid];
        for line in [
            format!("logman create trace trace -ow -o trace.etl -p \"{{{one}}}\" 0x1 4 -ets\n"),
            format!("logman update trace trace -p \"{{{two}}}\" 0x10000000000 5 -ets\n"),
            format!("tracelog -enable trace -guid #{two} -matchanykw 0x10000000000 -level 5\n"),
            format!("xperf -start trace -on {one}:0x1:4+{two}:0x10000000000:5 -f trace.etl\n"),
            "logman query providers \"Contoso.Power more\"\n".to_owned(),
            "# Trace driver.sys\n".to_owned(),
            "has 3 profiles".to_owned(),
            "wpr -start driver.wprp!Contoso_Io_Read.Verbose".to_owned(),
        ] {
            assert!(text.contains(&line), "no {line:?} in:\n{text}");
        }
        let add = format!("-Guid '{{{two}}}' -Level 5 -MatchAnyKeyword 0x10000000000");
        assert_eq!(text.matches(&add).count(), 3, "{text}");
        let profile = profile_text(&recipes(), &providers).unwrap();
        assert_eq!(profile.matches(two.as_str()).count(), 2, "{profile}");
    }
}
