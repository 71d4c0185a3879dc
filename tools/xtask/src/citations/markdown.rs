//! What a Markdown text says, links to, and can be linked to.

use std::collections::{BTreeMap, BTreeSet};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Stands for code in prose.
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

/// Returns the links to other places of the tree, with their lines.
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

/// `https:`, `mailto:` and the like.
fn has_scheme(link: &str) -> bool {
    link.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && scheme
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
    })
}

/// Returns the anchors of a document: those that it sets, and those that its headings get.
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
                anchors.insert(if *used == 0 {
                    slug
                } else {
                    format!("{slug}-{used}")
                });
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

/// Returns the anchor that GitHub makes of a heading.
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
    use super::{anchors, links, prose};

    #[test]
    fn prose_has_no_code_and_keeps_sentences_together() {
        let text = "# Head\n\nOne (*two*\nthree) `four`.\n\n```\nfive\n```\n\n- six\n- seven\n";
        let expected = [
            (1, "Head"),
            (3, "One (two\nthree) \u{fffc}."),
            (10, "six"),
            (11, "seven"),
        ];
        assert_eq!(
            prose(text),
            expected.map(|(line, text)| (line, text.to_owned()))
        );
    }

    #[test]
    fn headings_have_the_anchors_that_github_makes() {
        let text = "# 2. What `etl dump` does, and why\n## Twice\n## Twice\n\
                    <a id=\"etw-1.2\"></a>x\n\n```\n# code\n<a id=\"no\"></a>\n```\n";
        let anchors: Vec<_> = anchors(text).into_iter().collect();
        let expected = [
            "2-what-etl-dump-does-and-why",
            "etw-1.2",
            "twice",
            "twice-1",
        ];
        assert_eq!(anchors, expected);
    }

    #[test]
    fn only_links_within_the_tree_are_followed() {
        let text = "[a](b.md) <https://example.com>\n[c](mailto:d@e.f) ![g](h.png)\n\n\
                    | i |\n|---|\n| [j](k.md#l) |\n\n`[m](n.md)`\n";
        let expected = [(1, "b.md"), (2, "h.png"), (6, "k.md#l")];
        assert_eq!(
            links(text),
            expected.map(|(line, link)| (line, link.to_owned()))
        );
    }
}
