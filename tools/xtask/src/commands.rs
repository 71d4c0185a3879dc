//! Checks the Windows command lines in guides and scripts against Microsoft's documentation of the
//! commands, because they cannot be run without Windows.

use std::{collections::BTreeMap, fs};

use crate::{
    process::root,
    tree::{self, extension_of},
};

/// The documented syntax: one `COMMAND VERB | OPTIONS | PAGE` per line.
const SYNTAX: &str = include_str!("../lint/commands.txt");

/// Returns each command and verb with its options.
fn syntax() -> BTreeMap<&'static str, Vec<&'static str>> {
    let lines = SYNTAX.lines().filter(|line| !line.starts_with('#'));
    let fields = |line: &'static str| {
        let mut fields = line.split('|').map(str::trim);
        let mut next = || fields.next().unwrap_or_else(|| panic!("three fields: {line}"));
        let (command, options, page) = (next(), next(), next());
        assert!(page.starts_with("https://learn.microsoft.com/"), "{line}");
        (command, options.split_whitespace().collect())
    };
    lines.map(fields).collect()
}

/// Returns the parts of a file's line that can be commands.
fn candidates(file: &str, line: &str, is_in_block: bool) -> Vec<String> {
    let plain = line.trim_start().trim_start_matches("call ").to_owned();
    if extension_of(file) == "md" {
        let spans = line.split('`').skip(1).step_by(2).map(str::to_owned);
        return if is_in_block { vec![plain] } else { spans.collect() };
    }
    // A stage passes a program and its arguments: 'logman.exe' "stop $session -ets".
    let called = line.split_once(".exe' ").and_then(|(before, after)| {
        let arguments = match after.strip_prefix('"') {
            // Within double quotes, a grave accent precedes a double quote.
            Some(rest) => rest.replace("`\"", "'").split('"').next()?.to_owned(),
            None => after.strip_prefix('\'')?.split('\'').next()?.to_owned(),
        };
        Some(format!("{} {arguments}", before.rsplit('\'').next()?))
    });
    vec![called.unwrap_or(plain)]
}

/// Returns the mistake in a command line, or `None` if the line is correct or not a listed command.
fn fault(syntax: &BTreeMap<&str, Vec<&str>>, line: &str) -> Option<String> {
    let is_end = |word: &&str| !matches!(*word, "|" | "||" | "&&" | ">" | ">nul");
    let words: Vec<&str> = line.split_whitespace().take_while(is_end).collect();
    let program = words.first()?;
    let is_known = syntax.keys().any(|one| one.split(' ').next() == Some(program));
    // Prose can name only the program, and a script can choose the verb.
    if !is_known || words.len() == 1 || words[1].contains('$') {
        return None;
    }
    let begins = |one: &&str| {
        let verb: Vec<&str> = one.split(' ').collect();
        words.starts_with(&verb)
    };
    let Some(command) = syntax.keys().copied().filter(begins).max_by_key(|one| one.len()) else {
        return Some(format!("no documented verb in `{line}`"));
    };
    let rest = &words[command.split(' ').count()..];
    let mut options = rest.iter().filter(|word| word.starts_with(['-', '/']));
    let name = |word: &str| word.split(':').next().unwrap_or_default().to_owned();
    let wrong = options.find(|word| !syntax[command].contains(&name(word).as_str()))?;
    Some(format!("`{command}` has no documented option {wrong}: `{line}`"))
}

#[test]
fn the_command_lines_for_windows_follow_the_documentation() {
    let syntax = syntax();
    let (mut faults, mut checked) = (Vec::new(), BTreeMap::new());
    for file in tree::files(&root()).unwrap() {
        let is_script =
            matches!(extension_of(&file), "ps1" | "cmd") || file.ends_with("README.txt");
        if file == "CHANGELOG.md" || !(is_script || extension_of(&file) == "md") {
            continue;
        }
        let text = fs::read_to_string(root().join(&file)).unwrap();
        let mut is_in_block = false;
        for (number, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                is_in_block = !is_in_block;
                continue;
            }
            for candidate in candidates(&file, line, is_in_block) {
                if let Some(fault) = fault(&syntax, &candidate) {
                    faults.push(format!("{file}:{}: {fault}", number + 1));
                }
                let program = candidate.split(' ').next().unwrap_or_default().to_owned();
                *checked.entry(program).or_insert(0) += 1;
            }
        }
    }
    // cargo-make's tasks list the program and its arguments separately.
    let makefile: toml::Table =
        fs::read_to_string(root().join("Makefile.toml")).unwrap().parse().unwrap();
    for (name, task) in makefile["tasks"].as_table().unwrap() {
        let words = task.get("args").and_then(toml::Value::as_array).into_iter().flatten();
        let command = task.get("command").and_then(toml::Value::as_str).unwrap_or_default();
        let line: Vec<&str> =
            std::iter::once(command).chain(words.filter_map(|w| w.as_str())).collect();
        let line = line.join(" ");
        faults.extend(fault(&syntax, &line).map(|fault| format!("Makefile.toml, {name}: {fault}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    for command in syntax.keys() {
        let program = command.split(' ').next().unwrap();
        assert!(checked.contains_key(program), "no text has {program} any more");
    }
}

#[test]
fn a_command_line_that_no_page_documents_is_found() {
    let syntax = syntax();
    for (line, expected) in [
        ("logman start s -ow -o s.etl -ets", "no documented verb"),
        ("logman stop s -ow", "`logman stop` has no documented option -ow"),
        ("pnputil /add-driver a.inf /force", "no documented option /force"),
        ("inf2cat /driver:. /os:10_X64 /nosuch", "no documented option /nosuch"),
    ] {
        let found = fault(&syntax, line).unwrap();
        assert!(found.contains(expected), "{line}: {found}");
    }
    for line in
        ["logman create trace s -ow -o s.etl -ets", "signtool sign /fd SHA256 a.cat", "dir /b"]
    {
        assert_eq!(fault(&syntax, line), None, "{line}");
    }
    let stage = r#"    [void] (Invoke-Checked $S 'a' 'logman.exe' "stop `"a b`" -ets")"#;
    assert_eq!(candidates("a.ps1", stage, false), ["logman stop 'a b' -ets"]);
}
