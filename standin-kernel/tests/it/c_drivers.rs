//! Tests drivers in C, built by clang with the options of WDK drivers: a security cookie, control
//! flow guard, inline functions from headers, and instructions that a driver cannot execute in the
//! stand-in kernel.

use crate::common::{self, CLIENT};
use std::{collections::BTreeSet, path::Path, time::Duration};

use etl_file::{Catalog, Trace, decode};
use standin_kernel::{
    BugCheck, Device, Driver, EnableParameters, File, Identity, Irql, Kernel, KernelConfig,
    KernelError, Rule, Schedule, SessionConfig, Target, Work, check_image,
};

/// The provider's GUID.
const PROVIDER: &str = "6b0f3a52-7c1d-4e8b-9a46-5d2c81f0e937";

/// The variants that load and start successfully.
const VARIANTS: [&str; 6] = ["od", "o2", "guard", "kernel", "no_pdb", "old_config"];

/// The control codes of tests/drivers/c/driver.c.
const fn code(number: u32) -> u32 {
    0x22_2000 | number << 2
}
const READ_STATE: u32 = code(1);
const RAISE_AND_LOWER: u32 = code(2);
const LEAVE_RAISED: u32 = code(3);
const LOAD_FORMS: u32 = code(4);
const CALL_POINTER: u32 = code(5);
const SMASH_STACK: u32 = code(6);
const CALL_WITH_DIRECTION: u32 = code(7);
const RETURN_WITH_DIRECTION: u32 = code(8);
const RETURN_WITH_CONTROL: u32 = code(9);
const READ_COUNTER: u32 = code(10);
const WAIT_BY_CLOCK: u32 = code(11);
const SET_PRIORITY: u32 = code(12);
const LARGE_FRAME: u32 = code(13);
const HUGE_FRAME: u32 = code(14);
const TRAP: u32 = code(16);

/// The number of results, eight bytes each.
const RESULTS: usize = 16;

/// A kernel with the driver, its device, and an open file.
struct Bench {
    kernel: Kernel,
    driver: Driver,
    device: Device,
    file: File,
}

impl Bench {
    fn new(variant: &str) -> Self {
        Self::with_kernel(Kernel::new(), variant)
    }

    fn with_kernel(kernel: Kernel, variant: &str) -> Self {
        let (driver, device) = common::started(&kernel, &common::c_driver(variant));
        let file = device.open(CLIENT).unwrap();
        Self { kernel, driver, device, file }
    }

    /// Sends a control code that must succeed, and returns the results.
    fn results(&self, code: u32, argument: u32) -> [u64; RESULTS] {
        results(&self.file, code, argument)
    }

    /// Closes the file, removes the device and unloads the driver.
    fn leave(self) {
        self.file.close().unwrap();
        self.device.remove().unwrap();
        self.driver.unload().unwrap();
    }
}

fn results(file: &File, code: u32, argument: u32) -> [u64; RESULTS] {
    let done = file.device_control(code, &argument.to_le_bytes(), RESULTS * 8).unwrap();
    assert!(done.status.is_success(), "{:?}", done.status);
    let mut words = done.output.chunks_exact(8);
    let results = [(); RESULTS].map(|()| words.next().unwrap());
    results.map(|word| u64::from_le_bytes(word.try_into().unwrap()))
}

/// Sends a control code to a variant, and expects a bugcheck.
fn stops(variant: &str, code: u32, argument: u32) -> BugCheck {
    let bench = Bench::new(variant);
    let argument = argument.to_le_bytes();
    let result = bench.file.device_control(code, &argument, RESULTS * 8);
    bench.kernel.leave_behind();
    match result {
        Err(KernelError::BugCheck(bugcheck)) => bugcheck,
        other => panic!("{variant} {code:X} {argument:?}: {other:?}"),
    }
}

#[test]
fn every_variant_starts_and_is_traced() {
    for variant in VARIANTS {
        let folder = tempfile::tempdir().unwrap();
        let kernel = Kernel::new();
        let session =
            kernel.start_session(SessionConfig::to_file("C", folder.path().join("c.etl"))).unwrap();
        let everything = EnableParameters { level: 5, ..EnableParameters::default() };
        let provider = Target::Provider(PROVIDER.parse().unwrap());
        kernel.enable(session, provider, everything).unwrap();
        let bench = Bench::with_kernel(kernel.clone(), variant);
        let state = bench.results(READ_STATE, 0);
        let raised = bench.results(RAISE_AND_LOWER, 0);
        assert_eq!(bench.kernel.warnings(), [], "{variant}");
        bench.leave();
        let report = kernel.stop_session(session).unwrap();
        assert_eq!(events(&report.file), expected_events(&state), "{variant}");
        assert_eq!(raised[..8], [0, 2, 2, 0, 1, 2, 0, 9], "{variant}");
    }
}

/// Returns the provider's events: the id and payload, or the name and fields.
fn events(file: &Path) -> Vec<String> {
    let trace = Trace::open(file).unwrap();
    let of_provider = trace
        .events()
        .filter(|event| event.record.provider.to_string().eq_ignore_ascii_case(PROVIDER));
    of_provider
        .map(|event| {
            if event.record.descriptor.channel != 11 {
                return format!("{} {:02x?}", event.record.descriptor.id, event.record.user_data);
            }
            let event = decode(event, &Catalog::default());
            let fields: Vec<_> =
                event.fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let provider = event.provider_name.unwrap_or_default();
            let name = event.event_name.unwrap_or_default();
            format!("{provider} {name} {}", fields.join(" "))
        })
        .collect()
}

/// Returns the events of the first two control codes.
fn expected_events(state: &[u64; RESULTS]) -> Vec<String> {
    let request = |code: u32| {
        let payload = [&code.to_le_bytes()[..], b"control\0"].concat();
        format!("1 {payload:02x?}")
    };
    let at = |irql: u32| format!("2 {:02x?}", [irql.to_le_bytes(), [0; 4]].concat());
    vec![
        request(READ_STATE),
        at(0),
        format!("Contoso.C Times Interrupt={} Ticks={}", state[5], state[7]),
        request(RAISE_AND_LOWER),
        // The second result is from the raised IRQL, and from the DPC that ran when it was lowered.
        at(2),
        at(2),
    ]
}

#[test]
fn inline_functions_read_what_the_exports_do() {
    for variant in ["od", "o2"] {
        let bench = Bench::new(variant);
        let [irql, exported, thread, number, index, interrupt, system, ticks, precise, rest @ ..] =
            bench.results(READ_STATE, 0);
        assert_eq!((irql, exported), (0, 0));
        assert!(thread != 0);
        assert_eq!((number, index), (0, 0));
        assert_eq!(interrupt % 156_250, 0);
        assert_eq!(interrupt / 156_250, ticks);
        // The coarse time is at most one tick behind the precise time.
        assert!(system <= precise && precise - system <= 2 * 156_250);
        assert_eq!(rest[..3], [10, 0x0FA0_0000, 0x180]);
        // KPRCB contains the same thread.
        assert_eq!(rest[3], thread);
        bench.kernel.advance(Duration::from_secs(1)).unwrap();
        let later = bench.results(READ_STATE, 0);
        assert_eq!(later[2], thread);
        assert!(later[7] - ticks >= 63, "{} {ticks}", later[7]);
        assert_eq!(later[6] - system, later[5] - interrupt);
        bench.leave();
    }
}

// The WDK's libraries lack __chkstk, because ntoskrnl.exe exports it.
#[test]
fn large_frames_are_probed_by_the_kernels_routine() {
    for variant in VARIANTS {
        let bench = Bench::new(variant);
        assert_eq!(bench.results(LARGE_FRAME, 0)[0], 4321, "{variant}");
        bench.leave();
    }
    let bugcheck = stops("o2", HUGE_FRAME, 0);
    assert_eq!(bugcheck.code, 0x7F);
    for part in ["kernel stack of 24 KiB overflowed", "HugeFrame"] {
        assert!(bugcheck.message.contains(part), "{bugcheck}");
    }
}

#[test]
fn loads_have_their_width_extension_and_flags() {
    let bench = Bench::new("o2");
    let found = bench.results(LOAD_FORMS, 0);
    let image = 0x8664_u16.cast_signed();
    let expected = [
        // NtMajorVersion is 10. NtMinorVersion, which follows it, is 0.
        10,
        10,
        0x1122_000A,
        0x1122_330A,
        10,
        i64::from(image).cast_unsigned(),
        10,
        1,
        1,
        15,
        10,
        // The bytes are NtProductType, ProductTypeIsValid and the architecture.
        0x0009_0001_0000_0001,
        1,
        0,
        0,
        0,
    ];
    assert_eq!(found, expected);
    bench.leave();
}

#[test]
fn a_loop_until_the_shared_time_has_passed_ends() {
    let bench = Bench::new("o2");
    let [waited, looks, ..] = bench.results(WAIT_BY_CLOCK, 0);
    assert!(waited >= 100_000, "{waited}");
    assert!(looks > 1, "{looks}");
    let counter = bench.results(READ_COUNTER, 0);
    assert!(counter[0] > 0);
    bench.leave();
}

#[test]
fn each_processor_has_its_number_and_each_thread_its_object() {
    let kernel = Kernel::with_config(KernelConfig { processors: 2, ..KernelConfig::default() });
    let bench = Bench::with_kernel(kernel, "o2");
    let (sender, receiver) = std::sync::mpsc::channel();
    let work: Vec<Work> = [1, 2]
        .map(|thread| -> Work {
            let file = bench.device.open(Identity { process: 9, thread }).unwrap();
            let sender = sender.clone();
            Box::new(move || {
                for _ in 0..50 {
                    let state = results(&file, READ_STATE, 0);
                    sender.send((state[3], state[2])).unwrap();
                }
                file.close().unwrap();
            })
        })
        .into();
    bench.kernel.together(Schedule::Parallel, work).unwrap();
    drop(sender);
    let seen: BTreeSet<(u64, u64)> = receiver.into_iter().collect();
    let processors: BTreeSet<u64> = seen.iter().map(|(processor, _)| *processor).collect();
    assert_eq!(processors, [0, 1].into());
    bench.leave();
}

#[test]
fn routines_take_the_thread_that_the_inline_function_returns() {
    let bench = Bench::new("o2");
    assert_eq!(bench.results(SET_PRIORITY, 0)[..2], [8, 9]);
    bench.leave();
}

#[test]
fn an_irql_that_is_left_raised_is_reported_with_its_place() {
    let bugcheck = stops("od", LEAVE_RAISED, 0);
    assert_eq!(bugcheck.code, 0xC4);
    for part in [
        "returned at DISPATCH_LEVEL (2)",
        "mov cr8 raised the IRQL from tests/drivers/c/inline.h:",
        "and nothing lowered it",
    ] {
        assert!(bugcheck.message.contains(part), "{part}: {bugcheck}");
    }
}

#[test]
fn guarded_calls_reach_their_targets() {
    for variant in ["guard", "kernel", "o2"] {
        let bench = Bench::new(variant);
        assert_eq!(bench.results(CALL_POINTER, 0)[0], 42);
        assert_eq!(bench.results(CALL_POINTER, 1)[0], 63);
        bench.leave();
    }
}

#[test]
fn an_overrun_buffer_fails_fast_by_the_cookie() {
    let bench = Bench::new("o2");
    bench.results(SMASH_STACK, 16);
    bench.leave();
    let bugcheck = stops("o2", SMASH_STACK, 25);
    assert_eq!((bugcheck.code, bugcheck.parameters[0]), (0x139, 2));
    assert!(bugcheck.message.contains("FAST_FAIL_STACK_COOKIE_CHECK_FAILURE"), "{bugcheck}");
}

#[test]
fn an_image_whose_cookie_the_loader_cannot_find_fails_fast_at_its_entry() {
    let bugcheck = common::bugcheck(Kernel::new().load(&common::c_driver("no_config")));
    assert_eq!((bugcheck.code, bugcheck.parameters[0]), (0x139, 6));
}

#[test]
fn an_image_without_relocations_is_refused_with_the_reason() {
    let error = check_image(&common::c_driver("fixed")).unwrap_err().to_string();
    for part in ["its relocations were stripped", "link it without /FIXED"] {
        assert!(error.contains(part), "{error}");
    }
}

/// The instructions that cause exceptions: the argument, the bugcheck's code and first parameter,
/// and part of the message.
const TRAPS: [(u32, u32, u64, &str); 27] = [
    (0, 0x139, 3, "FAST_FAIL_CORRUPT_LIST_ENTRY (3)"),
    (1, 0x1E, 0xC000_0096, "privileged instruction `cli`"),
    (2, 0x1E, 0xC000_0096, "privileged instruction `sti`"),
    (3, 0x1E, 0xC000_0096, "privileged instruction `hlt`"),
    (4, 0x1E, 0xC000_0096, "privileged instruction `rdmsr`"),
    (5, 0x1E, 0xC000_0096, "privileged instruction `wrmsr`"),
    (6, 0x1E, 0xC000_001D, "instruction `syscall`"),
    (7, 0x1E, 0xC000_0096, "privileged instruction `in al, 60h`"),
    (8, 0x1E, 0xC000_0096, "privileged instruction `out 80h, al`"),
    (9, 0x1E, 0x8000_0003, "breakpoint"),
    (10, 0x1E, 0x8000_0003, "`int 2Dh`"),
    (11, 0x1E, 0xC000_001D, "illegal instruction `ud2`"),
    (12, 0x1E, 0xC000_0094, "division by zero"),
    (13, 0x1E, 0xC000_0095, "overflow of a division"),
    (14, 0x1E, 0xC000_001D, "instruction `int 80h`"),
    (15, 0x1E, 0xC000_001D, "`sysenter`"),
    (16, 0x1E, 0xC000_0420, "failed assertion"),
    (17, 0x1E, 0x8000_0004, "single step"),
    (18, 0x10D, 0, "a read of 4 bytes at gs:[0x2D8]"),
    (19, 0x10D, 0, "a read of 4 bytes at offset 0x330 of the shared user data page"),
    (20, 0x10D, 0, "a write at offset 0x320 of the shared user data page"),
    (21, 0x10D, 0, "a write at gs:[0x184]"),
    (22, 0x1E, 0xC000_0005, "with 0x12, which is not an IRQL"),
    (23, 0x1E, 0xC000_0005, "is in the object of thread"),
    (24, 0x1E, 0xC000_0096, "privileged instruction `mov rax, cr3`"),
    (25, 0x10D, 0, "the stand-in kernel does not provide it"),
    (26, 0x1E, 0x8000_0002, "alignment check"),
];

#[test]
fn each_instruction_that_a_driver_cannot_execute_is_named() {
    for (argument, code, parameter, part) in TRAPS {
        // Wine clears the flag AC and repeats the access.
        if cfg!(windows) && argument == 26 {
            continue;
        }
        for variant in ["od", "o2", "no_pdb"] {
            let bugcheck = stops(variant, TRAP, argument);
            let found = (bugcheck.code, bugcheck.parameters[0]);
            assert_eq!(found, (code, parameter), "{variant} {argument}: {bugcheck}");
            assert!(bugcheck.message.contains(part), "{variant} {argument}: {bugcheck}");
            assert_eq!(bugcheck.irql, Irql::PASSIVE_LEVEL);
            // The place is a line or, if there is no PDB, an offset. `sysenter` loses both.
            let place = match variant {
                _ if argument == 15 => "",
                "no_pdb" => "etw_c_driver_no_pdb.sys+0x",
                _ => "tests/drivers/c/",
            };
            assert!(bugcheck.message.contains(place), "{variant} {argument}: {bugcheck}");
        }
    }
}

#[test]
fn the_direction_flag_is_put_back_and_reported() {
    for (code, words) in [
        (CALL_WITH_DIRECTION, "KeGetCurrentIrql was called at"),
        (RETURN_WITH_DIRECTION, "EvtIoDeviceControl"),
    ] {
        let bench = Bench::new("o2");
        bench.results(code, 0);
        let warnings = bench.kernel.warnings();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert_eq!(warnings[0].rule, Rule::DirectionFlag);
        for part in [words, "with the direction flag set"] {
            assert!(warnings[0].message.contains(part), "{warnings:?}");
        }
        bench.leave();
    }
}

#[test]
fn floating_point_control_is_put_back_and_reported() {
    for (argument, register) in [(0, "MXCSR"), (1, "the x87 control word")] {
        let bench = Bench::new("o2");
        bench.results(RETURN_WITH_CONTROL, argument);
        let warnings = bench.kernel.warnings();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert_eq!(warnings[0].rule, Rule::FloatControl);
        assert!(warnings[0].message.contains(register), "{warnings:?}");
        bench.leave();
    }
}

#[test]
fn a_system_that_cannot_report_system_calls_says_so_for_such_images() {
    const NOTE: &str = "contains the bytes of an instruction that makes system calls";
    let folder = tempfile::tempdir().unwrap();
    let run = |image: &Path, setting: &str| {
        let mut command = common::run_command(image, folder.path().join("c.etl"));
        let (good, said) = common::said(command.env("WDK_ETW_SYSTEM_CALLS", setting));
        assert!(good, "{said}");
        said
    };
    let driver = common::c_driver("o2");
    let said = run(&driver, "made");
    assert!(said.contains(NOTE), "{said}");
    assert!(!run(&driver, "").contains(NOTE));
}
