//! `NTSTATUS` values.

use core::fmt;

/// An `NTSTATUS`, of any value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct NtStatus(pub i32);

/// Declares the named values, and their names for display.
macro_rules! named {
    ($($(#[$doc:meta])* $name:ident = $bits:literal;)*) => {
        impl NtStatus {
            $($(#[$doc])* pub const $name: Self = Self(($bits as u32).cast_signed());)*

            /// The name in ntstatus.h, of those that ETW's routines return.
            ///
            /// # IRQL
            ///
            /// Any.
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
    /// The routine did what was asked.
    SUCCESS = 0x0000_0000;
    /// An event does not fit in a session's buffer. A warning, and so a failure.
    BUFFER_OVERFLOW = 0x8000_0005;
    /// The handle names nothing.
    INVALID_HANDLE = 0xC000_0008;
    /// An argument is not what the routine takes.
    INVALID_PARAMETER = 0xC000_000D;
    /// The request is not known.
    INVALID_DEVICE_REQUEST = 0xC000_0010;
    /// No buffer was free.
    NO_MEMORY = 0xC000_0017;
    /// The caller has no right to do this.
    ACCESS_DENIED = 0xC000_0022;
    /// An event is larger than 64 KB.
    INTEGER_OVERFLOW = 0xC000_0095;
    /// Pool or another resource ran out.
    INSUFFICIENT_RESOURCES = 0xC000_009A;
    /// Not supported.
    NOT_SUPPORTED = 0xC000_00BB;
    /// A session's file is full.
    LOG_FILE_FULL = 0xC000_0188;
}

impl NtStatus {
    /// Whether the value is a success: `NT_SUCCESS`, zero and positive values.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn is_success(self) -> bool {
        self.0 >= 0
    }
}

impl fmt::Display for NtStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.0.cast_unsigned();
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
