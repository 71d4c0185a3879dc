//! The results of registering and unregistering a provider.

use core::fmt;

use crate::{NtStatus, ffi};

/// The result of a successful registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "if ETW refused the traits, the provider is not in its group"]
pub enum Registered {
    /// ETW accepted the provider and all its settings.
    Complete,
    /// The provider is registered and works, but ETW refused some of its settings.
    Incomplete(Refusals),
}

/// The settings of a registration that `EtwSetInformation` refused, with its status for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// `EventProviderSetTraits`, for example because the provider is not permitted to join its
    /// group. The provider is not in its group, and only `TraceLogging` events contain its name.
    pub traits: Option<NtStatus>,
    /// `EventProviderUseDescriptorType`, which is set on registrations without traits.
    /// `TraceLogging` events cannot be decoded.
    pub descriptor_types: Option<NtStatus>,
    /// `EventProviderBinaryTrackInfo`. Traces do not record the driver's image.
    pub binary_tracking: Option<NtStatus>,
}

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refusals = [
            ("SetTraits", self.traits, "the provider works, but it is not in its group"),
            ("UseDescriptorType", self.descriptor_types, "TraceLogging events cannot be decoded"),
            ("BinaryTrackInfo", self.binary_tracking, "traces do not record the driver's image"),
        ];
        let mut separator = "";
        for (class, status, consequence) in refusals {
            if let Some(status) = status {
                write!(
                    f,
                    "{separator}{}(EventProvider{class}) returned {status}: {consequence}",
                    ffi::NAMES.set_information
                )?;
                separator = "; ";
            }
        }
        Ok(())
    }
}

/// The error of [`Provider::register`](crate::Provider::register) and
/// [`Provider::register_with`](crate::Provider::register_with).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterError {
    /// The provider is already registered.
    AlreadyRegistered,
    /// Another thread is registering or unregistering the provider.
    Busy,
    /// `EtwRegister` failed. The driver can try again later.
    Refused(NtStatus),
    /// `ExAllocatePool2` could not allocate this number of bytes for the traits. The driver can try
    /// again later, or call [`Provider::register`](crate::Provider::register), which needs no pool.
    NoPool(usize),
    /// The function was called at this IRQL, above `PASSIVE_LEVEL`, and changed nothing.
    ///
    /// Kernel-mode drivers for ARM64 cannot read the IRQL, so there the caller must keep the limit: the
    /// function does not check it.
    TooHighIrql(u8),
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyRegistered => f.write_str(
                "cannot register the provider: it is already registered; unregister it first",
            ),
            Self::Busy => f.write_str(
                "cannot register the provider: another thread is registering or unregistering it",
            ),
            Self::Refused(status) => {
                write!(f, "cannot register the provider: {} returned {status}", ffi::NAMES.register)
            }
            Self::NoPool(bytes) => write!(
                f,
                "cannot register the provider: ExAllocatePool2 could not allocate {bytes} bytes of \
                 non-paged pool for its traits"
            ),
            Self::TooHighIrql(irql) => write!(
                f,
                "cannot register the provider at IRQL {irql}: call EtwRegister at PASSIVE_LEVEL (0)"
            ),
        }
    }
}

impl core::error::Error for RegisterError {}

/// The error of [`Provider::unregister`](crate::Provider::unregister).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnregisterError {
    /// Another thread is registering or unregistering the provider. The driver can try again.
    Busy,
    /// `EtwUnregister` failed. The handle may or may not be valid, so writes do nothing. The driver
    /// can try again.
    Refused(NtStatus),
    /// The provider has no rundown: only
    /// [`Provider::unregister_without_rundown`](crate::Provider::unregister_without_rundown), whose
    /// safety contract replaces the rundown, unregisters it.
    NoRundown,
    /// A write of a provider without a rundown was in progress. Only debug builds check this. The
    /// handle is still valid, and writes do nothing. The driver can try again.
    WriteInProgress,
    /// The function was called at this IRQL, above `PASSIVE_LEVEL`, and changed nothing.
    ///
    /// Kernel-mode drivers for ARM64 cannot read the IRQL, so there the caller must keep the limit: the
    /// function does not check it.
    TooHighIrql(u8),
    /// One of the provider's hooks called the function, which changed nothing: ETW waits for hooks.
    InHook,
}

impl fmt::Display for UnregisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => f.write_str(
                "cannot unregister the provider: another thread is registering or unregistering it",
            ),
            Self::Refused(status) => {
                write!(
                    f,
                    "cannot unregister the provider: {} returned {status}",
                    ffi::NAMES.unregister
                )
            }
            Self::NoRundown => f.write_str(
                "cannot unregister the provider: it has no rundown; stop its writes and call \
                 `unregister_without_rundown`",
            ),
            Self::WriteInProgress => f.write_str(
                "cannot unregister the provider: a write is in progress, and the provider has no \
                 rundown that waits for it; stop its writes first",
            ),
            Self::TooHighIrql(irql) => write!(
                f,
                "cannot unregister the provider at IRQL {irql}: call EtwUnregister at \
                 PASSIVE_LEVEL (0)"
            ),
            Self::InHook => f.write_str(
                "cannot unregister the provider in one of its hooks, for which ETW waits; unregister \
                 it when the driver is unloaded",
            ),
        }
    }
}

impl core::error::Error for UnregisterError {}
