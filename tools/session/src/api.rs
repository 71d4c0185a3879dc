//! The routines of ETW and TDH. In tests, a mock stands in for those that Wine does not have.

#[cfg(test)]
pub use crate::mock::{
    CloseTrace, ControlTraceW, EnableTraceEx2, OpenTraceW, ProcessTrace, StartTraceW,
    TdhGetEventInformation, TdhGetEventMapInformation,
};
#[cfg(not(test))]
pub use windows_sys::Win32::System::Diagnostics::Etw::{
    CloseTrace, ControlTraceW, EnableTraceEx2, OpenTraceW, ProcessTrace, StartTraceW,
    TdhGetEventInformation, TdhGetEventMapInformation,
};
