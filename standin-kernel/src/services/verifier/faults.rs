//! Fault injection: routines that fail on demand.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::{execution::declarations::Type, ground::NtStatus};

/// A failure to inject into a routine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The routine, one of [`Fault::routines`].
    pub routine: &'static str,
    /// The status that the routine returns. `ExAllocatePool2` and `WdfControlDeviceInitAllocate` return
    /// null regardless of the status.
    pub status: NtStatus,
    /// The number of calls that succeed before the first failure.
    pub after: u32,
    /// The number of calls that fail.
    pub times: u32,
}

impl Fault {
    /// The routines that handle their injected faults themselves, because their failures have side
    /// effects.
    const WITH_EFFECTS: &'static [&'static str] = &[
        "EtwRegister", "EtwUnregister", "EtwSetInformation", "EtwWriteEx", "EtwActivityIdControl",
        "EtwRegisterClassicProvider", "ExAllocatePool2",
    ];

    /// The routines that return a status but must not fail, because a failed call would not have
    /// waited for, ended, sent or released its object.
    const UNFAILING: &'static [&'static str] = &[
        "ExDeleteResourceLite", "ExInitializeResourceLite", "IoUnregisterPlugPlayNotification",
        "IoUnregisterPlugPlayNotificationEx", "IofCallDriver", "KeWaitForMultipleObjects",
        "KeWaitForSingleObject", "ObCloseHandle", "PoCallDriver",
        "PsRemoveCreateThreadNotifyRoutine", "PsRemoveLoadImageNotifyRoutine",
        "PsTerminateSystemThread", "RtlUnicodeToMultiByteN", "WdfDeviceWdmDispatchIrp",
        "WdfDeviceWdmDispatchIrpToIoQueue", "WdfDeviceWdmDispatchPreprocessedIrp",
        "WdfVersionUnbind", "ZwClose",
    ];

    /// A description of the routines that support fault injection.
    pub(crate) const SUPPORTED: &'static str = "most provided routines that return an NTSTATUS, and \
                                                ExAllocatePool2 and WdfControlDeviceInitAllocate";

    /// A routine that returns null on failure.
    const WITH_NULL: &'static str = "WdfControlDeviceInitAllocate";

    /// Returns whether fault injection supports a routine with this result type.
    pub(crate) fn is_supported(routine: &str, result: Type) -> bool {
        result == Type::Status && !Self::UNFAILING.contains(&routine)
            || routine == Self::WITH_NULL
            || Self::WITH_EFFECTS.contains(&routine)
    }

    /// Returns a fault that makes the next call to a routine fail.
    #[must_use]
    pub const fn next(routine: &'static str, status: NtStatus) -> Self {
        Self { routine, status, after: 0, times: 1 }
    }
}

/// The faults that have not occurred yet.
#[derive(Default)]
pub struct Faults {
    pending: Mutex<Vec<Fault>>,
    /// Set once a fault has been added. Every write checks this flag, and most kernels never have a
    /// fault.
    any: AtomicBool,
}

impl Faults {
    /// Adds a fault.
    pub fn add(&self, fault: Fault) {
        self.any.store(true, Ordering::Release);
        self.pending.lock().push(fault);
    }

    /// Removes all pending faults.
    pub fn clear(&self) {
        self.pending.lock().clear();
    }

    /// Returns the result of a call that must fail, if a fault is due and the routine does not
    /// handle its faults itself. `result` is the routine's result type.
    pub fn result_of(&self, routine: &str, result: Type) -> Option<u64> {
        let is_any = self.any.load(Ordering::Acquire);
        if !is_any || Fault::WITH_EFFECTS.contains(&routine) {
            None
        } else if result == Type::Status {
            self.take(routine).map(NtStatus::to_register)
        } else {
            self.take(routine).map(|_| 0)
        }
    }

    /// Returns the status with which a call to a routine must fail, if a fault is due.
    pub fn take(&self, routine: &str) -> Option<NtStatus> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        let mut faults = self.pending.lock();
        let at = faults.iter().position(|fault| fault.routine == routine)?;
        let fault = faults.get_mut(at)?;
        if fault.after > 0 {
            fault.after -= 1;
            return None;
        }
        let status = fault.status;
        fault.times = fault.times.saturating_sub(1);
        if fault.times == 0 {
            faults.remove(at);
        }
        Some(status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::composition::exports;

    #[test]
    fn routines_that_return_a_status_support_faults() {
        let routines = Fault::routines();
        let is_supported = |name: &&str| routines.contains(name);
        let with_status = ["IoCreateDevice", "WdfVersionBind", "WdfDeviceCreate", "ZwCreateFile"];
        assert!(with_status.iter().all(is_supported));
        assert!(Fault::WITH_EFFECTS.iter().all(is_supported) && is_supported(&Fault::WITH_NULL));
        // These routines return a pointer, nothing, a Boolean value, and a number.
        let others = ["IoAllocateIrp", "KeInitializeEvent", "KeSetTimer", "DbgPrint"];
        let provided = |name: &&str| {
            exports::gateways().entries().iter().any(|one| one.declaration.name == *name)
        };
        assert!(Fault::UNFAILING.iter().all(|name| provided(name) && !is_supported(name)));
        assert!(!others.iter().any(is_supported));
    }

    #[test]
    fn a_failed_routine_returns_the_status_or_null() {
        let faults = Faults::default();
        let rows = [("ZwClose", Type::Status, 0xC000_0017), (Fault::WITH_NULL, Type::Word, 0)];
        for (routine, result, expected) in rows {
            faults.add(Fault::next(routine, NtStatus::NO_MEMORY));
            assert_eq!(faults.result_of(routine, result), Some(expected));
            assert_eq!(faults.result_of(routine, result), None);
        }
        faults.add(Fault::next("EtwRegister", NtStatus::NO_MEMORY));
        assert_eq!(faults.result_of("EtwRegister", Type::Status), None);
    }

    #[test]
    fn a_fault_skips_after_calls_then_applies_times_calls() {
        let faults = Faults::default();
        faults.add(Fault {
            routine: "EtwWriteEx",
            status: NtStatus::NO_MEMORY,
            after: 1,
            times: 2,
        });
        assert_eq!(faults.take("EtwRegister"), None);
        let taken: Vec<_> = (0..5).map(|_| faults.take("EtwWriteEx").is_some()).collect();
        assert_eq!(taken, [false, true, true, false, false]);
    }
}
