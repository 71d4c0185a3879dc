//! Fault injection: routines that fail on demand.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::ground::status::NtStatus;

/// A failure to inject into a routine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The routine, one of [`Fault::ROUTINES`].
    pub routine: &'static str,
    /// The status that the routine returns. `ExAllocatePool2` and `WdfControlDeviceInitAllocate`
    /// return null whatever the status.
    pub status: NtStatus,
    /// The number of calls that succeed before the first failure.
    pub after: u32,
    /// The number of calls that fail.
    pub times: u32,
}

impl Fault {
    /// The routines that support fault injection: all provided ones that can fail.
    pub const ROUTINES: &'static [&'static str] = &[
        "EtwRegister",
        "EtwUnregister",
        "EtwSetInformation",
        "EtwWriteEx",
        "EtwActivityIdControl",
        "EtwRegisterClassicProvider",
        "ExAllocatePool2",
        "EtwWrite",
        "EtwWriteString",
        "EtwWriteTransfer",
        "IoWMIRegistrationControl",
        "IoWMIWriteEvent",
        "KeDelayExecutionThread",
        "WdfControlDeviceInitAllocate",
        "WdfDeviceConfigureRequestDispatching",
        "WdfDeviceCreate",
        "WdfDeviceCreateDeviceInterface",
        "WdfDeviceCreateSymbolicLink",
        "WdfDeviceInitAssignName",
        "WdfDeviceInitAssignSDDLString",
        "WdfDpcCreate",
        "WdfDriverCreate",
        "WdfDriverOpenParametersRegistryKey",
        "WdfIoQueueCreate",
        "WdfIoQueueFindRequest",
        "WdfIoQueueReadyNotify",
        "WdfIoQueueRetrieveFoundRequest",
        "WdfIoQueueRetrieveNextRequest",
        "WdfIoQueueRetrieveRequestByFileObject",
        "WdfMemoryAssignBuffer",
        "WdfMemoryCopyFromBuffer",
        "WdfMemoryCopyToBuffer",
        "WdfMemoryCreate",
        "WdfMemoryCreatePreallocated",
        "WdfObjectAllocateContext",
        "WdfObjectCreate",
        "WdfRegistryAssignULong",
        "WdfRegistryQueryString",
        "WdfRegistryQueryULong",
        "WdfRegistryQueryUnicodeString",
        "WdfRegistryQueryValue",
        "WdfRequestForwardToIoQueue",
        "WdfRequestMarkCancelableEx",
        "WdfRequestRequeue",
        "WdfRequestRetrieveInputBuffer",
        "WdfRequestRetrieveInputMemory",
        "WdfRequestRetrieveOutputBuffer",
        "WdfRequestRetrieveOutputMemory",
        "WdfRequestUnmarkCancelable",
        "WdfSpinLockCreate",
        "WdfStringCreate",
        "WdfTimerCreate",
        "WdfWaitLockAcquire",
        "WdfWaitLockCreate",
        "WdfWorkItemCreate",
        "WmiQueryTraceInformation",
        "WmiTraceMessage",
        "WmiTraceMessageVa",
    ];

    /// The routines at the start of [`Self::ROUTINES`], which check for their faults themselves
    /// because their failures have effects.
    const WITH_EFFECTS: usize = 7;

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
    /// Set once a fault was added. Every write checks this flag, and most kernels never have a
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
    /// check for it itself.
    pub fn result_of(&self, routine: &str) -> Option<u64> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        let at = Fault::ROUTINES.iter().position(|name| *name == routine)?;
        if at < Fault::WITH_EFFECTS {
            return None;
        }
        let status = self.take(routine)?;
        Some(match routine {
            "WdfControlDeviceInitAllocate" => 0,
            _ => status.to_register(),
        })
    }

    /// Returns the status that a call to a routine must fail with, if a fault is due.
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
    use crate::services::kmdf::table;

    #[test]
    fn every_provided_routine_that_can_fail_supports_faults() {
        let text = etw_test_support::read_headers("functions.json");
        let data: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        for name in table::provided().keys() {
            let fails = data["functions"][name]["return_type"] == "NTSTATUS";
            assert!(!fails || Fault::ROUTINES.contains(name), "{name}");
        }
        let mut names = Fault::ROUTINES.to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Fault::ROUTINES.len());
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
