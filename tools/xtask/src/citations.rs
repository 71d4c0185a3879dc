//! Checks the ids that comments, messages and documents cite, and the links between documents.
//!
//! | id | defined in |
//! |---|---|
//! | ETW-2.14, ETL-2.1 | the behavior of ETW, the format of .etl files |
//! | V04 | the verifier's rules: V and two digits |
//! | O8 | unspecified behavior: O and one or two digits |
//! | R-T4 | the requirements |
//!
//! The documents in `docs/reference` define them, each with an anchor. [`check`] fails if a file
//! cites an undefined id, if an id is defined twice, if a comment names a document that does not
//! exist, if a document's relative link is broken, or if a table of behaviors names a test that does
//! not exist. rustdoc checks the links in Rust documentation.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use anyhow::{Context, Result, ensure};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::{
    process::root,
    tree::{self, extension_of},
};

/// The folder of the documents that define ids.
const REFERENCE: &str = "docs/reference/";
/// The document that defines the requirements.
pub const REQUIREMENTS: &str = "docs/reference/requirements.md";

/// The documents whose tables end in the names of tests.
const TESTED: [&str; 2] = ["docs/reference/kmdf-requests.md", "docs/reference/kmdf-objects.md"];

/// Returns the names in backticks in the last column of a document's tables, with their lines.
fn tests(document: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(document.lines()).flat_map(|(number, line)| {
        let row = line.trim().strip_prefix('|').and_then(|row| row.strip_suffix('|'));
        let last = row.and_then(|row| row.rsplit('|').next()).unwrap_or_default();
        last.split('`').skip(1).step_by(2).map(move |name| (number, name.trim_matches('"')))
    })
}

/// Returns whether a word is an id.
pub fn is_id(word: &str) -> bool {
    let is_number =
        |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    match word.split_once('-') {
        Some(("ETW" | "ETL", number)) => number.split('.').all(is_number),
        Some(("R", rest)) => {
            rest.starts_with(|letter: char| letter.is_ascii_uppercase())
                && rest.get(1..).is_some_and(is_number)
        }
        _ => is_short_id(word),
    }
}

/// Returns whether a word is an id without `-`, which could also be a name in code.
fn is_short_id(word: &str) -> bool {
    let number = word.get(1..).unwrap_or_default();
    let is_number = number.bytes().all(|digit| digit.is_ascii_digit());
    is_number
        && (word.starts_with('V') && number.len() == 2
            || word.starts_with('O') && matches!(number.len(), 1 | 2) && !number.starts_with('0'))
}

/// Returns the ids that a reference document defines, with their line numbers. Readers see each id
/// after its anchor.
pub fn definitions(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        for part in line.split("<a id=\"").skip(1) {
            let Some((anchor, label)) = part.split_once("\"></a>") else { continue };
            let id = anchor.to_ascii_uppercase();
            let rest = label.trim_start_matches('*').strip_prefix(&id);
            if is_id(&id)
                && rest
                    .is_some_and(|rest| !rest.starts_with(|next| matches!(next, '.' | '0'..='9')))
            {
                found.push((number, id));
            }
        }
    }
    found
}

/// Returns the ids that a line cites. Short ids count in comments and documents; in code, only if
/// they are a whole string or in parentheses.
fn cited(line: &str, comment_at: usize) -> Vec<&str> {
    let is_part = |letter: char| letter.is_alphanumeric() || "-_./".contains(letter);
    let mut found = Vec::new();
    let mut at = 0;
    for word in line.split_inclusive(|letter| !is_part(letter)) {
        let start = at;
        at += word.len();
        // The first part of V40/V41 counts; a path does not count.
        let word = word.trim_end_matches(|letter| !is_part(letter));
        let id = word.split('/').next().unwrap_or_default().trim_end_matches('.');
        let is_enclosed = || {
            let before = line.get(..start).is_some_and(|text| text.ends_with(['"', '(']));
            before && line.get(start + id.len()..).is_some_and(|text| text.starts_with(['"', ')']))
        };
        if is_id(id) && (!is_short_id(id) || start >= comment_at || is_enclosed()) {
            found.push(id);
        }
    }
    found
}

/// Returns the offset in a line at which a comment starts; a document is all comment.
fn comment_at(line: &str, extension: &str) -> usize {
    let mark = match extension {
        "md" => return 0,
        "rs" => "//",
        _ => "#",
    };
    // After another character, the mark is part of a word or an address.
    let is_start = |at: &usize| {
        line.get(..*at).is_some_and(|before| before.is_empty() || before.ends_with(' '))
    };
    line.match_indices(mark).map(|(at, _)| at).find(is_start).unwrap_or(line.len())
}

/// Returns the documents in `docs` that a comment names by path.
fn documents(comment: &str) -> impl Iterator<Item = &str> {
    let is_part = |letter: char| letter.is_alphanumeric() || "/-_.".contains(letter);
    let words = comment.split(move |letter| !is_part(letter));
    words
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| word.starts_with("docs/") && extension_of(word) == "md")
}

/// A document's links, and the targets that it offers to links.
#[derive(Default)]
struct Markdown {
    /// The destinations of links without a scheme, with their line numbers.
    links: Vec<(usize, String)>,
    /// The item names that are the text of links, with the line number and the link's destination.
    items: Vec<(usize, String, String)>,
    /// The anchors: explicit ones, and those that GitHub generates for headings.
    anchors: BTreeSet<String>,
}

impl Markdown {
    fn read(text: &str) -> Self {
        let mut found = Self::default();
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        let mut heading: Option<String> = None;
        let mut target: Option<String> = None;
        let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
        for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
            let line = || text.get(..range.start).unwrap_or_default().matches('\n').count() + 1;
            if let (Event::Text(part) | Event::Code(part), Some(heading)) = (&event, &mut heading) {
                heading.push_str(part);
            }
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let slug = slug(&heading.take().unwrap_or_default());
                    let used = times.entry(slug.clone()).or_default();
                    let name = if *used == 0 { slug } else { format!("{slug}-{used}") };
                    found.anchors.insert(name);
                    *used += 1;
                }
                Event::InlineHtml(html) | Event::Html(html) => {
                    let rest = html.strip_prefix("<a id=\"");
                    let id = rest.and_then(|rest| rest.split_once('"'));
                    found.anchors.extend(id.map(|(id, _)| id.to_owned()));
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. })
                    if !dest_url.contains(':') && !dest_url.starts_with("//") =>
                {
                    found.links.push((line(), dest_url.to_string()));
                    target = Some(dest_url.into_string());
                }
                Event::End(TagEnd::Link | TagEnd::Image) => target = None,
                Event::Code(name) => {
                    if let Some(target) = &target {
                        found.items.push((line(), name.into_string(), target.clone()));
                    }
                }
                _ => {}
            }
        }
        found
    }
}

/// Returns the anchor that GitHub generates for a heading.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.flat_map(char::to_lowercase)
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

/// Returns whether a source contains the last part of an item's path as a word. File names do not
/// count.
fn has_item(source: &str, name: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let last =
        name.trim_end_matches(|letter| !is_part(letter)).rsplit(|letter| !is_part(letter)).next();
    name.contains(['.', '/'])
        || last.is_none_or(|last| {
            last.is_empty() || source.split(|letter| !is_part(letter)).any(|word| word == last)
        })
}

/// Resolves a relative path against the file that contains it. Returns `None` if the path leaves
/// the tree.
fn resolved(from: &str, path: &str) -> Option<String> {
    if path.is_empty() {
        return Some(from.to_owned());
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// A file tree: paths relative to the root, with `/`, and the contents of files that can contain
/// citations.
#[derive(Default)]
struct Tree {
    paths: BTreeSet<String>,
    texts: BTreeMap<String, String>,
}

impl Tree {
    /// Adds a file and its folders.
    fn add(&mut self, path: &str, text: Option<String>) {
        let folders = path.match_indices('/').map(|(end, _)| &path[..end]);
        self.paths.extend(folders.map(str::to_owned).chain([String::new(), path.to_owned()]));
        self.texts.extend(text.map(|text| (path.to_owned(), text)));
    }

    /// Returns every problem as a sentence that starts with the location.
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut defined: BTreeMap<String, String> = BTreeMap::new();
        for (path, text) in self.texts.iter().filter(|(path, _)| path.starts_with(REFERENCE)) {
            for (line, id) in definitions(text) {
                let place = format!("{path}:{line}");
                if let Some(first) = defined.insert(id.clone(), place.clone()) {
                    problems.push(format!("{place}: {id} is already defined at {first}"));
                }
            }
        }
        let mut documents_read = BTreeMap::new();
        for (path, text) in &self.texts {
            let extension = extension_of(path);
            for (number, line) in (1..).zip(text.lines()) {
                let at = comment_at(line, extension);
                for id in cited(line, at).into_iter().filter(|id| !defined.contains_key(*id)) {
                    problems.push(format!(
                        "{path}:{number}: {id} is cited, but no document in {REFERENCE} defines it; \
                         write `<a id=\"…\"></a>` before the id there"
                    ));
                }
                if extension != "md" {
                    let named = documents(line.get(at..).unwrap_or_default());
                    for document in named.filter(|document| !self.paths.contains(*document)) {
                        problems.push(format!("{path}:{number}: {document} does not exist"));
                    }
                }
            }
            if extension == "md" {
                documents_read.insert(path.as_str(), Markdown::read(text));
            }
        }
        for (path, document) in &documents_read {
            for (line, link) in &document.links {
                if let Some(problem) = self.follow(path, link, &documents_read) {
                    problems.push(format!("{path}:{line}: the link {link} {problem}"));
                }
            }
            for (line, name, link) in &document.items {
                let source = resolved(path, link).and_then(|path| self.texts.get(&path));
                if source.is_some_and(|source| !has_item(source, name)) {
                    problems
                        .push(format!("{path}:{line}: {link} does not contain the item {name}"));
                }
            }
        }
        problems.extend(self.missing_tests());
        problems
    }

    /// Returns sentences about the named tests that the tests' sources contain neither as functions
    /// nor as strings.
    fn missing_tests(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let exists = |name: &str| {
            let (function, row) = (format!("fn {name}("), format!("\"{name}\""));
            self.texts.iter().any(|(path, text)| {
                extension_of(path) == "rs"
                    && (text.contains(&function)
                        || (path.contains("tests/") && text.contains(&row)))
            })
        };
        for document in TESTED {
            let text = self.texts.get(document).map_or("", String::as_str);
            for (line, name) in tests(text).filter(|(_, name)| !exists(name)) {
                problems.push(format!("{document}:{line}: no test has the name {name}"));
            }
        }
        problems
    }

    /// Follows a document's link, and returns the problem if the link is broken.
    fn follow(
        &self,
        from: &str,
        link: &str,
        documents: &BTreeMap<&str, Markdown>,
    ) -> Option<String> {
        let (path, anchor) =
            link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
        let Some(target) = resolved(from, path) else {
            return Some("points outside the checkout".to_owned());
        };
        if !self.paths.contains(&target) {
            return Some(format!("points to {target}, which does not exist"));
        }
        let anchor = anchor?;
        match documents.get(target.as_str()) {
            Some(document) if document.anchors.contains(anchor) => None,
            Some(_) => Some(format!("points to {target}, which has no anchor {anchor}")),
            None => Some(format!("has an anchor, but {target} is not a Markdown file")),
        }
    }
}

/// Fails if an id or a relative link in the checkout does not resolve.
pub fn check() -> Result<()> {
    let mut tree = Tree::default();
    for path in tree::files(&root())? {
        let can_cite = matches!(extension_of(&path), "rs" | "md" | "toml" | "py");
        let read = || fs::read_to_string(root().join(&path));
        let text = can_cite.then(read).transpose();
        tree.add(&path, text.with_context(|| format!("cannot read {path}"))?);
    }
    let problems = tree.problems();
    ensure!(problems.is_empty(), "{}", problems.join("\n"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Tree, cited};

    /// A document that defines two statements and a rule.
    const BEHAVIOUR: &str = "# Behaviour\n\n\
        ## 2. What `etl dump` does, in short\n\n\
        - <a id=\"etw-2.14\"></a>**ETW-2.14** The callback is short.\n\
        - <a id=\"etw-2.15\"></a>**ETW-2.15** It writes; see [above](#etw-2.14).\n\n\
        | <a id=\"v04\"></a>V04 | stop |\n";

    fn problems_of(files: &[(&str, &str)]) -> Vec<String> {
        let mut tree = Tree::default();
        tree.add("docs/reference/behaviour.md", Some(BEHAVIOUR.to_owned()));
        for (path, text) in files {
            tree.add(path, Some((*text).to_owned()));
        }
        tree.problems()
    }

    /// Returns an id; this file does not cite it, because the id is composed.
    fn id(kind: &str, number: &str) -> String {
        format!("{kind}{number}")
    }

    #[test]
    fn ids_stand_alone() {
        let text = "ETW-2.14. (R-T4, O8; `V04`) V4 O257 /O2 -O1 NR-T4 R-T4-like V044 ETW-x \
                    ETW-6.5.7: V40/V41";
        assert_eq!(cited(text, 0), ["ETW-2.14", "R-T4", "O8", "V04", "ETW-6.5.7", "V40"]);
    }

    #[test]
    fn short_ids_in_code_are_whole_strings_or_in_parentheses() {
        for (code, expected) in [
            ("f(\"V04\")", &["V04"][..]),
            ("f(\"no handle (V12)\")", &["V12"]),
            ("let V05 = O9; f(\"id='O1', V05=1\");", &[]),
            ("f(\"see R-T4 and ETW-2.1\")", &["R-T4", "ETW-2.1"]),
        ] {
            assert_eq!(cited(code, code.len()), expected, "{code}");
        }
    }

    #[test]
    fn an_unknown_id_is_found_wherever_it_is_cited() {
        let known = "// Short (ETW-2.14).\n/// ETW-2.15: may write; V04.\nfn f() { g(\"V04\"); }\n";
        assert_eq!(problems_of(&[("src/lib.rs", known)]), [""; 0]);
        let etw = id("ETW-", "2.99");
        let rule = id("V", "05");
        for (path, text, expected) in [
            ("a.rs", format!("fn f() {{}}\n\n// So ({etw}).\n"), "a.rs:3: "),
            ("a.rs", format!("//! One\n//! two ({etw}).\n"), "a.rs:2: "),
            ("a.rs", format!("fn f() {{ g(\"no ({etw})\"); }}"), "a.rs:1: "),
            ("a.rs", format!("const R: &str = \"{rule}\"; // why"), "a.rs:1: "),
            ("a.rs", format!("f(); // {rule}"), "a.rs:1: "),
            ("a.toml", format!("[a]\nb = 1 # {rule}\n"), "a.toml:2: "),
            ("a.py", format!("x = 1\n# {etw}\n"), "a.py:2: "),
            ("README.md", format!("# A\n\nSee {etw}.\n"), "README.md:3: "),
            // An id is defined only if readers see it.
            (
                "docs/reference/more.md",
                format!("- <a id=\"{}\"></a>a rule\n{rule}\n", rule.to_lowercase()),
                "docs/reference/more.md:2: ",
            ),
        ] {
            let problems = problems_of(&[(path, &text)]);
            assert_eq!(problems.len(), 1, "{text}: {problems:?}");
            assert!(problems[0].starts_with(expected), "{problems:?}");
            assert!(problems[0].contains(" is cited, but no document"), "{problems:?}");
        }
        let again = "- <a id=\"v04\"></a>V04 once more\n";
        let problems = problems_of(&[("docs/reference/more.md", again)]);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("V04 is already defined"), "{problems:?}");
    }

    #[test]
    fn a_comment_names_documents_that_exist() {
        let source = "// See `docs/reference/behaviour.md`, and\n// docs/reference/missing.md.\n";
        let problems = problems_of(&[("a.rs", source)]);
        assert_eq!(problems, ["a.rs:2: docs/reference/missing.md does not exist"]);
    }

    #[test]
    fn a_table_of_behaviors_names_tests_that_exist() {
        let rows = "| a `b` | test |\n| --- | --- |\n| `c` | `one`, `\"two\"` |\n| d | `three` |\n";
        let tests = "fn one() {}\nconst CASES: [&str; 1] = [\"two\"];\n";
        let files = [("docs/reference/kmdf-requests.md", rows), ("tests/it.rs", tests)];
        assert_eq!(
            problems_of(&files),
            ["docs/reference/kmdf-requests.md:4: no test has the name three"]
        );
    }

    #[test]
    fn an_item_is_in_the_file_that_a_document_names() {
        let source = "impl Kernel { fn stack_use(&self) {} }\nmacro_rules! emit { () => {} }\n";
        let guide = "[`Kernel::stack_use`](../a.rs), [`emit!`](../a.rs), [`a.rs`](../a.rs)\n\
                     [`Kernel::stack`](../a.rs)\n";
        assert_eq!(
            problems_of(&[("docs/guide.md", guide), ("a.rs", source)]),
            ["docs/guide.md:2: ../a.rs does not contain the item Kernel::stack"]
        );
    }

    #[test]
    fn links_lead_to_files_folders_and_anchors() {
        let guide = "# Guide\n# Guide\n\n[a](reference/behaviour.md#etw-2.14) [b](#guide-1)\n\
            [c](reference/behaviour.md#2-what-etl-dump-does-in-short) [d](../docs) [e](#guide)\n\
            [f](https://example.com/x#y) [g] <https://example.com> `[m](n.md)`\n\n\
            [g]: ../docs/guide.md\n\n```\n[h](missing.md)\n```\n";
        assert_eq!(problems_of(&[("docs/guide.md", guide)]), [""; 0]);
        for (link, problem) in [
            ("missing.md", "points to docs/missing.md, which does not exist"),
            ("../../other/a.md", "points outside the checkout"),
            ("#nowhere", "which has no anchor nowhere"),
            ("reference/behaviour.md#etw-2.16", "which has no anchor etw-2.16"),
            ("../a.rs#L3", "has an anchor, but a.rs is not a Markdown file"),
        ] {
            let text = format!("# Guide\n\n| a |\n|---|\n| [a]({link}) ![b](reference) |\n");
            let problems = problems_of(&[("docs/guide.md", &text), ("a.rs", "")]);
            assert_eq!(problems.len(), 1, "{link}: {problems:?}");
            assert!(problems[0].starts_with("docs/guide.md:5: "), "{problems:?}");
            assert!(problems[0].contains(problem), "{problems:?}");
        }
    }
}
