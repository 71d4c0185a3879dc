//! Reads the output of a run: the shim's lines and the kernel's findings.

use serde_json::Value;

/// The text in a bugcheck's message about a call of a routine that the kernel lacks.
pub const NOT_PROVIDED: &str = "the stand-in kernel does not provide it";

/// A check that was evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evaluated {
    pub is_right: bool,
    pub line: usize,
    /// The hash of the arguments.
    pub arguments: String,
    /// The message of a failed check.
    pub message: String,
}

/// The results of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// The test functions that the image omits.
    pub found: Vec<String>,
    pub checks: Vec<Evaluated>,
    /// The number of times that the driver omitted checks by itself.
    pub skips: usize,
    pub is_entered: bool,
    pub is_left: bool,
    /// The reason why the run ended before the end of its steps.
    pub ended: Option<String>,
}

/// Reads the lines that a run prints, and its errors.
pub fn read(lines: &str, errors: &str) -> Run {
    let mut run = Run::default();
    let mut is_complete = false;
    let mut is_message = false;
    for line in lines.lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let text = |member: &str| line[member].as_str().unwrap_or_default();
        match text("reason") {
            "run-summary" => is_complete = true,
            "finding" if ["bugcheck", "process-ended", "failure"].contains(&text("kind")) => {
                run.ended.get_or_insert_with(|| text("message").to_owned());
            }
            "driver-output" => is_message = shim_line(&mut run, text("text"), is_message),
            _ => {}
        }
    }
    if !is_complete && run.ended.is_none() {
        let last = errors.lines().last().unwrap_or("the run ended without a summary");
        run.ended = Some(last.to_owned());
    }
    run
}

/// Reads a line of the driver, and returns whether the next line is the message of a failed check.
fn shim_line(run: &mut Run, text: &str, is_message: bool) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words[..] {
        // The names become names of folders, and the driver's output is not trusted.
        ["@found", name]
            if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                && !run.found.iter().any(|one| one == name) =>
        {
            run.found.push(name.to_owned());
        }
        ["@enter", _] => (run.is_entered, run.is_left) = (true, false),
        ["@leave"] => run.is_left = true,
        ["@skip", _] => run.skips += 1,
        ["@check", verdict, line, arguments] => {
            let is_right = ["+", "~"].contains(&verdict);
            run.checks.push(Evaluated {
                is_right,
                line: line.parse().unwrap_or_default(),
                arguments: arguments.to_owned(),
                message: String::new(),
            });
            return !is_right;
        }
        _ if is_message => {
            if let Some(last) = run.checks.last_mut() {
                text.trim().clone_into(&mut last.message);
            }
        }
        _ => {}
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(lines: &[&str]) -> String {
        let all = lines.iter().map(|text| {
            serde_json::json!({ "reason": "driver-output", "text": text }).to_string() + "\n"
        });
        all.collect()
    }

    #[test]
    fn the_lines_of_the_shim_are_read() {
        let lines = output(&[
            "hello", "@check + 5 00000000000000aa", "@found test_b", "@found test_b",
            "@found ../b", "@found /b", "@enter test_a", "@check - 7 00000000000000ab", "got 3",
            "more", "@check ~ 8 00000000000000ac", "other", "@check ! 9 00000000000000ad",
            "@skip 10", "@leave",
        ]);
        let run = read(&(lines.clone() + r#"{"reason":"run-summary"}"#), "");
        let seen: Vec<(bool, usize, &str)> =
            run.checks.iter().map(|one| (one.is_right, one.line, one.message.as_str())).collect();
        assert_eq!(seen, [(true, 5, ""), (false, 7, "got 3"), (true, 8, ""), (false, 9, "")]);
        assert_eq!((run.found, run.skips), (vec!["test_b".to_owned()], 1));
        assert!(run.is_entered && run.is_left && run.ended.is_none());
        // Entered again, and not left.
        let again = output(&["@enter test_a"]);
        let found = r#"{"reason":"finding","kind":"bugcheck","message":"bugcheck 0xC4: no"}"#;
        let warned = r#"{"reason":"finding","kind":"warning","message":"warned"}"#;
        let run = read(&format!("{lines}{again}{warned}\n{found}\nnoise\n"), "");
        assert!(run.is_entered && !run.is_left);
        assert_eq!(run.ended.as_deref(), Some("bugcheck 0xC4: no"));
        assert_eq!(read("", "a\nkilled\n").ended.as_deref(), Some("killed"));
    }
}
