//! The types of the data on the headers (`tools/wdk-standin/data`), and the table of parameters
//! that the gateways use.

use std::{collections::BTreeMap, fmt::Write as _, fs};

use serde_json::Value;

use crate::services::{etw, kmdf::table, ntoskrnl, parameters};

/// A type, as far as the calling convention and a kernel that reads memory tell types apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Class {
    /// A pointer or a handle, with the type that it points to.
    Pointer(String),
    Integer {
        bits: u32,
        is_signed: bool,
    },
    /// A structure of another size than an integer.
    Structure,
}

impl Class {
    /// Returns the name of the class in the table of parameters. The calling convention passes a
    /// structure that is no register by its address.
    fn name(&self) -> String {
        match self {
            Self::Pointer(_) | Self::Structure => "ptr".to_owned(),
            Self::Integer { bits, is_signed } => {
                format!("{}{bits}", if *is_signed { 'i' } else { 'u' })
            }
        }
    }
}

/// The data on the headers.
pub struct Headers {
    functions: Value,
    types: Value,
}

impl Headers {
    pub fn read() -> Self {
        let parse = |name| {
            let text = etw_test_support::read_headers(name);
            serde_json::from_str(&text).expect("the data are JSON")
        };
        Self { functions: parse("functions.json"), types: parse("types.json") }
    }

    /// Returns the types of a routine's parameters, if the headers declare the routine. All entries of
    /// the framework's table take the driver's globals first.
    pub fn parameters(&self, name: &str) -> Option<Vec<String>> {
        let entry = &self.functions["kmdf"][name];
        let (function, globals) = if entry.is_object() {
            (entry, Some("PWDF_DRIVER_GLOBALS".to_owned()))
        } else {
            (&self.functions["nt"][name], None)
        };
        let declared = function["params"].as_array()?.iter();
        let declared = declared.filter_map(|one| one[1].as_str().map(str::to_owned));
        Some(globals.into_iter().chain(declared).collect())
    }

    /// Returns a structure's or union's name without the aliases for it.
    pub fn structure(&self, name: &str) -> Option<String> {
        if ["struct", "union"].iter().any(|group| !self.types[group][name].is_null()) {
            return Some(name.to_owned());
        }
        self.structure(self.types["alias"][name][0].as_str()?)
    }

    /// Returns whether a structure starts with another one, or has the same fields.
    pub fn starts_with(&self, structure: &str, other: &str) -> bool {
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

    /// Returns the class of a type.
    pub fn class(&self, name: &str) -> Class {
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
        if let Some(kind) = self.types["enum"][name]["type"].as_str() {
            return self.class(kind);
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
}

/// Returns the names of the routines that drivers can call.
pub fn provided() -> Vec<&'static str> {
    let framework = table::provided().into_keys();
    let system = ntoskrnl::exports::exports();
    let system = system.into_iter().map(|(name, ..)| name);
    let etw = etw::exports::exports();
    let etw = etw.into_iter().map(|(name, ..)| name);
    framework.chain(system).chain(etw).collect()
}

/// Returns the table of parameters, from the data on the headers.
fn from_headers() -> String {
    let headers = Headers::read();
    let rows: BTreeMap<&str, String> = provided()
        .into_iter()
        .filter_map(|name| {
            let mut row = name.to_owned();
            for parameter in headers.parameters(name)? {
                let _ = write!(row, " {}", headers.class(&parameter).name());
            }
            Some((name, row))
        })
        .collect();
    rows.into_values().fold(String::new(), |mut text, row| {
        text.push_str(&row);
        text.push('\n');
        text
    })
}

#[test]
fn the_parameters_of_the_provided_routines_are_those_of_the_headers() {
    let table = from_headers();
    if std::env::var_os("WDK_ETW_RENEW").is_some() {
        let path = etw_test_support::root().join("standin-kernel/src/services/parameters.txt");
        fs::write(path, &table).expect("the table can be written");
        return;
    }
    for (ours, theirs) in parameters::TEXT.lines().zip(table.lines()) {
        assert_eq!(ours, theirs, "the gateways' table differs from the headers");
    }
    assert_eq!(parameters::TEXT, table);
    assert_eq!(parameters::table().len(), table.lines().count());
}
