//! Decompresses arbitrary bytes, and compresses the result again.

use etl_file::internals::compression::{compress, decompress, decompress_into};

use crate::text::sentence;

/// The maximum size of a result in bytes; larger results find no additional bugs.
const MAX_SIZE: usize = 0x2_0000;

/// Checks the result of decompressing a block, and that the result survives a round trip.
///
/// The first three bytes are the expected size; the result must not exceed it. Both the result and
/// the input must survive compression and decompression. Returns the size of the result.
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
            // A smaller expected size must not make the result longer.
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
