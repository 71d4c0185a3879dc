//! The versions of the format.

/// A version of `WEVT_TEMPLATE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// 3.1, which mc.exe wrote up to the SDK for Windows 10 1703.
    V3,
    /// 5.1, which newer versions of mc.exe write; it adds names and attributes to providers and
    /// events.
    V5,
}
