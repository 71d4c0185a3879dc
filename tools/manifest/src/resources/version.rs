//! The versions of the format.

/// A version of `WEVT_TEMPLATE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// 3.1, which mc.exe made up to Windows 10 1703's SDK.
    V3,
    /// 5.1, which it makes since; it has names and attributes of providers and events.
    V5,
}
