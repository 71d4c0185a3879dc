//! What the kernel finds wrong with a driver.

use std::{
    fmt,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// `DRIVER_VERIFIER_DETECTED_VIOLATION`.
const VERIFIER_STOP: u32 = 0xC4;
/// `WDF_VIOLATION`.
const WDF_VIOLATION: u32 = 0x10D;
/// `BAD_POOL_CALLER`.
const BAD_POOL_CALLER: u32 = 0xC2;
/// `IRQL_NOT_LESS_OR_EQUAL`.
const IRQL_NOT_LESS_OR_EQUAL: u32 = 0xA;

/// A rule that a driver broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// V01: `EtwRegister` above `PASSIVE_LEVEL`.
    EtwRegisterIrql,
    /// V02: `EtwUnregister` above `PASSIVE_LEVEL`.
    EtwUnregisterIrql,
    /// V03: `EtwSetInformation` above `PASSIVE_LEVEL`.
    EtwSetInformationIrql,
    /// V04: a provider is still registered when its driver is unloaded.
    ProviderLeftRegistered,
    /// V05: a registration handle is used after `EtwUnregister`.
    HandleReleased,
    /// V06: `EtwUnregister` from the registration's own enable callback.
    UnregisterInCallback,
    /// V12: a registration handle that was never given out.
    HandleNeverIssued,
    /// V40..V43, V61: an address that cannot be accessed.
    BadAddress,
    /// V60: an activity control code above its IRQL.
    ActivityIrql,
    /// A routine was called above its highest IRQL.
    IrqlTooHigh,
    /// Pool is still allocated when the driver is unloaded.
    PoolLeak,
    /// A block was freed twice, or was no pool block.
    BadFree,
    /// A handle is of another kind, or names nothing.
    BadHandle,
    /// A request was completed twice.
    RequestCompletedTwice,
    /// A request was never completed.
    RequestNotCompleted,
    /// A request was used as its state does not allow.
    RequestMisused,
    /// A callback returned at another IRQL.
    CallbackIrql,
    /// A callback's address is no driver code.
    BadCallback,
    /// The IRQL was "raised" downwards.
    IrqlNotRaised,
    /// The IRQL was "lowered" upwards, or a lock released that was not held.
    IrqlNotLowered,
    /// A spin lock was acquired by its owner.
    Deadlock,
    /// A routine that the stand-in kernel does not provide.
    NotProvided,
    /// A fault of the stand-in kernel's own.
    Internal,
}

impl Rule {
    /// The rule against calling this routine at too high an IRQL.
    #[must_use]
    pub fn irql_of(routine: &str) -> Self {
        match routine {
            "EtwRegister" => Self::EtwRegisterIrql,
            "EtwUnregister" => Self::EtwUnregisterIrql,
            "EtwSetInformation" => Self::EtwSetInformationIrql,
            _ => Self::IrqlTooHigh,
        }
    }

    /// The rule's number among the ETW verifier rules, or nothing.
    #[must_use]
    pub const fn number(self) -> &'static str {
        match self {
            Self::EtwRegisterIrql => "V01",
            Self::EtwUnregisterIrql => "V02",
            Self::EtwSetInformationIrql => "V03",
            Self::ProviderLeftRegistered => "V04",
            Self::HandleReleased => "V05",
            Self::UnregisterInCallback => "V06",
            Self::HandleNeverIssued => "V12",
            Self::ActivityIrql => "V60",
            _ => "",
        }
    }

    pub(crate) const fn bugcheck_code(self) -> u32 {
        match self {
            Self::BadFree => BAD_POOL_CALLER,
            Self::BadHandle
            | Self::RequestCompletedTwice
            | Self::RequestNotCompleted
            | Self::RequestMisused
            | Self::NotProvided => WDF_VIOLATION,
            Self::IrqlNotRaised | Self::IrqlNotLowered => IRQL_NOT_LESS_OR_EQUAL,
            _ => VERIFIER_STOP,
        }
    }

    /// The bugcheck's first parameter: a real verifier's sub-code, where one is
    /// known.
    pub(crate) const fn parameter(self) -> u64 {
        match self {
            Self::ProviderLeftRegistered => 0xDD,
            Self::PoolLeak => 0x62,
            _ => 0,
        }
    }
}

/// The machine stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bugcheck 0x{code:X}: {message}")]
pub struct BugCheck {
    /// The stop code.
    pub code: u32,
    /// Its four parameters.
    pub parameters: [u64; 4],
    /// What happened, in a sentence.
    pub message: String,
    /// The IRQL at that moment.
    pub irql: crate::Irql,
    /// The thread's last calls into the kernel, the newest first.
    pub calls: Vec<String>,
}

/// Something wrong that does not stop the machine at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule that was broken.
    pub rule: Rule,
    /// What happened, in a sentence.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match self.rule.number() {
            "" => Ok(()),
            number => write!(f, " [{number}]"),
        }
    }
}

/// Everything that was found wrong with a driver by the end of its life.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Violations(pub Vec<Violation>);

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, violation) in self.0.iter().enumerate() {
            if number > 0 {
                f.write_str("; ")?;
            }
            violation.fmt(f)?;
        }
        Ok(())
    }
}

/// The machine's verifier.
#[derive(Default)]
pub struct Verifier {
    calls: AtomicU64,
    crash: Mutex<Option<BugCheck>>,
}

impl Verifier {
    /// Notes that a driver called the kernel.
    pub fn count_call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// How many calls were checked.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Notes the bugcheck that stopped the machine; the first one stays.
    pub fn crash(&self, bugcheck: &BugCheck) {
        self.crash
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert_with(|| bugcheck.clone());
    }

    /// The bugcheck that stopped the machine, if one did.
    pub fn crashed(&self) -> Option<BugCheck> {
        self.crash
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
