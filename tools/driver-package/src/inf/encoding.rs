//! The encodings of INF files ("General Guidelines for INF Files" in Microsoft's driver
//! documentation).

/// The encoding of an INF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-16 with a byte order mark, the form that allows all characters.
    Utf16 {
        /// True if the high byte of each unit comes first.
        big_endian: bool,
    },
    /// UTF-8. Windows reads such a file in its ANSI code page instead.
    Utf8,
    /// An ANSI code page, which the file does not specify.
    Ansi,
}

/// The text of an INF file and its encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The text. In an ANSI file, each non-ASCII byte becomes the character with the same number.
    pub text: String,
    /// The file's encoding.
    pub encoding: Encoding,
}

impl Source {
    /// Decodes a file. Returns `None` for damaged UTF-16.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let wide = |bytes: &[u8], big_endian: bool| {
            let unit = if big_endian { u16::from_be_bytes } else { u16::from_le_bytes };
            let (pairs, rest) = bytes.as_chunks();
            let units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
            let text = rest.is_empty().then(|| String::from_utf16(&units).ok()).flatten()?;
            Some(Self { text, encoding: Encoding::Utf16 { big_endian } })
        };
        match bytes {
            [0xFF, 0xFE, rest @ ..] => wide(rest, false),
            [0xFE, 0xFF, rest @ ..] => wide(rest, true),
            [0xEF, 0xBB, 0xBF, rest @ ..] | rest => Some(str::from_utf8(rest).map_or_else(
                |_| Self {
                    text: bytes.iter().copied().map(char::from).collect(),
                    encoding: Encoding::Ansi,
                },
                |text| Self { text: text.to_owned(), encoding: Encoding::Utf8 },
            )),
        }
    }

    /// Encodes the text for a file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let marked = || "\u{feff}".encode_utf16().chain(self.text.encode_utf16());
        match self.encoding {
            Encoding::Utf16 { big_endian: false } => marked().flat_map(u16::to_le_bytes).collect(),
            Encoding::Utf16 { big_endian: true } => marked().flat_map(u16::to_be_bytes).collect(),
            Encoding::Utf8 => self.text.clone().into_bytes(),
            // Characters that the file did not contain are never added to it.
            Encoding::Ansi => {
                self.text.chars().map(|one| u8::try_from(one).unwrap_or(b'?')).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_encoding_is_read_and_written_again() {
        let text = "; M\u{fc}ller \u{2013}\r\n[Version]\r\n";
        let wide = |unit: fn(u16) -> [u8; 2]| {
            let marked = format!("\u{feff}{text}");
            marked.encode_utf16().flat_map(unit).collect::<Vec<u8>>()
        };
        for (bytes, encoding) in [
            (wide(u16::to_le_bytes), Encoding::Utf16 { big_endian: false }),
            (wide(u16::to_be_bytes), Encoding::Utf16 { big_endian: true }),
            (text.as_bytes().to_vec(), Encoding::Utf8),
        ] {
            let source = Source::decode(&bytes).unwrap();
            assert_eq!((source.text.as_str(), source.encoding), (text, encoding));
            assert_eq!(source.encode(), bytes);
        }
        let ansi = b"; M\xFCller \x96\r\n[Version]\r\n";
        let source = Source::decode(ansi).unwrap();
        assert_eq!(source.encoding, Encoding::Ansi);
        assert_eq!(source.text, "; M\u{fc}ller \u{96}\r\n[Version]\r\n");
        assert_eq!(source.encode(), ansi);
        assert_eq!(Source::decode(b"\xFF\xFE["), None);
        assert_eq!(Source::decode(b"\xFF\xFE\x00\xD8"), None);
        // The UTF-8 byte order mark is dropped, because Windows would interpret it as text.
        assert_eq!(Source::decode(b"\xEF\xBB\xBF; \xC3\xBC").unwrap().text, "; \u{fc}");
    }
}
