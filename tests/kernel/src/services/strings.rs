//! Counted strings that drivers pass.

use crate::{
    execution::context::Context,
    ground::{abi::UnicodeString, memory},
};

/// Returns the text of a counted string that the driver passed.
pub fn read_unicode_string(context: &Context, address: u64) -> String {
    let string: UnicodeString = context.read(address);
    match memory::read_bytes(string.buffer, usize::from(string.length)) {
        Ok(bytes) => {
            let units: Vec<u16> = bytes
                .chunks_exact(2)
                .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
                .collect();
            String::from_utf16_lossy(&units)
        }
        Err(error) => context.stop_for_address(error),
    }
}
