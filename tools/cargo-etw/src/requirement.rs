//! A requirement that `cargo etw doctor` lists.

/// A requirement of the commands.
pub struct Requirement {
    /// The tool, setting or file.
    pub what: &'static str,
    /// The commands that need it.
    pub needed_by: &'static str,
    /// The version or path found, or `None` if the requirement is not met.
    pub found: Option<String>,
    /// The remedy if the requirement is not met: a command or a sentence.
    pub remedy: String,
    /// True if the commands that need it work partly without it.
    pub is_optional: bool,
}

impl Requirement {
    pub fn new(
        what: &'static str,
        needed_by: &'static str,
        found: Option<String>,
        remedy: &str,
    ) -> Self {
        Self { what, needed_by, found, remedy: remedy.to_owned(), is_optional: false }
    }

    pub const fn optional(mut self) -> Self {
        self.is_optional = true;
        self
    }

    /// Returns true if a mandatory requirement is not met.
    pub const fn is_needed(&self) -> bool {
        self.found.is_none() && !self.is_optional
    }
}
