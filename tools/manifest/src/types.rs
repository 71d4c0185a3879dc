//! The types of fields: `inType` and `outType`, as winmeta.xml numbers them.

/// How a value is encoded.
#[derive(Debug, PartialEq, Eq)]
pub struct InType {
    /// Its name.
    pub name: &'static str,
    /// Its number.
    pub value: u8,
    /// How it can be shown, by the numbers of [`out_type_name`]; without a word the first.
    pub out_types: &'static [u8],
    /// Whether a length has a meaning.
    pub has_length: bool,
    /// Whether its values can be counts and lengths.
    pub is_integer: bool,
}

const fn integer(name: &'static str, value: u8, out_types: &'static [u8]) -> InType {
    InType {
        name,
        value,
        out_types,
        has_length: false,
        is_integer: true,
    }
}

const fn other(name: &'static str, value: u8, out_types: &'static [u8]) -> InType {
    InType {
        name,
        value,
        out_types,
        has_length: false,
        is_integer: false,
    }
}

const fn sized(name: &'static str, value: u8, out_types: &'static [u8]) -> InType {
    InType {
        name,
        value,
        out_types,
        has_length: true,
        is_integer: false,
    }
}

/// All of them.
pub const IN_TYPES: &[InType] = &[
    sized("win:UnicodeString", 1, &[1, 28, 34]),
    sized("win:AnsiString", 2, &[1, 28, 34, 35]),
    integer("win:Int8", 3, &[3, 1]),
    integer("win:UInt8", 4, &[4, 16, 1, 13]),
    integer("win:Int16", 5, &[5]),
    integer("win:UInt16", 6, &[6, 22, 17, 1]),
    integer("win:Int32", 7, &[7, 32]),
    integer("win:UInt32", 8, &[8, 20, 21, 23, 27, 29, 30, 31, 18, 37]),
    integer("win:Int64", 9, &[9]),
    integer("win:UInt64", 10, &[10, 27, 19, 37]),
    other("win:Float", 11, &[11]),
    other("win:Double", 12, &[12]),
    other("win:Boolean", 13, &[13]),
    sized("win:Binary", 14, &[15, 24, 25, 36]),
    other("win:GUID", 15, &[14]),
    integer("win:Pointer", 16, &[19, 37, 9, 10]),
    other("win:FILETIME", 17, &[2, 33, 38]),
    other("win:SYSTEMTIME", 18, &[2, 33, 38]),
    other("win:SID", 19, &[1]),
    integer("win:HexInt32", 20, &[18, 29, 30, 31, 37]),
    integer("win:HexInt64", 21, &[19, 37]),
    other("win:CountedUnicodeString", 22, &[1, 28, 34]),
    other("win:CountedAnsiString", 23, &[1, 28, 34, 35]),
    other("win:CountedBinary", 25, &[15, 24, 25, 36]),
];

/// How values are shown.
const OUT_TYPES: &[(&str, u8)] = &[
    ("xs:string", 1),
    ("xs:dateTime", 2),
    ("xs:byte", 3),
    ("xs:unsignedByte", 4),
    ("xs:short", 5),
    ("xs:unsignedShort", 6),
    ("xs:int", 7),
    ("xs:unsignedInt", 8),
    ("xs:long", 9),
    ("xs:unsignedLong", 10),
    ("xs:float", 11),
    ("xs:double", 12),
    ("xs:boolean", 13),
    ("xs:GUID", 14),
    ("xs:hexBinary", 15),
    ("win:HexInt8", 16),
    ("win:HexInt16", 17),
    ("win:HexInt32", 18),
    ("win:HexInt64", 19),
    ("win:PID", 20),
    ("win:TID", 21),
    ("win:Port", 22),
    ("win:IPv4", 23),
    ("win:IPv6", 24),
    ("win:SocketAddress", 25),
    ("win:CIMDateTime", 26),
    ("win:ETWTIME", 27),
    ("win:Xml", 28),
    ("win:ErrorCode", 29),
    ("win:Win32Error", 30),
    ("win:NTSTATUS", 31),
    ("win:HResult", 32),
    ("win:DateTimeCultureInsensitive", 33),
    ("win:Json", 34),
    ("win:Utf8", 35),
    ("win:Pkcs7WithTypeInfo", 36),
    ("win:CodePointer", 37),
    ("win:DateTimeUtc", 38),
];

impl InType {
    /// The type of a name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<&'static Self> {
        IN_TYPES.iter().find(|one| one.name == name)
    }

    /// Returns the type of a number.
    #[must_use]
    pub fn of_value(value: u8) -> Option<&'static Self> {
        IN_TYPES.iter().find(|one| one.value == value)
    }

    /// How it is shown unless something else is said.
    #[must_use]
    pub fn default_out_type(&self) -> u8 {
        self.out_types.first().copied().unwrap_or(0)
    }
}

/// The number of a name; `xs:HexInt64` is another one of `win:HexInt64`, and so on.
#[must_use]
pub fn out_type_value(name: &str) -> Option<u8> {
    let alias = name.strip_prefix("xs:").map(|rest| format!("win:{rest}"));
    OUT_TYPES
        .iter()
        .find(|(known, _)| *known == name || alias.as_deref() == Some(known))
        .map(|(_, value)| *value)
}

/// The name of a number.
#[must_use]
pub fn out_type_name(value: u8) -> Option<&'static str> {
    OUT_TYPES
        .iter()
        .find(|(_, known)| *known == value)
        .map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_out_type_has_a_name() {
        for one in IN_TYPES {
            assert!(!one.out_types.is_empty());
            for out in one.out_types {
                let name = out_type_name(*out).unwrap();
                assert_eq!(out_type_value(name), Some(*out));
            }
        }
        assert_eq!(out_type_value("xs:HexInt64"), Some(19));
        assert_eq!(out_type_value("win:string"), None);
    }
}
