//! Reads any bytes as a compressed buffer, and compresses them.

use etl_file::compression::{compress, decompress, decompress_into};

use crate::text::sentence;

/// The size of the longest result in bytes; a larger one would find nothing new.
const MAX_SIZE: usize = 0x2_0000;

/// Checks what a block yields, and that it survives a round trip.
///
/// The block yields at most the expected size, which the first three bytes are. What it yields, and
/// the input itself, can be compressed and decompressed again. Returns the number of bytes that the block yields.
///
/// # Errors
/// Fails with the text of the error if the block is rejected.
pub fn check(data: &[u8]) -> Result<usize, String> {
    let Some((&[a, b, c], block)) = data.split_first_chunk() else {
        return Err("no size".to_owned());
    };
    round_trip(block);
    let size = u32::from_le_bytes([a, b, c, 0]) as usize % MAX_SIZE;
    let mut output = vec![0xEE; 40];
    let result = decompress_into(block, size, &mut output);
    assert!(output.len() <= size);
    round_trip(&output);
    match result {
        Ok(()) => {
            assert_eq!(output.len(), size);
            assert_eq!(decompress(block, size).as_ref(), Ok(&output));
            // A shorter size cannot make a block longer.
            if let Some(shorter) = size.checked_sub(1) {
                let mut start = Vec::new();
                let _too_long = decompress_into(block, shorter, &mut start);
                assert!(output.starts_with(&start));
            }
            Ok(size)
        }
        Err(error) => {
            assert!(output.len() < size);
            Err(sentence(&error))
        }
    }
}

fn round_trip(bytes: &[u8]) {
    let compressed = compress(bytes);
    assert!(compressed.len() <= bytes.len() + bytes.len() / 8 + 4);
    let again = decompress(&compressed, bytes.len());
    assert_eq!(again.as_deref(), Ok(bytes));
}
