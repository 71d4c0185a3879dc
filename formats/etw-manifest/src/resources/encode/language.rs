//! The languages of strings, by name.

/// The names and numbers (`LANGID`) of languages. Source: Microsoft's "Windows Language Code
/// Identifier Reference".
const LANGUAGES: &[(&str, u16)] = &[
    ("ar-SA", 0x0401),
    ("bg-BG", 0x0402),
    ("cs-CZ", 0x0405),
    ("da-DK", 0x0406),
    ("de-AT", 0x0C07),
    ("de-CH", 0x0807),
    ("de-DE", 0x0407),
    ("el-GR", 0x0408),
    ("en-GB", 0x0809),
    ("en-US", 0x0409),
    ("es-ES", 0x0C0A),
    ("es-MX", 0x080A),
    ("et-EE", 0x0425),
    ("fi-FI", 0x040B),
    ("fr-CA", 0x0C0C),
    ("fr-FR", 0x040C),
    ("he-IL", 0x040D),
    ("hr-HR", 0x041A),
    ("hu-HU", 0x040E),
    ("it-IT", 0x0410),
    ("ja-JP", 0x0411),
    ("ko-KR", 0x0412),
    ("lt-LT", 0x0427),
    ("lv-LV", 0x0426),
    ("nb-NO", 0x0414),
    ("nl-NL", 0x0413),
    ("pl-PL", 0x0415),
    ("pt-BR", 0x0416),
    ("pt-PT", 0x0816),
    ("ro-RO", 0x0418),
    ("ru-RU", 0x0419),
    ("sk-SK", 0x041B),
    ("sl-SI", 0x0424),
    ("sv-SE", 0x041D),
    ("th-TH", 0x041E),
    ("tr-TR", 0x041F),
    ("uk-UA", 0x0422),
    ("zh-CN", 0x0804),
    ("zh-TW", 0x0404),
];

/// Returns the number of a language.
pub fn number(culture: &str) -> Option<u16> {
    LANGUAGES.iter().find(|(name, _)| name.eq_ignore_ascii_case(culture)).map(|(_, number)| *number)
}
