//! Names of field types in manifests.

use crate::decode::{InType, OutType};

/// The encoding of an `inType`, without its prefix.
pub fn in_type(name: &str) -> Option<InType> {
    Some(match name {
        "UnicodeString" => InType::UnicodeString,
        "AnsiString" => InType::AnsiString,
        "Int8" => InType::Int8,
        "UInt8" => InType::UInt8,
        "Int16" => InType::Int16,
        "UInt16" => InType::UInt16,
        "Int32" => InType::Int32,
        "UInt32" => InType::UInt32,
        "Int64" => InType::Int64,
        "UInt64" => InType::UInt64,
        "Float" => InType::Float,
        "Double" => InType::Double,
        "Boolean" => InType::Bool32,
        "Binary" => InType::Binary,
        "GUID" => InType::Guid,
        "Pointer" => InType::Pointer,
        "FILETIME" => InType::FileTime,
        "SYSTEMTIME" => InType::SystemTime,
        "SID" => InType::Sid,
        "HexInt32" => InType::HexInt32,
        "HexInt64" => InType::HexInt64,
        "CountedUnicodeString" => InType::CountedString,
        "CountedAnsiString" => InType::CountedAnsiString,
        "CountedBinary" => InType::CountedBinary,
        _ => return None,
    })
}

/// The meaning of an `outType`, without its prefix.
pub fn out_type(name: &str) -> Option<OutType> {
    Some(match name {
        "string" => OutType::String,
        "dateTime" | "DateTimeCultureInsensitive" | "DateTimeUtc" | "CIMDateTime" | "ETWTIME" => {
            OutType::DateTime
        }
        "byte" | "short" | "int" | "long" => OutType::Signed,
        "unsignedByte" | "unsignedShort" | "unsignedInt" | "unsignedLong" => OutType::Unsigned,
        "float" | "double" | "GUID" | "hexBinary" => OutType::Default,
        "boolean" => OutType::Boolean,
        "HexInt8" | "HexInt16" | "HexInt32" | "HexInt64" | "ErrorCode" => OutType::Hex,
        "PID" => OutType::ProcessId,
        "TID" => OutType::ThreadId,
        "Port" => OutType::Port,
        "IPv4" => OutType::Ipv4,
        "IPv6" => OutType::Ipv6,
        "SocketAddress" => OutType::SocketAddress,
        "Xml" => OutType::Xml,
        "Json" => OutType::Json,
        "Win32Error" => OutType::Win32Error,
        "NTSTATUS" => OutType::NtStatus,
        "HResult" => OutType::HResult,
        "Utf8" => OutType::Utf8,
        "Pkcs7WithTypeInfo" => OutType::Pkcs7,
        "CodePointer" => OutType::CodePointer,
        "NoPrint" => OutType::NoPrint,
        _ => return None,
    })
}

/// Whether a field of this type can say how many or how long.
pub const fn is_integer(in_type: InType) -> bool {
    matches!(
        in_type,
        InType::Int8
            | InType::UInt8
            | InType::Int16
            | InType::UInt16
            | InType::Int32
            | InType::UInt32
            | InType::Int64
            | InType::UInt64
            | InType::HexInt32
            | InType::HexInt64
            | InType::Pointer
    )
}
