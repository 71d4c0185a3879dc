//! The addresses of network adapters in bytes and text.

use std::collections::BTreeSet;

use etw_wire::Guid;

/// The 48-bit address of a network adapter.
pub type Address = [u8; 6];

/// The maximum number of addresses.
const MAX: usize = 4096;

/// Addresses to hide, as bytes and as text.
#[derive(Clone, Debug, Default)]
pub struct Addresses {
    all: BTreeSet<Address>,
    needles: Vec<Needle>,
    /// A bit for each pair of bytes that a needle can start with.
    starts: Vec<u64>,
}

/// A form of an address.
#[derive(Clone, Debug)]
struct Needle {
    bytes: Vec<u8>,
    /// True for hexadecimal digits, in upper or lower case, with or without separators.
    is_text: bool,
}

impl Needle {
    fn is_at(&self, bytes: &[u8]) -> bool {
        let found = bytes.get(..self.bytes.len());
        found.is_some_and(|found| {
            found == self.bytes || (self.is_text && found.eq_ignore_ascii_case(&self.bytes))
        })
    }
}

impl Addresses {
    /// Adds addresses, up to a limit.
    pub fn extend(&mut self, addresses: impl IntoIterator<Item = Address>) {
        for address in addresses {
            if self.all.len() >= MAX || !self.all.insert(address) {
                continue;
            }
            self.add(Needle { bytes: address.to_vec(), is_text: false });
            // Instance ids of devices contain an EUI-64, with two bytes in the middle.
            let [first, second, third, rest @ ..] = address;
            let eui_64 = |middle: [u8; 2]| [&[first, second, third], &middle[..], &rest].concat();
            let texts = [
                ("", address.to_vec()),
                (":", address.to_vec()),
                ("-", address.to_vec()),
                ("", eui_64([0xFF, 0xFF])),
                ("", eui_64([0xFF, 0xFE])),
            ];
            for (separator, bytes) in texts {
                let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                let text = digits.join(separator).into_bytes();
                let wide = text.iter().flat_map(|digit| [*digit, 0]).collect();
                self.add(Needle { bytes: text, is_text: true });
                self.add(Needle { bytes: wide, is_text: true });
            }
        }
    }

    fn add(&mut self, needle: Needle) {
        self.starts.resize(1 << 10, 0);
        if let [first, second, ..] = *needle.bytes {
            for first in [first.to_ascii_lowercase(), first.to_ascii_uppercase(), first] {
                for second in [second.to_ascii_lowercase(), second.to_ascii_uppercase(), second] {
                    let start = u16::from_le_bytes([first, second]);
                    if let Some(word) = self.starts.get_mut(usize::from(start >> 6)) {
                        *word |= 1 << (start & 63);
                    }
                }
            }
        }
        self.needles.push(needle);
    }

    /// Returns true if there are no addresses.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the addresses.
    pub fn iter(&self) -> impl Iterator<Item = Address> {
        self.all.iter().copied()
    }

    /// Returns true if the address is one of these.
    pub fn contains(&self, address: Address) -> bool {
        self.all.contains(&address)
    }

    /// Replaces the addresses in bytes, or the digits of addresses in text, with zeros. Returns
    /// `None` if there are none.
    pub fn hide(&self, bytes: &[u8], is_text: bool) -> Option<Vec<u8>> {
        let mut hidden: Option<Vec<u8>> = None;
        for (at, pair) in bytes.array_windows::<2>().enumerate() {
            let start = u16::from_le_bytes(*pair);
            let word = self.starts.get(usize::from(start >> 6))?;
            if word & 1 << (start & 63) == 0 {
                continue;
            }
            let rest = bytes.get(at..).unwrap_or_default();
            for needle in self.needles.iter().filter(|needle| needle.is_text || !is_text) {
                if !needle.is_at(rest) {
                    continue;
                }
                let hidden = hidden.get_or_insert_with(|| bytes.to_vec());
                for byte in hidden.iter_mut().skip(at).take(needle.bytes.len()) {
                    *byte = match *byte {
                        _ if !needle.is_text => 0,
                        digit if digit.is_ascii_hexdigit() => b'0',
                        separator => separator,
                    };
                }
            }
        }
        hidden
    }
}

/// Returns the first 48 bits as an address, unless no adapter can have it.
pub fn address(bytes: &[u8]) -> Option<Address> {
    let address: &Address = bytes.first_chunk()?;
    let [first, second, third, ..] = *address;
    // Addresses of groups have the lowest bit set.
    let is_of_adapter = first & 1 == 0 && [first, second, third] != [0; 3];
    is_of_adapter.then_some(*address)
}

/// Returns the address in a version-1 UUID, whose last six bytes are the address of the machine
/// that made it. Windows makes such UUIDs only on request since 2000; older ones are published
/// constants.
pub fn in_uuid(guid: Guid) -> Option<Address> {
    /// The UUID times of the years 2000 and 2100: 100 ns since 1582-10-15.
    const TIMES: std::ops::Range<u64> = 152_384 * 864_000_000_000..188_909 * 864_000_000_000;
    let bytes = guid.to_bytes();
    let (time, rest) = bytes.split_first_chunk()?;
    let [variant, _, node @ ..] = rest else {
        return None;
    };
    // The upper four bits are the version.
    let time = u64::from_le_bytes(*time);
    let is_by_time = time >> 60 == 1 && variant >> 6 == 0b10;
    if is_by_time && TIMES.contains(&(time & u64::MAX >> 4)) { address(node) } else { None }
}

/// Returns the addresses in the version-1 UUIDs of a text.
pub fn in_uuids(text: &str) -> impl Iterator<Item = Address> {
    /// The positions of the first hyphen and the version in a UUID, and its length.
    const HYPHEN: usize = 8;
    const VERSION: usize = 14;
    const LENGTH: usize = 36;
    let bytes = text.as_bytes();
    let versions = bytes.array_windows::<{ VERSION - HYPHEN + 1 }>().enumerate();
    versions
        .filter(|(_, [first, .., second, version])| {
            (*first, *second, *version) == (b'-', b'-', b'1')
        })
        .filter_map(move |(at, _)| {
            let start = at.checked_sub(HYPHEN)?;
            let uuid = text.get(start..start + LENGTH)?;
            in_uuid(Guid::parse(uuid).ok()?)
        })
}

/// Returns the address that text consists of: six pairs of digits, which colons or hyphens may
/// separate.
pub fn in_text(text: &str) -> Option<Address> {
    let digits: String = match text.len() {
        12 => text.to_owned(),
        17 => text.split([':', '-']).filter(|pair| pair.len() == 2).collect(),
        _ => return None,
    };
    from_digits(&digits)
}

/// Returns the addresses in the instance id of a device: 12 hexadecimal digits, or an EUI-64 that
/// was made from an address.
pub fn in_device_id(id: &str) -> impl Iterator<Item = Address> {
    let words = id.split(|c: char| !c.is_ascii_hexdigit());
    words.filter_map(|word| match word.len() {
        12 => from_digits(word),
        16 | 18 => {
            let (start, rest) = word.split_at_checked(6)?;
            let rest = rest.strip_prefix("FFFF").or_else(|| rest.strip_prefix("FFFE"))?;
            from_digits(&format!("{start}{}", rest.get(..6)?))
        }
        _ => None,
    })
}

fn from_digits(digits: &str) -> Option<Address> {
    let number = u64::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 12)?;
    let [_, _, bytes @ ..] = number.to_be_bytes();
    address(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: Address = [0x02, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE];

    #[test]
    fn addresses_are_found_in_uuids_text_and_device_ids() {
        let guid = |text: &str| in_uuid(text.parse().unwrap());
        assert_eq!(guid("a395e6eb-f383-11f0-9fc2-02aabbccddee"), Some(ADDRESS));
        // A constant of 1996, another version, another variant, a random node, a far time.
        for other in [
            "4d36e972-e325-11ce-bfc1-08002be10318", "a395e6eb-f383-41f0-9fc2-02aabbccddee",
            "a395e6eb-f383-11f0-1fc2-02aabbccddee", "a395e6eb-f383-11f0-9fc2-03aabbccddee",
            "a395e6eb-f383-1ff0-9fc2-02aabbccddee",
        ] {
            assert_eq!(guid(other), None, "{other}");
        }
        let text = r"\Device\TCPIP_{A395E6EB-F383-11F0-9FC2-02AABBCCDDEE}-1";
        assert_eq!(in_uuids(text).collect::<Vec<_>>(), [ADDRESS]);
        assert_eq!(in_uuids("é-f383-11f0").count(), 0);
        for text in ["02:aa:bb:cc:dd:ee", "02-AA-BB-CC-DD-EE", "02aabbccddee"] {
            assert_eq!(in_text(text), Some(ADDRESS), "{text}");
        }
        for text in
            ["", "02:aa:bb:cc:dd:e", "02:aa:bb:cc:dd:+e", "00:00:00:00:00:e0", "ffffffffffff"]
        {
            assert_eq!(in_text(text), None, "{text}");
        }
        for id in [
            r"PCI\VEN_8086&DEV_1533&REV_03\02AABBFFFFCCDDEE00",
            r"BTHENUM\DEV_02AABBCCDDEE\8&1",
            r"USB\02AABBFFFECCDDEE",
        ] {
            assert_eq!(in_device_id(id).collect::<Vec<_>>(), [ADDRESS], "{id}");
        }
    }

    #[test]
    fn every_form_of_an_address_is_hidden() {
        let mut addresses = Addresses::default();
        assert_eq!(addresses.hide(&ADDRESS, false), None);
        addresses.extend([ADDRESS]);
        let hidden = |bytes: &[u8]| addresses.hide(bytes, false);
        assert_eq!(hidden(b"\x01\x02\xAA\xBB\xCC\xDD\xEE\x03").unwrap(), [1, 0, 0, 0, 0, 0, 0, 3]);
        assert_eq!(hidden(b"x 02:aA:bb:CC:dd:ee.").unwrap(), b"x 00:00:00:00:00:00.");
        assert_eq!(hidden(b"02AABBFFFECCDDEE").unwrap(), b"0000000000000000");
        let wide: Vec<u8> = "02-AA-BB-CC-DD-EE".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let zeros: Vec<u8> =
            "00-00-00-00-00-00".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(hidden(&wide).unwrap(), zeros);
        assert_eq!(hidden(b"02aabbccddef"), None);
        assert_eq!(addresses.hide(&ADDRESS, true), None, "not text");
    }
}
