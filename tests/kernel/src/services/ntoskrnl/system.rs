//! Bugchecks, waits, IRQLs, clocks, ids and counted strings.

use etl_file::LogFileHeader;

use super::context::Context;
use crate::{
    execution::routine::low_half,
    ground::{abi::UnicodeString, clock::Clock, irql::Irql, memory, rule::Rule},
    services::{kmdf::timer::run_timers, strings::read_unicode_string, verifier::Verifier},
};

pub fn ke_bug_check_ex(context: &Context, code: u64, p1: u64, p2: u64, p3: u64, p4: u64) -> u64 {
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
pub fn ke_delay_execution_thread(
    context: &Context,
    _mode: u64,
    _alertable: u64,
    interval: u64,
) -> u64 {
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
    let clock = context.clock();
    let until = if interval < 0 {
        clock.last().saturating_sub(interval)
    } else {
        interval.saturating_sub(clock.boot_time())
    };
    run_timers(&context.kmdf(), until);
    0
}

pub fn ke_get_current_irql(context: &Context) -> u64 {
    u64::from(context.irql().number())
}

pub fn kf_raise_irql(context: &Context, to: u64) -> u64 {
    let before = context.raise_irql(Irql::from_number((to & 0xF) as u8));
    u64::from(before.number())
}

pub fn ke_lower_irql(context: &Context, to: u64) -> u64 {
    context.lower_irql(Irql::from_number((to & 0xF) as u8));
    0
}

pub fn ke_query_performance_counter(context: &Context, frequency: u64) -> u64 {
    if frequency != 0 {
        context.write(frequency, &Clock::FREQUENCY);
    }
    context.clock().counter().cast_unsigned()
}

pub fn ke_query_system_time_precise(context: &Context, time: u64) -> u64 {
    let clock = context.clock();
    context.write(time, &clock.file_time(clock.counter()));
    0
}

/// Returns the address of a routine that this kernel has, or null.
pub fn mm_get_system_routine_address(context: &Context, name: u64) -> u64 {
    let name = read_unicode_string(context, name);
    context.address_of(&name).unwrap_or(0)
}

/// Writes the version of Windows that traces name: 10.0, without a service pack. Returns `FALSE`, since
/// the kernel is no checked build.
pub fn ps_get_version(context: &Context, major: u64, minor: u64, build: u64, pack: u64) -> u64 {
    let LogFileHeader {
        os_major,
        os_minor,
        os_build,
        ..
    } = LogFileHeader::default();
    let numbers = [
        (major, u32::from(os_major)),
        (minor, u32::from(os_minor)),
        (build, os_build),
    ];
    for (address, number) in numbers.into_iter().filter(|(address, _)| *address != 0) {
        context.write(address, &number);
    }
    if pack != 0 {
        context.write(
            pack,
            &UnicodeString {
                length: 0,
                maximum_length: 0,
                reserved: 0,
                buffer: 0,
            },
        );
    }
    0
}

pub fn ps_get_current_process_id(context: &Context) -> u64 {
    u64::from(context.identity().process)
}

pub fn ps_get_current_thread_id(context: &Context) -> u64 {
    u64::from(context.identity().thread)
}

/// Copies as much as fits in the destination. A null source empties the destination.
pub fn rtl_copy_unicode_string(context: &Context, destination: u64, source: u64) -> u64 {
    let mut to: UnicodeString = context.read(destination);
    let bytes: Vec<u8> = if source == 0 {
        Vec::new()
    } else {
        read_unicode_string(context, source)
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect()
    };
    let length = bytes.len().min(usize::from(to.maximum_length)) & !1;
    let (copied, _) = bytes.split_at(length);
    if let Err(error) = memory::write_bytes(to.buffer, copied) {
        context.stop_for_address(error);
    }
    to.length = u16::try_from(length).unwrap_or(u16::MAX - 1);
    if to.maximum_length - to.length >= 2 {
        context.write(to.buffer + u64::from(to.length), &0_u16);
    }
    context.write(destination, &to);
    0
}

pub fn rtl_init_unicode_string(context: &Context, destination: u64, source: u64) -> u64 {
    /// The longest string that the length field can count.
    const MAX_LENGTH: u16 = 0xFFFC;
    let mut length = 0_u16;
    if source != 0 {
        while length < MAX_LENGTH && context.read::<u16>(source + u64::from(length)) != 0 {
            length += 2;
        }
    }
    context.write(
        destination,
        &UnicodeString {
            length,
            maximum_length: if source == 0 { 0 } else { length + 2 },
            reserved: 0,
            buffer: source,
        },
    );
    0
}
