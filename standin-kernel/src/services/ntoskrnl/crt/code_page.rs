//! The system code page: Windows-1252, as on a system for the United States.

/// The characters for the bytes from 0x80 to 0x9F. Undefined bytes map to control characters.
const HIGH: [u16; 32] = [
    0x20AC, 0x81, 0x201A, 0x192, 0x201E, 0x2026, 0x2020, 0x2021, 0x2C6, 0x2030, 0x160, 0x2039,
    0x152, 0x8D, 0x17D, 0x8F, 0x90, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x2DC,
    0x2122, 0x161, 0x203A, 0x153, 0x9D, 0x17E, 0x178,
];

/// Returns the character for a byte.
pub fn to_unit(byte: u8) -> u16 {
    let high = byte.checked_sub(0x80).map(usize::from);
    let high = high.and_then(|at| HIGH.get(at).copied());
    high.unwrap_or_else(|| u16::from(byte))
}

/// Returns the byte for a character, or a question mark if there is none.
pub fn to_byte(unit: u16) -> u8 {
    let high = (0x80..).zip(HIGH).find(|(_, character)| *character == unit);
    if let Some((byte, _)) = high {
        return byte;
    }
    match u8::try_from(unit) {
        Ok(byte) if !(0x80..0xA0).contains(&byte) => byte,
        _ => b'?',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_its_characters() {
        for byte in 0..=u8::MAX {
            assert_eq!(to_byte(to_unit(byte)), byte);
        }
        assert_eq!((to_unit(0x80), to_byte(0x20AC), to_byte(0x4E2D)), (0x20AC, 0x80, b'?'));
    }
}
