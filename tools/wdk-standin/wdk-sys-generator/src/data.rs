//! The data on the WDK's headers, in the form of its files. `tools/wdk-standin/data/README.md`
//! describes every entry.

use std::{collections::BTreeMap, fs, path::Path};

use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::Value;

use crate::error::Error;

/// The names of the files that make up the sources.
pub const FILES: [&str; 5] =
    ["types.json", "constants.json", "functions.json", "statics.json", "exports.json"];

/// The enumeration of the framework's functions. wdk-macros looks for it, and for the function
/// pointer types, in one file.
pub const FUNCTIONS: &str = "_WDFFUNCENUM";

/// The value of [`FUNCTIONS`] that is the number of functions.
const FUNCTION_COUNT: &str = "WdfFunctionTableNumEntries";

/// The pointer to the framework's function table. Its symbol has the version.
pub const FUNCTION_TABLE: &str = "WdfFunctions";

/// The oldest minor version of KMDF whose definitions are in the data with conditions.
const OLDEST_TOGETHER: u8 = 31;

/// The kernel's module.
pub const KERNEL: &str = "ntoskrnl.exe";

/// The whole data.
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
    /// Returns an error if a file cannot be read or is not what the data's README describes.
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
    /// Changes the data to those of an older version of KMDF. Those of 1.31 and 1.33 are in the
    /// data together, with conditions.
    ///
    /// # Errors
    ///
    /// Returns an error if the data do not have the definition of an older version.
    pub fn set_kmdf(&mut self, minor: u8) -> Result<(), Error> {
        if minor >= OLDEST_TOGETHER {
            return Ok(());
        }
        let missing = |name: &str| Error::Entry {
            name: name.to_owned(),
            what: "the data do not contain it".to_owned(),
        };
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
    /// Structures by name.
    #[serde(rename = "struct")]
    pub structures: BTreeMap<String, Composite>,
    /// Unions by name.
    #[serde(rename = "union")]
    pub unions: BTreeMap<String, Composite>,
    /// Enumerations by name.
    #[serde(rename = "enum")]
    pub enumerations: BTreeMap<String, Enumeration>,
    /// Aliases by name.
    #[serde(rename = "alias")]
    pub aliases: BTreeMap<String, Alias>,
    /// Function pointer types by name.
    #[serde(rename = "fnptr")]
    pub pointers: BTreeMap<String, Signature>,
    /// The differences of KMDF 1.33 by the name that differs.
    #[serde(rename = "kmdf_1_33")]
    pub changes: BTreeMap<String, Change>,
    /// The differences of versions before KMDF 1.31 by the name that differs, the oldest first.
    #[serde(rename = "kmdf_older", default)]
    pub older: BTreeMap<String, Vec<Older>>,
}

/// A definition of older versions.
#[derive(Debug, Deserialize)]
pub struct Older {
    /// The newest minor version that has it.
    pub until: u8,
    /// The definition.
    #[serde(flatten)]
    pub change: Change,
}

/// A structure or union.
#[derive(Clone, Debug, Deserialize)]
pub struct Composite {
    /// Its size in bytes.
    pub size: u64,
    /// Its alignment in bytes.
    pub align: u64,
    /// The arguments of its `repr` attributes.
    #[serde(default = "plain")]
    pub repr: Vec<String>,
    /// The traits that it derives.
    pub derive: Vec<String>,
    /// The way it implements `Default`.
    pub default: Option<DefaultKind>,
    /// Names, types and offsets of the fields.
    pub fields: Vec<(String, String, u64)>,
    /// The bit fields.
    #[serde(default)]
    pub bits: Vec<Bits>,
    /// True if the headers declare it without its fields.
    #[serde(default)]
    pub opaque: bool,
    /// True if it is opaque in a build without its feature.
    #[serde(default)]
    pub opaque_without_feature: bool,
    /// The cargo features that add it.
    #[serde(default)]
    pub feature: Vec<String>,
}

fn plain() -> Vec<String> {
    vec!["C".to_owned()]
}

/// The way in which a type implements `Default`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum DefaultKind {
    /// By a derive.
    Derive,
    /// As all bits zero.
    Zeroed,
}

/// A bit field: its name, its unit, its offset and width in bits, the accessors' type, and the
/// unsigned type of the same size.
#[derive(Clone, Debug, Deserialize)]
pub struct Bits(pub String, pub String, pub u32, pub u32, pub String, pub String);

/// An enumeration.
#[derive(Debug, Deserialize)]
pub struct Enumeration {
    /// The type of its values.
    #[serde(rename = "type")]
    pub kind: String,
    /// The values by name.
    pub values: BTreeMap<String, Value>,
    /// The cargo features that add it.
    #[serde(default)]
    pub feature: Vec<String>,
}

/// An alias of a type.
#[derive(Debug, Deserialize)]
#[serde(from = "AliasEntry")]
pub struct Alias {
    /// The type.
    pub target: String,
    /// True for a re-export instead of a type definition.
    pub is_use: bool,
    /// The cargo features that add it.
    pub feature: Vec<String>,
}

/// The entry of an alias, whose last words may be left out.
#[derive(Deserialize)]
struct AliasEntry(String, IgnoredAny, #[serde(default)] String, #[serde(default)] Vec<String>);

impl From<AliasEntry> for Alias {
    fn from(AliasEntry(target, _, word, feature): AliasEntry) -> Self {
        Self { target, is_use: word == "use", feature }
    }
}

/// A function's parameters and result.
#[derive(Debug, Deserialize)]
pub struct Signature {
    /// Name, type, and notes of each parameter.
    pub params: Vec<Vec<String>>,
    /// The result's type.
    pub ret: Option<String>,
    /// The cargo features that add it.
    #[serde(default)]
    pub feature: Vec<String>,
}

/// A change of KMDF 1.33.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Change {
    /// A static with a different symbol.
    Static {
        /// The symbol.
        link_name: String,
    },
    /// A constant with a different value.
    Const {
        /// The value.
        value: i64,
    },
    /// An enumeration with different values.
    Enum {
        /// The values by name.
        changed_values: BTreeMap<String, Value>,
    },
    /// A structure with a different layout.
    Struct {
        /// Its size in bytes.
        size: u64,
        /// Its alignment in bytes.
        align: u64,
        /// Names, types and offsets of the fields.
        fields: Vec<(String, String, u64)>,
    },
    /// An initialization helper (`WDF_*_INIT`) with different code; the bindings do not contain it.
    Init {},
}

/// A constant.
#[derive(Debug, Deserialize)]
#[serde(from = "ConstantEntry")]
pub struct Constant {
    /// Its type.
    pub kind: String,
    /// Its value: a number, a text, or null for a null pointer.
    pub value: Value,
    /// The cargo features that add it.
    pub feature: Vec<String>,
}

/// The entry of a constant, whose last elements may be left out.
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
    /// The framework's, by name.
    pub kmdf: BTreeMap<String, FrameworkFunction>,
    /// Those of the module `ntddk`, by name.
    pub nt: BTreeMap<String, Function>,
    /// Those that features add, by name.
    pub feature: BTreeMap<String, Function>,
}

/// A function of the framework's table.
#[derive(Debug, Deserialize)]
pub struct FrameworkFunction {
    /// The first version that has it: `1.15`.
    pub kmdf: String,
    /// The type of a pointer to it, if the bindings have one.
    pub pfn: Option<String>,
}

/// A function that a driver imports or links.
#[derive(Debug, Deserialize)]
pub struct Function {
    /// Name, type, and notes of each parameter.
    pub params: Vec<Vec<String>>,
    /// The result's type.
    pub ret: Option<String>,
    /// The header that declares it.
    #[serde(default)]
    pub header: String,
    /// True if it is variadic.
    #[serde(default)]
    pub variadic: bool,
    /// True if the result must be used.
    #[serde(default)]
    pub must_use: bool,
    /// The module that exports it.
    pub dll: Option<String>,
    /// The cargo feature that adds it.
    pub feature: Option<String>,
}

/// A variable that another module or library defines.
#[derive(Debug, Deserialize)]
pub struct Static {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// True if it is mutable.
    #[serde(rename = "mut")]
    pub mutable: bool,
    /// Its symbol, if not its name.
    pub link_name: Option<String>,
    /// The module or library that defines it.
    pub from: Option<String>,
    /// The cargo features that add it.
    #[serde(default)]
    pub feature: Vec<String>,
}

/// Names that modules export and that the headers do not declare.
#[derive(Debug, Deserialize)]
pub struct Exports {
    /// The routines by module.
    pub functions: BTreeMap<String, Vec<String>>,
    /// The variables of ntoskrnl.exe.
    pub variables: Vec<String>,
}
