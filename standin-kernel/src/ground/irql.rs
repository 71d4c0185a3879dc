//! Interrupt request levels.

use std::fmt;

/// An interrupt request level (IRQL) of x64 Windows, 0 to 15.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Irql(u8);

impl Irql {
    /// The level of ordinary threads, at which every operation is allowed.
    pub const PASSIVE_LEVEL: Self = Self(0);
    /// Asynchronous procedure calls are masked.
    pub const APC_LEVEL: Self = Self(1);
    /// The scheduler is masked, so waits and paged memory are not allowed. DPCs, timers and spin
    /// lock holders run at this level.
    pub const DISPATCH_LEVEL: Self = Self(2);
    /// The lowest level of device interrupts.
    pub const DIRQL: Self = Self(3);
    /// All interrupts are masked.
    pub const HIGH_LEVEL: Self = Self(15);

    /// Returns the level with this number. As in hardware, only the low four bits are used.
    #[must_use]
    pub const fn from_number(number: u8) -> Self {
        Self(number & 0xF)
    }

    /// Returns the level's number, 0 to 15.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Irql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("PASSIVE_LEVEL (0)"),
            1 => f.write_str("APC_LEVEL (1)"),
            2 => f.write_str("DISPATCH_LEVEL (2)"),
            15 => f.write_str("HIGH_LEVEL (15)"),
            level => write!(f, "IRQL {level}"),
        }
    }
}
