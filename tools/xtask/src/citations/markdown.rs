//! The prose, links and anchors of a Markdown text.

use std::collections::{BTreeMap, BTreeSet};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// The placeholder for code in prose.
const CODE: char = '\u{fffc}';

fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// Returns the number of the line, counted from 1, that `offset` is in.
fn line_at(text: &str, offset: usize) -> usize {
    let before = text.get(..offset).unwrap_or_default();
    before.matches('\n').count() + 1
}

/// Returns each block's text without its code, with the line that it begins in.
pub(super) fn prose(text: &str) -> Vec<(usize, String)> {
    let mut blocks: Vec<(usize, String)> = Vec::new();
    let mut block = String::new();
    let mut start = 1;
    let mut in_code = false;
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        if block.is_empty() {
            start = line_at(text, range.start);
        }
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Text(part) if !in_code => block.push_str(&part),
            Event::Code(_) => block.push(CODE),
            Event::SoftBreak | Event::HardBreak => block.push('\n'),
            Event::Start(tag) if !is_inline(&tag) => {
                blocks.push((start, std::mem::take(&mut block)));
            }
            Event::End(tag) if !is_inline_end(tag) => {
                blocks.push((start, std::mem::take(&mut block)));
            }
            _ => {}
        }
    }
    blocks.push((start, block));
    blocks.retain(|(_, block)| !block.is_empty());
    blocks
}

const fn is_inline(tag: &Tag) -> bool {
    matches!(
        tag,
        Tag::Emphasis | Tag::Strong | Tag::Strikethrough | Tag::Link { .. } | Tag::Image { .. }
    )
}

const fn is_inline_end(tag: TagEnd) -> bool {
    matches!(
        tag,
        TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link | TagEnd::Image
    )
}

/// Returns the links to files of the tree, with their lines.
pub(super) fn links(text: &str) -> Vec<(usize, String)> {
    Parser::new_ext(text, options())
        .into_offset_iter()
        .filter_map(|(event, range)| match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                Some((line_at(text, range.start), dest_url.into_string()))
            }
            _ => None,
        })
        .filter(|(_, link)| !link.starts_with("//") && !has_scheme(link))
        .collect()
}

/// An item of a file that a document names: `` [`Item`](file) ``, or `` `Item` in [file](file) ``.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Item {
    /// The line, counted from 1.
    pub line: usize,
    /// The item's name, with its path if the document has it.
    pub name: String,
    /// The link's destination.
    pub link: String,
}

/// Returns the items that a document names together with a file of the tree.
pub(super) fn items(text: &str) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    // The names so far in a list such as "`a` and `b` in".
    let mut listed: Vec<String> = Vec::new();
    let mut inside: Option<(usize, String)> = None;
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        match event {
            Event::Start(Tag::Link { dest_url, .. }) => {
                let line = line_at(text, range.start);
                let is_list = text.get(..range.start).is_some_and(|before| {
                    before.trim_end_matches(char::is_whitespace).ends_with(" in")
                });
                let names = std::mem::take(&mut listed);
                items.extend(names.into_iter().filter(|_| is_list).map(|name| Item {
                    line,
                    name,
                    link: dest_url.to_string(),
                }));
                inside = Some((line, dest_url.into_string()));
            }
            Event::End(TagEnd::Link) => inside = None,
            Event::Code(name) => match &inside {
                Some((line, target)) => {
                    items.push(Item {
                        line: *line,
                        name: name.into_string(),
                        link: target.clone(),
                    });
                }
                None => listed.push(name.into_string()),
            },
            Event::SoftBreak => {}
            Event::Text(part)
                if matches!(part.trim(), "" | "," | "and" | ", and" | "or" | "in") => {}
            _ => listed.clear(),
        }
    }
    items.retain(|item| !item.link.starts_with("//") && !has_scheme(&item.link));
    items
}

/// Returns whether a link has a scheme such as `https:` or `mailto:`.
fn has_scheme(link: &str) -> bool {
    link.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
    })
}

/// Returns the anchors of a document: explicit ones and those of its headings.
pub(super) fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, options()) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let slug = slug(&heading.take().unwrap_or_default());
                let used = times.entry(slug.clone()).or_default();
                anchors.insert(if *used == 0 { slug } else { format!("{slug}-{used}") });
                *used += 1;
            }
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            Event::InlineHtml(html) | Event::Html(html) => {
                anchors.extend(anchor(&html).map(|(id, _)| id.to_owned()));
            }
            _ => {}
        }
    }
    anchors
}

/// Returns the id of the anchor that `html` begins with, and what follows the tag.
pub(super) fn anchor(html: &str) -> Option<(&str, &str)> {
    html.strip_prefix("<a id=\"")?.split_once("\">")
}

/// Returns the anchor that GitHub generates for a heading.
fn slug(heading: &str) -> String {
    heading
        .chars()
        .filter_map(|letter| match letter {
            ' ' => Some('-'),
            '-' | '_' => Some(letter),
            letter if letter.is_alphanumeric() => Some(letter),
            _ => None,
        })
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{anchors, items, links, prose};

    #[test]
    fn prose_has_no_code_and_keeps_sentences_together() {
        let text = "# Head\n\nOne (*two*\nthree) `four`.\n\n```\nfive\n```\n\n- six\n- seven\n";
        let expected = [(1, "Head"), (3, "One (two\nthree) \u{fffc}."), (10, "six"), (11, "seven")];
        assert_eq!(prose(text), expected.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn items_are_those_that_a_document_says_are_in_a_file() {
        let text = "[`A`](a.rs), `b`, `c::D` and\n`e` in [f.rs](g/f.rs). `h` with [i](i.rs).\n\n\
                    | `j` in [k](k.rs) | `l` | [m](m.rs) |\n|---|---|---|\n";
        let found: Vec<_> = items(text)
            .into_iter()
            .map(|item| format!("{} {} {}", item.line, item.name, item.link))
            .collect();
        let expected = ["1 A a.rs", "2 b g/f.rs", "2 c::D g/f.rs", "2 e g/f.rs", "4 j k.rs"];
        assert_eq!(found, expected);
    }

    #[test]
    fn headings_have_the_anchors_that_github_makes() {
        let text = "# 2. What `etl dump` does, and why\n## Twice\n## Twice\n\
                    <a id=\"etw-1.2\"></a>x\n\n```\n# code\n<a id=\"no\"></a>\n```\n";
        let anchors: Vec<_> = anchors(text).into_iter().collect();
        let expected = ["2-what-etl-dump-does-and-why", "etw-1.2", "twice", "twice-1"];
        assert_eq!(anchors, expected);
    }

    #[test]
    fn only_links_within_the_tree_are_followed() {
        let text = "[a](b.md) <https://example.com>\n[c](mailto:d@e.f) ![g](h.png)\n\n\
                    | i |\n|---|\n| [j](k.md#l) |\n\n`[m](n.md)`\n";
        let expected = [(1, "b.md"), (2, "h.png"), (6, "k.md#l")];
        assert_eq!(links(text), expected.map(|(line, link)| (line, link.to_owned())));
    }
}
