//! Reads the C text of a test driver: marks the beginning of its test functions, and names its checks.

use std::fmt::Write as _;

/// The words around a check that state on which systems it fails. They change with Wine and not
/// with Windows, so a check's name omits them.
const MARKS: [&str; 6] =
    ["todo_wine_if", "todo_wine", "todo_if", "flaky_wine_if", "flaky_wine", "flaky_if"];

/// The beginning of a test function's definition.
const TEST: &str = "static void test_";

/// A statement of a function.
#[derive(Debug)]
struct Statement {
    function: String,
    /// The first and the last line.
    lines: (usize, usize),
    text: String,
    /// The nearest earlier statement that is not a check: usually the call that the check concerns.
    before: String,
    /// The number of equal statements before, in the same function.
    earlier: usize,
}

/// The statements of a file.
#[derive(Debug)]
pub struct Source(Vec<Statement>);

/// A check's place in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Check {
    /// A hash of the check's text, of its function's name, and of the statement before it. So the
    /// same text elsewhere is another check, and other lines above the check do not affect the
    /// hash.
    pub hash: String,
    /// The function that contains the check.
    pub function: String,
}

/// Returns the 64-bit FNV-1a hash, which the shim also computes.
pub fn hash<'a>(texts: impl IntoIterator<Item = &'a str>) -> u64 {
    let bytes = texts.into_iter().flat_map(str::bytes);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// Writes the shim's macro at the beginning of each test function. The lines keep their numbers.
pub fn instrument(text: &str) -> String {
    let mut parts = text.split(TEST);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(TEST);
        let name = part.split('(').next().unwrap_or_default();
        match part.find(['{', ';']).map(|at| part.split_at(at)) {
            Some((head, body)) if body.starts_with('{') => {
                let _ = write!(out, "{head}{{ SHIM_TEST(test_{name}){}", &body[1..]);
            }
            _ => out.push_str(part),
        }
    }
    out
}

impl Source {
    /// Splits a file into statements.
    pub fn new(text: &str) -> Self {
        let mut all: Vec<Statement> = Vec::new();
        for (function, lines, text) in split(text) {
            let text = without_marks(&text);
            let before = all
                .iter()
                .rev()
                .take_while(|one| one.function == function)
                .find(|one| !is_check(&one.text))
                .map_or_else(String::new, |one| one.text.clone());
            let equal = |one: &&Statement| {
                (&one.function, &one.text, &one.before) == (&function, &text, &before)
            };
            let earlier = all.iter().filter(equal).count();
            all.push(Statement { function, lines, text, before, earlier });
        }
        Self(all)
    }

    /// Returns the check on a line with these arguments, whose hash the shim reports.
    pub fn check(&self, line: usize, arguments: &str) -> Check {
        let here = || self.0.iter().filter(|one| (one.lines.0..=one.lines.1).contains(&line));
        let Some(found) = here().find(|one| is_check(&one.text)).or_else(|| here().next()) else {
            return Check { hash: format!("{:016x}", hash([arguments])), function: "?".to_owned() };
        };
        let Statement { function, text, before, earlier, .. } = found;
        let (function, before, text) = (function.as_str(), before.as_str(), text.as_str());
        let earlier = earlier.to_string();
        let parts = [function, "\n", before, "\n", text, "\n", earlier.as_str(), "\n", arguments];
        Check { hash: format!("{:016x}", hash(parts)), function: function.to_owned() }
    }
}

/// Returns whether a statement is a call of `ok` or of a helper whose name starts with `check_`.
fn is_check(text: &str) -> bool {
    ["ok(", "ok (", "ok_(", "check_"].iter().any(|start| text.starts_with(start))
}

/// Removes the Wine markers (`todo_wine`, …) from a statement.
fn without_marks(text: &str) -> String {
    let mut text = text.to_owned();
    for mark in MARKS {
        while let Some(start) = word(&text, mark) {
            let (head, rest) = text.split_at(start);
            let mut rest = rest[mark.len()..].trim_start();
            if mark.ends_with("_if") {
                let mut depth = 0_usize;
                let end = rest.find(|letter: char| {
                    depth = match letter {
                        '(' => depth + 1,
                        ')' => depth.saturating_sub(1),
                        _ => depth,
                    };
                    letter == ')' && depth == 0
                });
                rest = end.map_or("", |end| rest[end + 1..].trim_start());
            }
            text = format!("{head}{rest}");
        }
    }
    text
}

/// Finds a word.
fn word(text: &str, word: &str) -> Option<usize> {
    let is_part =
        |letter: Option<char>| letter.is_some_and(|one| one.is_alphanumeric() || one == '_');
    text.match_indices(word).map(|(at, _)| at).find(|at| {
        let (head, rest) = text.split_at(*at);
        !is_part(head.chars().next_back()) && !is_part(rest[word.len()..].chars().next())
    })
}

/// Returns the statements of the functions of a file: the function, the first and the last line, and the text
/// with single spaces and without comments.
fn split(text: &str) -> Vec<(String, (usize, usize), String)> {
    let mut all = Vec::new();
    let (mut function, mut braces, mut parentheses) = (String::new(), 0_usize, 0_usize);
    let (mut current, mut first, mut line) = (String::new(), 0, 1);
    let mut letters = text.chars().peekable();
    let mut is_line_empty = true;
    while let Some(letter) = letters.next() {
        let next = letters.peek().copied();
        match letter {
            '#' if is_line_empty => {
                let mut last = letter;
                while let Some(more) = letters.next_if(|more| *more != '\n' || last == '\\') {
                    line += usize::from(more == '\n');
                    last = more;
                }
            }
            '/' if next == Some('/') => while letters.next_if(|more| *more != '\n').is_some() {},
            '/' if next == Some('*') => {
                letters.next();
                let mut last = ' ';
                for more in letters.by_ref() {
                    line += usize::from(more == '\n');
                    if last == '*' && more == '/' {
                        break;
                    }
                    last = more;
                }
            }
            '\n' | ' ' | '\t' | '\r' => {
                line += usize::from(letter == '\n');
                is_line_empty |= letter == '\n';
                if !current.is_empty() && !current.ends_with(' ') {
                    current.push(' ');
                }
            }
            ';' | '{' | '}' if parentheses == 0 => {
                is_line_empty = false;
                let text = std::mem::take(&mut current).trim_end().to_owned();
                if braces > 0 && !text.is_empty() {
                    all.push((function.clone(), (first, line), text));
                } else if letter == '{' && braces == 0 {
                    let head = text.split('(').next().unwrap_or_default();
                    let name = head.rsplit(|one: char| !one.is_alphanumeric() && one != '_').next();
                    name.unwrap_or_default().clone_into(&mut function);
                }
                braces = match letter {
                    '{' => braces + 1,
                    '}' => braces.saturating_sub(1),
                    _ => braces,
                };
            }
            _ => {
                is_line_empty = false;
                if current.is_empty() {
                    first = line;
                }
                current.push(letter);
                parentheses = match letter {
                    '(' => parentheses + 1,
                    ')' => parentheses.saturating_sub(1),
                    _ => parentheses,
                };
                if letter == '"' || letter == '\'' {
                    while let Some(more) = letters.next() {
                        current.push(more);
                        if more == '\\' {
                            current.extend(letters.next());
                        } else if more == letter {
                            break;
                        }
                    }
                }
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "static void test_a(void);\n\
        static void WINAPI test_callback(void *a)\n{\n    ok(0, \"callback\\n\");\n}\n\
        static void test_a(void)\n{\n    /* ; { */\n    ret = call(\"a;b\");\n    ok(!ret, \"got %d\\n\",\n       ret);\n\
        \n    ret = call(\"a;b\");\n    todo_wine\n    ok(!ret, \"got %d\\n\",\n       ret);\n    ret = other();\n\
        #define X \\\n    Y;\n    if (ret) ok(!ret, \"got %d\\n\", ret);\n    check_all(1); check_all(2);\n}\n\
        static void test_b(int a,\n        int b)\n{\n    ok(!ret, \"got %d\\n\", ret);\n}\n";

    #[test]
    fn test_functions_are_marked_and_no_line_moves() {
        let marked = instrument(TEXT);
        assert_eq!(marked.lines().count(), TEXT.lines().count());
        assert_eq!(marked.matches("SHIM_TEST").count(), 2, "{marked}");
        assert!(marked.contains("static void test_a(void);\n"), "{marked}");
        assert!(marked.contains("static void test_a(void)\n{ SHIM_TEST(test_a)\n"), "{marked}");
        assert!(marked.contains("int b)\n{ SHIM_TEST(test_b)\n"), "{marked}");
    }

    #[test]
    fn a_check_is_named_by_its_text_and_not_by_its_line() {
        let line = |of: &str, text: &str, nth: usize| {
            let mut lines = of.lines().enumerate().filter(|(_, one)| one.contains(text));
            lines.nth(nth).unwrap().0 + 1
        };
        let arguments = "0123456789abcdef";
        let named = |of: &str, nth| Source::new(of).check(line(of, "ok(!ret", nth), arguments);
        let all: Vec<Check> = (0..4).map(|nth| named(TEXT, nth)).collect();
        let functions: Vec<&str> = all.iter().map(|one| one.function.as_str()).collect();
        assert_eq!(functions, ["test_a", "test_a", "test_a", "test_b"]);
        // The first two have the same text after the same call.
        for (at, one) in all.iter().enumerate() {
            assert!(all.iter().skip(at + 1).all(|other| other.hash != one.hash), "{all:?}");
        }
        assert_ne!(all[0], Source::new(TEXT).check(line(TEXT, "ok(!ret", 0), "other"));
        // Lines above, comments, spaces and marks change nothing.
        let moved = format!("/* new\n */\nint a;\n{TEXT}");
        let moved = moved.replace("todo_wine\n", "todo_wine_if (f(a))\n").replace("Y;", "Y; /* */");
        let moved =
            moved.replace("ok(!ret, \"got %d\\n\",\n ", "ok(!ret,   \"got %d\\n\", /* */\n\n ");
        assert_eq!(all, (0..4).map(|nth| named(&moved, nth)).collect::<Vec<_>>());
        // The preceding call and the check's own text change the hash.
        let other = TEXT.replace("ret = other();", "ret = another();").replace("test_b", "test_c");
        let changed: Vec<Check> = (0..4).map(|nth| named(&other, nth)).collect();
        assert_eq!(changed[..2], all[..2]);
        assert!(changed[2..].iter().all(|one| !all.contains(one)));
    }

    #[test]
    fn a_line_without_a_statement_has_a_check_all_the_same() {
        let check = Source::new("").check(7, "0123");
        assert_eq!((check.function.as_str(), check.hash.len()), ("?", 16));
    }
}
