//! The ETW and TDH routines. In tests, a mock replaces those that Wine lacks.

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
