//! The code pages of 8-bit text.

use std::fmt;
use std::str::FromStr;

use encoding_rs::{Encoding, WINDOWS_1252};

/// A Windows code page, for 8-bit text that is not UTF-8. A trace does not name its machine's code
/// page; the default is 1252, which Windows uses for the languages of Western Europe and America.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CodePage(&'static Encoding);

/// The code pages whose encodings have other names, with these names.
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
    /// Returns the code page with a number, such as 1252 or 932, or `None` if it is unknown.
    #[must_use]
    pub fn new(number: u16) -> Option<Self> {
        let name = NAMES.iter().find(|(known, _)| *known == number);
        let label = match (name, number) {
            (Some((_, name)), _) => (*name).to_owned(),
            (None, 874 | 1250..=1258) => format!("windows-{number}"),
            (None, 28591..=28606) => format!("iso-8859-{}", number - 28590),
            _ => return None,
        };
        Encoding::for_label(label.as_bytes()).map(Self)
    }

    /// Decodes text as UTF-8 if it is valid UTF-8, and otherwise in this code page.
    pub(crate) fn decode(self, bytes: &[u8]) -> String {
        str::from_utf8(bytes).map_or_else(
            |_| self.0.decode_without_bom_handling(bytes).0.into_owned(),
            str::to_owned,
        )
    }
}

impl Default for CodePage {
    fn default() -> Self {
        Self(WINDOWS_1252)
    }
}

impl fmt::Debug for CodePage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CodePage").field(&self.0.name()).finish()
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
    fn text_that_is_not_utf_8_is_in_the_code_page() {
        let decoded = |number, bytes: &[u8]| CodePage::new(number).unwrap().decode(bytes);
        assert_eq!(CodePage::default().decode(b"\x80 \x96 \x93"), "€ – “");
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
