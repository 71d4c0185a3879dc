//! Errors for invalid addresses that drivers pass.

use super::rule::Rule;

/// The reason why an address is invalid.
pub struct AddressError {
    /// The rule that the access breaks, if a rule covers such addresses.
    pub rule: Option<Rule>,
    /// The phrase that completes "which ...".
    pub what: String,
}

impl AddressError {
    /// Returns the phrase, followed by the rule's number.
    pub fn numbered(self) -> String {
        match self.rule.and_then(Rule::number) {
            Some(number) => format!("{} [{number}]", self.what),
            None => self.what,
        }
    }
}
