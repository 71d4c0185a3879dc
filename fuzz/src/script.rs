//! Parses arbitrary bytes as a script of the stand-in kernel.

use standin_kernel::Script;

use crate::text::sentence;

/// Checks that errors name the first invalid line of the script, and that blank lines, comments and
/// white space are skipped. Returns the number of steps.
///
/// # Errors
/// Fails with the text of the error if the script is rejected.
pub fn check(data: &[u8]) -> Result<usize, String> {
    let Ok(text) = std::str::from_utf8(data) else {
        return Err("the bytes are not text".to_owned());
    };
    let lines: Vec<&str> = text.lines().collect();
    // A lone `repeat` or `end` is not a valid script.
    let repeats = |line: &&str| {
        let first = line.split_whitespace().next().unwrap_or_default();
        first == "repeat" || first == "end"
    };
    let has_repetitions = lines.iter().any(repeats);
    let parsed = Script::parse(text);
    match &parsed {
        Ok(script) => {
            let empty = Script::parse("").expect("a script without steps is valid");
            let mut steps = 0;
            // Every other line is a valid script on its own.
            for line in lines.iter().filter(|line| !repeats(line)) {
                let alone = Script::parse(line);
                let alone = alone.unwrap_or_else(|_| panic!("{line:?} alone is refused"));
                steps += usize::from(alone != empty);
            }
            let commented: Vec<String> =
                lines.iter().map(|line| format!("\t {line} # c")).collect();
            let commented = commented.join("\n");
            assert_eq!(Script::parse(&commented).ok().as_ref(), Some(script));
            let windows = lines.join("\r\n");
            assert_eq!(Script::parse(&windows).ok().as_ref(), Some(script));
            Ok(steps)
        }
        Err(error) => {
            assert!((1..=lines.len()).contains(&error.line), "{error}");
            if !has_repetitions {
                let before = lines[..error.line - 1].join("\n");
                assert!(Script::parse(&before).is_ok(), "not the first bad line");
                let alone = Script::parse(lines[error.line - 1]).expect_err("the line is bad");
                assert_eq!(alone.line, 1);
                assert_eq!(alone.problem.to_string(), error.problem.to_string());
            }
            let later = Script::parse(&format!("\n# c\n{text}")).expect_err("still bad");
            assert_eq!(later.line, error.line + 2);
            Err(sentence(error))
        }
    }
}
