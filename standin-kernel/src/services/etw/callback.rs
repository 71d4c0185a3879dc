//! Calls to enable callbacks. The way a provider registered determines the callback's form.

use etl_file::Guid;

use super::{
    callback_memory::CallbackMemory,
    service::Context,
    state::{DISABLE, ENABLE, Form, Notification},
};
use crate::ground::arena::Block;

/// The minor functions with which WMI calls a control block's callback (`IRP_MN_*` in wdm.h).
pub mod minor {
    pub const ENABLE_EVENTS: u64 = 4;
    pub const DISABLE_EVENTS: u64 = 5;
    pub const REGINFO: u64 = 8;
}

/// The size of `WNODE_HEADER`.
const WNODE_HEADER: usize = 48;

/// `WNODE_FLAG_TRACED_GUID`.
pub const TRACED_GUID: u32 = 0x0002_0000;

/// Calls a registration's enable callback in the form that the registration requires.
pub fn call(context: &Context, notification: &Notification, source: Guid, code: u32) {
    match notification.form {
        Form::Modern => modern(context, notification, source, code),
        Form::Classic => classic(context, notification, code),
        Form::Wmi { block } => wmi(context, notification, code, block),
    }
}

/// Calls an enable callback that was passed to `EtwRegister`.
fn modern(context: &Context, notification: &Notification, source: Guid, code: u32) {
    let memory = CallbackMemory::new(context, source, &notification.filters);
    let combined = notification.combined;
    context.verifier().in_enable_callback(context, notification.provider, || {
        context.call_driver(
            "the enable callback",
            notification.callback,
            [
                memory.source.address(),
                u64::from(code),
                u64::from(combined.level),
                combined.match_any,
                combined.match_all,
                memory.filter_address(),
                notification.context,
            ],
        )
    });
    memory.take_back(context);
}

/// Calls the callback that was passed to `EtwRegisterClassicProvider`. Its arguments are the GUID,
/// the control code, the enable context (whose first eight bytes are the trace handle), and the
/// driver's context (ETW-2.23).
fn classic(context: &Context, notification: &Notification, code: u32) {
    let guid = CallbackBuffer::new(context, &notification.provider.to_bytes());
    let enabled = CallbackBuffer::new(context, &notification.trace_handle.to_le_bytes());
    context.verifier().in_enable_callback(context, notification.provider, || {
        context.call_driver(
            "the enable callback",
            notification.callback,
            [guid.address(), u64::from(code), enabled.address(), notification.context],
        )
    });
    guid.take_back(context);
    enabled.take_back(context);
}

/// Calls the callback of a control block that is registered with WMI (ETW-2.25). WMI has no minor
/// function for any other control code.
fn wmi(context: &Context, notification: &Notification, code: u32, block: u64) {
    let minor = match code {
        DISABLE => minor::DISABLE_EVENTS,
        ENABLE => minor::ENABLE_EVENTS,
        _ => return,
    };
    let mut header = Vec::with_capacity(WNODE_HEADER);
    let size = u32::try_from(WNODE_HEADER).unwrap_or(u32::MAX);
    header.extend(size.to_le_bytes());
    header.extend([0; 4]);
    header.extend(notification.trace_handle.to_le_bytes());
    header.extend([0; 8]);
    header.extend(notification.provider.to_bytes());
    header.extend([0; 4]);
    header.extend(TRACED_GUID.to_le_bytes());
    let header = CallbackBuffer::new(context, &header);
    let written = CallbackBuffer::new(context, &[0; 4]);
    context.verifier().in_enable_callback(context, notification.provider, || {
        context.call_driver(
            "the WMI callback",
            notification.callback,
            [minor, 0, u64::from(size), header.address(), block, written.address()],
        )
    });
    header.take_back(context);
    written.take_back(context);
}

/// Memory that a callback may use only during the call.
struct CallbackBuffer {
    block: Block,
    size: u64,
}

impl CallbackBuffer {
    fn new(context: &Context, bytes: &[u8]) -> Self {
        let block = Block::guarded(bytes.len());
        context.write_bytes(block.address(), bytes);
        Self { block, size: bytes.len() as u64 }
    }

    const fn address(&self) -> u64 {
        self.block.address()
    }

    /// Ends the callback's access to the memory. Later accesses through a saved pointer fault.
    fn take_back(self, context: &Context) {
        context.borrowed().end(self.address(), self.size);
    }
}
