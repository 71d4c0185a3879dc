//! The device's mode, which the service name selects.

use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use etw_driver_support::Service;

/// The modes.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    /// The framework's defaults.
    Default,
    /// The device's callbacks are synchronized with a spin lock.
    Serial,
    /// The device's callbacks are synchronized with a mutex.
    SerialPassive,
    /// The callbacks of each queue are synchronized.
    SerialQueues,
    /// The driver receives IRPs before the framework.
    Preprocess,
    /// The driver receives requests in their senders' contexts.
    Caller,
    /// The interrupt is handled at `PASSIVE_LEVEL`.
    PassiveInterrupt,
    /// The driver dispatches the IRPs of writes and of device controls itself.
    Directs,
}

use Mode::{
    Caller, Default, Directs, PassiveInterrupt, Preprocess, Serial, SerialPassive, SerialQueues,
};

const MODES: [(&str, Mode); 7] = [
    ("serial", Serial),
    ("serial-passive", SerialPassive),
    ("serial-queues", SerialQueues),
    ("preprocess", Preprocess),
    ("caller", Caller),
    ("passive-interrupt", PassiveInterrupt),
    ("directs", Directs),
];

static MODE: AtomicU8 = AtomicU8::new(0);

/// Stores the mode that the service's name selects.
pub fn choose(service: Service<'_>) {
    let mode = service.find(&MODES).copied().unwrap_or(Default);
    MODE.store(mode as u8, Ordering::Relaxed);
}

/// Returns whether the service name selected a mode.
pub fn is(mode: Mode) -> bool {
    MODE.load(Ordering::Relaxed) == mode as u8
}

/// True if the driver refuses the next orderly removal.
static REFUSES: AtomicBool = AtomicBool::new(false);

/// Makes the driver refuse the next orderly removal.
pub fn refuse_removal() {
    REFUSES.store(true, Ordering::Relaxed);
}

/// Returns whether the driver refuses this removal. It refuses only once.
pub fn refuses_removal() -> bool {
    REFUSES.swap(false, Ordering::Relaxed)
}
