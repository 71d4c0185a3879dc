//! The registers that a stack walk uses.

/// The number of `rsp` in instructions and unwind codes.
pub const RSP: u8 = 4;

/// The registers of a thread at an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// The instruction's address.
    pub rip: u64,
    /// The general registers, in the order of their numbers: rax, rcx, rdx, rbx, rsp, rbp, rsi,
    /// rdi, r8 to r15.
    pub general: [u64; 16],
}

impl Registers {
    /// Returns a register by its number. Only the low four bits of the number are used.
    pub const fn get(&self, number: u8) -> u64 {
        self.general[(number & 15) as usize]
    }

    /// Sets a register by its number. Only the low four bits of the number are used.
    pub const fn set(&mut self, number: u8, value: u64) {
        self.general[(number & 15) as usize] = value;
    }

    /// Returns the stack pointer.
    pub const fn rsp(&self) -> u64 {
        self.get(RSP)
    }

    /// Sets the stack pointer.
    pub const fn set_rsp(&mut self, value: u64) {
        self.set(RSP, value);
    }
}
