//! The routines behind gateways: Rust functions with the signatures of the WDK's headers.

use std::{fmt, marker::PhantomData, ptr::NonNull};

use super::declarations::{Declaration, Type, declaration};
use crate::ground::{NtStatus, abi::Pointee};

/// The maximum number of parameters of a routine.
pub const MAX_ARGUMENTS: usize = 15;

/// The arguments of a call, one per register. Unused arguments are zero.
pub type Registers = [u64; MAX_ARGUMENTS];

/// A routine that a driver can call. `C` is the context type of the service that provides the routine.
pub struct Routine<C> {
    /// The routine's declaration in the WDK's headers.
    pub declaration: &'static Declaration,
    /// The type of the result.
    pub result: Type,
    /// Set for [`refused`] routines.
    pub is_refused: bool,
    /// Calls the function with as many registers as it has parameters, and returns the result register.
    /// The driver ignores the high bytes of narrower results.
    pub call: fn(&C, Registers) -> u64,
}

/// Returns the routine with a name, which a function implements. After the context, the function has
/// the parameters of the declaration in the WDK's headers; otherwise, this does not compile. A
/// function of the framework's table omits the driver's globals.
pub const fn routine<C, F: Function<C, S>, S>(name: &str, _: F) -> Routine<C> {
    let declaration = declaration(name);
    declaration.check(F::PARAMETERS, F::RESULT);
    let call = if declaration.index.is_some() { F::call_after_globals } else { F::call };
    Routine { declaration, result: F::RESULT, is_refused: false, call }
}

/// Like [`routine`], for a function of the framework's table that has the driver's globals as a
/// parameter.
pub const fn routine_with_globals<C, F: Function<C, S>, S>(name: &str, _: F) -> Routine<C> {
    let declaration = declaration(name);
    assert!(declaration.index.is_some(), "only functions of the framework's table get globals");
    match F::PARAMETERS.split_first() {
        Some((Type::Pointer(_), others)) => declaration.check(others, F::RESULT),
        _ => panic!("the first parameter is not a pointer to the globals"),
    }
    Routine { declaration, result: F::RESULT, is_refused: false, call: F::call }
}

/// Returns the entry of the framework's table for a function that is not provided. `stop` does not return.
pub const fn refused<C, F: Function<C, S>, S>(
    declaration: &'static Declaration,
    _stop: F,
) -> Routine<C> {
    Routine { declaration, result: F::RESULT, is_refused: true, call: F::call }
}

impl<C> Routine<C> {
    /// Returns the routine's name.
    pub const fn name(&self) -> &'static str {
        self.declaration.name
    }
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

/// A parameter or result that points to a `T`. The address comes from the driver and may be invalid.
pub struct At<T>(pub u64, PhantomData<fn() -> T>);

/// A parameter that is a handle to an object of the kind `T`. The handle comes from the driver and
/// may be invalid.
pub struct Handle<T>(pub u64, PhantomData<fn() -> T>);

impl<T> At<T> {
    /// The null pointer.
    pub const NULL: Self = Self::new(0);

    /// Returns a pointer with this address.
    pub const fn new(address: u64) -> Self {
        Self(address, PhantomData)
    }

    /// Returns whether the address is null.
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }

    /// Returns a pointer to another type with the same address.
    pub const fn cast<U>(self) -> At<U> {
        At::new(self.0)
    }
}

impl<T> Handle<T> {
    /// Returns the handle with this value.
    pub const fn new(value: u64) -> Self {
        Self(value, PhantomData)
    }
}

impl<T> Out<T> {
    /// Returns whether the address is null.
    pub const fn is_null(self) -> bool {
        self.0 == 0
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

copy_without_the_type! { Routine At Handle Out }

macro_rules! hexadecimal {
    ($($name:ident)*) => {$(
        impl<T> fmt::UpperHex for $name<T> {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::UpperHex::fmt(&self.0, formatter)
            }
        }
    )*};
}

hexadecimal! { At Handle Out }

/// A parameter that points to a variable for a handle to an object of the kind `T`. The address comes
/// from the driver and may be invalid.
pub struct Out<T>(pub u64, PhantomData<fn() -> T>);

/// A parameter or result that points to memory without a type, such as a `PVOID`.
pub type Memory = At<()>;

/// A parameter that is the address of a routine of the driver.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Callback(pub u64);

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

impl<T: Kind> Argument for Out<T> {
    const TYPE: Type = Type::Out(T::NAME);

    fn from_register(register: u64) -> Self {
        Self(register, PhantomData)
    }
}

impl Argument for Callback {
    const TYPE: Type = Type::Callback;

    fn from_register(register: u64) -> Self {
        Self(register)
    }
}

impl<T: Kind> Argument for Handle<T> {
    const TYPE: Type = Type::Handle(T::NAME);

    fn from_register(register: u64) -> Self {
        Self(register, PhantomData)
    }
}

impl<T: Pointee> Returned for At<T> {
    const TYPE: Type = Type::Pointer(T::NAME);

    fn into_register(self) -> u64 {
        self.0
    }
}

impl<T: Kind> Returned for Handle<T> {
    const TYPE: Type = Type::Handle(T::NAME);

    fn into_register(self) -> u64 {
        self.0
    }
}

impl Returned for Callback {
    const TYPE: Type = Type::Callback;

    fn into_register(self) -> u64 {
        self.0
    }
}

/// A function that implements a routine. `S` is its signature without the context parameter of type
/// `C`.
pub trait Function<C, S>: Copy {
    /// The types of the parameters.
    const PARAMETERS: &'static [Type];
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
    use std::panic;

    use super::*;

    const GARBAGE: u64 = 0xDEAD_BEEF_8765_FEDC;

    fn call<F: Function<(), S>, S>(_: F, registers: Registers) -> u64 {
        F::call(&(), registers)
    }

    #[test]
    fn arguments_have_the_low_bytes_of_registers() {
        fn first_are_low(_: &(), first: u8, second: i8, third: u16, fourth: i16) -> bool {
            (first, second, third, fourth) == (0xDC, -0x24, 0xFEDC, -0x124)
        }
        fn others_are_low(_: &(), first: u32, second: i32, third: u64, fourth: bool) -> bool {
            (first, second, third, fourth) == (0x8765_FEDC, -0x789A_0124, GARBAGE, true)
        }
        assert_eq!(call(first_are_low, [GARBAGE; MAX_ARGUMENTS]), 1);
        assert_eq!(call(others_are_low, [GARBAGE; MAX_ARGUMENTS]), 1);
    }

    #[test]
    fn results_fill_the_low_bytes_of_a_register() {
        fn fail(_: &(), is_error: bool) -> Result<(), NtStatus> {
            if is_error { Err(NtStatus::NO_MEMORY) } else { Ok(()) }
        }
        fn minus_one((): &()) -> i32 {
            -1
        }
        assert_eq!(call(fail, [1; MAX_ARGUMENTS]), 0xC000_0017);
        assert_eq!(call(fail, [0; MAX_ARGUMENTS]), 0);
        assert_eq!(call(minus_one, [0; MAX_ARGUMENTS]), 0xFFFF_FFFF);
    }

    #[test]
    fn entries_of_the_frameworks_table_get_the_arguments_after_the_globals() {
        fn exported(_: &(), code: u32, one: u64, two: u64, three: u64, four: u64) {
            assert_eq!([code.into(), one, two, three, four], [1, 2, 3, 4, 5]);
        }
        fn of_table(_: &(), code: u32, one: u64, two: u64, three: u64, four: u64) {
            assert_eq!([code.into(), one, two, three, four], [2, 3, 4, 5, 6]);
        }
        let registers = [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5];
        let routine_of_table = routine("WdfVerifierKeBugCheck", of_table);
        (routine_of_table.call)(&(), registers);
        assert_eq!(routine_of_table.declaration.registers(), 6);
        (routine("KeBugCheckEx", exported).call)(&(), registers);
    }

    #[test]
    fn a_function_of_another_type_is_refused() {
        fn length(_: &(), _sid: u64) -> u32 {
            0
        }
        fn length_of_nothing((): &()) -> u32 {
            0
        }
        fn length_of_sid(_: &(), _sid: At<crate::ground::opaque::Sid>) -> u32 {
            0
        }
        let refusal = |function: fn() -> Routine<()>| {
            let panicked = panic::catch_unwind(function).err()?;
            let text = panicked.downcast_ref::<&str>().map(|text| (*text).to_owned());
            text.or_else(|| panicked.downcast_ref::<String>().cloned())
        };
        assert_eq!(
            refusal(|| routine("RtlLengthSid", length)).as_deref(),
            Some("parameter 1 of RtlLengthSid is `PSID Sid` in the WDK's headers")
        );
        let other = |prototype| {
            Some(format!(
                "the function has another number of parameters or another result than `{prototype}` in the \
                 WDK's headers"
            ))
        };
        let prototype = "ULONG RtlLengthSid(PSID Sid)";
        assert_eq!(refusal(|| routine("RtlLengthSid", length_of_nothing)), other(prototype));
        let prototype = "BOOLEAN RtlValidSid(PSID Sid)";
        assert_eq!(refusal(|| routine("RtlValidSid", length_of_sid)), other(prototype));
        assert_eq!(routine("RtlLengthSid", length_of_sid).name(), "RtlLengthSid");
    }
}
