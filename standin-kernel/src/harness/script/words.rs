//! The words of a script: names, numbers and bytes.

use etl_file::Guid;

use crate::ground::{NtStatus, nearest::nearest};
pub use crate::harness::number::number;

/// Splits a line into words. Spaces in double quotes do not end a word.
pub fn words(line: &str) -> Result<Vec<&str>, String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() && !rest.starts_with('#') {
        let mut is_quoted = false;
        let end = rest.find(|character: char| {
            is_quoted ^= character == '"';
            !is_quoted && character.is_whitespace()
        });
        if end.is_none() && is_quoted {
            return Err("a string has no closing quotation mark".to_owned());
        }
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        words.push(word);
        rest = after.trim_start();
    }
    Ok(words)
}

/// Returns the string between double quotes.
pub fn quoted(word: &str) -> Option<&str> {
    word.strip_prefix('"')?.strip_suffix('"')
}

/// Parses a string in double quotes, or hexadecimal digits after `hex:`.
pub fn bytes(word: &str) -> Result<Vec<u8>, String> {
    if let Some(text) = quoted(word) {
        return Ok(text.as_bytes().to_vec());
    }
    let refuse = || format!("`{word}` is not a byte string; write \"text\" or hex:0123AB");
    let digits = word.strip_prefix("hex:").ok_or_else(refuse)?;
    if digits.len() % 2 != 0 || !digits.is_ascii() {
        return Err(refuse());
    }
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| {
            let pair = str::from_utf8(pair).unwrap_or_default();
            u8::from_str_radix(pair, 16).map_err(|_| refuse())
        })
        .collect()
}

/// Parses a status: `success`, a name such as `STATUS_NO_MEMORY`, or a number.
pub fn status(word: &str) -> Result<NtStatus, String> {
    if word == "success" {
        return Ok(NtStatus::SUCCESS);
    }
    let known = NtStatus::NAMED.iter().copied();
    if let Some(status) = known.clone().find(|status| status.name() == Some(word)) {
        return Ok(status);
    }
    number::<u32>(word).map(NtStatus::from_bits).map_err(|_| {
        let names = known.filter_map(NtStatus::name).chain(["success"]);
        format!(
            "`{word}` is not a status{}; write `success`, a number such as 0xC0000001, or the name \
             of a common status",
            did_you_mean(word, names)
        )
    })
}

/// Parses a GUID, or computes the GUID of a provider name.
///
/// # Errors
///
/// Returns a sentence that describes the problem if the word is neither.
pub fn provider(word: &str) -> Result<Guid, String> {
    let word = quoted(word).unwrap_or(word);
    if let Ok(guid) = word.parse() {
        return Ok(guid);
    }
    Guid::of_name(word).map_err(|why| format!("`{word}`: {why}"))
}

/// Returns the part of an error that suggests the nearest known word, or an empty string.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map_or_else(String::new, |known| format!(" (did you mean `{known}`?)"))
}
