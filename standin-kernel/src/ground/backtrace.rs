//! Backtraces: the calls that led to a diagnostic, as addresses and as text.

use std::{env, path::Path};

use super::{culprit::Source, unwind::Frame};

/// A step of a backtrace. Each step is the caller of the preceding one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A location in a driver.
    Code(Frame),
    /// A kernel routine that a driver called, and that then called a driver.
    Routine(&'static str),
}

/// A backtrace, from the innermost step.
pub type Backtrace = Vec<Step>;

/// A backtrace as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explained {
    /// The location that a diagnostic names: the innermost location in the author's code or, if
    /// there is none, the innermost location.
    pub place: String,
    /// All locations, innermost first, one per line.
    pub lines: Vec<String>,
    /// Set if the calls pass the panic handler of a driver in Rust.
    pub has_panicked: bool,
}

/// A location in a backtrace.
pub struct Place {
    /// The image and the offset in the image, such as `my_driver.sys+0x12a0`.
    pub at: String,
    /// Set if the function is inlined into the next location's function.
    pub is_inlined: bool,
    /// The function and line, empty if unknown.
    pub source: Source,
}

impl Place {
    /// Returns `file:line`, if both are known.
    fn line(&self) -> Option<String> {
        let file = self.source.file.as_deref()?;
        let line = self.source.line.filter(|line| *line != 0)?;
        Some(format!("{}:{line}", shown(file)))
    }

    /// Describes a location in the author's code, starting with the line.
    pub fn of_author(&self) -> String {
        match (self.line(), self.source.function.as_str()) {
            (Some(line), function) => format!("{line} ({function}, {})", self.at),
            (None, "") => self.at.clone(),
            (None, function) => format!("{} ({function})", self.at),
        }
    }

    /// Describes a location in a library, starting with the image, because the bug is not in that
    /// line.
    pub fn of_library(&self) -> String {
        match (self.line(), self.source.function.as_str()) {
            (Some(line), function) => format!("{} ({function} at {line})", self.at),
            (None, _) => self.of_author(),
        }
    }

    /// Describes the function, starting with its name.
    pub fn of_function(&self) -> String {
        match (self.line(), self.source.function.as_str()) {
            (_, "") => self.at.clone(),
            (Some(line), function) => format!("{function} ({line})"),
            (None, function) => format!("{function} ({})", self.at),
        }
    }

    /// Describes the location as a line of a backtrace.
    pub fn in_backtrace(&self) -> String {
        let place = if self.is_inlined { "inlined" } else { self.at.as_str() };
        match (self.line(), self.source.function.as_str()) {
            (_, "") => format!("at {}", self.at),
            (Some(line), function) => format!("at {function} ({line}) [{place}]"),
            (None, function) => format!("at {function} [{place}]"),
        }
    }
}

/// Returns the path that messages show for a file: the path in the PDB, or a path relative to the
/// build folder or current folder that contains the file.
fn shown(file: &str) -> String {
    /// The folder that reproducible builds record instead of the build folder.
    const BUILT_IN: &str = r"C:\src\";
    if let Some(inside) = file.strip_prefix(BUILT_IN) {
        return inside.replace('\\', "/");
    }
    let relative = env::current_dir().ok().and_then(|folder| {
        let inside = Path::new(file).strip_prefix(folder).ok()?;
        Some(inside.to_str()?.to_owned())
    });
    relative.unwrap_or_else(|| file.to_owned())
}

/// The number of lines that are kept from the start and the end of a long backtrace.
const KEPT: (usize, usize) = (32, 16);

/// Shortens the lines of a backtrace: adjacent equal lines, as in recursion, become one line, and
/// the middle of a long backtrace is omitted.
pub fn shortened(lines: Vec<String>) -> Vec<String> {
    let mut counted: Vec<(String, usize)> = Vec::new();
    for line in lines {
        match counted.last_mut() {
            Some((last, count)) if *last == line => *count += 1,
            _ => counted.push((line, 1)),
        }
    }
    let mut lines: Vec<String> = counted
        .into_iter()
        .map(|(line, count)| match count {
            1 => line,
            count => format!("{line} ({count} times)"),
        })
        .collect();
    let (first, last) = KEPT;
    if let Some(omitted) = lines.len().checked_sub(first + last).filter(|count| *count > 1) {
        let sentence = format!("… {omitted} more frames");
        lines.splice(first..first + omitted, [sentence]);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recursion_is_one_line_and_a_long_backtrace_is_shortened() {
        let lines = ["a", "b", "b", "b", "a"].map(str::to_owned).to_vec();
        assert_eq!(shortened(lines), ["a", "b (3 times)", "a"]);
        let lines: Vec<_> = (0..100).map(|number| number.to_string()).collect();
        let short = shortened(lines);
        assert_eq!(short.len(), 32 + 1 + 16);
        assert_eq!(short[31..34], ["31", "… 52 more frames", "84"]);
    }

    #[test]
    fn files_are_shown_relative_to_the_build_folder() {
        assert_eq!(shown(r"C:\src\driver\src\queue.rs"), "driver/src/queue.rs");
        assert_eq!(shown(r"D:\work\queue.c"), r"D:\work\queue.c");
        let here = env::current_dir().unwrap().join("src/lib.rs");
        assert_eq!(shown(here.to_str().unwrap()), "src/lib.rs");
    }
}
