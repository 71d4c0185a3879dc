//! The findings about addresses that drivers pass.

use super::rule::Rule;

/// A finding: what is wrong with an address.
pub struct Finding {
    /// The rule that an access breaks, if one is about such addresses.
    pub rule: Option<Rule>,
    /// Completes "which ...".
    pub what: String,
}

impl Finding {
    /// Returns the finding with the rule's number, to follow "which".
    pub fn numbered(self) -> String {
        match self.rule.and_then(Rule::number) {
            Some(number) => format!("{} [{number}]", self.what),
            None => self.what,
        }
    }
}
