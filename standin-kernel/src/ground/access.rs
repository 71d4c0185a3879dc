//! Errors for invalid addresses that drivers pass.

use super::rule::Rule;

/// The reason why an address is invalid.
pub struct AddressError {
    /// The rule that the access breaks, if a rule covers such addresses.
    pub rule: Option<Rule>,
    /// The text that completes the phrase "which ...".
    pub what: String,
}

impl AddressError {
    /// Returns the error's text, with the rule's number, to follow "which".
    pub fn numbered(self) -> String {
        match self.rule.and_then(Rule::number) {
            Some(number) => format!("{} [{number}]", self.what),
            None => self.what,
        }
    }
}
