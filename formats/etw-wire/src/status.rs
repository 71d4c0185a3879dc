//! `NTSTATUS` values.

use core::fmt;

/// An `NTSTATUS`: zero and positive values are successes, negative values are warnings and errors.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct NtStatus(pub i32);

/// Declares the values that have names.
macro_rules! named {
    ($($(#[$doc:meta])* $name:ident = $bits:literal;)*) => {
        impl NtStatus {
            $($(#[$doc])* pub const $name: Self = Self::from_bits($bits);)*

            /// The values that have names.
            pub const NAMED: &[Self] = &[$(Self::$name,)*];

            /// Returns the name in ntstatus.h, for the statuses that ETW, KMDF and related kernel
            /// routines return.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some(concat!("STATUS_", stringify!($name))),)*
                    _ => None,
                }
            }
        }
    };
}

named! {
    /// The call succeeded.
    SUCCESS = 0x0000_0000;
    /// A wait timed out before the object was signaled. This is a success status.
    TIMEOUT = 0x0000_0102;
    /// The request will be completed later. This is a success status.
    PENDING = 0x0000_0103;
    /// More entries exist than fit. This is a success status.
    MORE_ENTRIES = 0x0000_0105;
    /// An object with this name already exists and is kept. This is a success status.
    OBJECT_NAME_EXISTS = 0x4000_0000;
    /// The data does not fit in the buffer; from an event write: in a session's buffer. This is a
    /// warning status, so `NT_SUCCESS` is false.
    BUFFER_OVERFLOW = 0x8000_0005;
    /// There are no more entries. This is a warning status, so `NT_SUCCESS` is false.
    NO_MORE_ENTRIES = 0x8000_001A;
    /// The operation failed for an unspecified reason.
    UNSUCCESSFUL = 0xC000_0001;
    /// The call is not implemented.
    NOT_IMPLEMENTED = 0xC000_0002;
    /// The information class is not valid.
    INVALID_INFO_CLASS = 0xC000_0003;
    /// A size field does not match the size of its structure.
    INFO_LENGTH_MISMATCH = 0xC000_0004;
    /// The memory cannot be accessed.
    ACCESS_VIOLATION = 0xC000_0005;
    /// The handle is not valid.
    INVALID_HANDLE = 0xC000_0008;
    /// An argument is not valid.
    INVALID_PARAMETER = 0xC000_000D;
    /// The device does not exist or no longer exists.
    NO_SUCH_DEVICE = 0xC000_000E;
    /// The device or the call does not support the request.
    INVALID_DEVICE_REQUEST = 0xC000_0010;
    /// The operation needs further calls.
    MORE_PROCESSING_REQUIRED = 0xC000_0016;
    /// No memory is available; from an event write: no session buffer is free.
    NO_MEMORY = 0xC000_0017;
    /// The caller does not have permission.
    ACCESS_DENIED = 0xC000_0022;
    /// The buffer is too small.
    BUFFER_TOO_SMALL = 0xC000_0023;
    /// The value or object has a different type.
    OBJECT_TYPE_MISMATCH = 0xC000_0024;
    /// The arguments are not valid in combination.
    INVALID_PARAMETER_MIX = 0xC000_0030;
    /// The name is not valid.
    OBJECT_NAME_INVALID = 0xC000_0033;
    /// No object has this name.
    OBJECT_NAME_NOT_FOUND = 0xC000_0034;
    /// An object with this name already exists.
    OBJECT_NAME_COLLISION = 0xC000_0035;
    /// The path is not valid.
    OBJECT_PATH_SYNTAX_BAD = 0xC000_003B;
    /// The object's deletion has begun.
    DELETE_PENDING = 0xC000_0056;
    /// A security descriptor is not valid, or does not apply to the object.
    INVALID_SECURITY_DESCR = 0xC000_0079;
    /// The value is empty.
    RESOURCE_DATA_NOT_FOUND = 0xC000_0089;
    /// A size overflows its type; from an event write: the event is larger than 64 KB.
    INTEGER_OVERFLOW = 0xC000_0095;
    /// Pool or another resource is exhausted.
    INSUFFICIENT_RESOURCES = 0xC000_009A;
    /// The device could not change its power state.
    DEVICE_POWER_FAILURE = 0xC000_009E;
    /// The device is not ready for requests.
    DEVICE_NOT_READY = 0xC000_00A3;
    /// The time limit of the request has expired.
    IO_TIMEOUT = 0xC000_00B5;
    /// The request is not supported.
    NOT_SUPPORTED = 0xC000_00BB;
    /// The target does not accept the request in this form.
    REQUEST_NOT_ACCEPTED = 0xC000_00D0;
    /// The sender's buffer is not valid.
    INVALID_USER_BUFFER = 0xC000_00E8;
    /// The request was canceled.
    CANCELLED = 0xC000_0120;
    /// The key or file cannot be deleted.
    CANNOT_DELETE = 0xC000_0121;
    /// The registry key was deleted.
    KEY_DELETED = 0xC000_017C;
    /// The device or queue is in the wrong state for the call.
    INVALID_DEVICE_STATE = 0xC000_0184;
    /// A session's file, or the buffer for its real-time consumer, has reached its maximum size.
    LOG_FILE_FULL = 0xC000_0188;
    /// The buffer has the wrong size.
    INVALID_BUFFER_SIZE = 0xC000_0206;
    /// The object was not found.
    NOT_FOUND = 0xC000_0225;
    /// The device is in the wrong power state.
    POWER_STATE_INVALID = 0xC000_02D3;
    /// The WMI data block is not registered.
    WMI_GUID_DISCONNECTED = 0xC000_0301;
    /// The queue is stopped, or its device is not in the working state.
    WDF_PAUSED = 0xC020_0203;
    /// The queue accepts no requests.
    WDF_BUSY = 0xC020_0204;
    /// The attributes do not fit the object.
    WDF_OBJECT_ATTRIBUTES_INVALID = 0xC020_0209;
    /// The transfer has more fragments than the device can handle.
    WDF_TOO_FRAGMENTED = 0xC020_020A;
    /// The queue has no callback for the request.
    WDF_NO_CALLBACK = 0xC020_020B;
    /// Callbacks to be synchronized run at different IRQLs.
    WDF_INCOMPATIBLE_EXECUTION_LEVEL = 0xC020_020C;
    /// The driver is not allowed to choose the object's parent.
    WDF_PARENT_ASSIGNMENT_NOT_ALLOWED = 0xC020_020F;
    /// The driver is not allowed to choose the object's synchronization scope.
    WDF_SYNCHRONIZATION_SCOPE_INVALID = 0xC020_0210;
    /// The driver is not allowed to choose the object's execution level.
    WDF_EXECUTION_LEVEL_INVALID = 0xC020_0211;
    /// The framework object needs a parent.
    WDF_PARENT_NOT_SPECIFIED = 0xC020_0212;
    /// The transfer needs more than one DMA transfer.
    WDF_TOO_MANY_TRANSFERS = 0xC020_0213;
}

impl NtStatus {
    /// Returns the status with these 32 bits.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits.cast_signed())
    }

    /// Returns the 32 bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0.cast_unsigned()
    }

    /// Returns the status in the low 32 bits of a function's return register.
    #[must_use]
    pub const fn from_register(register: u64) -> Self {
        let [a, b, c, d, ..] = register.to_le_bytes();
        Self(i32::from_le_bytes([a, b, c, d]))
    }

    /// Returns the value of a return register that holds this status.
    #[must_use]
    pub const fn to_register(self) -> u64 {
        self.bits() as u64
    }

    /// Returns whether this is a success (`NT_SUCCESS`): zero and positive values.
    #[must_use]
    pub const fn is_success(self) -> bool {
        self.0 >= 0
    }
}

impl fmt::Display for NtStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.bits();
        match self.name() {
            Some(name) => write!(f, "{name} (0x{bits:08X})"),
            None => write!(f, "0x{bits:08X}"),
        }
    }
}

impl fmt::Debug for NtStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::{format, string::ToString};

    use super::*;

    #[test]
    fn a_status_is_a_success_if_its_sign_bit_is_clear() {
        for (bits, is_success) in [
            (0, true),
            (0x0000_0103, true),
            (0x4000_0000, true),
            (0x7FFF_FFFF, true),
            (0x8000_0005, false),
            (0xC000_0017, false),
            (0xFFFF_FFFF, false),
        ] {
            let status = NtStatus::from_bits(bits);
            assert_eq!(status.is_success(), is_success, "{status}");
            assert_eq!(status.bits(), bits);
            assert_eq!(status.to_register(), u64::from(bits));
            // The upper half of a register can have any value.
            let register = 0xFFFF_FFFF_0000_0000 | u64::from(bits);
            assert_eq!(NtStatus::from_register(register), status);
        }
    }

    #[test]
    fn a_status_is_shown_by_its_name() {
        let status = NtStatus::NO_MEMORY;
        assert_eq!(status.to_string(), "STATUS_NO_MEMORY (0xC0000017)");
        assert_eq!(format!("{status:?}"), status.to_string());
        assert_eq!(NtStatus::from_bits(0xC1).to_string(), "0x000000C1");
    }
}
