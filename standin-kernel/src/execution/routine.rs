//! The routines behind gateways: Rust functions with the signatures of the WDK's headers.

use std::{marker::PhantomData, ptr::NonNull};

use crate::ground::{NtStatus, abi::Pointee, irql::Irql};

/// The maximum number of parameters of a routine.
pub const MAX_ARGUMENTS: usize = 15;

/// The arguments of a call, one per register. Unused arguments are zero.
pub type Registers = [u64; MAX_ARGUMENTS];

/// A routine that a driver can call. `C` is the context type of the service that provides the routine.
pub struct Routine<C> {
    /// The types of the parameters.
    pub parameters: &'static [Type],
    /// The type of the result.
    pub result: Type,
    /// Calls the function with as many registers as it has parameters, and returns the result register.
    /// The driver ignores the high bytes of narrower results.
    pub call: fn(&C, Registers) -> u64,
}

impl<C> Routine<C> {
    /// Returns the routine that a function implements. After the context, the function has the
    /// parameters of the declaration in the headers.
    pub const fn of<F: Function<C, S>, S>(_: F) -> Self {
        Self { parameters: F::PARAMETERS, result: F::RESULT, call: F::call }
    }

    /// Returns the entry of the framework's function table that a function implements. The function
    /// omits the driver's globals, which are the first parameter of every entry.
    pub const fn after_globals<F: Function<C, S>, S>(_: F) -> Self {
        Self {
            parameters: F::PARAMETERS_AFTER_GLOBALS,
            result: F::RESULT,
            call: F::call_after_globals,
        }
    }
}

/// An exported routine in a service's list: its name, the highest IRQL at which it may be called, and
/// the routine.
pub type Export<C> = (&'static str, Irql, Routine<C>);

/// A type of a parameter or a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `void`, for results.
    Void,
    /// `BOOLEAN` or `UCHAR`.
    U8,
    /// `CHAR`.
    I8,
    /// `USHORT` or `WCHAR`.
    U16,
    /// `SHORT`.
    I16,
    /// `ULONG`.
    U32,
    /// `LONG` or an enumeration.
    I32,
    /// `NTSTATUS`.
    Status,
    /// A whole register: a 64-bit number, or a pointer or handle of any type.
    Word,
    /// A pointer to the structure or number type with this name.
    Pointer(&'static str),
    /// A handle with this type name.
    Handle(&'static str),
}

/// A type that can be a routine's parameter.
pub trait Argument {
    /// The type in the headers.
    const TYPE: Type;

    /// Returns the argument in a register. The caller leaves the high bytes of a narrow argument
    /// undefined.
    fn from_register(register: u64) -> Self;
}

/// A type that a routine returns.
pub trait Returned {
    /// The type in the headers.
    const TYPE: Type;

    /// Returns the register that holds the result.
    fn into_register(self) -> u64;
}

macro_rules! integers {
    ($($unsigned:ident $signed:ident: $unsigned_type:ident $signed_type:ident;)*) => {$(
        impl Argument for $unsigned {
            const TYPE: Type = Type::$unsigned_type;

            fn from_register(register: u64) -> Self {
                let bytes = register.to_le_bytes();
                Self::from_le_bytes(*bytes.first_chunk().unwrap_or(&[0; size_of::<Self>()]))
            }
        }

        impl Argument for $signed {
            const TYPE: Type = Type::$signed_type;

            fn from_register(register: u64) -> Self {
                $unsigned::from_register(register).cast_signed()
            }
        }

        impl Returned for $unsigned {
            const TYPE: Type = Type::$unsigned_type;

            fn into_register(self) -> u64 {
                self.into()
            }
        }

        impl Returned for $signed {
            const TYPE: Type = Type::$signed_type;

            fn into_register(self) -> u64 {
                self.cast_unsigned().into()
            }
        }
    )*};
}

integers! {
    u8 i8: U8 I8;
    u16 i16: U16 I16;
    u32 i32: U32 I32;
    u64 i64: Word Word;
}

impl Argument for bool {
    const TYPE: Type = Type::U8;

    fn from_register(register: u64) -> Self {
        u8::from_register(register) != 0
    }
}

impl Argument for NtStatus {
    const TYPE: Type = Type::Status;

    fn from_register(register: u64) -> Self {
        Self::from_bits(u32::from_register(register))
    }
}

impl Returned for () {
    const TYPE: Type = Type::Void;

    fn into_register(self) -> u64 {
        0
    }
}

impl Returned for bool {
    const TYPE: Type = Type::U8;

    fn into_register(self) -> u64 {
        self.into()
    }
}

impl Returned for NtStatus {
    const TYPE: Type = Type::Status;

    fn into_register(self) -> u64 {
        self.to_register()
    }
}

impl Returned for Result<(), NtStatus> {
    const TYPE: Type = Type::Status;

    fn into_register(self) -> u64 {
        self.map_or_else(NtStatus::to_register, |()| NtStatus::SUCCESS.to_register())
    }
}

impl Returned for Result<NtStatus, NtStatus> {
    const TYPE: Type = Type::Status;

    fn into_register(self) -> u64 {
        self.unwrap_or_else(|status| status).to_register()
    }
}

/// A parameter that points to a `T`. The address comes from the driver and may be invalid.
pub struct At<T>(pub u64, PhantomData<fn() -> T>);

/// A parameter that is a handle to an object of the kind `T`. The handle comes from the driver and
/// may be invalid.
pub struct Handle<T>(pub u64, PhantomData<fn() -> T>);

impl<T> At<T> {
    /// Returns a pointer with this address.
    pub const fn new(address: u64) -> Self {
        Self(address, PhantomData)
    }
}

macro_rules! copy_without_the_type {
    ($($name:ident)*) => {$(
        impl<T> Clone for $name<T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> Copy for $name<T> {}
    )*};
}

copy_without_the_type! { Routine At Handle }

/// A kind of object with handles.
pub trait Kind {
    /// The handle type's name.
    const NAME: &'static str;
}

impl<T: Pointee> Argument for At<T> {
    const TYPE: Type = Type::Pointer(T::NAME);

    fn from_register(register: u64) -> Self {
        Self::new(register)
    }
}

impl<T: Kind> Argument for Handle<T> {
    const TYPE: Type = Type::Handle(T::NAME);

    fn from_register(register: u64) -> Self {
        Self(register, PhantomData)
    }
}

/// A function that implements a routine. `S` is its signature without the context parameter of type
/// `C`.
pub trait Function<C, S>: Copy {
    /// The types of the parameters.
    const PARAMETERS: &'static [Type];
    /// The types of the parameters of an entry of the framework's table, without the globals.
    const PARAMETERS_AFTER_GLOBALS: &'static [Type];
    /// The type of the result.
    const RESULT: Type;

    /// Calls the function.
    fn call(context: &C, registers: Registers) -> u64;

    /// Calls the function with all registers except the first.
    fn call_after_globals(context: &C, [_globals, registers @ ..]: Registers) -> u64 {
        let mut others = [0; MAX_ARGUMENTS];
        others[..registers.len()].copy_from_slice(&registers);
        Self::call(context, others)
    }
}

/// Returns the only value of a function item's type.
const fn only_value<F: Copy>() -> F {
    const {
        assert!(
            size_of::<F>() == 0,
            "a routine is a function without data: no closure with captures, and no pointer"
        );
    }
    // SAFETY: the type has size 0, so any aligned address is valid to read, and a value exists: it was
    // passed to the constructors of `Routine`, which alone use `Function`.
    unsafe { NonNull::dangling().read() }
}

macro_rules! functions {
    ($($($parameter:ident)*;)*) => {$(
        #[allow(non_snake_case, unused_variables, reason = "names of types stand for arguments")]
        impl<C, F, R: Returned, $($parameter: Argument),*> Function<C, fn($($parameter),*) -> R> for F
        where
            F: Fn(&C, $($parameter),*) -> R + Copy,
        {
            const PARAMETERS: &'static [Type] = &[$($parameter::TYPE),*];
            const PARAMETERS_AFTER_GLOBALS: &'static [Type] = &[Type::Word, $($parameter::TYPE),*];
            const RESULT: Type = R::TYPE;

            fn call(context: &C, registers: Registers) -> u64 {
                let [$($parameter,)* ..] = registers;
                only_value::<F>()(context, $($parameter::from_register($parameter)),*).into_register()
            }
        }
    )*};
}

functions! {
    ;
    A1;
    A1 A2;
    A1 A2 A3;
    A1 A2 A3 A4;
    A1 A2 A3 A4 A5;
    A1 A2 A3 A4 A5 A6;
    A1 A2 A3 A4 A5 A6 A7;
    A1 A2 A3 A4 A5 A6 A7 A8;
    A1 A2 A3 A4 A5 A6 A7 A8 A9;
    A1 A2 A3 A4 A5 A6 A7 A8 A9 A10;
    A1 A2 A3 A4 A5 A6 A7 A8 A9 A10 A11;
    A1 A2 A3 A4 A5 A6 A7 A8 A9 A10 A11 A12 A13 A14;
    A1 A2 A3 A4 A5 A6 A7 A8 A9 A10 A11 A12 A13 A14 A15;
}

/// Returns the low 32 bits of a register, which contain a `ULONG` argument.
pub const fn low_half(register: u64) -> u32 {
    (register & 0xFFFF_FFFF) as u32
}

#[cfg(test)]
#[expect(clippy::trivially_copy_pass_by_ref, reason = "routines take their context by reference")]
mod tests {
    use super::*;

    #[test]
    fn arguments_have_the_low_bytes_of_registers() {
        const GARBAGE: u64 = 0xDEAD_BEEF_8765_FEDC;
        fn first_are_low(_: &(), first: u8, second: i8, third: u16, fourth: i16) -> bool {
            (first, second, third, fourth) == (0xDC, -0x24, 0xFEDC, -0x124)
        }
        fn others_are_low(_: &(), first: u32, second: i32, third: u64, fourth: bool) -> bool {
            (first, second, third, fourth) == (0x8765_FEDC, -0x789A_0124, GARBAGE, true)
        }
        let routines = [
            (Routine::of(first_are_low), [Type::U8, Type::I8, Type::U16, Type::I16]),
            (Routine::of(others_are_low), [Type::U32, Type::I32, Type::Word, Type::U8]),
        ];
        for (routine, types) in routines {
            assert_eq!((routine.call)(&(), [GARBAGE; MAX_ARGUMENTS]), 1);
            assert_eq!(routine.parameters, types);
        }
    }

    #[test]
    fn results_fill_the_low_bytes_of_a_register() {
        fn fail(_: &(), is_error: bool) -> Result<(), NtStatus> {
            if is_error { Err(NtStatus::NO_MEMORY) } else { Ok(()) }
        }
        fn minus_one((): &()) -> i32 {
            -1
        }
        let routine = Routine::of(fail);
        assert_eq!(routine.result, Type::Status);
        assert_eq!((routine.call)(&(), [1; MAX_ARGUMENTS]), 0xC000_0017);
        assert_eq!((routine.call)(&(), [0; MAX_ARGUMENTS]), 0);
        assert_eq!((Routine::of(minus_one).call)(&(), [0; MAX_ARGUMENTS]), 0xFFFF_FFFF);
    }

    #[test]
    fn entries_of_the_frameworks_table_get_the_arguments_after_the_globals() {
        fn all(_: &(), first: u64, second: u64, third: u64) -> u64 {
            first + 10 * second + 100 * third
        }
        let registers = [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5];
        assert_eq!((Routine::of(all).call)(&(), registers), 321);
        let entry = Routine::after_globals(all);
        assert_eq!((entry.call)(&(), registers), 432);
        assert_eq!(entry.parameters.len(), 4);
    }
}
