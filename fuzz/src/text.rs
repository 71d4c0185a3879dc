//! What must hold of text that goes to people.

/// Fails if a text holds a character that acts on a terminal, or reorders or hides the text
/// around it; lines and tabs aside.
pub fn assert_harmless(text: &str) {
    let acting = text.chars().find(|c| {
        let hides = matches!(c, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{FEFF}');
        hides || c.is_control() && !matches!(c, '\n' | '\t')
    });
    assert_eq!(acting, None, "in {text:?}");
}

/// Fails if an error's text is empty, has several lines, or acts on a terminal.
pub fn assert_sentence(error: &impl std::fmt::Display) {
    let _ = sentence(error);
}

/// Returns an error's text, which [`assert_sentence`] must hold of.
pub fn sentence(error: &impl std::fmt::Display) -> String {
    let text = error.to_string();
    assert!(!text.trim().is_empty(), "an error says nothing");
    assert!(!text.contains('\n'), "an error has several lines: {text:?}");
    assert_harmless(&text);
    text
}
