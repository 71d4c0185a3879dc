//! Any bytes as a script of the stand-in kernel.

use etw_testkernel::Script;

use crate::text::assert_sentence;

/// Errors name a line of the script, and the first bad one; blank lines, comments and white
/// space mean nothing.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let lines: Vec<&str> = text.lines().collect();
    let parsed = Script::parse(text);
    match &parsed {
        Ok(script) => {
            // A line is a script of its own.
            for line in &lines {
                assert!(Script::parse(line).is_ok(), "{line:?} alone is refused");
            }
            let commented: Vec<String> =
                lines.iter().map(|line| format!("\t {line} # c")).collect();
            let commented = commented.join("\n");
            assert_eq!(Script::parse(&commented).ok().as_ref(), Some(script));
            let windows = lines.join("\r\n");
            assert_eq!(Script::parse(&windows).ok().as_ref(), Some(script));
        }
        Err(error) => {
            assert_sentence(error);
            assert!((1..=lines.len()).contains(&error.line), "{error}");
            let before = lines[..error.line - 1].join("\n");
            assert!(Script::parse(&before).is_ok(), "not the first bad line");
            let alone = Script::parse(lines[error.line - 1]).expect_err("the line is bad");
            assert_eq!(alone.line, 1);
            assert_eq!(alone.problem.to_string(), error.problem.to_string());
            let later = Script::parse(&format!("\n# c\n{text}")).expect_err("still bad");
            assert_eq!(later.line, error.line + 2);
        }
    }
}
