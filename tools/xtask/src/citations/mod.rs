//! Ids that comments, messages and documents cite, and links between documents.
//!
//! The documents of `docs/reference` define ids such as ETW-2.14, V04, O8 and R-T4, each at an
//! anchor. [`check`] fails if a file cites an id that no document defines, if an id is defined
//! twice, if a section is cited by its number alone, if a comment names a document that does not
//! exist, or if a relative link of a document leads nowhere.

mod ids;
mod markdown;
mod passage;
mod rust;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use anyhow::{Context, Result, ensure};

use crate::{process::root, tree};

pub use self::ids::definitions;
use self::passage::{Kind, Passage, extension_of};

/// The folder of the documents that define ids.
const REFERENCE: &str = "docs/reference/";
/// The requirements' document.
pub const REQUIREMENTS: &str = "docs/reference/requirements.md";

/// A file tree: paths relative to its root, with `/`, and the text of the files that can cite.
#[derive(Default)]
struct Tree {
    paths: BTreeSet<String>,
    texts: BTreeMap<String, String>,
}

impl Tree {
    /// Reads the repository.
    fn of_checkout() -> Result<Self> {
        let mut tree = Self::default();
        for path in tree::files(&root())? {
            let text = can_cite(&path)
                .then(|| {
                    fs::read_to_string(root().join(&path))
                        .with_context(|| format!("cannot read {path}"))
                })
                .transpose()?;
            tree.add(&path, text);
        }
        Ok(tree)
    }

    /// Adds a file, and the folders that it is in.
    fn add(&mut self, path: &str, text: Option<String>) {
        let folders = path.match_indices('/').map(|(end, _)| &path[..end]);
        self.paths.extend(folders.map(str::to_owned));
        self.paths.insert(path.to_owned());
        if let Some(text) = text {
            self.texts.insert(path.to_owned(), text);
        }
    }

    /// Returns the contents of the files whose names end with `extension`.
    fn with_extension(&self, extension: &str) -> impl Iterator<Item = (&str, &str)> {
        self.texts
            .iter()
            .filter(move |(path, _)| extension_of(path) == extension)
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Returns every problem, each as a sentence that begins with its place.
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut defined: BTreeMap<String, String> = BTreeMap::new();
        for (path, text) in self.with_extension("md") {
            if !path.starts_with(REFERENCE) {
                continue;
            }
            for definition in definitions(text) {
                let place = format!("{path}:{}", definition.line);
                let id = definition.id;
                if !definition.is_labelled {
                    problems.push(format!(
                        "{place}: write {id} after its anchor, so that readers see the id"
                    ));
                }
                if let Some(first) = defined.insert(id.clone(), place.clone()) {
                    problems.push(format!("{place}: {id} is already defined at {first}"));
                }
            }
        }
        for (path, text) in &self.texts {
            for passage in passages(path, text) {
                for (line, id) in ids::cited(&passage) {
                    if !defined.contains_key(&id) {
                        problems.push(format!(
                            "{path}:{line}: {id} is cited, but no document in {REFERENCE} \
                             defines it"
                        ));
                    }
                }
                for (line, document) in ids::documents(&passage) {
                    if !self.paths.contains(document) {
                        problems.push(format!("{path}:{line}: {document} does not exist"));
                    }
                }
                for (line, number) in ids::bare(&passage) {
                    problems.push(format!(
                        "{path}:{line}: section {number} is cited without its document; write \
                         an id, such as ETW-{number}"
                    ));
                }
            }
        }
        let anchors: BTreeMap<&str, BTreeSet<String>> =
            self.with_extension("md").map(|(path, text)| (path, markdown::anchors(text))).collect();
        for (path, text) in self.with_extension("md") {
            for (line, link) in markdown::links(text) {
                if let Some(problem) = self.follow(path, &link, &anchors) {
                    problems.push(format!("{path}:{line}: the link {link} {problem}"));
                }
            }
            for item in markdown::items(text) {
                let source = resolved(path, &item.link).and_then(|path| self.texts.get(&path));
                if source.is_some_and(|source| !has_item(source, &item.name)) {
                    let markdown::Item { line, name, link } = item;
                    problems
                        .push(format!("{path}:{line}: {link} does not contain the item {name}"));
                }
            }
        }
        problems
    }

    /// Follows a link of a document, and returns the problem if the link is broken.
    fn follow(
        &self,
        from: &str,
        link: &str,
        anchors: &BTreeMap<&str, BTreeSet<String>>,
    ) -> Option<String> {
        let (path, anchor) =
            link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
        let target = if path.is_empty() {
            from.to_owned()
        } else if let Some(target) = resolved(from, path) {
            target
        } else {
            return Some("points outside the checkout".to_owned());
        };
        if !target.is_empty() && !self.paths.contains(&target) {
            return Some(format!("points to {target}, which does not exist"));
        }
        let anchor = anchor?;
        match anchors.get(target.as_str()) {
            Some(anchors) if anchors.contains(anchor) => None,
            Some(_) => Some(format!("points to {target}, which has no anchor {anchor}")),
            None => Some(format!("has an anchor, but {target} is not a Markdown file")),
        }
    }
}

/// Resolves a relative path against the file that contains it. Returns `None` if the path leaves
/// the tree.
fn resolved(from: &str, path: &str) -> Option<String> {
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

/// Returns true if a source has the last part of an item's path as a word. The name of a file does
/// not count.
fn has_item(source: &str, name: &str) -> bool {
    if name.contains(['.', '/']) {
        return true;
    }
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let name = name.trim_end_matches(|letter| !is_part(letter));
    let last = name.rsplit(|letter| !is_part(letter)).next().unwrap_or(name);
    last.is_empty() || source.split(|letter| !is_part(letter)).any(|word| word == last)
}

/// Returns true for files whose text can cite.
fn can_cite(path: &str) -> bool {
    matches!(extension_of(path), "rs" | "md" | "toml" | "py")
}

/// Returns the passages of a file that readers see.
fn passages(path: &str, text: &str) -> Vec<Passage> {
    match extension_of(path) {
        "rs" => rust::passages(text),
        "md" => vec![Passage { line: 1, kind: Kind::Document, text: text.to_owned() }],
        _ => text
            .lines()
            .zip(1..)
            .filter_map(|(line, number)| {
                let start = line.find('#')?;
                // A `#` within a word or a string does not begin a comment.
                let before = line.get(..start)?;
                let text = line.get(start + 1..)?;
                (before.is_empty() || before.ends_with(' ')).then(|| Passage {
                    line: number,
                    kind: Kind::Comment,
                    text: text.to_owned(),
                })
            })
            .collect(),
    }
}

/// Fails if an id or a relative link of the checkout does not resolve.
pub fn check() -> Result<()> {
    let tree = Tree::of_checkout()?;
    let problems = tree.problems();
    ensure!(problems.is_empty(), "{}", problems.join("\n"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Tree, check};

    /// A document that defines two statements and a rule.
    const BEHAVIOUR: &str = "# Behaviour\n\n\
        ## 2. Registration, in short\n\n\
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

    /// An id, written so that this file does not cite it.
    fn id(kind: &str, number: &str) -> String {
        format!("{kind}{number}")
    }

    #[test]
    fn every_citation_and_link_of_the_checkout_resolves() {
        check().unwrap();
    }

    #[test]
    fn defined_ids_can_be_cited() {
        let source =
            "// Short (ETW-2.14).\n/// ETW-2.15: may write; V04.\nfn f() { g(\"V04\"); }\n";
        assert_eq!(problems_of(&[("src/lib.rs", source)]), [""; 0]);
    }

    #[test]
    fn an_unknown_id_is_found_wherever_it_is_cited() {
        let etw = id("ETW-", "2.99");
        let rule = id("V", "05");
        for (path, text, expected) in [
            ("a.rs", format!("fn f() {{}}\n\n// So ({etw}).\n"), "a.rs:3: "),
            ("a.rs", format!("//! One\n//! two ({etw}).\n"), "a.rs:2: "),
            ("a.rs", format!("fn f() {{ g(\"no ({etw})\"); }}"), "a.rs:1: "),
            ("a.rs", format!("const R: &str = \"{rule}\";"), "a.rs:1: "),
            ("a.rs", format!("/* {rule} */"), "a.rs:1: "),
            ("a.toml", format!("[a]\nb = 1 # {etw}\n"), "a.toml:2: "),
            ("a.py", format!("x = 1\n# {etw}\n"), "a.py:2: "),
            ("README.md", format!("# A\n\nSee {etw}.\n"), "README.md:3: "),
        ] {
            let problems = problems_of(&[(path, &text)]);
            assert_eq!(problems.len(), 1, "{text}: {problems:?}");
            assert!(problems[0].starts_with(expected), "{problems:?}");
            assert!(problems[0].contains(" is cited, but no document"), "{problems:?}");
        }
    }

    #[test]
    fn a_comment_names_documents_that_exist() {
        let source = "// See `docs/reference/behaviour.md`, and\n// docs/reference/missing.md.\n";
        let problems = problems_of(&[("a.rs", source)]);
        assert_eq!(problems, ["a.rs:2: docs/reference/missing.md does not exist"]);
    }

    #[test]
    fn code_is_not_cited() {
        let source = "fn f() { let V05 = O9; }\nconst S: &str = \"id='O1', V05=1\";\n";
        assert_eq!(problems_of(&[("a.rs", source)]), [""; 0]);
    }

    #[test]
    fn a_section_without_a_document_is_found() {
        let number = id("2.", "14");
        for text in [
            format!("// {number}\n"),
            format!("/// So it is ({number}).\n"),
            format!("/// So it is (O8,\n/// {number}).\n"),
            format!("const S: &str = \"no ({number})\";\n"),
        ] {
            let problems = problems_of(&[("a.rs", &text), ("docs/reference/o.md", &open())]);
            assert_eq!(problems.len(), 1, "{text}: {problems:?}");
            assert!(
                problems[0].contains(&format!("section {number} is cited without")),
                "{problems:?}"
            );
        }
    }

    /// A document that defines an open question.
    fn open() -> String {
        "<a id=\"o8\"></a>O8 Which?\n".to_owned()
    }

    #[test]
    fn an_id_is_defined_once_and_shown() {
        let again = "- <a id=\"v04\"></a>V04 once more\n";
        let problems = problems_of(&[("docs/reference/more.md", again)]);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("V04 is already defined"), "{problems:?}");
        let hidden = "- <a id=\"v05\"></a>a rule\n";
        let problems = problems_of(&[("docs/reference/more.md", hidden)]);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(
            problems[0].contains("after its anchor, so that readers see the id"),
            "{problems:?}"
        );
    }

    #[test]
    fn an_item_is_in_the_file_that_a_document_names() {
        let source = "impl Kernel { fn stack_use(&self) {} }\nmacro_rules! emit { () => {} }\n";
        let guide =
            "[`Kernel::stack_use`](../a.rs) and `emit!` in [a.rs](../a.rs), `x` or\n[b](../b)";
        let files = [("docs/guide.md", guide), ("a.rs", source), ("b", "")];
        assert_eq!(problems_of(&files), [""; 0]);
        let guide = "\n[`Kernel::stack`](../a.rs), `emit_all!` in\n[a.rs](../a.rs)\n";
        let files = [("docs/guide.md", guide), ("a.rs", source)];
        assert_eq!(
            problems_of(&files),
            [
                "docs/guide.md:2: ../a.rs does not contain the item Kernel::stack",
                "docs/guide.md:3: ../a.rs does not contain the item emit_all!"
            ]
        );
    }

    #[test]
    fn links_lead_to_files_folders_and_anchors() {
        let guide = "# Guide\n\n[a](reference/behaviour.md) [b](reference/behaviour.md#etw-2.14)\n\
            [c](reference/behaviour.md#2-registration-in-short) [d](../docs) [e](#guide)\n\
            [f](https://example.com/x#y) [g]\n\n[g]: ../docs/guide.md\n";
        assert_eq!(problems_of(&[("docs/guide.md", guide)]), [""; 0]);
        for (link, problem) in [
            ("missing.md", "points to docs/missing.md, which does not exist"),
            ("../../other/a.md", "points outside the checkout"),
            ("#nowhere", "which has no anchor nowhere"),
            ("reference/behaviour.md#etw-2.16", "which has no anchor etw-2.16"),
            ("../a.rs#L3", "has an anchor, but a.rs is not a Markdown file"),
        ] {
            let text = format!("# Guide\n\n[a]({link})\n");
            let problems = problems_of(&[("docs/guide.md", &text), ("a.rs", "")]);
            assert_eq!(problems.len(), 1, "{link}: {problems:?}");
            assert!(problems[0].starts_with("docs/guide.md:3: "), "{problems:?}");
            assert!(problems[0].contains(problem), "{problems:?}");
        }
    }
}
