//! Bugchecks, delays, IRQLs, clocks and ids.

use super::{
    context::{Context, Entries},
    dispatcher::deadline,
    thread_objects::process_object,
    variables,
};
use crate::{
    execution::{
        coroutine::pass_time,
        routine::{Routine, low_half},
    },
    ground::{clock::Clock, irql::Irql, memory, rule::Rule},
    services::{strings::read_unicode_string, verifier::Verifier},
};

const HIGH: Irql = Irql::HIGH_LEVEL;

pub const ENTRIES: Entries = &[
    ("KeBugCheck", HIGH, Routine::One(ke_bug_check)),
    ("KeBugCheckEx", HIGH, Routine::Five(ke_bug_check_ex)),
    ("KeDelayExecutionThread", Irql::APC_LEVEL, Routine::Three(ke_delay_execution_thread)),
    ("KeGetCurrentIrql", HIGH, Routine::Zero(ke_get_current_irql)),
    ("KeLowerIrql", HIGH, Routine::One(ke_lower_irql)),
    ("KfRaiseIrql", HIGH, Routine::One(kf_raise_irql)),
    ("KeQueryPerformanceCounter", HIGH, Routine::One(ke_query_performance_counter)),
    ("KeQuerySystemTimePrecise", HIGH, Routine::One(ke_query_system_time_precise)),
    ("MmGetSystemRoutineAddress", Irql::PASSIVE_LEVEL, Routine::One(mm_get_system_routine_address)),
    ("PsGetCurrentProcessId", HIGH, Routine::Zero(ps_get_current_process_id)),
    ("PsGetCurrentThreadId", Irql::DISPATCH_LEVEL, Routine::Zero(ps_get_current_thread_id)),
];

fn ke_bug_check(context: &Context, code: u64) -> u64 {
    ke_bug_check_ex(context, code, 0, 0, 0, 0)
}

fn ke_bug_check_ex(context: &Context, code: u64, p1: u64, p2: u64, p3: u64, p4: u64) -> u64 {
    /// wdk-panic's code: "RPNC".
    const RUST_PANIC: u32 = u32::from_be_bytes(*b"RPNC");
    let from = context.caller();
    let code = low_half(code);
    let message = if code == RUST_PANIC {
        let length = usize::try_from(p2).unwrap_or(0).min(512);
        let file = memory::read_bytes(p1, length).unwrap_or_default();
        format!(
            "the driver panicked at {}:{p3}:{p4} and called KeBugCheckEx from {from}",
            String::from_utf8_lossy(&file)
        )
    } else {
        format!("the driver called KeBugCheckEx from {from}")
    };
    context.bugcheck(code, [p1, p2, p3, p4], message, &context.backtrace())
}

/// Waits in virtual time. The interval is in 100 ns units: negative ones are relative to now,
/// positive ones count from 1601.
fn ke_delay_execution_thread(context: &Context, _mode: u64, _alertable: u64, interval: u64) -> u64 {
    if Verifier::is_in_enable_callback(context) {
        context.stop(
            Rule::EnableCallbackBlocks,
            format!(
                "{} was called from {} inside an enable callback, which must not wait",
                context.call().name,
                context.caller()
            ),
        );
    }
    let interval: i64 = context.read(interval);
    pass_time(context, deadline(context, interval));
    0
}

fn ke_get_current_irql(context: &Context) -> u64 {
    u64::from(context.irql().number())
}

fn kf_raise_irql(context: &Context, to: u64) -> u64 {
    let before = context.raise_irql(Irql::from_number((to & 0xF) as u8));
    u64::from(before.number())
}

fn ke_lower_irql(context: &Context, to: u64) -> u64 {
    context.lower_irql(Irql::from_number((to & 0xF) as u8));
    0
}

fn ke_query_performance_counter(context: &Context, frequency: u64) -> u64 {
    if frequency != 0 {
        context.write(frequency, &Clock::FREQUENCY);
    }
    context.clock().counter().cast_unsigned()
}

fn ke_query_system_time_precise(context: &Context, time: u64) -> u64 {
    let clock = context.clock();
    context.write(time, &clock.file_time(clock.counter()));
    0
}

/// Returns the address of a routine that this kernel has, or null.
fn mm_get_system_routine_address(context: &Context, name: u64) -> u64 {
    let name = read_unicode_string(context, name);
    let variable = || variables::address(context.ntoskrnl(), &name);
    context.address_of(&name).or_else(variable).unwrap_or(0)
}

fn ps_get_current_process_id(context: &Context) -> u64 {
    let process = context.identity().process;
    // From now on, the driver may look for the process.
    process_object(context.ntoskrnl(), process);
    u64::from(process)
}

fn ps_get_current_thread_id(context: &Context) -> u64 {
    u64::from(context.identity().thread)
}
