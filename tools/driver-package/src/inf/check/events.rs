//! The rules of event providers and their channels, in an INF file's sections of events.

use std::ops::RangeInclusive;

use super::context::{Check, Provider, entries};
use crate::inf::{
    channel::{Channel, ChannelKind, ISOLATIONS, OwnChannel, line},
    read::{Entry, Section, number},
};

/// The entries of a channel's section, with the allowed numbers.
const CHANNEL_VALUES: [(&str, Option<RangeInclusive<u64>>); 7] = [
    ("Isolation", Some(1..=ISOLATIONS.len() as u64)),
    ("Access", None),
    ("Enabled", Some(0..=1)),
    ("Value", Some(16..=255)),
    ("LoggingMaxSize", Some(1 << 20..=u64::MAX)),
    ("LoggingRetention", Some(1..=2)),
    ("LoggingAutoBackup", Some(0..=1)),
];

/// Returns a sentence with the INF lines that register channels.
fn lines(channels: &[Channel]) -> String {
    if channels.is_empty() {
        return "the provider declares no channels".to_owned();
    }
    let lines: Vec<String> =
        channels.iter().map(|channel| format!("`{}`", line(channel, "SECTION"))).collect();
    format!("expected {}", lines.join(", "))
}

impl<'a> Check<'a> {
    /// Checks that the file registers the providers whose events are decoded with the image.
    pub(super) fn events(&mut self, install: &Section, section: Option<&'a Section>) {
        let mut registered = Vec::new();
        for entry in section.into_iter().flat_map(|one| entries(one, "AddEventProvider")) {
            registered.push(entry);
            if let Some(provider) = self.reach(entry, entry.value(1)) {
                let binary = self.binary.clone();
                let name = provider.name.as_str();
                self.must_be(name, "ResourceFile", &binary);
                self.must_be(name, "MessageFile", &binary);
                if self.inf.entry(name, "ProviderName").is_none() {
                    self.report(provider.line, format!("[{name}] has no ProviderName"));
                }
                for channel in entries(provider, "AddChannel") {
                    self.channel(channel);
                }
            }
        }
        let driver = self.driver;
        let Some(providers) = &driver.providers else {
            return;
        };
        let braced = |provider: &Provider| format!("{{{}}}", provider.guid);
        for entry in &registered {
            let own =
                providers.iter().find(|one| entry.value(0).eq_ignore_ascii_case(&braced(one)));
            if let Some(provider) = own {
                if !providers.iter().any(|one| one.has_resources) {
                    self.warning(
                        entry.line,
                        format!(
                            "AddEventProvider registers the ETW provider {}, whose events are \
                             self-describing: the image has no resources for it; remove the line \
                             and its section",
                            provider.name
                        ),
                    );
                }
                if let Some(section) = self.inf.section(entry.value(1)) {
                    self.must_be(&section.name, "ProviderName", &provider.name);
                    self.declared_channels(provider, section);
                }
                continue;
            }
            let declared: Vec<String> = providers.iter().map(braced).collect();
            let declared =
                if declared.is_empty() { "none".to_owned() } else { declared.join(", ") };
            self.report(
                entry.line,
                format!(
                    "AddEventProvider names the ETW provider {}; the driver's declaration has \
                     {declared}",
                    entry.value(0)
                ),
            );
        }
        for provider in providers.iter().filter(|provider| provider.has_resources) {
            let wanted = braced(provider);
            if !registered.iter().any(|entry| entry.value(0).eq_ignore_ascii_case(&wanted)) {
                self.report(
                    section.map_or(install.line, |section| section.line),
                    format!(
                        "the ETW provider {} is not registered, so Windows cannot decode its \
                         events; add `AddEventProvider = {wanted},SECTION` to [{}.Events]",
                        provider.name, install.name
                    ),
                );
            }
        }
    }

    /// Checks the syntax of an `AddChannel` line and its section.
    fn channel(&mut self, entry: &Entry) {
        let kinds = 1..=ChannelKind::ALL.len() as u64;
        if !number(entry.value(1)).is_some_and(|kind| kinds.contains(&kind)) {
            self.report(
                entry.line,
                format!(
                    "the type of the channel {} is {:?}; expected 0x1 (Admin), 0x2 (Operational), \
                     0x3 (Analytic) or 0x4 (Debug)",
                    entry.value(0),
                    entry.value(1)
                ),
            );
        }
        if entry.value(2).is_empty() {
            return;
        }
        let Some(section) = self.reach(entry, entry.value(2)) else {
            return;
        };
        self.settings(section, "a channel", &CHANNEL_VALUES);
        let has = |key: &str, wanted: u64| {
            self.inf.value(&section.name, key).and_then(number) == Some(wanted)
        };
        let backs_up = has("LoggingAutoBackup", 1);
        let is_for_administrators = matches!(number(entry.value(1)), Some(1 | 2));
        if backs_up && !(has("LoggingRetention", 2) && is_for_administrators) {
            self.report(
                section.line,
                format!(
                    "[{}] has LoggingAutoBackup = 1, which needs LoggingRetention = 2 and a channel \
                     of the type 0x1 (Admin) or 0x2 (Operational)",
                    section.name
                ),
            );
        }
    }

    /// Compares the channels in a provider's section with those in its declaration.
    fn declared_channels(&mut self, provider: &Provider, section: &'a Section) {
        let name = &section.name;
        let is_key = |entry: &Entry, key: &str| {
            entry.key.as_deref().is_some_and(|found| found.eq_ignore_ascii_case(key))
        };
        let found: Vec<&Entry> = section
            .entries
            .iter()
            .filter(|entry| is_key(entry, "AddChannel") || is_key(entry, "ImportChannel"))
            .collect();
        let declares = |channel: &Channel, entry: &Entry| {
            channel.name.eq_ignore_ascii_case(entry.value(0))
                && is_key(entry, channel.own.as_ref().map_or("ImportChannel", |_| "AddChannel"))
        };
        for entry in &found {
            if !provider.channels.iter().any(|channel| declares(channel, entry)) {
                self.report(
                    entry.line,
                    format!(
                        "{} names the channel {}, which the provider {} does not declare so; {}",
                        entry.key.as_deref().unwrap_or_default(),
                        entry.value(0),
                        provider.name,
                        lines(&provider.channels)
                    ),
                );
            }
        }
        for channel in &provider.channels {
            let Some(entry) = found.iter().find(|entry| declares(channel, entry)) else {
                self.report(
                    section.line,
                    format!(
                        "the channel {} is not registered, so the event log receives none of its \
                         events; add `{}` to [{name}]",
                        channel.name,
                        line(channel, "SECTION")
                    ),
                );
                continue;
            };
            if let Some(own) = &channel.own {
                self.declared_channel(provider, &channel.name, own, entry);
            }
        }
        let places = provider
            .channels
            .iter()
            .filter_map(|channel| found.iter().position(|entry| declares(channel, entry)));
        let order: Vec<usize> = places.collect();
        if !order.is_sorted() {
            self.report(
                section.line,
                format!(
                    "the channels in [{name}] are in a different order from the channels of the \
                     provider {}, and the order determines the channels' keyword bits; {}",
                    provider.name,
                    lines(&provider.channels)
                ),
            );
        }
    }

    /// Compares a channel's type and settings with those in the provider's declaration.
    fn declared_channel(
        &mut self,
        provider: &Provider,
        name: &str,
        own: &OwnChannel,
        entry: &Entry,
    ) {
        let source = &provider.described_by;
        if let Some(settings) = &own.settings {
            let kind = settings.kind;
            if number(entry.value(1)).is_some_and(|found| found != kind as u64) {
                self.report(
                    entry.line,
                    format!(
                        "the type of the channel {name} is {}; {source} says {} ({:#x})",
                        entry.value(1),
                        kind.name(),
                        kind as u64
                    ),
                );
            }
            if settings.enabled.is_none() && kind.is_for_administrators() {
                self.warning(
                    entry.line,
                    format!(
                        "the channel {name} is disabled until someone enables it, because {source} \
                         does not say `enabled = true`; write `enabled = false` if that is intended"
                    ),
                );
            }
        }
        let section = self.inf.section(entry.value(2));
        for value in own.values() {
            let found = section.and_then(|section| self.inf.entry(&section.name, value.key));
            let text = found.map_or(value.default, |found| found.value(0));
            if value.is(text) {
                continue;
            }
            let at = found.map_or(entry.line, |found| found.line);
            let wanted = value.effective();
            let remedy = match (found, section) {
                (Some(_), _) => format!("write `{} = {wanted}`", value.key),
                (None, Some(section)) => {
                    format!("add `{} = {wanted}` to [{}]", value.key, section.name)
                }
                (None, None) => format!(
                    "add a section with `{} = {wanted}` and name it after the channel's type",
                    value.key
                ),
            };
            let shown = if text.is_empty() { "missing" } else { text };
            self.report(
                at,
                format!(
                    "{} of the channel {name} is {shown}; {source} says {}; {remedy}",
                    value.key,
                    if wanted.is_empty() { "nothing" } else { wanted }
                ),
            );
        }
    }
}
