//! The codes of field types.
//!
//! `InType` is the encoding of a value; manifests and `TraceLogging` use the same numbers.
//! `OutType` and `TlgOutType` are the presentation of a value: [`OutType`] has the numbers of
//! winmeta.xml, used in manifests and `WEVT_TEMPLATE` resources; [`TlgOutType`] has the numbers of
//! TraceLoggingProvider.h.

/// Declares an enumeration of codes with conversions from and to numbers.
macro_rules! codes {
    (
        $(#[$doc:meta])*
        $type:ident {
            $($(#[$variant_doc:meta])* $variant:ident = $code:literal,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $type {
            $($(#[$variant_doc])* $variant = $code,)*
        }

        impl $type {
            /// All values, in ascending order of their codes.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the value with this code, or `None` if the code is not documented.
            #[must_use]
            pub const fn from_code(code: u8) -> Option<Self> {
                match code {
                    $($code => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// Returns the code.
            #[must_use]
            pub const fn code(self) -> u8 {
                self as u8
            }
        }
    };
}

/// Declares an enumeration of codes that can have names in manifests.
macro_rules! named_codes {
    (
        $(#[$doc:meta])*
        $type:ident {
            $($(#[$variant_doc:meta])* $variant:ident = $code:literal $($name:literal)?,)*
        }
    ) => {
        codes! {
            $(#[$doc])*
            $type {
                $($(#[$variant_doc])* $variant = $code,)*
            }
        }

        impl $type {
            /// Returns the name in manifests, or "" if there is none.
            const fn written(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($name)?),)*
                }
            }
        }
    };
}

named_codes! {
    /// The encoding of a value (`TDH_INTYPE_*` of tdh.h, `_TlgIn_t` of TraceLoggingProvider.h).
    InType {
        /// No data.
        Null = 0,
        /// UTF-16LE text, terminated by a NUL unless a length is given.
        UnicodeString = 1 "win:UnicodeString",
        /// Text of 8-bit characters, terminated by a NUL unless a length is given.
        AnsiString = 2 "win:AnsiString",
        /// An 8-bit signed integer.
        Int8 = 3 "win:Int8",
        /// An 8-bit unsigned integer.
        UInt8 = 4 "win:UInt8",
        /// A 16-bit signed integer.
        Int16 = 5 "win:Int16",
        /// A 16-bit unsigned integer.
        UInt16 = 6 "win:UInt16",
        /// A 32-bit signed integer.
        Int32 = 7 "win:Int32",
        /// A 32-bit unsigned integer.
        UInt32 = 8 "win:UInt32",
        /// A 64-bit signed integer.
        Int64 = 9 "win:Int64",
        /// A 64-bit unsigned integer.
        UInt64 = 10 "win:UInt64",
        /// A 32-bit IEEE 754 number.
        Float = 11 "win:Float",
        /// A 64-bit IEEE 754 number.
        Double = 12 "win:Double",
        /// A `BOOL`: 32 bits, false if zero.
        Boolean = 13 "win:Boolean",
        /// Bytes, preceded by a 16-bit count unless a length is given.
        Binary = 14 "win:Binary",
        /// A GUID, 16 bytes.
        Guid = 15 "win:GUID",
        /// A pointer; flags in the event header specify its size.
        Pointer = 16 "win:Pointer",
        /// A `FILETIME`: 64 bits, 100 ns units since 1601-01-01.
        FileTime = 17 "win:FILETIME",
        /// A `SYSTEMTIME`: eight 16-bit fields.
        SystemTime = 18 "win:SYSTEMTIME",
        /// A security identifier; its second byte determines its size.
        Sid = 19 "win:SID",
        /// A 32-bit unsigned integer, shown in hexadecimal.
        HexInt32 = 20 "win:HexInt32",
        /// A 64-bit unsigned integer, shown in hexadecimal.
        HexInt64 = 21 "win:HexInt64",
        /// UTF-16LE text, preceded by a 16-bit count of bytes.
        CountedUnicodeString = 22 "win:CountedUnicodeString",
        /// Text of 8-bit characters, preceded by a 16-bit count of bytes.
        CountedAnsiString = 23 "win:CountedAnsiString",
        /// A structure: its members follow, and it contains no other data.
        Struct = 24,
        /// Bytes, preceded by a 16-bit count.
        CountedBinary = 25 "win:CountedBinary",
    }
}

named_codes! {
    /// The presentation of a value in manifests and `WEVT_TEMPLATE` resources (`outType` in
    /// winmeta.xml, with its numbers).
    OutType {
        /// Text.
        String = 1 "xs:string",
        /// A date and time.
        DateTime = 2 "xs:dateTime",
        /// An 8-bit signed integer.
        Byte = 3 "xs:byte",
        /// An 8-bit unsigned integer.
        UnsignedByte = 4 "xs:unsignedByte",
        /// A 16-bit signed integer.
        Short = 5 "xs:short",
        /// A 16-bit unsigned integer.
        UnsignedShort = 6 "xs:unsignedShort",
        /// A 32-bit signed integer.
        Int = 7 "xs:int",
        /// A 32-bit unsigned integer.
        UnsignedInt = 8 "xs:unsignedInt",
        /// A 64-bit signed integer.
        Long = 9 "xs:long",
        /// A 64-bit unsigned integer.
        UnsignedLong = 10 "xs:unsignedLong",
        /// A 32-bit floating-point number.
        Float = 11 "xs:float",
        /// A 64-bit floating-point number.
        Double = 12 "xs:double",
        /// True or false.
        Boolean = 13 "xs:boolean",
        /// A GUID.
        Guid = 14 "xs:GUID",
        /// Bytes in hexadecimal.
        HexBinary = 15 "xs:hexBinary",
        /// 8 bits in hexadecimal.
        HexInt8 = 16 "win:HexInt8",
        /// 16 bits in hexadecimal.
        HexInt16 = 17 "win:HexInt16",
        /// 32 bits in hexadecimal.
        HexInt32 = 18 "win:HexInt32",
        /// 64 bits in hexadecimal.
        HexInt64 = 19 "win:HexInt64",
        /// A process ID.
        Pid = 20 "win:PID",
        /// A thread ID.
        Tid = 21 "win:TID",
        /// A TCP or UDP port, in network byte order.
        Port = 22 "win:Port",
        /// An IPv4 address, in network byte order.
        Ipv4 = 23 "win:IPv4",
        /// An IPv6 address.
        Ipv6 = 24 "win:IPv6",
        /// A `SOCKADDR` structure.
        SocketAddress = 25 "win:SocketAddress",
        /// A date and time in CIM format.
        CimDateTime = 26 "win:CIMDateTime",
        /// A reading of a session's clock.
        EtwTime = 27 "win:ETWTIME",
        /// XML text.
        Xml = 28 "win:Xml",
        /// An error code of any kind.
        ErrorCode = 29 "win:ErrorCode",
        /// A Win32 error code.
        Win32Error = 30 "win:Win32Error",
        /// An `NTSTATUS`.
        NtStatus = 31 "win:NTSTATUS",
        /// An `HRESULT`.
        HResult = 32 "win:HResult",
        /// A date and time in a language-independent format.
        DateTimeCultureInsensitive = 33 "win:DateTimeCultureInsensitive",
        /// JSON text.
        Json = 34 "win:Json",
        /// UTF-8 text.
        Utf8 = 35 "win:Utf8",
        /// A PKCS #7 message with type information.
        Pkcs7WithTypeInfo = 36 "win:Pkcs7WithTypeInfo",
        /// The address of code.
        CodePointer = 37 "win:CodePointer",
        /// A date and time in UTC.
        DateTimeUtc = 38 "win:DateTimeUtc",
    }
}

codes! {
    /// The presentation of a value in `TraceLogging` metadata (`_TlgOut_t` of
    /// TraceLoggingProvider.h).
    TlgOutType {
        /// The default for the `InType`.
        Default = 0,
        /// Not meant to be shown.
        NoPrint = 1,
        /// Characters.
        String = 2,
        /// True or false.
        Boolean = 3,
        /// Hexadecimal.
        Hex = 4,
        /// A process ID.
        Pid = 5,
        /// A thread ID.
        Tid = 6,
        /// A TCP or UDP port, in network byte order.
        Port = 7,
        /// An IPv4 address, in network byte order.
        Ipv4 = 8,
        /// An IPv6 address.
        Ipv6 = 9,
        /// A `SOCKADDR` structure.
        SocketAddress = 10,
        /// XML text.
        Xml = 11,
        /// JSON text.
        Json = 12,
        /// A Win32 error code.
        Win32Error = 13,
        /// An `NTSTATUS`.
        NtStatus = 14,
        /// An `HRESULT`.
        HResult = 15,
        /// A date and time.
        DateTime = 16,
        /// A signed decimal number.
        Signed = 17,
        /// An unsigned decimal number.
        Unsigned = 18,
        /// A date and time in a language-independent format.
        DateTimeCultureInsensitive = 33,
        /// UTF-8 text.
        Utf8 = 35,
        /// A PKCS #7 message with type information.
        Pkcs7WithTypeInfo = 36,
        /// The address of code.
        CodePointer = 37,
        /// A date and time in UTC.
        DateTimeUtc = 38,
    }
}

impl InType {
    /// Returns the name that manifests use, such as `win:UInt32`; `None` for types that exist only
    /// in `TraceLogging`.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        let name = self.written();
        if name.is_empty() { None } else { Some(name) }
    }

    /// Returns the type with this name, which includes the prefix.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.name() == Some(name))
    }

    /// Returns the size of a value in bytes, if the type determines it.
    #[must_use]
    pub const fn size(self) -> Option<usize> {
        match self {
            Self::Null | Self::Struct => Some(0),
            Self::Int8 | Self::UInt8 => Some(1),
            Self::Int16 | Self::UInt16 => Some(2),
            Self::Int32 | Self::UInt32 | Self::Float | Self::Boolean | Self::HexInt32 => Some(4),
            Self::Int64 | Self::UInt64 | Self::Double | Self::FileTime | Self::HexInt64 => Some(8),
            Self::Guid | Self::SystemTime => Some(16),
            Self::UnicodeString
            | Self::AnsiString
            | Self::Binary
            | Self::Pointer
            | Self::Sid
            | Self::CountedUnicodeString
            | Self::CountedAnsiString
            | Self::CountedBinary => None,
        }
    }

    /// Returns whether a value can serve as the count or the length of another field.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        matches!(
            self,
            Self::Int8
                | Self::UInt8
                | Self::Int16
                | Self::UInt16
                | Self::Int32
                | Self::UInt32
                | Self::Int64
                | Self::UInt64
                | Self::Pointer
                | Self::HexInt32
                | Self::HexInt64
        )
    }

    /// Returns whether a manifest's `length` applies to the type.
    #[must_use]
    pub const fn has_length(self) -> bool {
        matches!(self, Self::UnicodeString | Self::AnsiString | Self::Binary)
    }

    /// Returns the presentations that winmeta.xml allows for the type, the default first; empty for
    /// types that exist only in `TraceLogging`.
    #[must_use]
    pub const fn out_types(self) -> &'static [OutType] {
        use OutType as Out;
        match self {
            Self::Null | Self::Struct => &[],
            Self::UnicodeString | Self::CountedUnicodeString => &[Out::String, Out::Xml, Out::Json],
            Self::AnsiString | Self::CountedAnsiString => {
                &[Out::String, Out::Xml, Out::Json, Out::Utf8]
            }
            Self::Int8 => &[Out::Byte, Out::String],
            Self::UInt8 => &[Out::UnsignedByte, Out::HexInt8, Out::String, Out::Boolean],
            Self::Int16 => &[Out::Short],
            Self::UInt16 => &[Out::UnsignedShort, Out::Port, Out::HexInt16, Out::String],
            Self::Int32 => &[Out::Int, Out::HResult],
            Self::UInt32 => &[
                Out::UnsignedInt,
                Out::Pid,
                Out::Tid,
                Out::Ipv4,
                Out::EtwTime,
                Out::ErrorCode,
                Out::Win32Error,
                Out::NtStatus,
                Out::HexInt32,
                Out::CodePointer,
            ],
            Self::Int64 => &[Out::Long],
            Self::UInt64 => &[Out::UnsignedLong, Out::EtwTime, Out::HexInt64, Out::CodePointer],
            Self::Float => &[Out::Float],
            Self::Double => &[Out::Double],
            Self::Boolean => &[Out::Boolean],
            Self::Binary | Self::CountedBinary => {
                &[Out::HexBinary, Out::Ipv6, Out::SocketAddress, Out::Pkcs7WithTypeInfo]
            }
            Self::Guid => &[Out::Guid],
            Self::Pointer => &[Out::HexInt64, Out::CodePointer, Out::Long, Out::UnsignedLong],
            Self::FileTime | Self::SystemTime => {
                &[Out::DateTime, Out::DateTimeCultureInsensitive, Out::DateTimeUtc]
            }
            Self::Sid => &[Out::String],
            Self::HexInt32 => {
                &[Out::HexInt32, Out::ErrorCode, Out::Win32Error, Out::NtStatus, Out::CodePointer]
            }
            Self::HexInt64 => &[Out::HexInt64, Out::CodePointer],
        }
    }
}

impl OutType {
    /// Returns the name that manifests use, such as `xs:unsignedInt` or `win:HexInt32`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.written()
    }

    /// Returns the presentation with this name, which includes the prefix. Real manifests also
    /// write `xs:` for `win:`, as in `xs:HexInt64`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let local = name.strip_prefix("xs:");
        Self::ALL.iter().copied().find(|known| {
            known.name() == name || local.is_some() && known.name().strip_prefix("win:") == local
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_and_every_name_reads_back() {
        for code in 0..=u8::MAX {
            if let Some(known) = InType::from_code(code) {
                assert_eq!(known.code(), code);
                if let Some(name) = known.name() {
                    assert_eq!(InType::from_name(name), Some(known));
                    assert!(!known.out_types().is_empty(), "{name}");
                }
            }
            if let Some(known) = OutType::from_code(code) {
                assert_eq!(known.code(), code);
                assert_eq!(OutType::from_name(known.name()), Some(known));
            }
            if let Some(known) = TlgOutType::from_code(code) {
                assert_eq!(known.code(), code);
            }
        }
        assert_eq!(InType::ALL.len(), 26);
        assert_eq!(OutType::ALL.len(), 38);
        assert_eq!(TlgOutType::ALL.len(), 24);
    }

    #[test]
    fn types_have_the_names_and_sizes_of_winmeta() {
        use InType as T;
        const YES: bool = true;
        const NO: bool = false;
        // The name, the size, whether the type can be a count, and whether it can have a length.
        let rows = [
            (T::Null, None, Some(0), NO, NO),
            (T::UnicodeString, Some("win:UnicodeString"), None, NO, YES),
            (T::AnsiString, Some("win:AnsiString"), None, NO, YES),
            (T::Int8, Some("win:Int8"), Some(1), YES, NO),
            (T::UInt8, Some("win:UInt8"), Some(1), YES, NO),
            (T::Int16, Some("win:Int16"), Some(2), YES, NO),
            (T::UInt16, Some("win:UInt16"), Some(2), YES, NO),
            (T::Int32, Some("win:Int32"), Some(4), YES, NO),
            (T::UInt32, Some("win:UInt32"), Some(4), YES, NO),
            (T::Int64, Some("win:Int64"), Some(8), YES, NO),
            (T::UInt64, Some("win:UInt64"), Some(8), YES, NO),
            (T::Float, Some("win:Float"), Some(4), NO, NO),
            (T::Double, Some("win:Double"), Some(8), NO, NO),
            (T::Boolean, Some("win:Boolean"), Some(4), NO, NO),
            (T::Binary, Some("win:Binary"), None, NO, YES),
            (T::Guid, Some("win:GUID"), Some(16), NO, NO),
            (T::Pointer, Some("win:Pointer"), None, YES, NO),
            (T::FileTime, Some("win:FILETIME"), Some(8), NO, NO),
            (T::SystemTime, Some("win:SYSTEMTIME"), Some(16), NO, NO),
            (T::Sid, Some("win:SID"), None, NO, NO),
            (T::HexInt32, Some("win:HexInt32"), Some(4), YES, NO),
            (T::HexInt64, Some("win:HexInt64"), Some(8), YES, NO),
            (T::CountedUnicodeString, Some("win:CountedUnicodeString"), None, NO, NO),
            (T::CountedAnsiString, Some("win:CountedAnsiString"), None, NO, NO),
            (T::Struct, None, Some(0), NO, NO),
            (T::CountedBinary, Some("win:CountedBinary"), None, NO, NO),
        ];
        assert_eq!(rows.map(|row| row.0), *InType::ALL);
        for (known, name, size, is_integer, has_length) in rows {
            assert_eq!((known.name(), known.size()), (name, size), "{known:?}");
            assert_eq!(known.is_integer(), is_integer, "{known:?}");
            assert_eq!(known.has_length(), has_length, "{known:?}");
        }
    }

    #[test]
    fn names_are_accepted_with_the_prefixes_that_manifests_use() {
        assert_eq!(OutType::from_name("xs:HexInt64"), Some(OutType::HexInt64));
        assert_eq!(OutType::from_name("win:string"), None);
        assert_eq!(OutType::from_name("HexInt64"), None);
        assert_eq!(InType::from_name("win:Struct"), None);
    }
}
