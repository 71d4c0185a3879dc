//! A test that compares the parameter and result types of the provided routines with the header data
//! (`tools/wdk-standin/data`).

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::{
    execution::routine::{Routine, Type},
    services::{
        etw,
        kmdf::{interrupt::wdm, table},
        ntoskrnl, wdfldr,
    },
};

/// A class of header types that the calling convention, and a kernel that reads their memory, treat
/// alike.
#[derive(Debug, PartialEq, Eq)]
enum Class {
    /// A pointer or a handle, and the type to which it points.
    Pointer(String),
    Integer {
        bits: u32,
        is_signed: bool,
    },
    Enumeration,
    /// A structure that is passed by address, because no integer type has its size.
    Structure,
}

struct Declaration {
    parameters: Vec<String>,
    /// The type of the result, if any.
    result: Option<String>,
    is_variadic: bool,
}

struct Headers {
    functions: Value,
    types: Value,
}

impl Headers {
    fn read() -> Self {
        let parse = |name| {
            let text = etw_test_support::read_headers(name);
            serde_json::from_str(&text).expect("the data are JSON")
        };
        Self { functions: parse("functions.json"), types: parse("types.json") }
    }

    /// Returns a routine's declaration. Entries of the framework's table have the driver's globals
    /// as their first parameter.
    fn declaration(&self, name: &str) -> Option<Declaration> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let entry = &self.functions["kmdf"][name];
        let is_entry = entry.is_object();
        let others = ["nt", "inline"].iter().map(|group| &self.functions[group][name]);
        let function = std::iter::once(entry).chain(others).find(|one| one.is_object())?;
        let globals = is_entry.then(|| "PWDF_DRIVER_GLOBALS".to_owned());
        let declared = function["params"].as_array()?.iter();
        Some(Declaration {
            parameters: globals
                .into_iter()
                .chain(declared.filter_map(|one| text(&one[1])))
                .collect(),
            result: text(&function["ret"]).filter(|result| !["!", "void"].contains(&&**result)),
            is_variadic: function["variadic"] == true,
        })
    }

    /// Returns the name of a structure or union, with aliases resolved.
    fn structure(&self, name: &str) -> Option<String> {
        if ["struct", "union"].iter().any(|group| !self.types[group][name].is_null()) {
            return Some(name.to_owned());
        }
        self.structure(self.types["alias"][name][0].as_str()?)
    }

    /// Returns whether a structure starts with another structure, or has the same fields as the
    /// other.
    fn starts_with(&self, structure: &str, other: &str) -> bool {
        let fields = |name: &str| {
            let fields = self.types["struct"][name]["fields"].as_array();
            let fields = fields.into_iter().flatten();
            let names = fields.map(|field| (field[0].as_str(), field[2].as_u64()));
            names.collect::<Vec<_>>()
        };
        if structure == other {
            return true;
        }
        let own = fields(structure);
        if !own.is_empty() && own == fields(other) {
            return true;
        }
        let first = self.types["struct"][structure]["fields"][0][1].as_str();
        let first = first.and_then(|first| self.structure(first));
        first.is_some_and(|first| self.starts_with(&first, other))
    }

    fn class(&self, name: &str) -> Class {
        let pointee = ["*mut ", "*const "].iter().find_map(|prefix| name.strip_prefix(prefix));
        if let Some(pointee) = pointee {
            return Class::Pointer(pointee.to_owned());
        }
        if name.starts_with("Option<") || !self.types["fnptr"][name].is_null() {
            return Class::Pointer("c_void".to_owned());
        }
        let integer = |bits, is_signed| Class::Integer { bits, is_signed };
        match name.trim_start_matches("c_") {
            "uchar" | "u8" | "bool" => integer(8, false),
            "char" | "schar" | "i8" => integer(8, true),
            "ushort" | "u16" | "wchar_t" => integer(16, false),
            "short" | "i16" => integer(16, true),
            "uint" | "ulong" | "u32" => integer(32, false),
            "int" | "long" | "i32" => integer(32, true),
            "ulonglong" | "u64" | "usize" | "size_t" => integer(64, false),
            "longlong" | "i64" | "isize" => integer(64, true),
            name => self.named(name),
        }
    }

    fn named(&self, name: &str) -> Class {
        let name = name.trim_end_matches("::Type");
        if self.types["enum"][name].is_object() {
            return Class::Enumeration;
        }
        for group in ["struct", "union"] {
            if let Some(size) = self.types[group][name]["size"].as_u64() {
                return match size {
                    1 | 2 | 4 | 8 => Class::Integer {
                        bits: u32::try_from(8 * size).expect("a small number"),
                        is_signed: false,
                    },
                    _ => Class::Structure,
                };
            }
        }
        let target = self.types["alias"][name][0].as_str();
        self.class(target.unwrap_or_else(|| panic!("{name} is not in types.json")))
    }

    /// Returns whether a pointer to `pointee` can be a pointer to the structure or number `ours`. A
    /// number can be the first field of a structure, such as its size or type.
    fn is_pointee(&self, pointee: &str, ours: &str) -> bool {
        match (self.structure(pointee), self.structure(ours)) {
            _ if pointee == "c_void" => true,
            (Some(theirs), Some(ours)) => self.starts_with(&theirs, &ours),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => match (self.class(pointee), self.class(ours)) {
                (Class::Integer { bits, .. }, Class::Integer { bits: ours, .. }) => bits == ours,
                (Class::Enumeration, Class::Integer { bits: ours, .. }) => ours == 32,
                (_, ours) => matches!(ours, Class::Integer { bits: 64, .. }),
            },
        }
    }

    /// Returns whether a header type matches the type of a routine's parameter or result.
    fn is_type(&self, theirs: &str, ours: Type) -> bool {
        if theirs == "NTSTATUS" {
            return ours == Type::Status;
        }
        let (bits, is_signed) = match (ours, self.class(theirs)) {
            (Type::Handle(kind), _) => return kind == theirs,
            (Type::Pointer(name), Class::Pointer(pointee)) => {
                return self.is_pointee(&pointee, name);
            }
            (ours, Class::Enumeration) => return matches!(ours, Type::U32 | Type::I32),
            (ours, Class::Pointer(_) | Class::Structure | Class::Integer { bits: 64, .. }) => {
                return ours == Type::Word;
            }
            (_, Class::Integer { bits, is_signed }) => (bits, is_signed),
        };
        ours == match (bits, is_signed) {
            (8, false) => Type::U8,
            (8, true) => Type::I8,
            (16, false) => Type::U16,
            (16, true) => Type::I16,
            (_, false) => Type::U32,
            (_, true) => Type::I32,
        }
    }

    /// Returns the differences between a routine and its declaration.
    fn differences(&self, declaration: &Declaration, routine: &Provided) -> Vec<String> {
        let Provided { parameters, result } = routine;
        let declared = &declaration.parameters;
        let mut found = Vec::new();
        let is_complete = if declaration.is_variadic {
            // The routine has as many parameters as fit in the four registers.
            declared.len() <= parameters.len() && parameters.len() == 4
        } else {
            declared.len() == parameters.len()
        };
        if !is_complete {
            found.push(format!(
                "its parameters are {parameters:?}, but the headers declare {declared:?}"
            ));
        }
        for (place, (theirs, ours)) in declared.iter().zip(*parameters).enumerate() {
            if !self.is_type(theirs, *ours) {
                found.push(format!(
                    "parameter {place} is {ours:?}, but the headers declare {theirs}"
                ));
            }
        }
        let is_result = declaration
            .result
            .as_deref()
            .map_or(*result == Type::Void, |theirs| self.is_type(theirs, *result));
        if !is_result {
            let theirs = &declaration.result;
            found.push(format!("the result is {result:?}, but the headers declare {theirs:?}"));
        }
        found
    }
}

/// The parameter and result types of a routine.
struct Provided {
    parameters: &'static [Type],
    result: Type,
}

impl<C> From<Routine<C>> for Provided {
    fn from(routine: Routine<C>) -> Self {
        Self { parameters: routine.parameters, result: routine.result }
    }
}

/// Returns the routines that drivers can call.
fn provided() -> BTreeMap<&'static str, Provided> {
    let framework = table::provided().into_iter().map(|(name, routine)| (name, routine.into()));
    let system = ntoskrnl::exports::exports();
    let etw = etw::exports::exports().into_iter().chain(etw::recorder::exports());
    framework
        .chain(system.into_iter().map(|(name, _, routine)| (name, routine.into())))
        .chain(etw.map(|(name, _, routine)| (name, routine.into())))
        .chain(wdm::exports().into_iter().map(|(name, _, routine)| (name, routine.into())))
        .chain(wdfldr::exports().into_iter().map(|(name, _, routine)| (name, routine.into())))
        .collect()
}

/// The declarations of routines that the data lack, one per line: the result type, the name, and
/// the parameter types.
const OTHERS: &str = include_str!("declarations.txt");

/// Returns the declarations of [`OTHERS`].
fn others() -> HashMap<&'static str, Declaration> {
    let lines = OTHERS.lines().filter(|line| !line.starts_with('#'));
    let rows = lines.filter_map(|line| {
        let (result, parameters) = line.split_once(':')?;
        let (result, name) = result.rsplit_once(' ')?;
        let mut parameters: Vec<String> =
            parameters.split(',').map(|one| one.trim().to_owned()).collect();
        parameters.retain(|one| !one.is_empty());
        let is_variadic = parameters.pop_if(|last| last == "...").is_some();
        let result = (result != "void").then(|| result.to_owned());
        Some((name, Declaration { parameters, result, is_variadic }))
    });
    rows.collect()
}

#[test]
fn routines_have_the_types_of_the_headers() {
    let headers = Headers::read();
    let mut others = others();
    let mut problems = Vec::new();
    let provided = provided();
    for (name, routine) in &provided {
        let declaration = match (headers.declaration(name), others.remove(name)) {
            (Some(_), Some(_)) => panic!("{name} is in the data and in the test's list"),
            (declared, other) => declared.or(other),
        };
        let found = declaration.map_or_else(
            || vec!["no declaration".to_owned()],
            |declaration| headers.differences(&declaration, routine),
        );
        problems.extend(found.iter().map(|one| format!("{name}: {one}")));
    }
    problems.extend(others.keys().map(|name| format!("{name}: not provided")));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(provided.len() > 1000, "{} routines", provided.len());
}
