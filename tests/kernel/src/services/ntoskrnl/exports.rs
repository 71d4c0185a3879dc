//! The exports of ntoskrnl.exe, except those of ETW. `docs/reference/kernel-exports.md` lists the
//! sources of the common routines' IRQL limits.

use super::{context::Context, pool, print, system};
use crate::{
    execution::routine::{Export, Routine},
    ground::irql::Irql,
};

/// The module's name.
pub const MODULE: &str = "ntoskrnl.exe";

/// Returns the exports. The IRQL limits come from the annotations in the WDK headers or, if there
/// are none, from the documentation.
pub fn exports() -> Vec<Export<Context>> {
    const PASSIVE: Irql = Irql::PASSIVE_LEVEL;
    const DISPATCH: Irql = Irql::DISPATCH_LEVEL;
    const HIGH: Irql = Irql::HIGH_LEVEL;
    vec![
        ("DbgPrint", HIGH, Routine::Four(print::dbg_print)),
        ("DbgPrintEx", HIGH, Routine::Four(print::dbg_print_ex)),
        (
            "ExAllocatePool2",
            DISPATCH,
            Routine::Three(pool::ex_allocate_pool2),
        ),
        ("ExFreePool", DISPATCH, Routine::One(pool::ex_free_pool)),
        (
            "ExFreePoolWithTag",
            DISPATCH,
            Routine::Two(pool::ex_free_pool_with_tag),
        ),
        ("KeBugCheckEx", HIGH, Routine::Five(system::ke_bug_check_ex)),
        (
            "KeDelayExecutionThread",
            Irql::APC_LEVEL,
            Routine::Three(system::ke_delay_execution_thread),
        ),
        (
            "KeGetCurrentIrql",
            HIGH,
            Routine::Zero(system::ke_get_current_irql),
        ),
        ("KeLowerIrql", HIGH, Routine::One(system::ke_lower_irql)),
        (
            "KeQueryPerformanceCounter",
            HIGH,
            Routine::One(system::ke_query_performance_counter),
        ),
        (
            "KeQuerySystemTimePrecise",
            HIGH,
            Routine::One(system::ke_query_system_time_precise),
        ),
        ("KfRaiseIrql", HIGH, Routine::One(system::kf_raise_irql)),
        (
            "MmGetSystemRoutineAddress",
            PASSIVE,
            Routine::One(system::mm_get_system_routine_address),
        ),
        (
            "PsGetCurrentProcessId",
            HIGH,
            Routine::Zero(system::ps_get_current_process_id),
        ),
        (
            "PsGetCurrentThreadId",
            HIGH,
            Routine::Zero(system::ps_get_current_thread_id),
        ),
        (
            "PsGetVersion",
            PASSIVE,
            Routine::Four(system::ps_get_version),
        ),
        (
            "RtlCopyUnicodeString",
            PASSIVE,
            Routine::Two(system::rtl_copy_unicode_string),
        ),
        (
            "RtlInitUnicodeString",
            DISPATCH,
            Routine::Two(system::rtl_init_unicode_string),
        ),
    ]
}
