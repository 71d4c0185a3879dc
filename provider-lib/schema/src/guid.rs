//! GUIDs: written out, and made of a provider's name.

use std::fmt;

use sha1::{Digest as _, Sha1};
use uuid::Uuid;

/// The namespace that the GUIDs of providers' names are made in.
const NAMESPACE: [u8; 16] = [
    0x48, 0x2C, 0x2D, 0xB2, 0xC3, 0x90, 0x47, 0xC8, 0x87, 0xF8, 0x1A, 0x15, 0xBF, 0xC1, 0x30, 0xFB,
];

/// A GUID, as its 16 bytes lie in memory: the first three fields are little-endian.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Guid(pub [u8; 16]);

impl Guid {
    /// The GUID of a text such as `802b686a-519d-5416-5280-4c0ead585fbb`, with or
    /// without braces.
    ///
    /// # Errors
    ///
    /// Says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let inner = text
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'))
            .unwrap_or(text);
        // Only the form with hyphens, which is what every ETW tool prints and takes.
        if inner.len() != 36 {
            return Err(format!(
                "`{text}` is not a GUID; write it as 802b686a-519d-5416-5280-4c0ead585fbb"
            ));
        }
        Uuid::try_parse(inner)
            .map(|guid| Self(guid.to_bytes_le()))
            .map_err(|error| format!("`{text}` is not a GUID: {error}"))
    }

    /// The GUID of a provider's name by the standard hash, by which .NET's
    /// `EventSource`, `TraceLogging` and controllers turn `*Name` into a GUID.
    ///
    /// # Errors
    ///
    /// For a name that is not ASCII: tools differ in how they make its letters upper
    /// case, so it has no GUID that all agree on.
    pub fn of_name(name: &str) -> Result<Self, String> {
        if !name.is_ascii() {
            return Err(
                "a name that is not ASCII has no GUID that all tools agree on; give the provider \
                 one with `guid = \"…\"`"
                    .to_owned(),
            );
        }
        let mut hash = Sha1::new();
        hash.update(NAMESPACE);
        for unit in name.to_ascii_uppercase().encode_utf16() {
            hash.update(unit.to_be_bytes());
        }
        let digest = hash.finalize();
        let mut bytes = [0; 16];
        for (to, from) in bytes.iter_mut().zip(digest.iter()) {
            *to = *from;
        }
        bytes[7] = (bytes[7] & 0x0F) | 0x50;
        Ok(Self(bytes))
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Uuid::from_bytes_le(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // R-O2
    #[test]
    fn names_have_the_guids_that_other_tools_give_them() {
        for (name, guid) in [
            ("MyProvider", "b3864c38-4273-58c5-545b-8b3608343471"),
            ("CONTOSO.sample", "29d5a000-45bd-558a-9252-950010cc7465"),
            (
                "WdkEtw.SampleDriver",
                "802b686a-519d-5416-5280-4c0ead585fbb",
            ),
        ] {
            let of_name = Guid::of_name(name).map(|guid| guid.to_string());
            assert_eq!(of_name.as_deref(), Ok(guid), "{name}");
        }
        assert!(Guid::of_name("Prüfung").is_err());
    }

    #[test]
    fn only_whole_guids_are_taken() {
        let guid = Guid::parse("802b686a-519d-5416-5280-4c0ead585fbb");
        assert_eq!(guid, Guid::parse("{802B686A-519D-5416-5280-4C0EAD585FBB}"));
        assert_eq!(
            guid.map(|guid| guid.0[..4].to_vec()),
            Ok(vec![0x6a, 0x68, 0x2b, 0x80])
        );
        for bad in [
            "",
            "802b686a",
            "802b686a519d541652804c0ead585fbb",
            "802b686a-519d-5416-5280-4c0ead585fbx",
        ] {
            assert!(Guid::parse(bad).is_err(), "{bad}");
        }
    }
}
