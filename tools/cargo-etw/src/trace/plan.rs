//! The providers to trace, and the schemas of their events.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::ArgMatches;
use etl_file::{Catalog, Guid};
use etw_session::{Filter, Source};

use crate::{
    manifest,
    options::{optional, required, several},
    selected_driver::{self, SelectedDriver},
};

/// The prefix of session names.
const PREFIX: &str = "cargo-etw";

/// The providers to trace, and the schemas of their events.
#[derive(Debug)]
pub struct Plan {
    /// The providers and groups to enable, or to select from a file. If empty, all events of the
    /// file are shown.
    pub enables: Vec<(Source, Filter)>,
    /// The events' schemas.
    pub catalog: Catalog,
    /// The session's name.
    pub session: String,
}

impl Plan {
    /// Creates the plan from the arguments. `registered` returns the GUIDs of the providers with a
    /// given name that are registered on this system.
    pub fn from_arguments(
        matches: &ArgMatches,
        registered: &dyn Fn(&str) -> Result<Vec<Guid>>,
    ) -> Result<Self> {
        let filter = Filter {
            level: required(matches, "level")?,
            any: required(matches, "any")?,
            all: required(matches, "all")?,
            ids: None,
        };
        let mut sources = Vec::new();
        for name in several::<String>(matches, "provider") {
            sources.push(Source::Provider(provider(&name, registered)?));
        }
        for name in several::<String>(matches, "group") {
            sources.push(Source::Group(of_name(&name)?));
        }
        let is_named = !sources.is_empty();
        let mut catalog = Catalog::new();
        let mut session = PREFIX.to_owned();
        let names_driver = matches.contains_id("package") || matches.contains_id("manifest-path");
        if !is_named || names_driver {
            match SelectedDriver::select(matches) {
                Ok(driver) => {
                    session = format!("{PREFIX}-{}", driver.driver.image);
                    let of_driver = add_driver(&driver, &mut catalog)?;
                    if !is_named {
                        sources = of_driver;
                    }
                }
                // A file's events may be self-describing, or the system may have their schemas.
                Err(error) if !names_driver && matches.contains_id("file") => {
                    eprintln!("note: no driver's declaration decodes the events: {error:#}");
                }
                Err(error) => {
                    return Err(error.context(
                        "no provider to trace: name one with `--provider`, or run this in a driver's \
                         folder",
                    ));
                }
            }
        }
        if let Some(path) = optional::<PathBuf>(matches, "man")? {
            for skipped in catalog.load(&path)? {
                eprintln!("warning: {}: skipping a part: {skipped}", path.display());
            }
        }
        if let Some(path) = optional::<PathBuf>(matches, "image")? {
            catalog.add_model(&selected_driver::described(&path)?);
        }
        Ok(Self {
            enables: sources.into_iter().map(|source| (source, filter.clone())).collect(),
            catalog,
            session: optional(matches, "session")?.unwrap_or(session),
        })
    }

    /// Returns the name of the session that Windows starts at boot.
    pub fn boot_session(&self) -> String {
        format!("{}-boot", self.session)
    }

    /// Returns whether to show a file's event. A group's members are unknown, so selecting a group
    /// shows all events.
    pub fn chooses(&self, event: Guid) -> bool {
        let is_it = |source: &Source| match source {
            Source::Provider(guid) => *guid == event,
            Source::Group(_) => true,
        };
        self.enables.is_empty() || self.enables.iter().any(|(source, _)| is_it(source))
    }
}

/// Adds a driver's event schemas to a catalog: from its declarations or, if it has none, from its
/// last built image. Returns its providers.
fn add_driver(driver: &SelectedDriver, catalog: &mut Catalog) -> Result<Vec<Source>> {
    let declarations = driver.declarations()?;
    let declared = declarations.iter().flat_map(|one| &one.providers);
    let mut guids: Vec<Guid> = declared.map(|provider| provider.guid).collect();
    if guids.is_empty() {
        let image = driver.image().with_context(|| {
            format!(
                "{} declares no provider and has not been built: name a provider with `--provider`",
                driver.driver.package
            )
        })?;
        let described = selected_driver::described(&image)?;
        let providers = described.providers.iter();
        guids.extend(providers.map(|provider| provider.control_guid.unwrap_or(provider.guid)));
        catalog.add_model(&described);
    } else {
        catalog.add_model(&manifest::of_declarations(&declarations, &driver.installed())?);
    }
    Ok(guids.into_iter().map(Source::Provider).collect())
}

/// Returns the provider that an argument names.
fn provider(name: &str, registered: &dyn Fn(&str) -> Result<Vec<Guid>>) -> Result<Guid> {
    if let Ok(guid) = name.parse() {
        return Ok(guid);
    }
    match registered(name)?.as_slice() {
        [] => of_name(name),
        [only] => Ok(*only),
        several => {
            let guids: Vec<String> = several.iter().map(ToString::to_string).collect();
            bail!(
                "several providers are registered as {name}: {}; name the provider to trace by \
                 its GUID",
                guids.join(", ")
            )
        }
    }
}

/// Parses a GUID, or computes one from a name.
fn of_name(name: &str) -> Result<Guid> {
    name.parse()
        .or_else(|_| Guid::of_name(name))
        .with_context(|| format!("cannot compute a GUID from the name {name:?}"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::arguments::command;

    const GUID: &str = "802b686a-519d-5416-5280-4c0ead585fbb";

    fn plan_with(words: &[&str], registered: &[Guid]) -> Result<Plan> {
        let words = ["cargo", "etw", "trace"].iter().chain(words);
        let matches = command().try_get_matches_from(words)?;
        let (_, etw) = matches.subcommand().unwrap();
        let (_, trace) = etw.subcommand().unwrap();
        Plan::from_arguments(trace, &|_| Ok(registered.to_vec()))
    }

    fn plan(words: &[&str]) -> Result<Plan> {
        plan_with(words, &[])
    }

    fn sources(plan: &Plan) -> Vec<Source> {
        plan.enables.iter().map(|(source, _)| *source).collect()
    }

    #[test]
    fn providers_are_named_by_guids_and_names() {
        let guid: Guid = GUID.parse().unwrap();
        let plan =
            plan(&["--provider", GUID, "--provider", "Contoso.Io", "--group", GUID]).unwrap();
        let hashed = Guid::of_name("Contoso.Io").unwrap();
        let expected = [Source::Provider(guid), Source::Provider(hashed), Source::Group(guid)];
        assert_eq!(sources(&plan), expected);
        assert_eq!(plan.session, "cargo-etw");
        assert_eq!(plan.boot_session(), "cargo-etw-boot");
        // Everything, as in `cargo etw run`.
        let everything = Filter { level: 255, any: u64::MAX, all: 0, ids: None };
        assert!(plan.enables.iter().all(|(_, filter)| *filter == everything));
        let registered = plan_with(&["--provider", "Contoso.Io"], &[guid]).unwrap();
        assert_eq!(sources(&registered), [Source::Provider(guid)]);
        let error = plan_with(&["--provider", "Contoso.Io"], &[guid, hashed]).unwrap_err();
        assert!(error.to_string().contains("several providers are registered as Contoso.Io: 802b"));
    }

    #[test]
    fn the_filter_and_the_session_are_the_arguments() {
        let words = "--level 3 --any 0x12 --all 2 --session mine --provider";
        let words: Vec<&str> = words.split(' ').chain([GUID]).collect();
        let plan = plan(&words).unwrap();
        let filter = Filter { level: 3, any: 0x12, all: 2, ids: None };
        assert_eq!(plan.enables[0].1, filter);
        assert_eq!(plan.session, "mine");
    }

    #[test]
    fn the_selected_driver_is_traced_and_decoded_by_its_declaration() {
        let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../driver/Cargo.toml");
        let driver = driver.to_str().unwrap();
        let plan = plan(&["--manifest-path", driver]).unwrap();
        let guid: Guid = GUID.parse().unwrap();
        assert_eq!(sources(&plan), [Source::Provider(guid)]);
        assert_eq!(plan.session, "cargo-etw-etw_sample_driver");
        assert!(plan.catalog.provider(guid).is_some());
        // The provider on the command line is traced instead; the declaration still decodes its
        // events.
        let other = self::plan(&["--manifest-path", driver, "--provider", "Contoso.Io"]).unwrap();
        assert_eq!(sources(&other), [Source::Provider(Guid::of_name("Contoso.Io").unwrap())]);
        assert!(other.catalog.provider(guid).is_some());
    }

    #[test]
    fn a_file_is_filtered_by_providers_only() {
        let guid: Guid = GUID.parse().unwrap();
        let one = plan(&["--file", "x.etl", "--provider", GUID]).unwrap();
        assert!(one.chooses(guid) && !one.chooses(Guid::from_u128(1)));
        let group = plan(&["--file", "x.etl", "--group", GUID]).unwrap();
        assert!(group.chooses(Guid::from_u128(1)));
    }

    #[test]
    fn arguments_that_contradict_each_other_are_refused() {
        for words in [
            &["--file", "x", "--etl", "y"][..],
            &["--file", "x", "--at-boot", "on"],
            &["--file", "x", "--level", "2"],
            &["--file", "x", "--any", "1"],
            &["--file", "x", "--all", "1"],
            &["--at-boot", "on", "--seconds", "5"],
            &["--at-boot", "maybe"],
            &["--any", "0xq"],
            &["--level", "256"],
        ] {
            assert!(plan(words).is_err(), "{words:?}");
        }
    }
}
