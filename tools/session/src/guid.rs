//! Conversions between GUID types: windows-sys's and this project's.

use etl_file::Guid;
use windows_sys::core::GUID;

/// Converts a GUID to the type of windows-sys.
#[must_use]
pub const fn to_windows(guid: Guid) -> GUID {
    // `to_bytes` returns the little-endian layout, which the structure also uses.
    let b = guid.to_bytes();
    GUID {
        data1: u32::from_le_bytes([b[0], b[1], b[2], b[3]]),
        data2: u16::from_le_bytes([b[4], b[5]]),
        data3: u16::from_le_bytes([b[6], b[7]]),
        data4: [b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]],
    }
}

/// Converts a GUID from the type of windows-sys.
#[must_use]
pub fn from_windows(guid: &GUID) -> Guid {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&guid.data1.to_le_bytes());
    bytes[4..6].copy_from_slice(&guid.data2.to_le_bytes());
    bytes[6..8].copy_from_slice(&guid.data3.to_le_bytes());
    bytes[8..].copy_from_slice(&guid.data4);
    Guid::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guids_round_trip() {
        let guid = Guid::from_u128(0x802b_686a_519d_5416_5280_4c0e_ad58_5fbb);
        assert_eq!(from_windows(&to_windows(guid)), guid);
        assert_eq!(to_windows(guid).data1, 0x802b_686a);
    }
}
