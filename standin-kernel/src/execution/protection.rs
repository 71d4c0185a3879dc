//! Describes the instructions that cause faults.
//!
//! For a general-protection fault, the processor reports neither the address nor the kind of
//! access. Both are determined from the instruction and the registers.

use iced_x86::{
    Code, Decoder, DecoderOptions, FastFormatter, FlowControl, Instruction, InstructionInfoFactory,
    Mnemonic, OpAccess, OpKind, Register,
};

use crate::ground::{host, memory, processor_block, unwind::Registers};

/// The maximum length of an instruction in bytes.
pub const MAX_INSTRUCTION: usize = 15;

/// The cause of a general-protection fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The instruction is privileged.
    Privileged(String),
    /// The instruction uses a noncanonical address.
    NotCanonical {
        /// `read from`, `write to` or `instruction fetch from`.
        access: &'static str,
        /// The address.
        address: u64,
    },
    /// The instruction requires aligned operands.
    Misaligned {
        /// `read from` or `write to`.
        access: &'static str,
        /// The operand's address.
        address: u64,
        /// The instruction.
        instruction: String,
    },
    /// The instruction is a software interrupt with this number.
    Interrupt(u8),
    /// The instruction is not allowed for another reason.
    Instruction(String),
}

impl Cause {
    /// Returns the cause of a fault at an instruction. `code` starts with the instruction, and `read`
    /// reads eight bytes of memory. Returns `None` if the code is not an instruction.
    pub fn from_fault(
        code: &[u8],
        registers: &Registers,
        read: impl Fn(u64) -> Option<u64>,
    ) -> Option<Self> {
        if !is_canonical(registers.rip) {
            return Some(Self::NotCanonical { access: FETCH, address: registers.rip });
        }
        let instruction = Decoder::with_ip(64, code, registers.rip, DecoderOptions::NONE).decode();
        if instruction.is_invalid() {
            return None;
        }
        let value = |register| value(register, registers);
        let mut factory = InstructionInfoFactory::new();
        let accesses: Vec<(&'static str, u64, u64)> = factory
            .info(&instruction)
            .used_memory()
            .iter()
            .filter_map(|memory| {
                let address = memory.virtual_address(0, |register, _, _| value(register))?;
                let size = memory.memory_size().size() as u64;
                Some((access(memory.access())?, address, size))
            })
            .collect();
        let outside = accesses.iter().find(|(_, address, size)| {
            let last = address.wrapping_add(size.saturating_sub(1));
            !is_canonical(*address) || !is_canonical(last)
        });
        if let Some((access, address, _)) = outside {
            return Some(Self::NotCanonical { access, address: *address });
        }
        let target = target(&instruction, &accesses, value, read);
        if let Some(address) = target.filter(|address| !is_canonical(*address)) {
            return Some(Self::NotCanonical { access: FETCH, address });
        }
        if instruction.code() == Code::Int_imm8 {
            return Some(Self::Interrupt(instruction.immediate8()));
        }
        let text = text(&instruction);
        if instruction.is_privileged() {
            return Some(Self::Privileged(text));
        }
        let misaligned = accesses
            .iter()
            .find(|(_, address, size)| *size >= 16 && !address.is_multiple_of(*size));
        Some(match misaligned {
            Some((access, address, _)) => {
                Self::Misaligned { access, address: *address, instruction: text }
            }
            None => Self::Instruction(text),
        })
    }
}

const FETCH: &str = "instruction fetch from";

/// Returns whether an address is canonical, that is, whether bits 47 to 63 are equal.
const fn is_canonical(address: u64) -> bool {
    let high = address >> 47;
    high == 0 || high == 0x1_FFFF
}

const fn access(access: OpAccess) -> Option<&'static str> {
    match access {
        OpAccess::Read | OpAccess::CondRead => Some("read from"),
        OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite => {
            Some("write to")
        }
        OpAccess::None | OpAccess::NoMemAccess => None,
    }
}

/// Returns the value that a register contributes to an address.
pub fn value(register: Register, registers: &Registers) -> Option<u64> {
    if register.is_segment_register() {
        // In 64-bit code, only the fs and gs segments can have a nonzero base.
        return match register {
            Register::FS => None,
            Register::GS => processor_block::base(),
            _ => Some(0),
        };
    }
    let full = register.full_register();
    if !full.is_gpr64() {
        return None;
    }
    let number = u8::try_from(full.number()).ok()?;
    Some(registers.get(number))
}

/// Returns the target address of an instruction if the instruction contains it in a register or
/// memory operand.
fn target(
    instruction: &Instruction,
    accesses: &[(&'static str, u64, u64)],
    value: impl Fn(Register) -> Option<u64>,
    read: impl Fn(u64) -> Option<u64>,
) -> Option<u64> {
    match instruction.flow_control() {
        FlowControl::IndirectBranch | FlowControl::IndirectCall
            if instruction.op0_kind() == OpKind::Register =>
        {
            value(instruction.op0_register())
        }
        FlowControl::IndirectBranch | FlowControl::IndirectCall | FlowControl::Return => {
            let (_, address, _) = accesses.iter().find(|(access, ..)| *access == "read from")?;
            read(*address)
        }
        _ => None,
    }
}

/// Formats an instruction in the syntax of Microsoft's debuggers.
pub fn text(instruction: &Instruction) -> String {
    let mut formatter = FastFormatter::new();
    formatter.options_mut().set_space_after_operand_separator(true);
    let mut text = String::new();
    formatter.format(instruction, &mut text);
    text
}

/// Returns the code at this address, up to the maximum length of an instruction.
pub fn code_at(address: u64) -> Vec<u8> {
    // The instruction may end at the end of accessible memory.
    let mut code = (1..=MAX_INSTRUCTION)
        .rev()
        .find_map(|length| memory::read_bytes(address, length).ok())
        .unwrap_or_default();
    host::restore(address, &mut code);
    code
}

/// Describes the instruction at an address.
pub fn instruction_at(address: u64) -> Option<String> {
    let code = code_at(address);
    let instruction = Decoder::with_ip(64, &code, address, DecoderOptions::NONE).decode();
    (!instruction.is_invalid()).then(|| text(&instruction))
}

/// Returns the divisor of a division instruction. `read` reads eight bytes of memory.
pub fn divisor(registers: Registers, read: impl Fn(u64) -> Option<u64>) -> Option<u64> {
    let code = code_at(registers.rip);
    let instruction = Decoder::with_ip(64, &code, registers.rip, DecoderOptions::NONE).decode();
    if !matches!(instruction.mnemonic(), Mnemonic::Div | Mnemonic::Idiv) {
        return None;
    }
    let (whole, size) = if instruction.op0_kind() == OpKind::Register {
        let register = instruction.op0_register();
        let high = matches!(register, Register::AH | Register::BH | Register::CH | Register::DH);
        let whole = value(register, &registers)?;
        (whole >> if high { 8 } else { 0 }, register.size())
    } else {
        let address =
            instruction.virtual_address(0, 0, |register, _, _| value(register, &registers))?;
        (read(address)?, instruction.memory_size().size())
    };
    Some(match size {
        1 => whole & 0xFF,
        2 => whole & 0xFFFF,
        4 => whole & 0xFFFF_FFFF,
        _ => whole,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the cause of a fault at an instruction when every register has the value `general`.
    fn cause(code: &[u8], general: u64) -> Option<Cause> {
        let mut registers = Registers { rip: 0x1000, general: [general; 16] };
        registers.set_rsp(0x2000);
        Cause::from_fault(code, &registers, |address| (address == 0x2000).then_some(general))
    }

    #[test]
    fn addresses_that_are_not_canonical_are_found() {
        const BAD: u64 = 0x8000_0000_0000;
        for (code, access) in [
            // mov [rax], cl; add [rax], cl; mov cl, [rax]; rep movsb
            (&[0x88, 0x08][..], "write to"),
            (&[0x00, 0x08], "write to"),
            (&[0x8A, 0x08], "read from"),
            // call rax; jmp rax; ret
            (&[0xFF, 0xD0], FETCH),
            (&[0xFF, 0xE0], FETCH),
            (&[0xC3], FETCH),
            // call [rsp]; push [rax]
            (&[0xFF, 0x14, 0x24], FETCH),
            (&[0xFF, 0x30], "read from"),
        ] {
            let expected = Cause::NotCanonical { access, address: BAD };
            assert_eq!(cause(code, BAD), Some(expected), "{code:X?}");
        }
        // The access starts at a canonical address, but its last byte is noncanonical.
        let crossing = cause(&[0x48, 0x8B, 0x08], BAD - 4);
        assert!(matches!(crossing, Some(Cause::NotCanonical { .. })));
    }

    #[test]
    fn other_causes_are_found() {
        for (code, text) in [
            (&[0x44, 0x0F, 0x20, 0xC0][..], "mov rax, cr8"),
            (&[0x0F, 0x32], "rdmsr"),
            (&[0xF4], "hlt"),
            (&[0xFA], "cli"),
            (&[0xEC], "in al, dx"),
        ] {
            let expected = Cause::Privileged(text.to_owned());
            assert_eq!(cause(code, 0x1000), Some(expected));
        }
        // movaps [rax], xmm0
        let Some(Cause::Misaligned { address, .. }) = cause(&[0x0F, 0x29, 0x00], 0x1008) else {
            panic!("it is misaligned");
        };
        assert_eq!(address, 0x1008);
        assert_eq!(cause(&[0xCD, 0x2D], 0x1000), Some(Cause::Interrupt(0x2D)));
        // rdpmc
        let other = cause(&[0x0F, 0x33], 0x1000);
        assert!(matches!(other, Some(Cause::Instruction(_))), "{other:?}");
        assert_eq!(cause(&[0x06], 0), None);
    }
}
