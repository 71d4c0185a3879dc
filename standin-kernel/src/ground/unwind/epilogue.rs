//! Epilogues: if a function is in its epilogue, the walk executes the rest of the epilogue instead
//! of reversing the prologue.

use super::registers::{RSP, Registers};

/// The maximum number of epilogue instructions that are examined: one that frees the local
/// variables, one pop for each register, and the return.
const MAX_INSTRUCTIONS: usize = 20;

/// Executes the rest of an epilogue that starts with `code`. Returns the registers of the caller,
/// or `None` if the code is not the rest of an epilogue.
///
/// `is_own` returns whether an offset from the start of `code` is in the same function; a jump to
/// another function is a tail call.
pub fn leave(
    code: &[u8],
    frame: Option<u8>,
    before: &Registers,
    is_own: impl Fn(i64) -> bool,
    read: impl Fn(u64) -> Option<u64>,
) -> Option<Registers> {
    let mut registers = *before;
    let mut at = 0;
    for number in 0..MAX_INSTRUCTIONS {
        let rest = code.get(at..)?;
        let length = match *rest {
            // add rsp, imm8
            [0x48, 0x83, 0xC4, bytes, ..] if number == 0 => {
                grow(&mut registers, i64::from(bytes.cast_signed()));
                4
            }
            // add rsp, imm32
            [0x48, 0x81, 0xC4, a, b, c, d, ..] if number == 0 => {
                grow(&mut registers, i64::from(i32::from_le_bytes([a, b, c, d])));
                7
            }
            // lea rsp, [frame + disp]
            [rex @ (0x48 | 0x49), 0x8D, mode, ..] if number == 0 && mode >> 3 & 7 == RSP => {
                let register = mode & 7 | (rex & 1) << 3;
                if Some(register) != frame || mode & 7 == 4 {
                    return None;
                }
                let (offset, length) = displacement(mode >> 6, rest.get(3..)?)?;
                registers.set_rsp(registers.get(register).wrapping_add_signed(offset));
                3 + length
            }
            // pop
            [byte @ 0x58..=0x5F, ..] => {
                pop(&mut registers, byte & 7, &read)?;
                1
            }
            [0x41, byte @ 0x58..=0x5F, ..] => {
                pop(&mut registers, byte & 7 | 8, &read)?;
                2
            }
            // ret, rep ret, ret imm16, jmp [rip + disp32]
            [0xC3 | 0xC2, ..] | [0xF3, 0xC3, ..] | [0xFF, 0x25, ..] => {
                return returned(registers, &read);
            }
            // jmp rel8
            [0xEB, offset, ..] => {
                let to = i64::try_from(at).ok()? + 2 + i64::from(offset.cast_signed());
                return if is_own(to) { None } else { returned(registers, &read) };
            }
            // jmp rel32
            [0xE9, a, b, c, d, ..] => {
                let offset = i64::from(i32::from_le_bytes([a, b, c, d]));
                let to = i64::try_from(at).ok()? + 5 + offset;
                return if is_own(to) { None } else { returned(registers, &read) };
            }
            // rex.W jmp through a register or memory
            [0x48..=0x4F, 0xFF, mode, ..] if mode >> 3 & 7 == 4 => {
                return returned(registers, &read);
            }
            _ => return None,
        };
        at += length;
    }
    None
}

const fn grow(registers: &mut Registers, bytes: i64) {
    registers.set_rsp(registers.rsp().wrapping_add_signed(bytes));
}

/// Returns the displacement of a memory operand and its length in bytes.
fn displacement(mode: u8, bytes: &[u8]) -> Option<(i64, usize)> {
    match (mode, bytes) {
        (0, _) => Some((0, 0)),
        (1, [byte, ..]) => Some((i64::from(byte.cast_signed()), 1)),
        (2, [a, b, c, d, ..]) => Some((i64::from(i32::from_le_bytes([*a, *b, *c, *d])), 4)),
        _ => None,
    }
}

fn pop(registers: &mut Registers, number: u8, read: &impl Fn(u64) -> Option<u64>) -> Option<()> {
    let value = read(registers.rsp())?;
    registers.set(number, value);
    grow(registers, 8);
    Some(())
}

fn returned(mut registers: Registers, read: &impl Fn(u64) -> Option<u64>) -> Option<Registers> {
    registers.rip = read(registers.rsp())?;
    grow(&mut registers, 8);
    Some(registers)
}
