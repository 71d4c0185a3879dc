//! Reads the data in a report's page.

use std::io::Read;

use base64::{Engine, prelude::BASE64_STANDARD};
use etl_file::internals::show::Hex;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Returns the text between two strings.
fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    Some(text.split_once(before)?.1.split_once(after)?.0)
}

/// Returns a part of the data.
fn part(page: &str, name: &str) -> Option<Vec<u8>> {
    let text = between(page, &format!("data-part=\"{name}\">"), "<")?;
    let compressed = BASE64_STANDARD.decode(text.trim()).unwrap();
    let mut bytes = Vec::new();
    flate2::read::DeflateDecoder::new(compressed.as_slice()).read_to_end(&mut bytes).unwrap();
    Some(bytes)
}

/// Returns all of the data as text: the description, the events' details and rows, the activities,
/// and the numbers of events in the non-empty time intervals. Checks that the page's policy permits
/// the script and the style.
pub fn data(page: &str) -> String {
    let policy = between(page, "default-src 'none'; ", "\"").unwrap();
    for (element, directive) in [("script", "script-src"), ("style", "style-src")] {
        let (_, content) = page.rsplit_once(&format!("<{element}>")).unwrap();
        let (content, _) = content.split_once(&format!("</{element}>")).unwrap();
        let digest = BASE64_STANDARD.encode(Sha256::digest(content));
        let permitted = format!("{directive} 'sha256-{digest}'");
        assert!(policy.contains(&permitted), "{policy}: {permitted}");
    }
    let description = between(page, "id=\"description\">", "</script>").unwrap();
    let mut description: Value = serde_json::from_str(description).unwrap();
    // The order depends on the features that other packages enable.
    description.sort_all_objects();
    let details = part(page, "details-0").unwrap();
    let density = part(page, "density").unwrap();
    let counts = density.as_chunks::<4>().0.iter().enumerate();
    let counts = counts.filter(|(_, count)| **count != [0; 4]);
    let counts = counts.map(|(at, count)| format!("{at}: {}", u32::from_le_bytes(*count)));
    format!(
        "{description:#}\n\ndetails:\n{}\nrows:\n{}\n\nactivities:\n{}\n\ndensity:\n{}\n",
        String::from_utf8(details).unwrap(),
        Hex(&part(page, "block-0").unwrap()),
        Hex(&part(page, "activities").unwrap()),
        counts.collect::<Vec<_>>().join("\n"),
    )
}
