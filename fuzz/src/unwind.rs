//! Walks a stack with arbitrary bytes as unwind data.

use std::cell::Cell;

use standin_kernel::fuzzing::{End, MAX_FRAMES, Registers, Table, walk};

use crate::text::sentence;

/// The address at which the image is loaded.
const IMAGE: u64 = 0x1_4000_0000;
/// The address of the stack.
const STACK: u64 = 0x7000_0000;
/// The size of the input's header.
///
/// It contains the offset of the instruction in the image (16 bits), the number of words on the
/// stack (8 bits), a flag that is set if the instruction follows a call (8 bits), and the offset
/// and size of the exception directory (16 bits each). The stack and the image follow.
pub const HEAD: usize = 8;
/// The maximum size of a frame in words: each of 32 chained entries has at most 255 codes, and an
/// epilogue pops fewer.
const WORDS_OF_A_FRAME: usize = 32 * 255 + 64;

/// Checks that walking the input's stack twice gives the same result, that the walk ends and reads
/// only the stack, and that every frame except the first is in the image.
///
/// # Errors
///
/// Returns the reason why the walk ended before it left the image.
pub fn check(data: &[u8]) -> Result<usize, String> {
    let Some((head, rest)) = data.split_first_chunk::<HEAD>() else {
        return Err("the input has no head".to_owned());
    };
    let half = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
    let count = usize::from(head[2]);
    let Some((stack, image)) = rest.split_at_checked(8 * count) else {
        return Err("the input has no stack".to_owned());
    };
    let table = Table::new(image.to_vec(), half(4).into(), half(6).into());
    let mut registers = Registers {
        rip: IMAGE + u64::from(half(0)),
        // Starts in the middle of the stack, so that frame registers can point below and above it.
        general: [STACK + 4 * u64::from(head[2]); 16],
    };
    registers.set_rsp(STACK);
    let first = walked(&table, image.len(), registers, head[3] & 1 == 1, stack);
    let second = walked(&table, image.len(), registers, head[3] & 1 == 1, stack);
    assert_eq!(first, second);
    first
}

fn walked(
    table: &Table,
    size: usize,
    registers: Registers,
    is_return: bool,
    stack: &[u8],
) -> Result<usize, String> {
    let reads = Cell::new(0);
    let read = |address: u64| {
        reads.set(reads.get() + 1);
        let at = usize::try_from(address.checked_sub(STACK)?).ok()?;
        let word = stack.get(at..)?.first_chunk()?;
        Some(u64::from_le_bytes(*word))
    };
    let is_inside = |address: u64| {
        let offset = address.checked_sub(IMAGE);
        offset.is_some_and(|offset| usize::try_from(offset).is_ok_and(|offset| offset < size))
    };
    let (frames, end) = walk(registers, is_return, MAX_FRAMES, |registers, is_return| {
        if is_inside(registers.rip) {
            table.unwind(IMAGE, registers, is_return, read)
        } else {
            Err(End::Left(registers.rip))
        }
    });
    assert!(frames.len() <= MAX_FRAMES);
    assert!(reads.get() <= (frames.len() + 1) * WORDS_OF_A_FRAME);
    assert!(frames.iter().all(|frame| is_inside(frame.address)));
    assert!(frames.iter().skip(1).all(|frame| frame.is_return));
    match end {
        End::Left(address) => {
            assert!(!is_inside(address));
            Ok(frames.len())
        }
        other => Err(format!("{}, after {} frames", sentence(&other), frames.len())),
    }
}
