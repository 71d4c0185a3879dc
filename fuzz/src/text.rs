//! Checks strings that are shown to users.

/// Panics if a string contains a character that controls a terminal, or that reorders or hides
/// other text. Line feeds and tabs are allowed.
pub fn assert_harmless(text: &str) {
    let acting = text.chars().find(|c| {
        let hides = matches!(c, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{FEFF}');
        hides || c.is_control() && !matches!(c, '\n' | '\t')
    });
    assert_eq!(acting, None, "in {text:?}");
}

/// Panics if an error's text is empty, spans several lines, or contains harmful characters.
pub fn assert_sentence(error: &impl std::fmt::Display) {
    let _ = sentence(error);
}

/// Checks an error's text with [`assert_sentence`], and returns it.
pub fn sentence(error: &impl std::fmt::Display) -> String {
    let text = error.to_string();
    assert!(!text.trim().is_empty(), "an error must have text");
    assert!(!text.contains('\n'), "an error must be on one line: {text:?}");
    assert_harmless(&text);
    text
}
