//! The code pages of 8-bit text.

use std::str::FromStr;

#[cfg(feature = "code-pages")]
use encoding_rs::Encoding;

/// A Windows code page, for 8-bit text that is not UTF-8.
///
/// A trace does not name its machine's code page; the default is 1252, which Windows uses for the
/// languages of Western Europe and America. The others need the feature `code-pages`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodePage(u16);

/// The characters from 0x80 to 0x9F in code page 1252, as `MultiByteToWideChar` maps them. Its other
/// characters have the numbers of Unicode.
const FROM_80: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8D}', 'Ž', '\u{8F}',
    '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9D}', 'ž', 'Ÿ',
];

/// The code pages whose encodings have other names, with these names.
#[cfg(feature = "code-pages")]
const NAMES: [(u16, &str); 12] = [
    (866, "ibm866"),
    (932, "shift_jis"),
    (936, "gbk"),
    (949, "euc-kr"),
    (950, "big5"),
    (10000, "macintosh"),
    (20866, "koi8-r"),
    (20932, "euc-jp"),
    (21866, "koi8-u"),
    (51949, "euc-kr"),
    (54936, "gb18030"),
    (65001, "utf-8"),
];

impl CodePage {
    const WESTERN: Self = Self(1252);

    /// Returns the code page with a number, such as 1252 or 932, or `None` if it is unknown.
    #[must_use]
    pub fn new(number: u16) -> Option<Self> {
        let page = Self(number);
        #[cfg(feature = "code-pages")]
        let is_known = page.encoding().is_some();
        #[cfg(not(feature = "code-pages"))]
        let is_known = page == Self::WESTERN;
        is_known.then_some(page)
    }

    #[cfg(feature = "code-pages")]
    fn encoding(self) -> Option<&'static Encoding> {
        let name = NAMES.iter().find(|(known, _)| *known == self.0);
        let label = match (name, self.0) {
            (Some((_, name)), _) => (*name).to_owned(),
            (None, 874 | 1250..=1258) => format!("windows-{}", self.0),
            (None, 28591..=28606) => format!("iso-8859-{}", self.0 - 28590),
            _ => return None,
        };
        Encoding::for_label(label.as_bytes())
    }

    /// Decodes text as UTF-8 if it is valid UTF-8, and otherwise in this code page.
    pub(crate) fn decode(self, bytes: &[u8]) -> String {
        if let Ok(text) = str::from_utf8(bytes) {
            return text.to_owned();
        }
        #[cfg(feature = "code-pages")]
        if self != Self::WESTERN
            && let Some(encoding) = self.encoding()
        {
            return encoding.decode_without_bom_handling(bytes).0.into_owned();
        }
        let western = |&byte: &u8| match byte {
            0x80..=0x9F => FROM_80[usize::from(byte) - 0x80],
            _ => char::from(byte),
        };
        bytes.iter().map(western).collect()
    }
}

impl Default for CodePage {
    fn default() -> Self {
        Self::WESTERN
    }
}

/// The number of a code page that is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown code page; known are 866, 874, 932, 936, 949, 950 and 1250 to 1258, among others")]
pub struct UnknownCodePage;

impl FromStr for CodePage {
    type Err = UnknownCodePage;

    fn from_str(number: &str) -> Result<Self, UnknownCodePage> {
        number.parse().ok().and_then(Self::new).ok_or(UnknownCodePage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_needs_no_feature() {
        assert_eq!(CodePage::new(1252), Some(CodePage::default()));
        assert_eq!(CodePage::default().decode(b"\x80 \x96 \x93 \x9f\xff"), "€ – “ Ÿÿ");
    }

    #[cfg(feature = "code-pages")]
    #[test]
    fn the_default_is_the_encoding_of_its_number() {
        let bytes: Vec<u8> = (0x80..=0xFF).collect();
        let encoding = CodePage::default().encoding().unwrap();
        let (expected, _, _) = encoding.decode(&bytes);
        assert_eq!(CodePage::default().decode(&bytes), expected);
    }

    #[cfg(feature = "code-pages")]
    #[test]
    fn text_that_is_not_utf_8_is_in_the_code_page() {
        let decoded = |number, bytes: &[u8]| CodePage::new(number).unwrap().decode(bytes);
        assert_eq!(decoded(932, b"\x93\xfa\x96\x7b"), "日本");
        assert_eq!(decoded(1251, b"\xcf\xf0\xe8"), "При");
        assert_eq!(decoded(866, b"\x8f\xe0\xa8"), "При");
        assert_eq!(decoded(28592, b"\xb9"), "š");
        assert_eq!(decoded(1251, "é".as_bytes()), "é");
        for number in [0, 437, 873, 1249, 1259, 28602, 28607] {
            assert_eq!(CodePage::new(number), None, "{number}");
        }
    }
}
