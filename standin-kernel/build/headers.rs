//! The functions and types of the WDK's headers.

use std::{collections::BTreeMap, fmt::Write as _};

use serde_json::Value;

use super::Result;

/// Pointer types that the headers declare as `PVOID`, and the structures to which they point.
const POINTERS: [(&str, &str); 3] = [
    ("PSID", "_SID"),
    ("PSECURITY_DESCRIPTOR", "_SECURITY_DESCRIPTOR"),
    ("PACCESS_TOKEN", "ACCESS_TOKEN"),
];

/// Handle types that the headers do not declare as pointers to a structure of their own.
const HANDLES: [&str; 3] = ["HANDLE", "WDFOBJECT", "PWDFDEVICE_INIT"];

/// A function.
pub struct Function<'a> {
    /// The index in the framework's function table.
    pub index: Option<u64>,
    pub parameters: Vec<Parameter<'a>>,
    /// The type of the result, if any.
    pub result: Option<&'a str>,
    pub is_variadic: bool,
    /// The limit in an annotation that applies to all calls.
    pub annotation: Option<&'a str>,
    /// Set if an annotation requires at least `DISPATCH_LEVEL`.
    pub has_minimum: bool,
    /// The annotations that apply to some calls.
    pub conditions: Vec<&'a str>,
    /// The limit in the documentation.
    pub documented: Option<&'a str>,
}

/// A parameter.
pub struct Parameter<'a> {
    pub name: &'a str,
    pub header_type: &'a str,
}

/// The data.
pub struct Headers {
    functions: Value,
    others: Value,
    /// types.json.
    pub types: Value,
}

impl Headers {
    pub fn read() -> Result<Self> {
        Ok(Self {
            functions: serde_json::from_str(wdk_header_data::FUNCTIONS)?,
            others: serde_json::from_str(wdk_header_data::OTHERS)?,
            types: serde_json::from_str(wdk_header_data::TYPES)?,
        })
    }

    /// Returns all functions that a driver can call, by name.
    pub fn functions(&self) -> Result<BTreeMap<&str, Function<'_>>> {
        let declared = ["inline", "nt", "kmdf"];
        let names = self.others.as_object().into_iter().flat_map(|others| others.keys());
        for name in names {
            if declared.iter().any(|group| !self.functions[group][name].is_null()) {
                return Err(format!("others.json has {name}, which functions.json has too").into());
            }
        }
        let groups = [
            &self.others, &self.functions["inline"], &self.functions["nt"], &self.functions["kmdf"],
        ];
        let all = groups.into_iter().filter_map(Value::as_object).flatten();
        Ok(all.map(|(name, one)| (name.as_str(), function(one))).collect())
    }

    /// Returns the Rust expressions for the types that a parameter or result of a header type can have
    /// in this kernel.
    pub fn accepted(&self, name: &str) -> String {
        if name == "NTSTATUS" {
            return "Type::Status".to_owned();
        }
        if let Some(handle) = self.handle(name) {
            return format!("Type::Handle({handle:?})");
        }
        match self.class(name) {
            Class::Pointer(pointee) => self.pointer(pointee),
            Class::Structure(name) => format!("Type::Pointer({name:?})"),
            Class::Integer(bits, true) => format!("Type::{}", ["I8", "I16", "I32", "Word"][bits]),
            Class::Integer(bits, false) => format!("Type::{}", ["U8", "U16", "U32", "Word"][bits]),
            Class::Enumeration => "Type::U32, Type::I32".to_owned(),
            Class::Function => "Type::Callback".to_owned(),
        }
    }

    fn pointer(&self, pointee: &str) -> String {
        if let Some(handle) = self.handle(pointee) {
            return format!("Type::Out({handle:?})");
        }
        if POINTERS.iter().any(|(_, structure)| *structure == pointee) {
            return format!("Type::Pointer({pointee:?})");
        }
        if pointee == "c_void" {
            return "Type::AnyPointer".to_owned();
        }
        if let Some(structure) = self.structure(pointee) {
            let mut accepted = String::new();
            for one in self.starts(structure) {
                // Writing to a string cannot fail.
                let _ = write!(accepted, "Type::Pointer({one:?}), ");
            }
            if structure == "_STRING" {
                // The structures are alike, and routines for both have one implementation.
                accepted.push_str("Type::Pointer(\"_UNICODE_STRING\"), ");
            }
            if let Class::Integer(bits, _) = self.named(structure) {
                accepted.push_str(&numbers(bits));
            }
            return accepted;
        }
        if self.types["alias"][pointee].is_null()
            && pointee.starts_with('_')
            && !pointee.ends_with("::Type")
        {
            return format!("Type::Pointer({pointee:?})");
        }
        match self.class(pointee) {
            Class::Integer(bits, _) => numbers(bits),
            Class::Enumeration => numbers(2),
            _ => numbers(3),
        }
    }

    /// Returns the type name of a handle.
    fn handle<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        if HANDLES.contains(&name) {
            return Some(name);
        }
        let target = self.types["alias"][name][0].as_str()?;
        if HANDLES.contains(&target) {
            return Some(target);
        }
        let structure = target.strip_prefix("*mut ")?.strip_suffix("__")?;
        (structure == name).then_some(name)
    }

    /// Returns the name of a structure or union, with aliases resolved.
    fn structure<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        if ["struct", "union"].iter().any(|group| !self.types[group][name].is_null()) {
            return Some(name);
        }
        self.structure(self.types["alias"][name][0].as_str()?)
    }

    /// Returns a structure, the structure that is its first field, and so on.
    fn starts<'a>(&'a self, structure: &'a str) -> impl Iterator<Item = &'a str> {
        std::iter::successors(Some(structure), |name| {
            self.structure(self.types["struct"][name]["fields"][0][1].as_str()?)
        })
    }

    fn class<'a>(&'a self, name: &'a str) -> Class<'a> {
        if let Some((_, structure)) = POINTERS.iter().find(|(pointer, _)| *pointer == name) {
            return Class::Pointer(structure);
        }
        let pointee = ["*mut ", "*const "].iter().find_map(|prefix| name.strip_prefix(prefix));
        // Inline functions have C's types.
        let pointee = pointee.or_else(|| name.trim_start_matches("const ").strip_suffix('*'));
        if let Some(pointee) = pointee {
            return Class::Pointer(if pointee == "void" { "c_void" } else { pointee });
        }
        let is_function = name == "fn" || name.starts_with("Option<");
        if is_function || !self.types["fnptr"][name].is_null() {
            return Class::Function;
        }
        match name.trim_start_matches("c_") {
            "uchar" | "u8" | "bool" => Class::Integer(0, false),
            "char" | "schar" | "i8" => Class::Integer(0, true),
            "ushort" | "u16" | "wchar_t" => Class::Integer(1, false),
            "short" | "i16" => Class::Integer(1, true),
            "uint" | "ulong" | "u32" => Class::Integer(2, false),
            "int" | "long" | "i32" => Class::Integer(2, true),
            "ulonglong" | "u64" | "usize" | "size_t" => Class::Integer(3, false),
            "longlong" | "i64" | "isize" => Class::Integer(3, true),
            name => self.named(name),
        }
    }

    fn named<'a>(&'a self, name: &'a str) -> Class<'a> {
        let name = name.trim_end_matches("::Type");
        if self.types["enum"][name].is_object() {
            return Class::Enumeration;
        }
        for group in ["struct", "union"] {
            match self.types[group][name]["size"].as_u64() {
                Some(1) => return Class::Integer(0, false),
                Some(2) => return Class::Integer(1, false),
                Some(4) => return Class::Integer(2, false),
                Some(8) => return Class::Integer(3, false),
                // The calling convention passes its address.
                Some(_) => return Class::Structure(name),
                None => {}
            }
        }
        // A type that the data lack cannot be the type of a provided routine's parameter.
        self.types["alias"][name][0].as_str().map_or(Class::Structure(name), |one| self.class(one))
    }
}

/// A class of header types that the calling convention treats alike.
enum Class<'a> {
    /// A pointer to the type with this name.
    Pointer(&'a str),
    Function,
    /// The binary logarithm of the size, and whether the integer is signed.
    Integer(usize, bool),
    Enumeration,
    Structure(&'a str),
}

/// Returns the expressions for pointers to integers with this binary logarithm of their size.
fn numbers(bits: usize) -> String {
    let size = 8 << bits;
    format!("Type::Pointer(\"u{size}\"), Type::Pointer(\"i{size}\")")
}

fn function(value: &Value) -> Function<'_> {
    let parameters = value["params"].as_array().into_iter().flatten();
    let conditions = value["sal"].as_array().into_iter().flatten();
    Function {
        index: value["index"].as_u64(),
        parameters: parameters
            .filter_map(|one| {
                Some(Parameter { name: one[0].as_str()?, header_type: one[1].as_str()? })
            })
            .collect(),
        result: value["ret"].as_str().filter(|result| !["!", "void"].contains(result)),
        is_variadic: value["variadic"] == true,
        annotation: value["irql_max"].as_str().or_else(|| value["irql"].as_str()),
        has_minimum: value["irql_min"] == "DISPATCH_LEVEL",
        conditions: conditions.filter_map(Value::as_str).collect(),
        documented: value["doc_irql"].as_str(),
    }
}
