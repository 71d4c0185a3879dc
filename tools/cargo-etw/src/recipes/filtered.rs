//! A selection of a provider's events with tracelog.

use super::provider::Traced;

/// A selection of a provider's events with tracelog.
pub struct Filtered {
    /// The names of the keywords.
    pub names: String,
    /// The match-any mask.
    pub mask: u64,
    /// The ids of the excluded events.
    pub ids: Vec<u16>,
}

impl Filtered {
    /// Selects the events of the first and last keyword, except for some ids, if the provider has
    /// two keywords or events with ids.
    pub fn select(provider: &Traced) -> Option<Self> {
        let (first, last) = (provider.keywords.first(), provider.keywords.last());
        let ids = provider.some_ids();
        if ids.is_empty() && provider.keywords.len() < 2 {
            return None;
        }
        let (names, mask) = match (first, last) {
            (Some(first), Some(last)) if first.mask != last.mask => {
                (format!("{} or {}", first.name, last.name), first.mask | last.mask)
            }
            (Some(only), _) => (only.name.clone(), only.mask),
            _ => ("Everything".to_owned(), provider.everything()),
        };
        Some(Self { names, mask, ids })
    }

    /// Returns a phrase for the excluded events.
    pub const fn except(&self) -> &'static str {
        match self.ids.len() {
            0 => "",
            1 => ", except for one event id",
            _ => ", except for two event ids",
        }
    }

    /// Returns the tracelog command.
    pub fn line(&self, session: &str, provider: &Traced) -> String {
        let (guid, level, mask) = (&provider.guid, provider.highest_level(), self.mask);
        let listed: Vec<String> = self.ids.iter().map(u16::to_string).collect();
        let filter = match listed.len() {
            0 => String::new(),
            number => format!(" -EventIdFilter -out {number} {}", listed.join(" ")),
        };
        format!(
            "tracelog -enable {session} -guid #{guid} -matchanykw {mask:#x} -level {level}{filter}"
        )
    }
}
