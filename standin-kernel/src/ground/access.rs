//! The errors of addresses that drivers pass.

use super::rule::Rule;

/// The reason why an address is invalid.
pub struct AddressError {
    /// The rule that an access breaks, if there is a rule for such addresses.
    pub rule: Option<Rule>,
    /// The text that completes "which ...".
    pub what: String,
}

impl AddressError {
    /// Returns the error with the rule's number. The text follows "which".
    pub fn numbered(self) -> String {
        match self.rule.and_then(Rule::number) {
            Some(number) => format!("{} [{number}]", self.what),
            None => self.what,
        }
    }
}
