//! `NTSTATUS` values that the stand-in kernel returns.

use std::fmt;

/// An `NTSTATUS`: negative values are failures, warnings among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NtStatus(pub i32);

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {
        impl NtStatus {
            $($(#[$doc])* pub const $name: Self = Self::from_bits($value);)*
        }

        /// The names of the values above, as ntstatus.h has them.
        const NAMES: &[(u32, &str)] = &[$(($value, concat!("STATUS_", stringify!($name)))),*];
    };
}

statuses! {
    /// The call did what was asked.
    SUCCESS = 0x0000_0000;
    /// A wait ended without what it waited for. It is no failure.
    TIMEOUT = 0x0000_0102;
    /// The request will be completed later.
    PENDING = 0x0000_0103;
    /// A name or event is larger than a buffer (a warning, so a failure).
    BUFFER_OVERFLOW = 0x8000_0005;
    /// There is no further entry (a warning, so a failure).
    NO_MORE_ENTRIES = 0x8000_001A;
    /// A structure's size field is not the size of the structure.
    INFO_LENGTH_MISMATCH = 0xC000_0004;
    /// A handle that names nothing.
    INVALID_HANDLE = 0xC000_0008;
    /// An argument that the call cannot take.
    INVALID_PARAMETER = 0xC000_000D;
    /// There is no such device, or no longer.
    NO_SUCH_DEVICE = 0xC000_000E;
    /// A request that the device or call does not know.
    INVALID_DEVICE_REQUEST = 0xC000_0010;
    /// No memory.
    NO_MEMORY = 0xC000_0017;
    /// No right to do this.
    ACCESS_DENIED = 0xC000_0022;
    /// A caller's buffer is shorter than the call needs.
    BUFFER_TOO_SMALL = 0xC000_0023;
    /// A value or object is of another type.
    OBJECT_TYPE_MISMATCH = 0xC000_0024;
    /// Nothing has this name.
    OBJECT_NAME_NOT_FOUND = 0xC000_0034;
    /// An object of that name is there already.
    OBJECT_NAME_COLLISION = 0xC000_0035;
    /// A security descriptor is wrong, or has nothing to protect.
    INVALID_SECURITY_DESCR = 0xC000_0079;
    /// A size cannot be expressed.
    INTEGER_OVERFLOW = 0xC000_0095;
    /// Pool or another resource ran out.
    INSUFFICIENT_RESOURCES = 0xC000_009A;
    /// The device is not ready for requests.
    DEVICE_NOT_READY = 0xC000_00A3;
    /// The request was cancelled.
    CANCELLED = 0xC000_0120;
    /// What is stored for a consumer in real time has its size.
    LOG_FILE_FULL = 0xC000_0188;
    /// The device or queue is in no state for this.
    INVALID_DEVICE_STATE = 0xC000_0184;
    /// What was looked for is not there.
    NOT_FOUND = 0xC000_0225;
    /// The queue is stopped, or its device is not in its working state.
    WDF_PAUSED = 0xC020_0203;
    /// The queue accepts no requests.
    WDF_BUSY = 0xC020_0204;
    /// The queue has no callback that could get its requests.
    WDF_NO_CALLBACK = 0xC020_020B;
    /// The framework object lacks a parent that its kind needs.
    WDF_PARENT_NOT_SPECIFIED = 0xC020_0212;
}

impl NtStatus {
    /// Returns the status with these 32 bits.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits.cast_signed())
    }

    /// Returns the status in the low 32 bits of a function's return register.
    #[must_use]
    pub const fn from_register(register: u64) -> Self {
        let [a, b, c, d, ..] = register.to_le_bytes();
        Self(i32::from_le_bytes([a, b, c, d]))
    }

    /// Returns the return register's value for this status.
    #[must_use]
    pub const fn to_register(self) -> u64 {
        self.0.cast_unsigned() as u64
    }

    /// `NT_SUCCESS`: zero and positive values.
    #[must_use]
    pub const fn is_success(self) -> bool {
        self.0 >= 0
    }
}

impl fmt::Display for NtStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.0.cast_unsigned();
        match NAMES.iter().find(|(value, _)| *value == bits) {
            Some((_, name)) => write!(f, "{name} (0x{bits:08X})"),
            None => write!(f, "0x{bits:08X}"),
        }
    }
}
