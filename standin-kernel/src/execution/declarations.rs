//! The declarations of the routines in the WDK's headers, which `build/` generates.

use std::cmp::Ordering;

use crate::ground::irql::Irql;

// `ALL`: all declarations, sorted by name.
include!(concat!(env!("OUT_DIR"), "/declarations.rs"));

/// A routine's declaration.
#[derive(Debug)]
pub struct Declaration {
    pub name: &'static str,
    /// The error for a function with another number of parameters or another result, which has the
    /// prototype between backticks.
    pub refusal: &'static str,
    /// The index in the framework's function table.
    pub index: Option<usize>,
    /// The highest IRQL at which the routine may be called. If it depends on an argument, the routine
    /// performs the exact check.
    pub limit: Irql,
    /// The limit in the annotations of the WDK's headers. It is `limit` unless the documentation differs.
    pub annotated: Irql,
    /// The limit in the documentation. It is `limit` unless the annotations differ.
    pub documented: Irql,
    /// The parameters, without the driver's globals, which are the first one of each function in the
    /// framework's table.
    pub parameters: &'static [Parameter],
    /// Set if other arguments follow. The routine has as many as fit in the four registers.
    pub is_variadic: bool,
    /// The types that the result can have in this kernel.
    pub result: &'static [Type],
}

/// A parameter of a declaration.
#[derive(Debug)]
pub struct Parameter {
    /// The types that the parameter can have in this kernel.
    pub accepted: &'static [Type],
    /// The error for a function with another type, which has the parameter's type and name between
    /// backticks.
    pub refusal: &'static str,
}

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
    /// A 64-bit number.
    Word,
    /// A pointer to the structure or number type with this name.
    Pointer(&'static str),
    /// A pointer to memory without a type. It accepts a pointer to any type.
    AnyPointer,
    /// A handle with this type name.
    Handle(&'static str),
    /// A pointer to a handle with this type name.
    Out(&'static str),
    /// A pointer to a routine of the driver.
    Callback,
}

impl Declaration {
    /// Returns the number of registers and stack slots that a call passes.
    pub const fn registers(&self) -> usize {
        let globals = if self.index.is_some() { 1 } else { 0 };
        if self.is_variadic { 4 } else { globals + self.parameters.len() }
    }

    /// Panics unless a function with these types can implement the routine.
    pub const fn check(&self, parameters: &[Type], result: Type) {
        let expected = if self.is_variadic { 4 } else { self.parameters.len() };
        assert!(parameters.len() == expected, "{}", self.refusal);
        let mut place = 0;
        while place < self.parameters.len() {
            let parameter = &self.parameters[place];
            assert!(accepts(parameter.accepted, parameters[place]), "{}", parameter.refusal);
            place += 1;
        }
        assert!(accepts(self.result, result), "{}", self.refusal);
    }
}

/// Returns the declaration of a routine. Panics if the headers do not declare it.
pub const fn declaration(name: &str) -> &'static Declaration {
    let (mut low, mut high) = (0, ALL.len());
    while low < high {
        let middle = usize::midpoint(low, high);
        match order(ALL[middle].name, name) {
            Ordering::Less => low = middle + 1,
            Ordering::Equal => return &ALL[middle],
            Ordering::Greater => high = middle,
        }
    }
    panic!("the WDK's headers do not declare a routine with this name; see CONTRIBUTING.md")
}

/// Returns the declarations of the framework's function table, in the order of their indices.
pub fn framework() -> Vec<&'static Declaration> {
    let mut all: Vec<_> = ALL.iter().filter(|one| one.index.is_some()).collect();
    all.sort_by_key(|one| one.index);
    all
}

const fn accepts(accepted: &[Type], found: Type) -> bool {
    let mut place = 0;
    while place < accepted.len() {
        let is_accepted = match (accepted[place], found) {
            (Type::AnyPointer, Type::Pointer(_))
            | (Type::Void, Type::Void)
            | (Type::U8, Type::U8)
            | (Type::I8, Type::I8)
            | (Type::U16, Type::U16)
            | (Type::I16, Type::I16)
            | (Type::U32, Type::U32)
            | (Type::I32, Type::I32)
            | (Type::Status, Type::Status)
            | (Type::Word, Type::Word)
            | (Type::Callback, Type::Callback) => true,
            (Type::Pointer(one), Type::Pointer(other))
            | (Type::Handle(one), Type::Handle(other))
            | (Type::Out(one), Type::Out(other)) => order(one, other).is_eq(),
            _ => false,
        };
        if is_accepted {
            return true;
        }
        place += 1;
    }
    false
}

/// Compares two names by their bytes.
const fn order(one: &str, other: &str) -> Ordering {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut place = 0;
    while place < one.len() && place < other.len() {
        if one[place] != other[place] {
            let is_less = one[place] < other[place];
            return if is_less { Ordering::Less } else { Ordering::Greater };
        }
        place += 1;
    }
    if one.len() < other.len() {
        Ordering::Less
    } else if one.len() > other.len() {
        Ordering::Greater
    } else {
        Ordering::Equal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The document that lists the limits of the imports of a driver that uses ETW.
    const REFERENCE: &str = include_str!("../../../docs/reference/kernel-exports.md");

    #[test]
    fn limits_are_those_of_the_reference() {
        let level = |name: &str| match name {
            "PASSIVE_LEVEL" => Some(Irql::PASSIVE_LEVEL),
            "APC_LEVEL" => Some(Irql::APC_LEVEL),
            "DISPATCH_LEVEL" => Some(Irql::DISPATCH_LEVEL),
            // DIRQL in a document means the DIRQL of any device; "any" means any level.
            "HIGH_LEVEL" | "DIRQL" | "any" => Some(Irql::HIGH_LEVEL),
            _ => None,
        };
        let mut compared = 0;
        for row in REFERENCE.lines().filter(|line| line.starts_with("| ")) {
            let names = row.split('|').nth(1).unwrap_or_default();
            let Some(limit) = row.split([' ', '|', ';']).filter_map(level).max() else {
                continue;
            };
            for name in names.split(',').map(str::trim) {
                if let Ok(place) = ALL.binary_search_by_key(&name, |one| one.name) {
                    assert_eq!(ALL[place].limit, limit, "{row}");
                    compared += 1;
                }
            }
        }
        assert!(compared > 20, "{compared} routines are in the reference");
    }

    #[test]
    fn the_table_has_every_index_once() {
        let indices: Vec<_> = framework().iter().filter_map(|one| one.index).collect();
        assert!(indices.iter().copied().eq(0..458), "{indices:?}");
    }
}
