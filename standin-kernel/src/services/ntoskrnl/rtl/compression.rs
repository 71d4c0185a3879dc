//! Compression of buffers, in the format LZNT1.

use crate::{
    execution::routine::{At, Memory, routine},
    ground::{NtResult, NtStatus},
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[
    routine("RtlCompressBuffer", compress),
    routine("RtlDecompressBuffer", decompress),
    routine("RtlDecompressBufferEx", decompress_with_workspace),
    routine("RtlDecompressFragment", decompress_fragment),
    routine("RtlGetCompressionWorkSpaceSize", workspace_size),
];

/// `STATUS_BUFFER_ALL_ZEROS`, a success.
const BUFFER_ALL_ZEROS: NtStatus = NtStatus::from_bits(0x117);
const BAD_COMPRESSION_BUFFER: NtStatus = NtStatus::from_bits(0xC000_0242);
const UNSUPPORTED_COMPRESSION: NtStatus = NtStatus::from_bits(0xC000_025F);

/// Fails for the formats that no version of Windows has. `DEFAULT` and `NONE` are not formats.
fn check_format(context: &Context, format_and_engine: u16) -> NtResult {
    /// `COMPRESSION_FORMAT_LZNT1`, and the formats of newer versions.
    const LZNT1: u16 = 2;
    const XPRESS_HUFF: u16 = 4;
    match format_and_engine & 0xFF {
        0 | 1 => Err(NtStatus::INVALID_PARAMETER),
        LZNT1 => Ok(()),
        3..=XPRESS_HUFF => context.stop_for_unprovided("for the Xpress formats"),
        _ => Err(UNSUPPORTED_COMPRESSION),
    }
}

/// Fails for the formats and engines that no version of Windows has. Decompression ignores the engine.
fn check(context: &Context, format_and_engine: u16) -> NtResult {
    /// `COMPRESSION_ENGINE_MAXIMUM`.
    const MAXIMUM: u16 = 0x100;
    check_format(context, format_and_engine)?;
    match format_and_engine & 0xFF00 {
        0 | MAXIMUM => Ok(()),
        _ => Err(NtStatus::NOT_SUPPORTED),
    }
}

/// Returns the sizes of the memory that compression and decompression need. This kernel uses its own.
fn workspace_size(
    context: &Context,
    format_and_engine: u16,
    compress: At<u32>,
    fragment: At<u32>,
) -> NtResult {
    const COMPRESS: u32 = 0x8010;
    const FRAGMENT: u32 = 0x1000;
    check(context, format_and_engine)?;
    compress.write(context, COMPRESS);
    fragment.write(context, FRAGMENT);
    Ok(())
}

fn compress(
    context: &Context,
    format_and_engine: u16,
    from: At<u8>,
    from_size: u32,
    to: At<u8>,
    to_size: u32,
    _chunk: u32,
    final_size: At<u32>,
    _workspace: Memory,
) -> NtResult<NtStatus> {
    check(context, format_and_engine)?;
    let bytes = context.read_bytes(from.0, from_size as usize);
    let mut compressed = Vec::new();
    lznt1::compress(&bytes, &mut compressed);
    if compressed.len() > to_size as usize {
        return Err(NtStatus::BUFFER_TOO_SMALL);
    }
    context.write_bytes(to.0, &compressed);
    final_size.write(context, u32::try_from(compressed.len()).unwrap_or(u32::MAX));
    let is_zero = bytes.iter().all(|byte| *byte == 0);
    Ok(if is_zero { BUFFER_ALL_ZEROS } else { NtStatus::SUCCESS })
}

/// Decompresses chunks until at least `size` bytes are there, or no chunk follows.
fn decompressed(mut input: &[u8], size: usize) -> Option<Vec<u8>> {
    /// The flag of a compressed chunk, and the mask of the size of its data minus 1.
    const COMPRESSED: u16 = 0x8000;
    const SIZE: u16 = 0xFFF;
    if input.is_empty() {
        return None;
    }
    let mut output = Vec::new();
    while output.len() < size {
        // A header of 0 and a single byte end the buffer.
        let Some(header) = input.first_chunk().map(|header| u16::from_le_bytes(*header)) else {
            break;
        };
        if header == 0 {
            break;
        }
        let (chunk, rest) = input.split_at_checked(usize::from(header & SIZE) + 3)?;
        input = rest;
        // A chunk of flags only is empty.
        if header & COMPRESSED == 0 || chunk.len() > 3 {
            lznt1::decompress(chunk, &mut output).ok()?;
        }
    }
    Some(output)
}

/// Stores the part of a decompressed buffer that begins at an offset and fits.
fn store(
    context: &Context,
    format: u16,
    (to, to_size): (At<u8>, u32),
    (from, from_size): (At<u8>, u32),
    offset: u32,
    final_size: At<u32>,
) -> NtResult {
    check_format(context, format)?;
    let bytes = context.read_bytes(from.0, from_size as usize);
    let wanted = (offset as usize).saturating_add(to_size as usize);
    let whole = decompressed(&bytes, wanted).ok_or(BAD_COMPRESSION_BUFFER)?;
    let rest = whole.get(offset as usize..).unwrap_or_default();
    let part = rest.get(..to_size as usize).unwrap_or(rest);
    context.write_bytes(to.0, part);
    final_size.write(context, u32::try_from(part.len()).unwrap_or(u32::MAX));
    Ok(())
}

fn decompress(
    context: &Context,
    format: u16,
    to: At<u8>,
    to_size: u32,
    from: At<u8>,
    from_size: u32,
    final_size: At<u32>,
) -> NtResult {
    store(context, format, (to, to_size), (from, from_size), 0, final_size)
}

fn decompress_with_workspace(
    context: &Context,
    format: u16,
    to: At<u8>,
    to_size: u32,
    from: At<u8>,
    from_size: u32,
    final_size: At<u32>,
    _workspace: Memory,
) -> NtResult {
    store(context, format, (to, to_size), (from, from_size), 0, final_size)
}

fn decompress_fragment(
    context: &Context,
    format: u16,
    to: At<u8>,
    to_size: u32,
    from: At<u8>,
    from_size: u32,
    offset: u32,
    final_size: At<u32>,
    _workspace: Memory,
) -> NtResult {
    store(context, format, (to, to_size), (from, from_size), offset, final_size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_ends_at_a_zero_header_a_single_byte_or_the_wanted_size() {
        for (input, size, expected) in [
            (&[][..], 9, None),
            (&[0, 0], 9, Some(vec![])),
            (&[5], 9, Some(vec![])),
            (&[0, 0xB0, 2], 9, Some(vec![])),
            (&[1, 0x30, 5, 6, 1], 9, Some(vec![5, 6])),
            (&[3, 0xB0, 2, 9, 7, 0], 11, Some(vec![9; 11])),
            // The bytes after the wanted ones are not looked at.
            (&[1, 0x30, 5, 6, 9, 0xB0, 1], 2, Some(vec![5, 6])),
            (&[1, 0x30, 5, 6, 9, 0xB0, 1], 3, None),
            (&[2, 0xB0, 1, 7, 0], 9, None),
        ] {
            assert_eq!(decompressed(input, size), expected, "{input:?} {size}");
        }
    }
}
