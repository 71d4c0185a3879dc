//! What ntoskrnl.exe exports to drivers, ETW aside (see [`crate::etw`]).
//! `docs/reference/kernel-exports.md` has the sources of the usual ones' highest IRQLs.

use crate::{
    abi::UnicodeString,
    etw,
    gateway::Export,
    irql::Irql,
    kmdf::read_unicode_string,
    memory,
    pool::{FreeError, Tag, Wanted},
    thread::{self, Thread},
    verifier::Rule,
};

/// The module's name.
pub const MODULE: &str = "ntoskrnl.exe";

const POOL_FLAG_UNINITIALIZED: u64 = 0x2;
const POOL_FLAG_NON_PAGED: u64 = 0x40;
const POOL_FLAG_NON_PAGED_EXECUTE: u64 = 0x80;
const POOL_FLAG_PAGED: u64 = 0x100;

/// The exports. IRQL ceilings are the WDK headers' annotations, or, where they
/// have none, the documentation's.
pub fn exports() -> Vec<Export> {
    const PASSIVE: Irql = Irql::PASSIVE_LEVEL;
    const DISPATCH: Irql = Irql::DISPATCH_LEVEL;
    const HIGH: Irql = Irql::HIGH_LEVEL;
    let mut exports: Vec<Export> = vec![
        ("DbgPrint", HIGH, dbg_print as *const () as u64),
        ("DbgPrintEx", HIGH, dbg_print_ex as *const () as u64),
        (
            "ExAllocatePool2",
            DISPATCH,
            ex_allocate_pool2 as *const () as u64,
        ),
        ("ExFreePool", DISPATCH, ex_free_pool as *const () as u64),
        (
            "ExFreePoolWithTag",
            DISPATCH,
            ex_free_pool_with_tag as *const () as u64,
        ),
        ("KeBugCheckEx", HIGH, ke_bug_check_ex as *const () as u64),
        (
            "KeDelayExecutionThread",
            Irql::APC_LEVEL,
            ke_delay_execution_thread as *const () as u64,
        ),
        (
            "KeGetCurrentIrql",
            HIGH,
            ke_get_current_irql as *const () as u64,
        ),
        ("KeLowerIrql", HIGH, ke_lower_irql as *const () as u64),
        (
            "KeQueryPerformanceCounter",
            HIGH,
            ke_query_performance_counter as *const () as u64,
        ),
        (
            "KeQuerySystemTimePrecise",
            HIGH,
            ke_query_system_time_precise as *const () as u64,
        ),
        ("KfRaiseIrql", HIGH, kf_raise_irql as *const () as u64),
        (
            "PsGetCurrentProcessId",
            HIGH,
            ps_get_current_process_id as *const () as u64,
        ),
        (
            "PsGetCurrentThreadId",
            HIGH,
            ps_get_current_thread_id as *const () as u64,
        ),
        (
            "RtlCopyUnicodeString",
            PASSIVE,
            rtl_copy_unicode_string as *const () as u64,
        ),
        (
            "RtlInitUnicodeString",
            DISPATCH,
            rtl_init_unicode_string as *const () as u64,
        ),
    ];
    exports.extend(etw::exports());
    exports
}

/// The memory routines that compiled code calls without saying so. They are no
/// calls of the kernel's: they have no gateway, no IRQL ceiling, and no place in a
/// thread's history.
pub fn memory_routine(name: &str) -> Option<u64> {
    match name {
        "memcpy" => Some(memcpy as *const () as u64),
        "memmove" => Some(memmove as *const () as u64),
        "memset" => Some(memset as *const () as u64),
        "memcmp" => Some(memcmp as *const () as u64),
        "strlen" => Some(strlen as *const () as u64),
        _ => None,
    }
}

const extern "win64" fn memcpy(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    // SAFETY: the driver's compiler vouches for its own copies; a wrong address faults
    // here as it would in the driver.
    unsafe { core::ptr::copy_nonoverlapping(from, to, count) };
    to
}

const extern "win64" fn memmove(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    // SAFETY: as for `memcpy`.
    unsafe { core::ptr::copy(from, to, count) };
    to
}

const extern "win64" fn memset(to: *mut u8, byte: i32, count: usize) -> *mut u8 {
    let [byte, ..] = byte.to_le_bytes();
    // SAFETY: as for `memcpy`.
    unsafe { core::ptr::write_bytes(to, byte, count) };
    to
}

const extern "win64" fn strlen(text: *const u8) -> usize {
    let mut length = 0;
    // SAFETY: as for `memcpy`.
    while unsafe { text.wrapping_add(length).read() } != 0 {
        length += 1;
    }
    length
}

extern "win64" fn memcmp(one: *const u8, other: *const u8, count: usize) -> i32 {
    for at in 0..count {
        // SAFETY: as for `memcpy`.
        let a = unsafe { one.wrapping_add(at).read() };
        // SAFETY: as for `memcpy`.
        let b = unsafe { other.wrapping_add(at).read() };
        if a != b {
            return i32::from(a) - i32::from(b);
        }
    }
    0
}

extern "win64" fn ex_allocate_pool2(flags: u64, size: u64, tag: u64) -> u64 {
    let thread = thread::current();
    let call = thread.call();
    let paged = flags & POOL_FLAG_PAGED != 0;
    let kinds = flags & (POOL_FLAG_PAGED | POOL_FLAG_NON_PAGED | POOL_FLAG_NON_PAGED_EXECUTE);
    if !kinds.is_power_of_two() || size == 0 {
        return 0;
    }
    if paged && call.irql > Irql::APC_LEVEL {
        thread.stop(
            Rule::IrqlTooHigh,
            format!(
                "ExAllocatePool2 was called for paged pool at {} from {}; the highest IRQL it \
                 may be called at for that is {}",
                call.irql,
                thread.shared().place(call.return_address),
                Irql::APC_LEVEL
            ),
        );
    }
    let Ok(size) = usize::try_from(size) else {
        return 0;
    };
    // The largest pool block that a real system would give is far smaller.
    if size > 1 << 30 {
        return 0;
    }
    if thread.shared().faults.take("ExAllocatePool2").is_some() {
        return 0;
    }
    let tag = Tag(low_half(tag));
    let wanted = Wanted {
        size,
        tag,
        paged,
        uninitialized: flags & POOL_FLAG_UNINITIALIZED != 0,
    };
    let shared = thread.shared();
    shared.pool().allocate(wanted, &shared.paged, call)
}

extern "win64" fn ex_free_pool(address: u64) -> u64 {
    free(&thread::current(), address, None);
    0
}

extern "win64" fn ex_free_pool_with_tag(address: u64, tag: u64) -> u64 {
    free(&thread::current(), address, Some(Tag(low_half(tag))));
    0
}

/// Frees a block; a tag of 0 matches any.
fn free(thread: &Thread, address: u64, tag: Option<Tag>) {
    let call = thread.call();
    let from = || thread.shared().place(call.return_address);
    let shared = thread.shared();
    let is_paged = shared.pool().is_paged(address) == Some(true);
    if is_paged && call.irql > Irql::APC_LEVEL {
        thread.stop(
            Rule::IrqlTooHigh,
            format!(
                "{} was called at {} from {} for a block of paged pool",
                call.name(),
                call.irql,
                from()
            ),
        );
    }
    let result = shared.pool().free(address, &shared.paged, call);
    match result {
        Ok(found) => {
            if let Some(tag) = tag.filter(|tag| tag.0 != 0 && *tag != found) {
                thread.stop(
                    Rule::BadFree,
                    format!(
                        "{} was called from {} with the tag {tag} for a block with the tag {found}",
                        call.name(),
                        from()
                    ),
                );
            }
        }
        Err(FreeError::Twice(tag, earlier)) => thread.stop(
            Rule::BadFree,
            format!(
                "{} was called from {} for a block with the tag {tag} that {} had freed from {}",
                call.name(),
                from(),
                earlier.name(),
                thread.shared().place(earlier.return_address)
            ),
        ),
        Err(FreeError::NotPool) => thread.stop(
            Rule::BadFree,
            format!(
                "{} was called from {} for 0x{address:016X}, which is no pool block",
                call.name(),
                from()
            ),
        ),
    }
}

/// The low 32 bits of a register: all that a `ULONG` argument has.
pub const fn low_half(register: u64) -> u32 {
    (register & 0xFFFF_FFFF) as u32
}

extern "win64" fn dbg_print(format: u64, a: u64, b: u64, c: u64) -> u64 {
    print(&thread::current(), format, [a, b, c])
}

extern "win64" fn dbg_print_ex(_component: u64, _level: u64, format: u64, a: u64) -> u64 {
    print(&thread::current(), format, [a, 0, 0])
}

/// Formats what drivers print, as far as arguments in registers go; what it
/// cannot format stays as it stands.
fn print(thread: &Thread, format: u64, arguments: [u64; 3]) -> u64 {
    const LIMIT: usize = 512;
    let text = |address: u64| match memory::read_c_string(address, LIMIT) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => thread.stop_for_address(error),
    };
    let format = text(format);
    let mut arguments = arguments.into_iter();
    let mut out = String::new();
    let mut rest = format.as_str();
    while let Some(at) = rest.find('%') {
        let (before, directive) = rest.split_at(at);
        out.push_str(before);
        let mut taken = 2;
        let value = match directive.as_bytes().get(1) {
            Some(b's') => arguments.next().map(text),
            Some(b'd' | b'i') => arguments
                .next()
                .map(|value| low_half(value).cast_signed().to_string()),
            Some(b'u') => arguments.next().map(|value| low_half(value).to_string()),
            Some(b'x' | b'X') => arguments
                .next()
                .map(|value| format!("{:x}", low_half(value))),
            Some(b'p') => arguments.next().map(|value| format!("{value:016X}")),
            Some(b'%') => Some("%".to_owned()),
            _ => None,
        };
        out.push_str(&value.unwrap_or_else(|| {
            taken = 1;
            "%".to_owned()
        }));
        rest = directive.get(taken..).unwrap_or_default();
    }
    out.push_str(rest);
    thread.shared().print(out);
    0
}

extern "win64" fn ke_bug_check_ex(code: u64, p1: u64, p2: u64, p3: u64, p4: u64) -> u64 {
    /// wdk-panic's code: "RPNC".
    const RUST_PANIC: u32 = u32::from_be_bytes(*b"RPNC");
    let thread = thread::current();
    let call = thread.call();
    let from = thread.shared().place(call.return_address);
    let code = low_half(code);
    let message = if code == RUST_PANIC {
        let length = usize::try_from(p2).unwrap_or(0).min(512);
        let file = memory::read_bytes(p1, length).unwrap_or_default();
        format!(
            "the driver panicked at {}:{p3}:{p4}, and called KeBugCheckEx from {from}",
            String::from_utf8_lossy(&file)
        )
    } else {
        format!("the driver called KeBugCheckEx from {from}")
    };
    thread.bugcheck(code, [p1, p2, p3, p4], message)
}

/// A wait takes virtual time only: 100 ns units, negative from now on, positive
/// since 1601.
extern "win64" fn ke_delay_execution_thread(_mode: u64, _alertable: u64, interval: u64) -> u64 {
    let thread = thread::current();
    if thread.is_in_enable_callback() {
        let call = thread.call();
        thread.stop(
            Rule::EnableCallbackBlocks,
            format!(
                "{} was called from {} in an enable callback, which must not wait",
                call.name(),
                thread.shared().place(call.return_address)
            ),
        );
    }
    let interval: i64 = thread.read(interval);
    let clock = &thread.shared().clock;
    let until = if interval < 0 {
        clock.last().saturating_sub(interval)
    } else {
        interval.saturating_sub(clock.boot_time())
    };
    crate::kmdf::run_timers(&thread, until);
    0
}

extern "win64" fn ke_get_current_irql() -> u64 {
    u64::from(thread::current().irql().number())
}

extern "win64" fn kf_raise_irql(to: u64) -> u64 {
    let before = thread::current().raise_irql(Irql::from_number((to & 0xF) as u8));
    u64::from(before.number())
}

extern "win64" fn ke_lower_irql(to: u64) -> u64 {
    thread::current().lower_irql(Irql::from_number((to & 0xF) as u8));
    0
}

extern "win64" fn ke_query_performance_counter(frequency: u64) -> u64 {
    let thread = thread::current();
    if frequency != 0 {
        thread.write(frequency, &crate::clock::Clock::FREQUENCY);
    }
    thread.shared().clock.counter().cast_unsigned()
}

extern "win64" fn ke_query_system_time_precise(time: u64) -> u64 {
    let thread = thread::current();
    let clock = &thread.shared().clock;
    thread.write(time, &clock.file_time(clock.counter()));
    0
}

extern "win64" fn ps_get_current_process_id() -> u64 {
    u64::from(thread::current().identity().process)
}

extern "win64" fn ps_get_current_thread_id() -> u64 {
    u64::from(thread::current().identity().thread)
}

/// Copies as much as the destination has room for; a null source empties it.
extern "win64" fn rtl_copy_unicode_string(destination: u64, source: u64) -> u64 {
    let thread = thread::current();
    let mut to: UnicodeString = thread.read(destination);
    let bytes: Vec<u8> = if source == 0 {
        Vec::new()
    } else {
        read_unicode_string(&thread, source)
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect()
    };
    let length = bytes.len().min(usize::from(to.maximum_length)) & !1;
    let (copied, _) = bytes.split_at(length);
    if let Err(error) = memory::write_bytes(to.buffer, copied) {
        thread.stop_for_address(error);
    }
    to.length = u16::try_from(length).unwrap_or(u16::MAX - 1);
    if to.maximum_length - to.length >= 2 {
        thread.write(to.buffer + u64::from(to.length), &0_u16);
    }
    thread.write(destination, &to);
    0
}

extern "win64" fn rtl_init_unicode_string(destination: u64, source: u64) -> u64 {
    /// The longest string that the length field can count.
    const LONGEST: u16 = 0xFFFC;
    let thread = thread::current();
    let mut length = 0_u16;
    if source != 0 {
        while length < LONGEST && thread.read::<u16>(source + u64::from(length)) != 0 {
            length += 2;
        }
    }
    thread.write(
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
