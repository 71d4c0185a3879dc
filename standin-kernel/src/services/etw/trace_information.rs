//! `WmiQueryTraceInformation`: drivers' queries about sessions.

use super::{
    service::Context,
    state::{flags_of, level_of, session_of},
};
use crate::{
    execution::{
        routine::{At, Memory, Routine, routine},
        strings::read_unicode_string,
    },
    ground::{NtResult, NtStatus},
};

/// The exports, with the IRQL limits of wdm.h.
pub const ENTRIES: &[Routine<Context>] =
    &[routine("WmiQueryTraceInformation", wmi_query_trace_information)];

/// The values of `TRACE_INFORMATION_CLASS`.
mod class {
    pub const ID: u32 = 0;
    pub const HANDLE: u32 = 1;
    pub const ENABLE_FLAGS: u32 = 2;
    pub const ENABLE_LEVEL: u32 = 3;
    pub const GLOBAL_LOGGER: u32 = 4;
    pub const EVENT_LOGGER: u32 = 5;
    pub const ALL_HANDLES: u32 = 6;
    pub const HANDLE_BY_NAME: u32 = 7;
}

/// The offset of `HistoricalContext` in `WNODE_HEADER`.
const HISTORICAL_CONTEXT: u64 = 8;

/// Answers a query about sessions (ETW-6.8.4).
fn wmi_query_trace_information(
    context: &Context,
    class: u32,
    information: Memory,
    length: u32,
    required: At<u32>,
    buffer: Memory,
) -> NtResult<NtStatus> {
    Question { class, information: information.0, length, required, buffer: buffer.0 }
        .answer(context)
}

/// The arguments of a query.
struct Question {
    class: u32,
    information: u64,
    length: u32,
    required: At<u32>,
    buffer: u64,
}

impl Question {
    fn answer(&self, context: &Context) -> NtResult<NtStatus> {
        const NUMBER: u32 = 4;
        const HANDLE: u32 = 8;
        // Some classes require an exact buffer size, others a minimum.
        let (size, exact) = match self.class {
            class::ID => (NUMBER, true),
            class::ENABLE_FLAGS | class::ENABLE_LEVEL => (NUMBER, false),
            class::HANDLE | class::GLOBAL_LOGGER | class::EVENT_LOGGER | class::HANDLE_BY_NAME => {
                (HANDLE, true)
            }
            class::ALL_HANDLES => return Ok(self.all_handles(context)),
            _ => return Err(NtStatus::INVALID_INFO_CLASS),
        };
        self.required.write_optional(context, size);
        if self.length < size || (exact && self.length != size) {
            return Err(NtStatus::INFO_LENGTH_MISMATCH);
        }
        let needs_input = !matches!(self.class, class::GLOBAL_LOGGER | class::EVENT_LOGGER);
        if needs_input && self.buffer == 0 {
            return Err(NtStatus::INVALID_PARAMETER_MIX);
        }
        match self.class {
            class::ID => self.of_handle(context, |handle| u32::from(session_of(handle))),
            class::ENABLE_FLAGS => self.of_handle(context, flags_of),
            class::ENABLE_LEVEL => self.of_handle(context, |handle| u32::from(level_of(handle))),
            class::HANDLE => {
                let id: u32 = context.read(self.buffer);
                let id = u16::try_from(id).ok();
                let id = id.filter(|id| context.etw().sessions.contains_key(id));
                let handle = id.map(u64::from).ok_or(NtStatus::INVALID_HANDLE);
                self.write_handle(context, handle)
            }
            class::HANDLE_BY_NAME => {
                let name = read_unicode_string(context, self.buffer);
                let etw = context.etw();
                let found = etw.sessions.iter().find(|(_, running)| {
                    let config = running.session.config();
                    config.name.eq_ignore_ascii_case(&name)
                });
                let handle = found.map(|(id, _)| u64::from(*id));
                drop(etw);
                self.write_handle(context, handle.ok_or(NtStatus::INVALID_PARAMETER))
            }
            // Neither a global logger nor an event logger exists.
            _ => Err(NtStatus::NOT_FOUND),
        }?;
        Ok(NtStatus::SUCCESS)
    }

    /// Writes a part of the trace handle that the driver passes in a `WNODE_HEADER`.
    fn of_handle(&self, context: &Context, part: impl FnOnce(u64) -> u32) -> NtResult {
        let handle: u64 = context.read(self.buffer.wrapping_add(HISTORICAL_CONTEXT));
        if !context.etw().sessions.contains_key(&session_of(handle)) {
            return Err(NtStatus::INVALID_HANDLE);
        }
        context.write(self.information, &part(handle));
        Ok(())
    }

    fn write_handle(&self, context: &Context, handle: NtResult<u64>) -> NtResult {
        context.write(self.information, &handle?);
        Ok(())
    }

    /// Writes as many session handles as fit.
    fn all_handles(&self, context: &Context) -> NtStatus {
        let handles: Vec<u64> = {
            let etw = context.etw();
            etw.sessions.keys().map(|id| u64::from(*id)).collect()
        };
        let size = u32::try_from(8 * handles.len()).unwrap_or(u32::MAX);
        self.required.write_optional(context, size);
        let room = (self.length / 8) as usize;
        for (at, handle) in handles.iter().take(room).enumerate() {
            context.write(self.information.wrapping_add(8 * at as u64), handle);
        }
        if handles.len() > room { NtStatus::MORE_ENTRIES } else { NtStatus::SUCCESS }
    }
}
