//! Plain LZ77 (MS-XCA section 2.4), the compression of buffers (ETL-12.1).
//!
//! A compressed block is a sequence of groups. A group starts with 32 flags, a little-endian `u32`
//! whose highest bit comes first. A clear flag stands for one literal byte, a set one for a match:
//! bytes that repeat earlier output. A match is a `u16`, whose upper 13 bits are the distance minus
//! 1 and whose lower 3 bits are the length minus 3. If these 3 bits are 7, a nibble follows (two
//! matches share one byte); if the nibble is 15, a byte follows, then a `u16`, then a `u32`.
//!
//! A block contains neither its decompressed size nor an end mark; the caller must know the size.
//! Bytes after the end are ignored, because compressors write an empty group after a full one.

/// The maximum size in bytes of the output of [`decompress`]: the size of a session's largest
/// buffer.
pub const MAX_SIZE: usize = 16 << 20;

/// The reason why bytes are not a compressed block of the expected size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompressionError {
    /// The expected size exceeds [`MAX_SIZE`].
    #[error("a buffer cannot be {size} bytes long; the maximum is {MAX_SIZE}")]
    TooLarge {
        /// The expected size.
        size: usize,
    },
    /// The input ends before the output is complete.
    #[error("the compressed data ends after {present} of {expected} bytes")]
    Truncated {
        /// The number of decompressed bytes.
        present: usize,
        /// The expected size.
        expected: usize,
    },
    /// A match refers to bytes before the start of the output.
    #[error(
        "at offset {offset:#x} of the compressed data: a match starts {distance} bytes back, but \
         only {present} bytes precede it"
    )]
    Distance {
        /// The offset of the match in the input.
        offset: usize,
        /// The distance of the match.
        distance: usize,
        /// The number of decompressed bytes.
        present: usize,
    },
    /// The encoding of a match's length is longer than necessary.
    #[error("at offset {offset:#x} of the compressed data: {length} is not a valid match length")]
    Length {
        /// The offset of the match in the input.
        offset: usize,
        /// The encoded length.
        length: usize,
    },
    /// A match extends past the expected size.
    #[error(
        "at offset {offset:#x} of the compressed data: a match of {length} bytes exceeds the \
         expected size, of which {room} bytes are left"
    )]
    TooLong {
        /// The offset of the match in the input.
        offset: usize,
        /// The length of the match.
        length: usize,
        /// The number of bytes that are still expected.
        room: usize,
    },
}

/// The length of the shortest match.
const MIN_MATCH: usize = 3;
/// The maximum distance of a match, in 13 bits.
const MAX_DISTANCE: usize = 1 << 13;
/// If the length field has this value, the length continues in a nibble.
const LENGTH_FIELD_MAX: usize = 7;
/// If the nibble has this value, the length continues in a byte.
const NIBBLE_MAX: usize = 15;
/// If the byte has this value, the length continues in a `u16`.
const BYTE_MAX: usize = 255;
/// The number of flags in a group.
const GROUP: u32 = 32;

/// Decompresses a block to exactly `size` bytes.
///
/// # Errors
/// Fails with [`CompressionError`] if the input does not yield `size`
/// bytes.
pub fn decompress(input: &[u8], size: usize) -> Result<Vec<u8>, CompressionError> {
    let mut output = Vec::new();
    decompress_into(input, size, &mut output)?;
    Ok(output)
}

/// Decompresses a block to exactly `size` bytes, which replace the contents of `output` and reuse
/// its memory.
///
/// # Errors
/// Fails with [`CompressionError`] if the input does not yield `size` bytes. `output` then
/// contains the bytes before the error, at most `size`.
pub fn decompress_into(
    input: &[u8],
    size: usize,
    output: &mut Vec<u8>,
) -> Result<(), CompressionError> {
    output.clear();
    if size > MAX_SIZE {
        return Err(CompressionError::TooLarge { size });
    }
    output.reserve(size);
    let mut input = Input { bytes: input, at: 0, nibble: None };
    while output.len() < size {
        let truncated = |output: &Vec<u8>| CompressionError::Truncated {
            present: output.len(),
            expected: size,
        };
        let flags = input.array().ok_or_else(|| truncated(output))?;
        let mut flags = u32::from_le_bytes(flags);
        let mut left = GROUP;
        while left > 0 && output.len() < size {
            // Consecutive literals are copied together.
            let literals = flags.leading_zeros().min(left);
            if literals > 0 {
                let room = size - output.len();
                let wanted = usize::try_from(literals).map_or(room, |count| count.min(room));
                let (bytes, whole) = input.take_up_to(wanted);
                output.extend_from_slice(bytes);
                if !whole {
                    return Err(truncated(output));
                }
                flags = flags.checked_shl(literals).unwrap_or(0);
                left -= literals;
                continue;
            }
            flags <<= 1;
            left -= 1;
            let offset = input.at;
            let (distance, length) = input.read_match().ok_or_else(|| truncated(output))?;
            let length = length.map_err(|length| CompressionError::Length { offset, length })?;
            copy_match(output, size, offset, distance, length)?;
        }
    }
    Ok(())
}

/// Appends `length` bytes from `distance` bytes before the end. The ranges may overlap.
fn copy_match(
    output: &mut Vec<u8>,
    size: usize,
    offset: usize,
    distance: usize,
    length: usize,
) -> Result<(), CompressionError> {
    let present = output.len();
    let start = present.checked_sub(distance).ok_or(CompressionError::Distance {
        offset,
        distance,
        present,
    })?;
    let room = size - present;
    if length > room {
        return Err(CompressionError::TooLong { offset, length, room });
    }
    // Each step doubles the number of bytes that the next step can copy.
    let end = present + length;
    while output.len() < end {
        let available = (output.len() - start).min(end - output.len());
        output.extend_from_within(start..start + available);
    }
    Ok(())
}

/// The compressed bytes.
struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The upper nibble of a byte whose lower nibble has been used.
    nibble: Option<u8>,
}

impl<'a> Input<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = self.bytes.get(self.at..)?.first_chunk()?;
        self.at += N;
        Some(*bytes)
    }

    /// Returns the next `wanted` bytes and true, or the remaining bytes and false if they are
    /// fewer.
    fn take_up_to(&mut self, wanted: usize) -> (&'a [u8], bool) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let bytes = rest.get(..wanted).unwrap_or(rest);
        self.at += bytes.len();
        (bytes, bytes.len() == wanted)
    }

    /// Reads a match: its distance, and its length or, if that is invalid, the encoded length.
    fn read_match(&mut self) -> Option<(usize, Result<usize, usize>)> {
        let field = usize::from(u16::from_le_bytes(self.array()?));
        let distance = (field >> 3) + 1;
        let mut length = field & LENGTH_FIELD_MAX;
        if length == LENGTH_FIELD_MAX {
            let nibble = if let Some(nibble) = self.nibble.take() {
                nibble
            } else {
                let [both] = self.array()?;
                self.nibble = Some(both >> 4);
                both & 0xF
            };
            length += usize::from(nibble);
            if usize::from(nibble) == NIBBLE_MAX {
                let [byte] = self.array()?;
                length += usize::from(byte);
                if usize::from(byte) == BYTE_MAX {
                    // The long forms contain the whole length.
                    let mut whole = u32::from(u16::from_le_bytes(self.array()?));
                    if whole == 0 {
                        whole = u32::from_le_bytes(self.array()?);
                    }
                    let whole = usize::try_from(whole).unwrap_or(usize::MAX);
                    if whole < LENGTH_FIELD_MAX + NIBBLE_MAX {
                        return Some((distance, Err(whole)));
                    }
                    length = whole;
                }
            }
        }
        Some((distance, Ok(length.saturating_add(MIN_MATCH))))
    }
}

/// Compresses bytes. [`decompress`] restores them, given their number.
///
/// For bytes without repetitions, the result is 4 bytes longer for each 32 bytes, plus 4 bytes.
#[must_use]
pub fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut output = Output::new(bytes.len());
    let mut finder = Finder::new(bytes);
    let mut at = 0;
    while let Some(&literal) = bytes.get(at) {
        let length = if let Some((distance, length)) = finder.find(at) {
            output.put_match(distance, length);
            length
        } else {
            output.put_literal(literal);
            1
        };
        for passed in at..at + length {
            finder.insert(passed);
        }
        at += length;
    }
    output.finish()
}

/// Finds earlier occurrences of the bytes at a position.
struct Finder<'a> {
    bytes: &'a [u8],
    /// The last position plus one, by the hash of three bytes.
    last: Vec<u32>,
    /// The previous position with the same hash, plus one, by position modulo the maximum distance.
    previous: Vec<u32>,
}

/// The number of hash values.
const HASHES: usize = 1 << 13;
/// The maximum number of earlier occurrences to compare.
const TRIES: usize = 16;

impl<'a> Finder<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, last: vec![0; HASHES], previous: vec![0; MAX_DISTANCE] }
    }

    fn hash(&self, at: usize) -> Option<usize> {
        let &[a, b, c] = self.bytes.get(at..)?.first_chunk::<MIN_MATCH>()?;
        let hash = u32::from_le_bytes([a, b, c, 0]).wrapping_mul(0x9E37_79B1) >> 19;
        usize::try_from(hash).ok()
    }

    fn insert(&mut self, at: usize) {
        let (Some(hash), Some(next)) = (self.hash(at), u32::try_from(at + 1).ok()) else {
            return;
        };
        if let Some(last) = self.last.get_mut(hash)
            && let Some(previous) = self.previous.get_mut(at % MAX_DISTANCE)
        {
            *previous = std::mem::replace(last, next);
        }
    }

    /// Returns the distance and length of the longest match that was found.
    fn find(&self, at: usize) -> Option<(usize, usize)> {
        let ahead = self.bytes.get(at..)?;
        let mut candidate = self.last.get(self.hash(at)?).copied()?;
        let mut best: Option<(usize, usize)> = None;
        for _ in 0..TRIES {
            let Some(position) = usize::try_from(candidate).ok()?.checked_sub(1) else {
                break;
            };
            let distance = at - position;
            if distance > MAX_DISTANCE {
                break;
            }
            let behind = self.bytes.get(position..)?;
            let same = behind.iter().zip(ahead);
            let length = same.take_while(|(one, other)| one == other).count();
            if length >= MIN_MATCH && best.is_none_or(|(_, longest)| length > longest) {
                best = Some((distance, length));
            }
            candidate = self.previous.get(position % MAX_DISTANCE).copied()?;
            // An overwritten entry contains a later position.
            if usize::try_from(candidate).ok()? > position {
                break;
            }
        }
        best
    }
}

/// The compressed bytes that have been written.
struct Output {
    bytes: Vec<u8>,
    /// The position of the current group's flags.
    flags_at: usize,
    flags: u32,
    /// The number of flags in the current group.
    count: u32,
    /// The position of a byte whose upper nibble is free.
    nibble_at: Option<usize>,
}

impl Output {
    fn new(size: usize) -> Self {
        let mut bytes = Vec::with_capacity(size / 2 + 8);
        bytes.extend([0; 4]);
        Self { bytes, flags_at: 0, flags: 0, count: 0, nibble_at: None }
    }

    fn put_literal(&mut self, byte: u8) {
        self.bytes.push(byte);
        self.put_flag(0);
    }

    fn put_match(&mut self, distance: usize, length: usize) {
        let length = length - MIN_MATCH;
        let field = ((distance - 1) << 3) | length.min(LENGTH_FIELD_MAX);
        let [low, high, ..] = field.to_le_bytes();
        self.bytes.extend([low, high]);
        if let Some(more) = length.checked_sub(LENGTH_FIELD_MAX) {
            self.put_nibble(more.min(NIBBLE_MAX));
            if let Some(more) = more.checked_sub(NIBBLE_MAX) {
                let [low, ..] = more.min(BYTE_MAX).to_le_bytes();
                self.bytes.push(low);
                if more >= BYTE_MAX {
                    self.put_long(length);
                }
            }
        }
        self.put_flag(1);
    }

    fn put_nibble(&mut self, nibble: usize) {
        let [nibble, ..] = nibble.to_le_bytes();
        let free = self.nibble_at.take();
        if let Some(byte) = free.and_then(|at| self.bytes.get_mut(at)) {
            *byte |= nibble << 4;
        } else {
            self.nibble_at = Some(self.bytes.len());
            self.bytes.push(nibble);
        }
    }

    /// Writes a length in one of the two longest forms.
    fn put_long(&mut self, length: usize) {
        if let Ok(short) = u16::try_from(length) {
            self.bytes.extend(short.to_le_bytes());
        } else {
            self.bytes.extend([0; 2]);
            let [a, b, c, d, ..] = length.to_le_bytes();
            self.bytes.extend([a, b, c, d]);
        }
    }

    fn put_flag(&mut self, flag: u32) {
        self.flags = (self.flags << 1) | flag;
        self.count += 1;
        if self.count == GROUP {
            self.store_flags(self.flags);
            self.flags_at = self.bytes.len();
            self.bytes.extend([0; 4]);
            self.flags = 0;
            self.count = 0;
        }
    }

    fn store_flags(&mut self, flags: u32) {
        if let Some(place) = self.bytes.get_mut(self.flags_at..)
            && let Some(place) = place.first_chunk_mut()
        {
            *place = flags.to_le_bytes();
        }
    }

    /// Sets the unused flags, which mark the end, and returns the bytes.
    fn finish(mut self) -> Vec<u8> {
        let unused = GROUP - self.count;
        let flags = self.flags.checked_shl(unused).unwrap_or(0);
        let ones = u32::MAX.checked_shr(self.count).unwrap_or(0);
        self.store_flags(flags | ones);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The examples of MS-XCA section 3.1.
    const ALPHABET: &[u8] = b"\x3f\0\0\0abcdefghijklmnopqrstuvwxyz";
    const REPEATED: &[u8] = b"\xff\xff\xff\x1fabc\x17\0\x0f\xff\x26\x01";

    #[test]
    fn the_examples_of_the_specification_are_read_and_written() {
        let alphabet = b"abcdefghijklmnopqrstuvwxyz";
        assert_eq!(decompress(ALPHABET, 26).unwrap(), alphabet);
        assert_eq!(compress(alphabet), ALPHABET);
        let repeated = b"abc".repeat(100);
        assert_eq!(decompress(REPEATED, 300).unwrap(), repeated);
        assert_eq!(compress(&repeated), REPEATED);
    }

    #[test]
    fn a_group_without_content_at_the_end_is_ignored() {
        let bytes: Vec<u8> = (0..32).collect();
        let compressed = compress(&bytes);
        assert_eq!(compressed.len(), 4 + 32 + 4);
        assert!(compressed.ends_with(&[0xFF; 4]));
        assert_eq!(decompress(&compressed, 32).unwrap(), bytes);
        assert_eq!(decompress(&compressed[..36], 32).unwrap(), bytes);
    }

    #[test]
    fn every_form_of_a_length_is_read_and_written() {
        for length in [3, 9, 10, 24, 25, 279, 280, 281, 65_537, 65_538, 65_539, 70_000] {
            // Two consecutive matches share a byte of nibbles.
            let bytes =
                [b"a".repeat(length + 1), b"bcd".to_vec(), b"e".repeat(length + 1)].concat();
            let compressed = compress(&bytes);
            assert!(compressed.len() < 40, "{length}");
            assert_eq!(decompress(&compressed, bytes.len()).unwrap(), bytes);
        }
    }

    #[test]
    fn the_largest_distance_is_used_and_no_larger_one() {
        for (gap, found) in [(MAX_DISTANCE - 16, true), (MAX_DISTANCE - 15, false)] {
            // Bytes in which no three bytes repeat: pairs of counters.
            let mut bytes = b"0123456789ABCDEF".to_vec();
            bytes.extend((0..=u16::MAX).flat_map(u16::to_be_bytes).skip(0x8000).take(gap));
            bytes.extend(b"0123456789ABCDEF");
            let compressed = compress(&bytes);
            assert_eq!(decompress(&compressed, bytes.len()).unwrap(), bytes);
            let copied = !compressed.ends_with(b"9ABCDEF") && !compressed.ends_with(&[0xFF; 4]);
            let tail = &compressed[compressed.len() - 12..];
            let literal = tail.windows(4).any(|bytes| bytes == b"CDEF");
            assert_eq!(copied && !literal, found, "a gap of {gap} bytes");
        }
    }

    #[test]
    fn damaged_blocks_are_refused_with_the_bytes_before_the_damage() {
        let mut output = Vec::new();
        let mut read = |input: &[u8], size| {
            let error = decompress_into(input, size, &mut output).unwrap_err();
            (error, output.clone())
        };
        let truncated = |present, expected| CompressionError::Truncated { present, expected };
        assert_eq!(read(b"", 1), (truncated(0, 1), vec![]));
        assert_eq!(read(b"\0\0\0", 1), (truncated(0, 1), vec![]));
        let ends = (truncated(26, 27), b"abcdefghijklmnopqrstuvwxyz".to_vec());
        assert_eq!(read(ALPHABET, 27), ends);
        for cut in 4..REPEATED.len() {
            let (error, before) = read(&REPEATED[..cut], 300);
            assert_eq!(error, truncated(before.len(), 300), "{cut} bytes");
            assert!(b"abc".starts_with(&before));
        }
        let distance = CompressionError::Distance { offset: 5, distance: 2, present: 1 };
        let before = b"\0\0\0\x40a\x08\0";
        assert_eq!(read(before, 4), (distance, b"a".to_vec()));
        let too_long = CompressionError::TooLong { offset: 7, length: 297, room: 296 };
        assert_eq!(read(REPEATED, 299), (too_long, b"abc".to_vec()));
        // The length 21 fits in a nibble.
        let length = CompressionError::Length { offset: 5, length: 21 };
        let long = b"\0\0\0\x40a\x07\0\x0f\xff\x15\0";
        assert_eq!(read(long, 40), (length, b"a".to_vec()));
        let large = CompressionError::TooLarge { size: MAX_SIZE + 1 };
        assert_eq!(read(ALPHABET, MAX_SIZE + 1), (large, vec![]));
    }

    #[test]
    fn no_bytes_are_a_block_too() {
        assert_eq!(compress(&[]), [0xFF; 4]);
        assert_eq!(decompress(&compress(&[]), 0), Ok(Vec::new()));
        assert_eq!(decompress(&[], 0), Ok(Vec::new()));
    }

    proptest! {
        #[test]
        fn compressed_bytes_are_decompressed(
            parts in prop::collection::vec(
                (prop::collection::vec(0_u8..8, 0..40), 1_usize..400),
                0..12,
            ),
        ) {
            let bytes: Vec<u8> = parts
                .iter()
                .flat_map(|(part, times)| part.repeat(*times))
                .collect();
            let compressed = compress(&bytes);
            prop_assert!(compressed.len() <= bytes.len() + bytes.len() / 8 + 4);
            prop_assert_eq!(decompress(&compressed, bytes.len()).unwrap(), bytes);
        }

        #[test]
        fn any_bytes_are_decompressed_to_the_size_or_refused(
            input in prop::collection::vec(any::<u8>(), 0..300),
            size in 0_usize..2000,
        ) {
            let mut output = Vec::new();
            let result = decompress_into(&input, size, &mut output);
            prop_assert!(output.len() <= size);
            prop_assert_eq!(result.is_ok(), output.len() == size);
        }
    }

    #[test]
    fn literals_beyond_the_size_are_left_out() {
        let literals: Vec<u8> = (1..=32).collect();
        let block = [&[0; 4], &literals[..]].concat();
        assert_eq!(decompress(&block, 5).unwrap(), [1, 2, 3, 4, 5]);
        assert_eq!(decompress(&block, 32).unwrap(), literals);
        let twice = [&block[..], &block].concat();
        let expected = [&literals[..], &literals[..8]].concat();
        assert_eq!(decompress(&twice, 40).unwrap(), expected);
    }

    #[test]
    fn the_largest_size_is_that_of_a_buffer() {
        // A literal and a match that repeats it until the end.
        let length = u32::try_from(MAX_SIZE - 1 - MIN_MATCH).unwrap();
        let mut block = vec![0xFF, 0xFF, 0xFF, 0x7F, 9, 7, 0, 0x0F, 0xFF, 0, 0];
        block.extend(length.to_le_bytes());
        let bytes = decompress(&block, MAX_SIZE).unwrap();
        assert!(bytes.len() == MAX_SIZE && bytes.iter().all(|&byte| byte == 9));
        assert_eq!(
            decompress(&block, MAX_SIZE + 1),
            Err(CompressionError::TooLarge { size: MAX_SIZE + 1 })
        );
    }

    #[test]
    fn the_nearest_of_the_longest_matches_is_found() {
        let find = |bytes: &[u8], at: usize| {
            let mut finder = Finder::new(bytes);
            (0..at).for_each(|passed| finder.insert(passed));
            finder.find(at)
        };
        assert_eq!(find(b"abcd1abc2abcd", 9), Some((9, 4)));
        assert_eq!(find(b"abc1abcd2abcd", 9), Some((5, 4)));
        assert_eq!(find(b"abc1abc2abc", 8), Some((4, 3)));
        // The second occurrence starts one byte before the first.
        assert_eq!(find(b"aaaac-aaaac", 6), Some((6, 5)));
        assert_eq!(find(b"abcab", 3), None);
        // Occurrences are remembered beyond one table of positions.
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut long = Vec::new();
        while long.len() < 9000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            long.extend(state.to_le_bytes());
        }
        long.extend_from_within(8950..8960);
        long.extend_from_within(8500..8520);
        assert_eq!(find(&long, 9010), Some((510, 20)));
    }

    #[test]
    fn a_long_form_holds_at_least_what_the_shorter_ones_cannot() {
        // A literal and a match of distance 1; the whole length follows.
        let block = |whole: u16| {
            let [low, high] = whole.to_le_bytes();
            vec![0xFF, 0xFF, 0xFF, 0x7F, b'a', 7, 0, 0x0F, 0xFF, low, high]
        };
        for whole in [22, 23, 104, 105] {
            let length = usize::from(whole) + MIN_MATCH + 1;
            assert_eq!(decompress(&block(whole), length).unwrap(), vec![b'a'; length]);
        }
        let refused = decompress(&block(21), 25);
        assert!(matches!(refused, Err(CompressionError::Length { length: 21, .. })));
    }
}
