//! LZNT1 (MS-XCA section 2.5), the compression of strings in records of the class `WinSAT`
//! (ETL-14.13).
//!
//! A stream consists of chunks, each of at most 4,096 bytes of output. A chunk starts with a
//! little-endian `u16`: its lower 12 bits are the size of the data that follows minus 1, and its
//! highest bit is set if the data is compressed. Compressed data consists of groups: a byte of
//! flags, lowest first, and eight elements. A clear flag stands for a literal byte, a set one for a
//! match: a `u16` whose upper bits are the distance minus 1 and whose lower bits are the length
//! minus 3. The distance has as many bits as the chunk's output so far requires.

/// The maximum output of a chunk in bytes.
const CHUNK: usize = 4096;
/// The flag of a compressed chunk.
const COMPRESSED: u16 = 0x8000;
/// The length of the shortest match.
const MIN_MATCH: usize = 3;
/// The number of distance bits at the start of a chunk.
const MIN_BITS: u32 = 4;

/// Decompresses a stream to exactly `size` bytes. Returns `None` if the stream is damaged or its
/// output has another size.
pub fn decompress(mut input: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut output = Vec::new();
    while output.len() < size {
        let (header, rest) = input.split_first_chunk()?;
        let header = u16::from_le_bytes(*header);
        let (data, rest) = rest.split_at_checked(usize::from(header & 0xFFF) + 1)?;
        input = rest;
        let room = size - output.len();
        let before = output.len();
        if header & COMPRESSED == 0 {
            output.extend_from_slice(data);
        } else {
            chunk(data, before, &mut output)?;
        }
        let added = output.len() - before;
        if added > room.min(CHUNK) {
            return None;
        }
    }
    Some(output)
}

/// Decompresses a chunk, whose output begins at `start`.
fn chunk(mut data: &[u8], start: usize, output: &mut Vec<u8>) -> Option<()> {
    while let Some((flags, rest)) = data.split_first() {
        data = rest;
        for bit in 0..8 {
            if data.is_empty() {
                break;
            }
            if flags & 1 << bit == 0 {
                let (literal, rest) = data.split_first()?;
                output.push(*literal);
                data = rest;
                continue;
            }
            let (token, rest) = data.split_first_chunk()?;
            data = rest;
            let token = u16::from_le_bytes(*token);
            let done = output.len() - start;
            let bits = done.checked_sub(1)?.checked_ilog2().map_or(0, |log| log + 1).max(MIN_BITS);
            let shift = u16::BITS.checked_sub(bits)?;
            let distance = usize::from(token >> shift) + 1;
            let length = usize::from(token & ((1 << shift) - 1)) + MIN_MATCH;
            let from = output.len().checked_sub(distance).filter(|from| *from >= start)?;
            if done + length > CHUNK {
                return None;
            }
            for at in from..from + length {
                output.push(*output.get(at)?);
            }
        }
        if output.len() - start > CHUNK {
            return None;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of MS-XCA, section 3.3.
    #[test]
    fn the_example_of_the_specification_is_decompressed() {
        let compressed = [
            0x38, 0xb0, 0x88, 0x46, 0x23, 0x20, 0x00, 0x20, 0x47, 0x20, 0x41, 0x00, 0x10, 0xa2,
            0x47, 0x01, 0xa0, 0x45, 0x20, 0x44, 0x00, 0x08, 0x45, 0x01, 0x50, 0x79, 0x00, 0xc0,
            0x45, 0x20, 0x05, 0x24, 0x13, 0x88, 0x05, 0xb4, 0x02, 0x4a, 0x44, 0xef, 0x03, 0x58,
            0x02, 0x8c, 0x09, 0x16, 0x01, 0x48, 0x45, 0x00, 0xbe, 0x00, 0x9e, 0x00, 0x04, 0x01,
            0x18, 0x90, 0x00,
        ];
        let text = "F# F# G A A G F# E D D E F# F# E E F# F# G A A G F# E D D E F# E D D E E F# D E \
                    F# G F# D E F# G F# E D E A F# F# G A A G F# E D D E F# E D D\0";
        let found = decompress(&compressed, text.len()).unwrap();
        assert_eq!(String::from_utf8(found).unwrap(), text);
        for length in 0..compressed.len() - 1 {
            assert_eq!(decompress(&compressed[..length], text.len()), None, "{length}");
        }
        assert_eq!(decompress(&compressed, text.len() - 1), None);
    }

    #[test]
    fn a_chunk_may_be_stored_and_a_match_stays_in_its_chunk() {
        assert_eq!(decompress(&[1, 0x30, 5, 6, 0, 0x30, 7], 3).unwrap(), [5, 6, 7]);
        // A literal and a match of ten bytes.
        assert_eq!(decompress(&[3, 0xB0, 2, 9, 7, 0], 11).unwrap(), [9; 11]);
        // A match that refers to bytes before the chunk.
        assert_eq!(decompress(&[0, 0x30, 5, 3, 0xB0, 2, 9, 7, 0x10], 12), None);
        assert_eq!(decompress(&[2, 0xB0, 1, 7, 0], 10), None);
    }
}
