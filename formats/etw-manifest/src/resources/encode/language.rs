//! The languages of strings, by name.

/// The names and hexadecimal numbers (`LANGID`) of languages, one per line. Source: Microsoft's
/// "Windows Language Code Identifier Reference".
const LANGUAGES: &str = include_str!("languages.txt");

/// Returns the number of a language.
pub fn number(culture: &str) -> Option<u16> {
    let mut languages = LANGUAGES.lines().filter_map(|line| line.split_once(' '));
    let (_, number) = languages.find(|(name, _)| name.eq_ignore_ascii_case(culture))?;
    u16::from_str_radix(number, 16).ok()
}
