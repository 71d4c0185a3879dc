//! Access to memory by addresses that the driver passed.
//!
//! A driver runs in this process, so its pointers are addresses here, and any
//! of them may be wrong. Reads and writes go through the operating system's
//! calls for another process's memory, aimed at this one: a bad address comes
//! back as an error, where a plain access would take the process down.

use std::io::{IoSlice, IoSliceMut};

use nix::{
    sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev},
    unistd::Pid,
};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The driver passed an address that cannot be accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{length} bytes at 0x{address:016X} cannot be {access}")]
pub struct BadAddress {
    /// The first byte's address.
    pub address: u64,
    /// How many bytes were asked for.
    pub length: usize,
    /// `read` or `written`.
    pub access: &'static str,
}

/// Fills `buffer` with the bytes at `address`.
pub fn read_into(address: u64, buffer: &mut [u8]) -> Result<(), BadAddress> {
    let length = buffer.len();
    let bad = BadAddress {
        address,
        length,
        access: "read",
    };
    if length == 0 {
        return Ok(());
    }
    let base = usize::try_from(address).map_err(|_| bad)?;
    let remote = [RemoteIoVec { base, len: length }];
    match process_vm_readv(Pid::this(), &mut [IoSliceMut::new(buffer)], &remote) {
        Ok(read) if read == length => Ok(()),
        _ => Err(bad),
    }
}

/// The `length` bytes at `address`.
pub fn read_bytes(address: u64, length: usize) -> Result<Vec<u8>, BadAddress> {
    let mut bytes = vec![0; length];
    read_into(address, &mut bytes)?;
    Ok(bytes)
}

/// The value of a plain structure at `address`, whatever its alignment.
pub fn read<T: FromBytes + IntoBytes>(address: u64) -> Result<T, BadAddress> {
    let mut value = T::new_zeroed();
    read_into(address, value.as_mut_bytes())?;
    Ok(value)
}

/// Writes bytes to `address`.
pub fn write_bytes(address: u64, bytes: &[u8]) -> Result<(), BadAddress> {
    let bad = BadAddress {
        address,
        length: bytes.len(),
        access: "written",
    };
    if bytes.is_empty() {
        return Ok(());
    }
    let base = usize::try_from(address).map_err(|_| bad)?;
    let remote = [RemoteIoVec {
        base,
        len: bytes.len(),
    }];
    match process_vm_writev(Pid::this(), &[IoSlice::new(bytes)], &remote) {
        Ok(written) if written == bytes.len() => Ok(()),
        _ => Err(bad),
    }
}

/// Writes a plain value to `address`.
pub fn write<T: IntoBytes + Immutable>(address: u64, value: &T) -> Result<(), BadAddress> {
    write_bytes(address, value.as_bytes())
}

/// The bytes of the NUL-terminated string at `address`, without the NUL, cut
/// at `limit`.
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
        assert_eq!(
            read_c_string(c"name".as_ptr() as u64, 99),
            Ok(b"name".to_vec())
        );
        assert_eq!(
            read_c_string(c"name".as_ptr() as u64, 2),
            Ok(b"na".to_vec())
        );
    }

    #[test]
    fn bad_addresses_are_errors_not_faults() {
        for address in [0, 8, 0xFFFF_8000_0000_0000, u64::MAX] {
            let error = read::<u64>(address).unwrap_err();
            assert_eq!((error.address, error.length), (address, 8));
            assert!(write(address, &1_u64).is_err());
        }
    }
}
