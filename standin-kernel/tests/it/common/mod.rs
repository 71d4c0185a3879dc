//! The paths of the built drivers, for all tests.

use std::{
    fs, io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use standin_kernel::{BugCheck, Device, Driver, Identity, Kernel, KernelError};

/// The process that opens devices, where a test needs only one.
pub const CLIENT: Identity = Identity { process: 10, thread: 11 };

/// Returns the path of a driver's image for a profile, `debug` or `release`.
pub fn driver(profile: &str, name: &str) -> PathBuf {
    let path = etw_test_support::drivers(profile).join(name);
    assert!(
        path.exists(),
        "{} does not exist; `cargo xtask test` builds it before it runs the tests",
        path.display()
    );
    path
}

/// Returns the path of the sample driver's release build.
pub fn sample() -> PathBuf {
    driver("release", "etw_sample_driver.sys")
}

/// Returns the path of a driver for a USB device, a filter driver, or a driver for a device with an
/// interrupt: `usb`, `filter` or `interrupt`.
pub fn hardware(name: &str) -> PathBuf {
    driver("release", &format!("etw_{name}_driver.sys"))
}

/// Returns the path of the guide's driver.
pub fn minimal() -> PathBuf {
    driver("release", "etw_minimal_driver.sys")
}

/// Returns the path of the driver with several providers.
pub fn several() -> PathBuf {
    driver("release", "etw_several_driver.sys")
}

/// Returns the path of the driver that traces with the published crate `tracelogging`.
pub fn tracelogging() -> PathBuf {
    driver("release", "etw_tracelogging_driver.sys")
}

/// Returns the path of the driver that traces by WPP.
pub fn wpp() -> PathBuf {
    driver("release", "etw_wpp_driver.sys")
}

/// Returns the path of a variant of the driver in C.
pub fn c_driver(variant: &str) -> PathBuf {
    driver("release", &format!("etw_c_driver_{variant}.sys"))
}

/// Returns the path of the driver in C that raises exceptions.
pub fn c_exceptions() -> PathBuf {
    driver("release", "etw_c_exceptions.sys")
}

/// Returns the path of the driver in C that prints the results of routines.
pub fn c_statuses() -> PathBuf {
    driver("release", "etw_c_statuses.sys")
}

/// Returns the path of the driver that calls routines that user-mode programs also have. A program
/// with the same source is beside it.
pub fn c_routines() -> PathBuf {
    driver("release", "etw_c_routines.sys")
}

/// Returns the path of the driver whose service name selects its behavior.
pub fn rules_driver() -> PathBuf {
    driver("release", "etw_rules_driver.sys")
}

/// Returns the path of the driver whose device controls select its use of the framework.
pub fn kmdf() -> PathBuf {
    driver("release", "etw_kmdf_driver.sys")
}

/// Returns the path of the WDM driver.
pub fn wdm() -> PathBuf {
    driver("release", "etw_wdm_driver.sys")
}

/// Returns the path of the Plug and Play WDM driver.
pub fn wdm_pnp() -> PathBuf {
    driver("release", "etw_wdm_pnp_driver.sys")
}

/// Returns the path of the driver whose service name selects the kernel routines that it calls.
pub fn kernel() -> PathBuf {
    driver("release", "etw_kernel_driver.sys")
}

/// Returns the file name and number of the line that a comment in the rules driver marks.
pub fn line_of(service: &str) -> String {
    let file = "tests/drivers/rules/src/findings.rs";
    let text = fs::read_to_string(etw_test_support::root().join(file)).unwrap();
    let mark = format!("// BUG: {service}");
    let at = text.lines().position(|line| line.trim_end().ends_with(&mark));
    let at = at.unwrap_or_else(|| panic!("{mark} is not in {file}"));
    format!("{file}:{}", at + 1)
}

/// Creates a symbolic link to a folder.
pub fn link(folder: impl AsRef<Path>, link: PathBuf) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::symlink(folder, link);
    #[cfg(windows)]
    return std::os::windows::fs::symlink_dir(folder, link);
}

/// Runs `standin-kernel run` with the sample driver. Returns whether it succeeded, and its output.
pub fn run(folder: &Path, script: &str, arguments: &[&str]) -> (bool, String) {
    let file = folder.join("script.txt");
    fs::write(&file, script).unwrap();
    let output = run_command(sample(), folder.join("out.etl"))
        .arg("--script")
        .arg(&file)
        .args(arguments)
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}

/// Runs a test with each of `seeds` seeds, several at a time. Fails with a list of the failing
/// seeds.
///
/// The first seed runs alone and performs one-time initialization, because `ThreadSanitizer` does not
/// see the standard library's synchronization for it.
pub fn for_each_seed(seeds: u64, test: impl Fn(u64) + Sync) {
    let failed = Mutex::new(Vec::new());
    let run = |seed| {
        if catch_unwind(AssertUnwindSafe(|| test(seed))).is_err() {
            failed.lock().unwrap().push(seed);
        }
    };
    if seeds > 0 {
        run(0);
    }
    let next = AtomicU64::new(1);
    let work = || {
        while failed.lock().unwrap().is_empty() {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds {
                break;
            }
            run(seed);
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        // `ThreadSanitizer` recognizes the synchronization by a join, but not by the end of a scope.
        for worker in workers {
            worker.join().unwrap();
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "the test fails with seed {failed:?}");
}

/// Returns the `standin-kernel run` command for an image and a trace file.
pub fn run_command(image: impl AsRef<Path>, etl: impl AsRef<Path>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_standin-kernel"));
    command.arg("run").arg(image.as_ref()).arg("--etl").arg(etl.as_ref());
    if cfg!(windows) {
        // Windows cannot confine a driver completely, and the output says so.
        command.args(["--confinement", "none"]);
    }
    command
}

/// Runs a command to its end. Returns whether it succeeded, and its output.
pub fn said(command: &mut Command) -> (bool, String) {
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}

/// Loads a driver and adds a device.
#[track_caller]
pub fn started(kernel: &Kernel, image: &Path) -> (Driver, Device) {
    let driver = kernel.load(image).unwrap();
    let device = driver.add_device().unwrap();
    (driver, device)
}

/// Removes a device and unloads its driver.
#[track_caller]
pub fn leave(driver: Driver, device: &Device) {
    device.remove().unwrap();
    driver.unload().unwrap();
}

/// Returns the bugcheck of a call that must end with one.
#[track_caller]
pub fn bugcheck<T>(result: Result<T, KernelError>) -> BugCheck {
    match result {
        Err(KernelError::BugCheck(bugcheck)) => bugcheck,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("the kernel did not bugcheck"),
    }
}

/// Runs a service of the kernel test driver. The service must break a rule. Returns the bugcheck.
#[track_caller]
pub fn kernel_service_stops(kernel: &Kernel, service: &str) -> BugCheck {
    bugcheck(kernel.load_as(&self::kernel(), service).and_then(Driver::unload))
}

/// Returns the lines that drivers printed.
pub fn lines(kernel: &Kernel) -> Vec<String> {
    let output = kernel.debug_output().concat();
    output.lines().map(str::to_owned).collect()
}
