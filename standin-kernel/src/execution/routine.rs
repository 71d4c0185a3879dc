//! The routines behind gateways.

use crate::ground::irql::Irql;

/// A routine by its number of parameters. `C` is the context of the service that provides the
/// routine. Arguments are whole registers, which a gateway has extended from the parameters' types.
/// Results are whole registers too; the driver ignores the high bytes of narrower types.
pub enum Routine<C> {
    /// No parameters.
    Zero(fn(&C) -> u64),
    /// One parameter.
    One(fn(&C, u64) -> u64),
    /// Two parameters.
    Two(fn(&C, u64, u64) -> u64),
    /// Three parameters.
    Three(fn(&C, u64, u64, u64) -> u64),
    /// Four parameters.
    Four(fn(&C, u64, u64, u64, u64) -> u64),
    /// Five parameters.
    Five(fn(&C, u64, u64, u64, u64, u64) -> u64),
    /// Six parameters.
    Six(fn(&C, u64, u64, u64, u64, u64, u64) -> u64),
    /// Seven parameters.
    Seven(fn(&C, [u64; 7]) -> u64),
    /// Eight parameters.
    Eight(fn(&C, [u64; 8]) -> u64),
    /// Nine parameters.
    Nine(fn(&C, [u64; 9]) -> u64),
    /// Ten parameters.
    Ten(fn(&C, [u64; 10]) -> u64),
    /// Eleven parameters.
    Eleven(fn(&C, [u64; 11]) -> u64),
}

impl<C> Clone for Routine<C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Routine<C> {}

/// The largest number of parameters of a routine.
pub const MAX_ARGUMENTS: usize = 11;

impl<C> Routine<C> {
    /// Returns the number of parameters.
    pub const fn arity(self) -> usize {
        match self {
            Self::Zero(_) => 0,
            Self::One(_) => 1,
            Self::Two(_) => 2,
            Self::Three(_) => 3,
            Self::Four(_) => 4,
            Self::Five(_) => 5,
            Self::Six(_) => 6,
            Self::Seven(_) => 7,
            Self::Eight(_) => 8,
            Self::Nine(_) => 9,
            Self::Ten(_) => 10,
            Self::Eleven(_) => 11,
        }
    }

    /// Calls the routine with as many of the arguments as it has parameters.
    pub fn call(self, context: &C, arguments: [u64; MAX_ARGUMENTS]) -> u64 {
        let [first, second, third, fourth, fifth, sixth, seventh, eighth, ninth, tenth, _] =
            arguments;
        match self {
            Self::Zero(routine) => routine(context),
            Self::One(routine) => routine(context, first),
            Self::Two(routine) => routine(context, first, second),
            Self::Three(routine) => routine(context, first, second, third),
            Self::Four(routine) => routine(context, first, second, third, fourth),
            Self::Five(routine) => routine(context, first, second, third, fourth, fifth),
            Self::Six(routine) => routine(context, first, second, third, fourth, fifth, sixth),
            Self::Seven(routine) => {
                routine(context, [first, second, third, fourth, fifth, sixth, seventh])
            }
            Self::Eight(routine) => {
                routine(context, [first, second, third, fourth, fifth, sixth, seventh, eighth])
            }
            Self::Nine(routine) => routine(
                context,
                [first, second, third, fourth, fifth, sixth, seventh, eighth, ninth],
            ),
            Self::Ten(routine) => routine(
                context,
                [first, second, third, fourth, fifth, sixth, seventh, eighth, ninth, tenth],
            ),
            Self::Eleven(routine) => routine(context, arguments),
        }
    }
}

/// The type of a routine's parameter, as far as the calling convention tells types apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parameter {
    /// `UCHAR`, `BOOLEAN`.
    U8,
    /// `CHAR`.
    I8,
    /// `USHORT`, `WCHAR`.
    U16,
    /// `SHORT`.
    I16,
    /// `ULONG`.
    U32,
    /// `LONG`, `NTSTATUS`, and enumerations.
    I32,
    /// A whole register: a pointer, a handle, or a 64-bit number.
    #[default]
    Word,
}

impl Parameter {
    /// Returns the parameter of this name in the table of parameters.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "u8" => Self::U8,
            "i8" => Self::I8,
            "u16" => Self::U16,
            "i16" => Self::I16,
            "u32" => Self::U32,
            "i32" => Self::I32,
            "u64" | "i64" | "ptr" => Self::Word,
            _ => return None,
        })
    }

    /// Returns an argument as the called routine sees it. A caller leaves the high bytes of a narrow
    /// argument undefined; they become those of the type's value.
    pub const fn extend(self, register: u64) -> u64 {
        let (unused, is_signed) = match self {
            Self::U8 => (56, false),
            Self::I8 => (56, true),
            Self::U16 => (48, false),
            Self::I16 => (48, true),
            Self::U32 => (32, false),
            Self::I32 => (32, true),
            Self::Word => (0, false),
        };
        let shifted = register << unused;
        if is_signed {
            (shifted.cast_signed() >> unused).cast_unsigned()
        } else {
            shifted >> unused
        }
    }
}

/// An exported routine in its service's list: its name, the highest IRQL at which it may be
/// called, and the routine.
pub type Export<C> = (&'static str, Irql, Routine<C>);

/// Returns the low byte of a register, which is a `BOOLEAN` argument: the rest is undefined.
pub const fn low_byte(value: u64) -> u8 {
    value.to_le_bytes()[0]
}

/// Returns the low 32 bits of a register, which hold a `ULONG` argument.
pub const fn low_half(register: u64) -> u32 {
    (register & 0xFFFF_FFFF) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_extended_from_their_types() {
        const GARBAGE: u64 = 0xDEAD_BEEF_8765_FEDC;
        for (name, value) in [
            ("u8", 0xDC),
            ("i8", 0xFFFF_FFFF_FFFF_FFDC),
            ("u16", 0xFEDC),
            ("i16", 0xFFFF_FFFF_FFFF_FEDC),
            ("u32", 0x8765_FEDC),
            ("i32", 0xFFFF_FFFF_8765_FEDC),
            ("u64", GARBAGE),
            ("ptr", GARBAGE),
        ] {
            let parameter = Parameter::from_name(name).unwrap_or_default();
            assert_eq!(parameter.extend(GARBAGE), value, "{name}");
        }
        assert_eq!(Parameter::from_name("f32"), None);
    }

    #[test]
    fn a_routine_gets_the_first_arguments_in_their_order() {
        let arguments = [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1];
        let none: Routine<u64> = Routine::Zero(|context| *context);
        assert_eq!((none.arity(), none.call(&9, arguments)), (0, 9));
        let three: Routine<u64> = Routine::Three(|context, a, b, c| context + a + 10 * b + 100 * c);
        assert_eq!((three.arity(), three.call(&0, arguments)), (3, 321));
        let seven: Routine<u64> =
            Routine::Seven(|_, all| all.iter().fold(0, |sum, n| 10 * sum + n));
        assert_eq!((seven.arity(), seven.call(&0, arguments)), (7, 1_234_567));
        let eight: Routine<u64> =
            Routine::Eight(|_, all| all.iter().fold(0, |sum, n| 10 * sum + n));
        assert_eq!((eight.arity(), eight.call(&0, arguments)), (8, 12_345_678));
        let with_nine: Routine<u64> =
            Routine::Nine(|_, all| all.iter().fold(0, |sum, n| 10 * sum + n));
        assert_eq!((with_nine.arity(), with_nine.call(&0, arguments)), (9, 123_456_789));
        let ten: Routine<u64> = Routine::Ten(|_, all| all.iter().fold(0, |sum, n| 10 * sum + n));
        assert_eq!((ten.arity(), ten.call(&0, arguments)), (10, 1_234_567_890));
        let eleven: Routine<u64> =
            Routine::Eleven(|_, all| all.iter().fold(0, |sum, n| 10 * sum + n));
        let eleven = (eleven.arity(), eleven.call(&0, arguments));
        assert_eq!(eleven, (11, 12_345_678_901));
    }
}
