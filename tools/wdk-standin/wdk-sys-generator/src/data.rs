//! The data from the WDK headers, in the form of its files. `tools/wdk-standin/data/README.md`
//! describes every entry.

use std::{collections::BTreeMap, fs, path::Path};

use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::Value;

use crate::error::Error;

/// The names of the generated source files.
pub const FILES: [&str; 5] =
    ["types.json", "constants.json", "functions.json", "statics.json", "exports.json"];

/// The enumeration of the framework's functions. wdk-macros expects it in the same file as the
/// function pointer types.
pub const FUNCTIONS: &str = "_WDFFUNCENUM";

/// The value of [`FUNCTIONS`] that states the number of functions.
const FUNCTION_COUNT: &str = "WdfFunctionTableNumEntries";

/// The pointer to the framework's function table, whose symbol contains the version.
pub const FUNCTION_TABLE: &str = "WdfFunctions";

/// The oldest KMDF minor version whose definitions are in the data with conditions.
const OLDEST_TOGETHER: u8 = 31;

/// The kernel's module.
pub const KERNEL: &str = "ntoskrnl.exe";

/// All of the data.
#[derive(Debug)]
pub struct Data {
    /// `types.json`.
    pub types: Types,
    /// `constants.json`.
    pub constants: BTreeMap<String, Constant>,
    /// `functions.json`.
    pub functions: Functions,
    /// `statics.json`.
    pub statics: BTreeMap<String, Static>,
    /// `exports.json`.
    pub exports: Exports,
}

impl Data {
    /// Reads the files in `folder`.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read or does not match the description in the data's README.
    pub fn read(folder: &Path) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Constants {
            constants: BTreeMap<String, Constant>,
        }
        #[derive(Deserialize)]
        struct Statics {
            statics: BTreeMap<String, Static>,
        }
        let constants: Constants = read(&folder.join("constants.json"))?;
        let statics: Statics = read(&folder.join("statics.json"))?;
        Ok(Self {
            types: read(&folder.join("types.json"))?,
            constants: constants.constants,
            functions: read(&folder.join("functions.json"))?,
            statics: statics.statics,
            exports: read(&folder.join("exports.json"))?,
        })
    }
}

impl Data {
    /// Changes the data to an older KMDF version's data. The data for 1.31 and 1.33 is combined,
    /// with conditions.
    ///
    /// # Errors
    ///
    /// Fails if the data does not contain an older version's definition.
    pub fn set_kmdf(&mut self, minor: u8) -> Result<(), Error> {
        if minor >= OLDEST_TOGETHER {
            return Ok(());
        }
        let missing =
            |name: &str| Error::Entry { name: name.to_owned(), what: "not in the data".to_owned() };
        let types = &mut self.types;
        types.changes.clear();
        for (name, definitions) in &types.older {
            let found = definitions.iter().find(|one| minor <= one.until);
            match found.map(|one| &one.change) {
                Some(Change::Struct { size, align, fields }) => {
                    let one = types.structures.get_mut(name).ok_or_else(|| missing(name))?;
                    (one.size, one.align, one.fields) = (*size, *align, fields.clone());
                }
                Some(Change::Enum { changed_values }) => {
                    let one = types.enumerations.get_mut(name).ok_or_else(|| missing(name))?;
                    one.values.extend(changed_values.clone());
                }
                _ => {}
            }
        }
        let functions = types.enumerations.get_mut(FUNCTIONS).ok_or_else(|| missing(FUNCTIONS))?;
        self.functions.kmdf.retain(|name, function| {
            let since = function.kmdf.strip_prefix("1.").and_then(|since| since.parse::<u8>().ok());
            let is_kept = since.is_some_and(|since| since <= minor);
            if !is_kept {
                functions.values.remove(&format!("{name}TableIndex"));
            }
            is_kept
        });
        functions.values.insert(FUNCTION_COUNT.to_owned(), self.functions.kmdf.len().into());
        if let Some(table) = self.statics.get_mut(FUNCTION_TABLE) {
            table.link_name = Some(format!("WdfFunctions_01{minor:03}"));
        }
        Ok(())
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let text =
        fs::read_to_string(path).map_err(|source| Error::File { path: path.to_owned(), source })?;
    serde_json::from_str(&text).map_err(|source| Error::Data { path: path.to_owned(), source })
}

/// The types.
#[derive(Debug, Deserialize)]
pub struct Types {
    /// The structures, by name.
    #[serde(rename = "struct")]
    pub structures: BTreeMap<String, Composite>,
    /// The unions, by name.
    #[serde(rename = "union")]
    pub unions: BTreeMap<String, Composite>,
    /// The enumerations, by name.
    #[serde(rename = "enum")]
    pub enumerations: BTreeMap<String, Enumeration>,
    /// The aliases, by name.
    #[serde(rename = "alias")]
    pub aliases: BTreeMap<String, Alias>,
    /// The function pointer types, by name.
    #[serde(rename = "fnptr")]
    pub pointers: BTreeMap<String, Signature>,
    /// The differences in KMDF 1.33, by the name of the affected item.
    #[serde(rename = "kmdf_1_33")]
    pub changes: BTreeMap<String, Change>,
    /// The differences in versions before KMDF 1.31, by the name of the affected item, oldest
    /// first.
    #[serde(rename = "kmdf_older", default)]
    pub older: BTreeMap<String, Vec<Older>>,
}

/// A definition in older versions.
#[derive(Debug, Deserialize)]
pub struct Older {
    /// The newest minor version with the definition.
    pub until: u8,
    /// The definition.
    #[serde(flatten)]
    pub change: Change,
}

/// A structure or union.
#[derive(Clone, Debug, Deserialize)]
pub struct Composite {
    /// The size in bytes.
    pub size: u64,
    /// The alignment in bytes.
    pub align: u64,
    /// The arguments of the `repr` attributes.
    #[serde(default = "plain")]
    pub repr: Vec<String>,
    /// The derived traits.
    pub derive: Vec<String>,
    /// The implementation of `Default`.
    pub default: Option<DefaultKind>,
    /// The names, types and offsets of the fields.
    pub fields: Vec<(String, String, u64)>,
    /// The bit fields.
    #[serde(default)]
    pub bits: Vec<Bits>,
    /// True if the headers declare the type without its fields.
    #[serde(default)]
    pub opaque: bool,
    /// True if the type is opaque in a build without its feature.
    #[serde(default)]
    pub opaque_without_feature: bool,
    /// The cargo features that add the type.
    #[serde(default)]
    pub feature: Vec<String>,
}

fn plain() -> Vec<String> {
    vec!["C".to_owned()]
}

/// A type's implementation of `Default`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum DefaultKind {
    /// By a derive.
    Derive,
    /// With all bits zero.
    Zeroed,
}

/// A bit field: its name, its unit, its offset and width in bits, the type in its accessors, and
/// the unsigned type of the same size.
#[derive(Clone, Debug, Deserialize)]
pub struct Bits(pub String, pub String, pub u32, pub u32, pub String, pub String);

/// An enumeration.
#[derive(Debug, Deserialize)]
pub struct Enumeration {
    /// The type of the values.
    #[serde(rename = "type")]
    pub kind: String,
    /// The values by name.
    pub values: BTreeMap<String, Value>,
    /// The cargo features that add the enumeration.
    #[serde(default)]
    pub feature: Vec<String>,
}

/// An alias of a type.
#[derive(Debug, Deserialize)]
#[serde(from = "AliasEntry")]
pub struct Alias {
    /// The type.
    pub target: String,
    /// True for a re-export, false for a type definition.
    pub is_use: bool,
    /// The cargo features that add the alias.
    pub feature: Vec<String>,
}

/// The entry of an alias, whose last elements can be missing.
#[derive(Deserialize)]
struct AliasEntry(String, IgnoredAny, #[serde(default)] String, #[serde(default)] Vec<String>);

impl From<AliasEntry> for Alias {
    fn from(AliasEntry(target, _, word, feature): AliasEntry) -> Self {
        Self { target, is_use: word == "use", feature }
    }
}

/// The parameters and the result of a function.
#[derive(Debug, Deserialize)]
pub struct Signature {
    /// The name, type and notes of each parameter.
    pub params: Vec<Vec<String>>,
    /// The type of the result.
    pub ret: Option<String>,
    /// The cargo features that add the type.
    #[serde(default)]
    pub feature: Vec<String>,
}

/// A change in KMDF 1.33.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Change {
    /// A static with a different symbol.
    Static {
        /// The new symbol.
        link_name: String,
    },
    /// A constant with a different value.
    Const {
        /// The new value.
        value: i64,
    },
    /// An enumeration with different values.
    Enum {
        /// The new values, by name.
        changed_values: BTreeMap<String, Value>,
    },
    /// A structure with a different layout.
    Struct {
        /// The size in bytes.
        size: u64,
        /// The alignment in bytes.
        align: u64,
        /// The names, types and offsets of the fields.
        fields: Vec<(String, String, u64)>,
    },
    /// An initialization helper (`WDF_*_INIT`) with different code; the bindings do not contain
    /// such helpers.
    Init {},
}

/// A constant.
#[derive(Debug, Deserialize)]
#[serde(from = "ConstantEntry")]
pub struct Constant {
    /// The type.
    pub kind: String,
    /// The value: a number, a string, or null for a null pointer.
    pub value: Value,
    /// The cargo features that add the constant.
    pub feature: Vec<String>,
}

/// The entry of a constant, whose last elements can be missing.
#[derive(Deserialize)]
struct ConstantEntry(String, Value, #[serde(default)] IgnoredAny, #[serde(default)] Vec<String>);

impl From<ConstantEntry> for Constant {
    fn from(ConstantEntry(kind, value, _, feature): ConstantEntry) -> Self {
        Self { kind, value, feature }
    }
}

/// The functions.
#[derive(Debug, Deserialize)]
pub struct Functions {
    /// The framework's functions, by name.
    pub kmdf: BTreeMap<String, FrameworkFunction>,
    /// The functions in the module `ntddk`, by name.
    pub nt: BTreeMap<String, Function>,
    /// The functions that features add, by name.
    pub feature: BTreeMap<String, Function>,
}

/// A function in the framework's table.
#[derive(Debug, Deserialize)]
pub struct FrameworkFunction {
    /// The first version with the function: `1.15`.
    pub kmdf: String,
    /// The function pointer type, if the bindings have one.
    pub pfn: Option<String>,
}

/// A function that a driver imports or links.
#[derive(Debug, Deserialize)]
pub struct Function {
    /// The name, type and notes of each parameter.
    pub params: Vec<Vec<String>>,
    /// The type of the result.
    pub ret: Option<String>,
    /// The header that declares the function.
    #[serde(default)]
    pub header: String,
    /// True if the function is variadic.
    #[serde(default)]
    pub variadic: bool,
    /// True if the result must be used.
    #[serde(default)]
    pub must_use: bool,
    /// The module that exports the function.
    pub dll: Option<String>,
    /// The cargo feature that adds the function.
    pub feature: Option<String>,
}

/// A variable that another module or library defines.
#[derive(Debug, Deserialize)]
pub struct Static {
    /// The type.
    #[serde(rename = "type")]
    pub kind: String,
    /// True if the variable is mutable.
    #[serde(rename = "mut")]
    pub mutable: bool,
    /// The symbol, if it differs from the name.
    pub link_name: Option<String>,
    /// The module or library that defines the variable.
    pub from: Option<String>,
    /// The cargo features that add the variable.
    #[serde(default)]
    pub feature: Vec<String>,
}

/// Exported names that the headers do not declare.
#[derive(Debug, Deserialize)]
pub struct Exports {
    /// The routines, by module.
    pub functions: BTreeMap<String, Vec<String>>,
    /// The variables of ntoskrnl.exe.
    pub variables: Vec<String>,
}
