//! Builds drivers with the workspaces and settings of typical authors.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use etw_test_support::root;

use crate::common;

const DRIVER: &str = include_str!("../fixture/strangers/member/Cargo.toml.in");

const LIBRARY: &str = r#"#![no_std]
#[cfg(not(of_config))]
compile_error!("the author's options are dropped");
#[cfg(feature = "extra")]
compile_error!("built with extra");
extern crate wdk_panic;
use wdk_sys::{DRIVER_OBJECT, NTSTATUS, PCUNICODE_STRING};
/// # Safety
/// Only the kernel calls this function.
#[unsafe(export_name = "DriverEntry")]
pub unsafe extern "system" fn driver_entry(
    _driver: &mut DRIVER_OBJECT,
    _path: PCUNICODE_STRING,
) -> NTSTATUS {
    0
}
"#;

/// A driver without a framework that traces with another project's crate.
const WDM: &str = include_str!("../fixture/strangers/wdm/Cargo.toml.in");

const WDM_LIBRARY: &str = r#"#![no_std]
extern crate wdk_panic;
use tracelogging::{define_provider, write_event};
use wdk_alloc::WdkAllocator;
use wdk_sys::{DRIVER_OBJECT, NTSTATUS, PCUNICODE_STRING, STATUS_SUCCESS};
#[global_allocator]
static ALLOCATOR: WdkAllocator = WdkAllocator;
define_provider!(PROVIDER, "Fabrikam.Wdm");
/// # Safety
/// Only the kernel calls this function.
#[unsafe(export_name = "DriverEntry")]
pub unsafe extern "system" fn driver_entry(
    driver: &mut DRIVER_OBJECT,
    _path: PCUNICODE_STRING,
) -> NTSTATUS {
    driver.DriverUnload = Some(unload);
    let _status = unsafe { PROVIDER.register() };
    write_event!(PROVIDER, "Loaded", str8("by", "a stranger"));
    wdk::println!("loaded");
    STATUS_SUCCESS
}
unsafe extern "C" fn unload(_driver: *mut DRIVER_OBJECT) {
    let _status = PROVIDER.unregister();
}
"#;

/// A KMDF driver that uses older versions of Microsoft's crates. `WDK` stands for the version of
/// wdk, wdk-alloc and wdk-panic; `SYS` stands for the version of wdk-sys and wdk-build.
const OLDER: &str = include_str!("../fixture/strangers/older/Cargo.toml.in");

const OLDER_LIBRARY: &str = r#"#![no_std]
extern crate alloc;
#[cfg(not(test))]
extern crate wdk_panic;
use alloc::boxed::Box;
use wdk::{paged_code, println, wdf::SpinLock};
use wdk_alloc::WdkAllocator;
use wdk_sys::{
    call_unsafe_wdf_function_binding, ntddk::KeGetCurrentIrql, APC_LEVEL, DRIVER_OBJECT, NTSTATUS,
    PCUNICODE_STRING, ULONG, WDFDEVICE, WDFDEVICE_INIT, WDFDRIVER, WDF_DRIVER_CONFIG,
    WDF_NO_HANDLE, WDF_NO_OBJECT_ATTRIBUTES, WDF_OBJECT_ATTRIBUTES,
};
#[global_allocator]
static ALLOCATOR: WdkAllocator = WdkAllocator;
#[export_name = "DriverEntry"]
pub unsafe extern "system" fn driver_entry(
    driver: &mut DRIVER_OBJECT,
    path: PCUNICODE_STRING,
) -> NTSTATUS {
    let mut config = WDF_DRIVER_CONFIG {
        Size: core::mem::size_of::<WDF_DRIVER_CONFIG>() as ULONG,
        EvtDriverDeviceAdd: Some(add),
        ..WDF_DRIVER_CONFIG::default()
    };
    unsafe {
        call_unsafe_wdf_function_binding!(
            WdfDriverCreate,
            driver,
            path,
            WDF_NO_OBJECT_ATTRIBUTES,
            &mut config,
            WDF_NO_HANDLE.cast::<WDFDRIVER>(),
        )
    }
}
extern "C" fn add(_driver: WDFDRIVER, mut init: *mut WDFDEVICE_INIT) -> NTSTATUS {
    assert!(unsafe { KeGetCurrentIrql() } <= APC_LEVEL as u8);
    paged_code!();
    let mut device = WDF_NO_HANDLE as WDFDEVICE;
    let status = unsafe {
        call_unsafe_wdf_function_binding!(
            WdfDeviceCreate,
            &mut init,
            WDF_NO_OBJECT_ATTRIBUTES,
            &mut device,
        )
    };
    if !wdk::nt_success(status) {
        return status;
    }
    let mut attributes = WDF_OBJECT_ATTRIBUTES {
        Size: core::mem::size_of::<WDF_OBJECT_ATTRIBUTES>() as ULONG,
        ExecutionLevel: wdk_sys::_WDF_EXECUTION_LEVEL::WdfExecutionLevelInheritFromParent,
        SynchronizationScope: wdk_sys::_WDF_SYNCHRONIZATION_SCOPE::WdfSynchronizationScopeInheritFromParent,
        ParentObject: device.cast(),
        ..WDF_OBJECT_ATTRIBUTES::default()
    };
    let lock = Box::new(SpinLock::create(&mut attributes).unwrap());
    lock.acquire();
    lock.release();
    println!("added with {}", 1 + 1);
    status
}
"#;

/// A driver for an older framework that declares the kernel's routines itself, and uses the
/// kernel's object types.
const WATCHER: &str = include_str!("../fixture/strangers/watcher/Cargo.toml.in");

const WATCHER_LIBRARY: &str = r#"#![no_std]
extern crate wdk_panic;
use core::{ffi::{CStr, c_char}, ptr};
use wdk_sys::{
    call_unsafe_wdf_function_binding,
    ntddk::{IoGetCurrentProcess, ObRegisterCallbacks, ObUnRegisterCallbacks},
    DRIVER_OBJECT, NTSTATUS, OB_CALLBACK_REGISTRATION, OB_FLT_REGISTRATION_VERSION,
    OB_OPERATION_HANDLE_CREATE, OB_OPERATION_REGISTRATION, OB_PREOP_CALLBACK_STATUS,
    OB_PRE_OPERATION_INFORMATION, PCUNICODE_STRING, PEPROCESS, PVOID, PsProcessType, ULONG,
    UNICODE_STRING, WDFDRIVER, WDF_DRIVER_CONFIG, WDF_NO_HANDLE, WDF_NO_OBJECT_ATTRIBUTES,
};
unsafe extern "system" {
    fn PsGetProcessImageFileName(process: PEPROCESS) -> *const c_char;
    // wdm.h does not declare this variable.
    static NtBuildNumber: *const u32;
}
static ALTITUDE: [u16; 6] = [b'3' as u16, b'2' as u16, b'1' as u16, b'0' as u16, b'0' as u16, b'0' as u16];
unsafe extern "C" fn before(
    _context: PVOID,
    _operation: *mut OB_PRE_OPERATION_INFORMATION,
) -> OB_PREOP_CALLBACK_STATUS {
    0
}
/// # Safety
/// Only the kernel calls this function.
#[unsafe(export_name = "DriverEntry")]
pub unsafe extern "system" fn driver_entry(
    driver: &mut DRIVER_OBJECT,
    path: PCUNICODE_STRING,
) -> NTSTATUS {
    let name = unsafe { CStr::from_ptr(PsGetProcessImageFileName(IoGetCurrentProcess())) };
    wdk::println!("process {name:?}, build {}", unsafe { *NtBuildNumber } & 0xFFFF > 10_000);
    let mut operation = OB_OPERATION_REGISTRATION {
        ObjectType: unsafe { PsProcessType },
        Operations: OB_OPERATION_HANDLE_CREATE,
        PreOperation: Some(before),
        PostOperation: None,
    };
    let mut registration = OB_CALLBACK_REGISTRATION {
        Version: OB_FLT_REGISTRATION_VERSION as u16,
        OperationRegistrationCount: 1,
        Altitude: UNICODE_STRING {
            Length: 12,
            MaximumLength: 12,
            Buffer: ALTITUDE.as_ptr().cast_mut(),
        },
        RegistrationContext: ptr::null_mut(),
        OperationRegistration: &raw mut operation,
    };
    let mut handle = ptr::null_mut();
    let status = unsafe { ObRegisterCallbacks(&raw mut registration, &raw mut handle) };
    wdk::println!("registered: {status:#x}");
    if status >= 0 {
        unsafe { ObUnRegisterCallbacks(handle) };
    }
    let mut config = WDF_DRIVER_CONFIG {
        Size: size_of::<WDF_DRIVER_CONFIG>() as ULONG,
        DriverInitFlags: wdk_sys::_WDF_DRIVER_INIT_FLAGS::WdfDriverInitNonPnpDriver as ULONG,
        EvtDriverUnload: Some(unload),
        ..WDF_DRIVER_CONFIG::default()
    };
    unsafe {
        call_unsafe_wdf_function_binding!(
            WdfDriverCreate,
            driver,
            path,
            WDF_NO_OBJECT_ATTRIBUTES,
            &mut config,
            WDF_NO_HANDLE.cast::<WDFDRIVER>(),
        )
    }
}
unsafe extern "C" fn unload(_driver: WDFDRIVER) {}
"#;

const CONFIG: &str = r#"[build]
rustflags = ["--cfg", "of_config", "--check-cfg", "cfg(of_config)", "-C", "linker=nowhere"]
"#;

const PROFILE: &str = "[profile.release]\npanic = \"abort\"\n";

/// Returns a build script that runs `cargo etw`, for example to write a manifest.
fn build_script() -> String {
    let program = env!("CARGO_BIN_EXE_cargo-etw");
    format!(
        "fn main() -> Result<(), wdk_build::ConfigError> {{
            assert_ne!(std::env::var(\"RUSTC_BOOTSTRAP\").as_deref(), Ok(\"1\"));
            let etw = std::process::Command::new({program:?}).args([\"etw\", \"--version\"]).status();
            assert!(etw.unwrap().success());
            wdk_build::configure_wdk_binary_build()
        }}"
    )
}

fn write(path: &Path, contents: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, contents).unwrap();
}

fn etw(folder: &Path, arguments: &[&str], target: Option<&Path>) -> Output {
    let mut command = common::command(folder, &["build", "--release"]);
    let [_, build_folder] = common::shared();
    command.args(arguments).envs([build_folder]);
    if let Some(target) = target {
        command.env("CARGO_TARGET_DIR", target);
    }
    command.output().unwrap()
}

#[track_caller]
fn errors(output: &Output, is_success: bool) -> String {
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.success(), is_success, "{errors}");
    errors
}

/// Runs `cargo etw build` with a fake rustc and without the rest of the toolchain, except for
/// cargo.
#[cfg(unix)]
fn with_rustc(version: &str) -> Option<String> {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    // Debian's toolchain is recent enough, so the build does not reject it.
    if Path::new("/usr/bin/cargo").exists() {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let (driver, programs) = (folder.path().join("driver"), folder.path().join("bin"));
    write(&driver.join("Cargo.toml"), &format!("{DRIVER}[workspace]\n"));
    write(&driver.join("src/lib.rs"), LIBRARY);
    let script = "#!/bin/sh\n[ \"$1\" = --version ] && echo rustc VERSION.0\n";
    let rustc = programs.join("rustc");
    write(&rustc, &script.replace("VERSION", version));
    fs::set_permissions(&rustc, fs::Permissions::from_mode(0o755)).unwrap();
    symlink(env!("CARGO"), programs.join("cargo")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_cargo-etw"))
        .current_dir(&driver)
        .env("PATH", &programs)
        .args(["etw", "build"])
        .output()
        .unwrap();
    Some(errors(&output, false))
}

#[test]
#[cfg(unix)]
fn an_old_toolchain_is_refused() {
    let Some(shown) = with_rustc("1.91") else {
        return;
    };
    assert!(shown.contains("needs Rust 1.95 or later, but rustc is 1.91"), "{shown}");
    assert!(shown.contains("`cargo +1.95 etw build`"), "{shown}");
}

#[test]
#[cfg(unix)]
fn packages_are_not_installed_without_a_yes() {
    let Some(shown) = with_rustc("1.95") else {
        return;
    };
    assert!(shown.contains("rustup is not installed"), "{shown}");
    assert!(shown.contains("`sudo apt-get install"), "{shown}");
    assert!(shown.contains("`cargo etw build --install`"), "{shown}");
}

#[test]
fn a_toolchain_that_is_not_installed_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let driver = folder.path();
    write(&driver.join("Cargo.toml"), &format!("{DRIVER}[workspace]\n"));
    write(&driver.join("src/lib.rs"), LIBRARY);
    write(&driver.join("rust-toolchain.toml"), "[toolchain]\nchannel = \"nowhere\"\n");
    // The cargo that runs the tests passes its toolchain to the programs that it starts.
    let output =
        common::command(driver, &["build"]).env_remove("RUSTUP_TOOLCHAIN").output().unwrap();
    let shown = String::from_utf8_lossy(&output.stderr);
    // Without rustup, the file has no effect.
    if shown.contains("nowhere") {
        assert!(shown.starts_with("error: cargo cannot run in "), "{shown}");
        assert!(shown.contains("'nowhere'") && shown.trim_end().lines().count() == 1, "{shown}");
    }
}

/// Tests that build drivers; `cargo xtask test` runs them in parallel with the other tests.
mod built_drivers {
    use super::*;

    #[test]
    #[ignore = "needs the cross toolchain; `cargo xtask test` runs it"]
    fn drivers_are_built_in_every_layout_with_the_authors_settings() {
        let all = tempfile::tempdir().unwrap();
        let all = all.path();
        let driver = all.join("driver");
        write(
            &all.join("Cargo.toml"),
            &format!(
                "[workspace]\nmembers = [\"driver\", \"plugin\"]\nresolver = \"3\"\n{PROFILE}"
            ),
        );
        write_lock(all);
        write(&driver.join("Cargo.toml"), DRIVER);
        write(&driver.join("src/lib.rs"), LIBRARY);
        write(&driver.join("build.rs"), &build_script());
        // A program, and a library for programs, both built for the host.
        write(&driver.join("src/main.rs"), "fn main() {}\n");
        write(
            &all.join("plugin/Cargo.toml"),
            "[package]\nname = \"plugin\"\nedition = \"2024\"\n[lib]\ncrate-type = [\"cdylib\"]\n",
        );
        write(&all.join("plugin/src/lib.rs"), "");
        // The cargo configuration in the folder in which the author runs the command.
        let config = driver.join(".cargo/config.toml");
        write(&config, CONFIG);

        // A member of a workspace.
        let output = etw(&driver, &[], None);
        let shown = errors(&output, true);
        assert!(
            shown.contains("note: omitting the compiler option `-C linker=nowhere`"),
            "{shown}"
        );
        let target = all.join("target");
        let pdb = fs::read(target.join("etw/x64/release/stranger.pdb")).unwrap();
        let has_lines = pdb.windows(6).any(|bytes| bytes == b"lib.rs");
        assert!(has_lines, "the PDB has no line numbers");

        // cargo's options are passed on.
        let shown = errors(&etw(&driver, &["--features", "extra"], None), false);
        assert!(shown.contains("built with extra"), "{shown}");
        // The lock file was copied from this repository's workspace, so `--locked` fails.
        let shown = errors(&etw(&driver, &["--locked"], None), false);
        assert!(shown.contains("--locked"), "{shown}");

        // A separate workspace, without a lock file, and with a target folder outside it.
        fs::remove_file(all.join("Cargo.toml")).unwrap();
        fs::remove_file(all.join("Cargo.lock")).unwrap();
        let manifest = format!("{DRIVER}[workspace]\n{PROFILE}");
        write(&driver.join("Cargo.toml"), &manifest);
        let sys = target.join("etw/x64/release/stranger.sys");
        fs::remove_file(&sys).unwrap();
        errors(&etw(&driver, &["--offline"], Some(&target)), true);
        assert!(sys.exists());
        assert!(!driver.join("Cargo.lock").exists());

        // A target folder in the configuration, and another on the command line.
        write(&config, &format!("{CONFIG}target-dir = \"../target\"\n"));
        fs::remove_file(&sys).unwrap();
        errors(&etw(&driver, &["--offline", "-q"], None), true);
        assert!(sys.exists());
        write(&config, CONFIG);
        fs::remove_file(&sys).unwrap();
        let arguments = ["--offline", "--target-dir", "../target"];
        let output = etw(&driver, &arguments, None);
        errors(&output, true);
        let printed = String::from_utf8_lossy(&output.stdout);
        let printed = printed.lines().next().unwrap_or_default();
        assert_eq!(fs::canonicalize(printed).unwrap(), fs::canonicalize(&sys).unwrap());
    }

    /// Writes this repository's lock file, whose packages earlier builds have compiled.
    fn write_lock(workspace: &Path) {
        fs::copy(root().join("Cargo.lock"), workspace.join("Cargo.lock")).unwrap();
    }

    /// Writes a driver with one source file and Microsoft's build script.
    fn write_driver(driver: &Path, manifest: &str, library: &str) {
        write(&driver.join("Cargo.toml"), manifest);
        write(&driver.join("src/lib.rs"), library);
        let script = "fn main() -> Result<(), wdk_build::ConfigError> {\n    \
                      wdk_build::configure_wdk_binary_build()\n}\n";
        write(&driver.join("build.rs"), script);
    }

    #[test]
    #[ignore = "needs the cross toolchain; `cargo xtask test` runs it"]
    fn a_driver_with_older_crates_is_built_and_run() {
        let folder = tempfile::tempdir().unwrap();
        let driver = folder.path();
        write_lock(driver);
        for (wdk, sys) in [("0.3.1", "0.4.0"), ("=0.3.0", "0.3.0")] {
            let manifest = OLDER.replace("WDK", wdk).replace("SYS", sys);
            write_driver(driver, &manifest, OLDER_LIBRARY);
            let output = common::etw_in_target(driver, &["run"]);
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let shown = errors(&output, true);
            assert!(!shown.contains("was not used"), "{shown}");
            assert!(said.contains("driver: added with 2"), "{said}");
            assert!(said.contains("found: 0 errors, 0 warnings"), "{said}");
        }
    }

    #[test]
    #[ignore = "needs the cross toolchain; `cargo xtask test` runs it"]
    fn a_driver_for_an_older_framework_finds_the_kernels_exports() {
        let folder = tempfile::tempdir().unwrap();
        let all = folder.path();
        // The author's own wdk-sys, which patches the published one and is a workspace member.
        let workspace = "[workspace]\nmembers = [\"driver\", \"wdk-sys\"]\nresolver = \"3\"\n\
             [patch.crates-io]\nwdk-sys = { path = \"wdk-sys\" }\n[profile.dev]\npanic = \"abort\"\n";
        write(&all.join("Cargo.toml"), workspace);
        write_lock(all);
        write(
            &all.join("wdk-sys/Cargo.toml"),
            "[package]\nname = \"wdk-sys\"\nversion = \"0.5.2\"\nlinks = \"wdk\"\nbuild = \"build.rs\"\n",
        );
        write(&all.join("wdk-sys/src/lib.rs"), "#![no_std]\n");
        write(&all.join("wdk-sys/build.rs"), "fn main() {}\n");
        let driver = all.join("driver");
        // The stand-ins beside the author's wdk-sys differ from those of the other tests in the checkout's
        // target folder.
        let [_, build_folder] = common::shared();
        let etw = |command| {
            let mut etw = common::command(&driver, &[command]);
            etw.env(build_folder.0, &build_folder.1).envs([common::DEBUG]).output().unwrap()
        };
        for minor in [15, 27] {
            let manifest = WATCHER.replace("MINOR", &minor.to_string());
            write_driver(&driver, &manifest, WATCHER_LIBRARY);
            let output = etw("run");
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            errors(&output, true);
            assert!(said.contains("driver: process \"System\", build true"), "{said}");
            assert!(said.contains("driver: registered: 0x0"), "{said}");
            assert!(said.contains("found: 0 errors, 0 warnings"), "{said}");
        }
        // A routine that does not exist.
        let library = WATCHER_LIBRARY.replace("ImageFileName(", "ImageFileNames(");
        write_driver(&driver, &WATCHER.replace("MINOR", "27"), &library);
        let shown = errors(&etw("build"), false);
        let last = shown.trim_end().lines().last().unwrap();
        assert!(
            last.starts_with("error: cannot link the driver: ")
                && last.contains("`PsGetProcessImageFileNames` (used in `DriverEntry`)"),
            "{shown}"
        );
        assert!(!shown.contains("/LIBPATH"), "{shown}");
        // A version without the function, and a version that no WDK has.
        let newer =
            WATCHER_LIBRARY.replace("WdfDriverCreate,", "WdfDeviceSetDeviceInterfaceStateEx,");
        write_driver(&driver, &WATCHER.replace("MINOR", "27"), &newer);
        let shown = errors(&etw("build"), false);
        assert!(shown.contains("WdfDeviceSetDeviceInterfaceStateExTableIndex"), "{shown}");
        write_driver(&driver, &WATCHER.replace("MINOR", "37"), WATCHER_LIBRARY);
        let shown = errors(&etw("build"), false);
        assert!(shown.contains("is for KMDF 1.37, a version that no WDK"), "{shown}");
        assert!(!shown.contains("Compiling"), "{shown}");
    }

    #[test]
    #[ignore = "needs the cross toolchain; `cargo xtask test` runs it"]
    fn a_driver_without_a_framework_is_built_run_and_packaged() {
        let folder = tempfile::tempdir().unwrap();
        let driver = folder.path();
        write_lock(driver);
        write_driver(driver, WDM, WDM_LIBRARY);
        let run = |arguments: &[&str]| common::etw_in_target(driver, arguments);
        let output = run(&["run"]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        errors(&output, true);
        assert!(said.contains("driver: loaded"), "{said}");
        assert!(said.contains("Loaded") && said.contains("a stranger"), "{said}");
        assert!(said.contains("found: 0 errors, 0 warnings"), "{said}");
        // The driver adds no devices, so its INF file installs a service; the running driver is
        // compared with the file.
        let said = errors(&run(&["inf", "new"]), true);
        assert!(said.contains("a service without a device (a primitive driver)"), "{said}");
        let said = errors(&run(&["inf", "check"]), true);
        assert!(!said.contains("warning") && !said.contains("EvtDriverDeviceAdd"), "{said}");
        errors(&run(&["inf", "new", "--force", "--hardware-id", r"Root\Stranger"]), true);
        let said = errors(&run(&["inf", "check"]), true);
        assert!(said.contains("warning") && said.contains("the driver adds no devices"), "{said}");
        errors(&run(&["inf", "new", "--force"]), true);
        let output = run(&["package", "--message-format", "json"]);
        errors(&output, true);
        let lines = String::from_utf8_lossy(&output.stdout);
        let last: serde_json::Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
        let files: Vec<&str> =
            last["files"].as_array().unwrap().iter().filter_map(|name| name.as_str()).collect();
        for name in ["service.ps1", "stranger_wdm.sys", "stranger_wdm.inf", "stranger_wdm.cat"] {
            assert!(files.contains(&name), "no {name} in {files:?}");
        }
        assert!(!files.contains(&"device.ps1"), "{files:?}");
    }
}
