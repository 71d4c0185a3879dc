//! The page that surrounds the data: markup, style and script.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use sha2::{Digest, Sha256};

/// The template of the page, with placeholders for policy, style, data and script.
const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
/// The script's parts, in order of dependency.
const SCRIPT: &str = concat!(
    "'use strict';\n(() => {\n",
    include_str!("page/dom.js"),
    include_str!("page/format.js"),
    include_str!("page/data.js"),
    include_str!("page/filter.js"),
    include_str!("page/search.js"),
    include_str!("page/spans.js"),
    include_str!("page/summary.js"),
    include_str!("page/timeline.js"),
    include_str!("page/facets.js"),
    include_str!("page/table.js"),
    include_str!("page/details.js"),
    include_str!("page/counts.js"),
    include_str!("page/view.js"),
    include_str!("page/keys.js"),
    include_str!("page/main.js"),
    "})();\n"
);

/// Returns the source expression that permits this text in a policy.
fn permit(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

/// Writes the page up to the data.
pub fn write_head(out: &mut impl Write) -> io::Result<()> {
    // The browser runs only this script, applies only this style and loads nothing: whatever a
    // trace contains cannot become script or style.
    let policy = format!(
        "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'",
        permit(SCRIPT),
        permit(STYLE)
    );
    let (head, _) = PAGE.split_once("{{data}}").unwrap_or((PAGE, ""));
    let mut rest = head;
    for (place, content) in [("{{policy}}", policy.as_str()), ("{{style}}", STYLE)] {
        let (before, after) = rest.split_once(place).unwrap_or((rest, ""));
        out.write_all(before.as_bytes())?;
        out.write_all(content.as_bytes())?;
        rest = after;
    }
    out.write_all(rest.as_bytes())
}

/// Writes the description of the data, and the remainder of the page.
pub fn write_tail(description: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    // In JSON, `<` occurs only in strings, where it can be escaped, so nothing in the data can end
    // the script element.
    let description = serde_json::to_string(description)?.replace('<', "\\u003c");
    let (_, tail) = PAGE.split_once("{{data}}").unwrap_or((PAGE, ""));
    let (before, after) = tail.split_once("{{script}}").unwrap_or((tail, ""));
    write!(out, "<script type=\"application/json\" id=\"description\">{description}</script>")?;
    out.write_all(before.as_bytes())?;
    out.write_all(SCRIPT.as_bytes())?;
    out.write_all(after.as_bytes())
}
