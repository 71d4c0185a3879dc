//! Access to memory at addresses that the driver passed.
//!
//! A driver runs in this process, so its pointers are addresses of this process and may be invalid.
//! All accesses go through one routine that copies bytes. A fault in the routine becomes an error:
//! the fault handler recognizes the copying instruction and makes the routine return (see
//! [`host`]).

use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::{copy, host};

/// The error for an address that cannot be accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{length} bytes at 0x{address:016X} cannot be {access}")]
pub struct BadAddress {
    /// The first byte's address.
    pub address: u64,
    /// The number of requested bytes.
    pub length: usize,
    /// `read` or `written`.
    pub access: &'static str,
}

/// Copies bytes. Returns `false` if a fault ended the copy early.
fn copy(destination: u64, from: u64, count: usize) -> bool {
    host::watch();
    // SAFETY: each caller passes its own buffer as one of the ranges, and faults are handled from
    // now on.
    unsafe { copy::copy(destination, from, count) }
}

/// Fills `buffer` with the bytes at `address`.
pub fn read_into(address: u64, buffer: &mut [u8]) -> Result<(), BadAddress> {
    let length = buffer.len();
    if copy(buffer.as_mut_ptr() as u64, address, length) {
        Ok(())
    } else {
        Err(BadAddress { address, length, access: "read" })
    }
}

/// Returns the `length` bytes at `address`.
pub fn read_bytes(address: u64, length: usize) -> Result<Vec<u8>, BadAddress> {
    let mut bytes = vec![0; length];
    read_into(address, &mut bytes)?;
    Ok(bytes)
}

/// Returns the value of a plain structure at `address`, regardless of alignment.
pub fn read<T: FromBytes + IntoBytes>(address: u64) -> Result<T, BadAddress> {
    let mut value = T::new_zeroed();
    read_into(address, value.as_mut_bytes())?;
    Ok(value)
}

/// Writes bytes to `address`.
pub fn write_bytes(address: u64, bytes: &[u8]) -> Result<(), BadAddress> {
    if copy(address, bytes.as_ptr() as u64, bytes.len()) {
        Ok(())
    } else {
        Err(BadAddress { address, length: bytes.len(), access: "written" })
    }
}

/// Writes a plain value to `address`.
pub fn write<T: IntoBytes + Immutable>(address: u64, value: &T) -> Result<(), BadAddress> {
    write_bytes(address, value.as_bytes())
}

/// Atomically writes a word to `address`, and returns the previous word.
pub fn exchange(address: u64, value: u64) -> Result<u64, BadAddress> {
    host::watch();
    let mut word = value;
    // SAFETY: faults are handled from now on.
    if unsafe { copy::exchange(address, &mut word) } {
        Ok(word)
    } else {
        Err(BadAddress { address, length: size_of::<u64>(), access: "written" })
    }
}

/// Returns the bytes of the NUL-terminated string at `address`, without the NUL, truncated to
/// `limit` bytes.
pub fn read_c_string(address: u64, limit: usize) -> Result<Vec<u8>, BadAddress> {
    let mut bytes = Vec::new();
    let mut at = address;
    while bytes.len() < limit {
        match read::<u8>(at)? {
            0 => break,
            byte => bytes.push(byte),
        }
        at = at.wrapping_add(1);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_addresses_are_read_and_written() {
        let mut value = 0x1122_3344_u32;
        let address = (&raw mut value) as u64;
        assert_eq!(read::<u32>(address), Ok(0x1122_3344));
        assert_eq!(write(address, &7_u32), Ok(()));
        assert_eq!(read::<u32>(address), Ok(7));
        assert_eq!(read_c_string(c"name".as_ptr() as u64, 99), Ok(b"name".to_vec()));
        assert_eq!(read_c_string(c"name".as_ptr() as u64, 2), Ok(b"na".to_vec()));
    }

    #[test]
    fn bad_addresses_are_errors_not_faults() {
        for address in [0, 8, 0xFFFF_8000_0000_0000, u64::MAX] {
            let error = read::<u64>(address).unwrap_err();
            assert_eq!((error.address, error.length), (address, 8));
            assert!(write(address, &1_u64).is_err());
            assert!(exchange(address, 1).is_err());
        }
        let mut word = 5_u64;
        assert_eq!(exchange((&raw mut word) as u64, 7), Ok(5));
        assert_eq!(word, 7);
    }
}
