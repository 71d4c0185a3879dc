//! The profile for Windows Performance Recorder (`.wprp`).

use std::{fmt, fmt::Write as _};

use super::provider::Traced;

/// The level of the profiles that filter by keyword: Info.
pub const SELECTED_LEVEL: u8 = 4;

/// A profile: its name, and the number, mask and level for each provider.
#[derive(Debug)]
pub struct Profile {
    /// The profile's name on wpr's command line.
    pub name: String,
    /// A description of the recorded events.
    pub what: String,
    providers: Vec<(usize, u64, u8)>,
}

/// Converts text to a name that is valid on wpr's command line and as an XML id.
fn word(name: &str) -> String {
    let unit = |one: char| {
        if one.is_ascii_alphanumeric() { one } else { '_' }
    };
    let starts_well = name.starts_with(|first: char| first.is_ascii_alphabetic());
    let prefix = (!starts_well).then_some('P');
    prefix.into_iter().chain(name.chars().map(unit)).collect()
}

/// Escapes text for an attribute's value.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

/// Returns the profiles: one for everything, and one for the first keyword of each provider that
/// has keywords.
pub fn profiles(providers: &[Traced]) -> Vec<Profile> {
    const EVERYTHING: &str = "Everything";
    let whole = providers.iter().enumerate();
    let whole = whole.map(|(at, one)| (at, one.everything(), one.highest_level()));
    let mut profiles = vec![Profile {
        name: EVERYTHING.to_owned(),
        what: EVERYTHING.to_owned(),
        providers: whole.collect(),
    }];
    for (at, provider) in providers.iter().enumerate() {
        let Some(keyword) = provider.keywords.first() else {
            continue;
        };
        let mut name = if providers.len() > 1 {
            format!("{}_{}", word(&provider.name), word(&keyword.name))
        } else {
            word(&keyword.name)
        };
        while profiles.iter().any(|known| known.name.eq_ignore_ascii_case(&name)) {
            name.push('_');
        }
        profiles.push(Profile {
            name,
            what: keyword.name.clone(),
            providers: vec![(at, keyword.mask, SELECTED_LEVEL)],
        });
    }
    profiles
}

/// Returns the profile's text; `title` names the driver, and `comment` describes how the file was
/// generated.
pub fn text(providers: &[Traced], title: &str, comment: &str) -> Result<String, fmt::Error> {
    let title = escaped(title);
    let profiles = profiles(providers);
    let id = |profile: &Profile, at: usize| {
        if providers.len() > 1 {
            format!("Provider.{}.{}", profile.name, at + 1)
        } else {
            format!("Provider.{}", profile.name)
        }
    };
    let mut out = String::new();
    writeln!(
        out,
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n\
         <!-- {} -->\n\
         <WindowsPerformanceRecorder Version=\"1.0\" Author=\"wdk-etw\">\n  \
         <Profiles>\n    \
         <EventCollector Id=\"Collector\" Name=\"{title} collector\">\n      \
         <BufferSize Value=\"64\"/>\n      \
         <Buffers Value=\"32\"/>\n    \
         </EventCollector>",
        // A comment must not contain two consecutive hyphens.
        comment.replace("--", "- -")
    )?;
    for profile in &profiles {
        for (at, mask, level) in &profile.providers {
            let Some(provider) = providers.get(*at) else {
                continue;
            };
            writeln!(
                out,
                "    <EventProvider Id=\"{}\" Name=\"{}\" Level=\"{level}\" \
                 NonPagedMemory=\"true\">\n      \
                 <Keywords>\n        \
                 <Keyword Value=\"{mask:#x}\"/>\n      \
                 </Keywords>\n    \
                 </EventProvider>",
                id(profile, *at),
                provider.guid
            )?;
        }
    }
    for profile in &profiles {
        let name = &profile.name;
        for mode in ["File", "Memory"] {
            writeln!(
                out,
                "    <Profile Id=\"{name}.Verbose.{mode}\" Name=\"{name}\" \
                 Description=\"{title}: {}\" DetailLevel=\"Verbose\" LoggingMode=\"{mode}\">\n      \
                 <Collectors>\n        \
                 <EventCollectorId Value=\"Collector\">\n          \
                 <EventProviders>",
                escaped(&profile.what)
            )?;
            for (at, ..) in &profile.providers {
                let id = id(profile, *at);
                writeln!(out, "            <EventProviderId Value=\"{id}\"/>")?;
            }
            writeln!(
                out,
                "          </EventProviders>\n        \
                 </EventCollectorId>\n      \
                 </Collectors>\n    \
                 </Profile>"
            )?;
        }
    }
    writeln!(out, "  </Profiles>\n</WindowsPerformanceRecorder>")?;
    Ok(out)
}
