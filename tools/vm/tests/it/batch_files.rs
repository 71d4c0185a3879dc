//! Runs batch files under Wine: the guest's agent, the scripts that prepare Windows, and those of
//! driver packages.
//!
//! Wine's cmd is a separate implementation. Batch files replace the programs that Wine lacks, and
//! record their command lines. The files have not run on Windows yet.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Mutex, OnceLock, PoisonError},
    thread,
    time::{Duration, Instant},
};

use etw_test_support::root;
use tempfile::TempDir;

/// A stage. `exit` ends the process, so that its code becomes the process's exit code, as with
/// PowerShell.
const STAGES: &str = "@echo off\necho stage %WDK_ETW_STAGE%\ngoto %~n1\n:machine\nexit 0\n:install\nexit 3010\n:uninstall\nexit 1\n\
                      :late\nping -n 60 127.0.0.1 >nul\nexit 0\n";

/// The Windows programs that Wine lacks or must not run.
const PROGRAMS: [&str; 6] =
    ["shutdown", "bcdedit", "powercfg", "schtasks", "powershell", "taskkill"];

/// A folder with a Wine prefix, a kit and a results disk.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bench = Self { folder };
        for name in
            ["bin", "kit/agent", "kit/stages", "results", "place", "system/Minidump", "home"]
        {
            fs::create_dir_all(bench.path(name)).unwrap();
        }
        let copied = Command::new("cp").arg("-a").arg(installed()).arg(bench.path("wine")).status();
        assert!(copied.unwrap().success());
        bench.write("bin/stage.cmd", STAGES);
        for program in PROGRAMS {
            let text =
                format!("@echo off\necho {program} %*>>Z:{}\nexit /b 0\n", bench.windows("calls"));
            bench.write(&format!("bin/{program}.cmd"), &text);
        }
        let script =
            |name: &str| fs::read_to_string(root().join("tests/windows").join(name)).unwrap();
        bench.write("kit/agent/agent.cmd", &script("agent.cmd"));
        bench.write("kit/wdk-etw-kit.json", "{}");
        bench.write("results/wdk-etw-results.tag", "");
        bench.write("setup.cmd", &script("unattended/setup.cmd"));
        bench.write("start.cmd", &script("unattended/start.cmd"));
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns a path on the drive Z, with backslashes.
    fn windows(&self, name: &str) -> String {
        self.path(name).display().to_string().replace('/', "\\")
    }

    /// Writes a text file with Windows line endings.
    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text.replace('\n', "\r\n")).unwrap();
    }

    fn plan(&self, lines: &str) {
        self.write("kit/agent/plan.txt", lines);
    }

    /// Runs a batch file, and returns the output on its serial port and the command lines of the
    /// programs that it called.
    fn run(&self, script: &str, arguments: &[&str]) -> (Vec<String>, Vec<String>) {
        // The batch files use the clock to detect stages that take too long, so only one test runs
        // at a time.
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = fs::remove_file(self.path("calls"));
        let _ = fs::remove_file(self.path("serial"));
        let serial = self.path("serial");
        let made = Command::new("mkfifo").arg(&serial).status().unwrap();
        assert!(made.success());
        // Opening a pipe waits for the other end. The test keeps its end open for all messages.
        let holder = fs::OpenOptions::new().read(true).write(true).open(&serial).unwrap();
        let reader = thread::spawn(move || fs::read_to_string(serial).unwrap());
        let status = wine(&self.path("wine"))
            .args(["cmd", "/c", &format!("Z:{}", self.windows(script))])
            .args(arguments)
            .env("WINEPATH", format!("Z:{}", self.windows("bin")))
            .env("ETW_PORT", format!("Z:{}", self.windows("serial")))
            .env("ETW_PLACE", format!("Z:{}", self.windows("place")))
            .env("ETW_SYSTEM", format!("Z:{}", self.windows("system")))
            .env("ETW_HOME", format!("Z:{}", self.windows("home")))
            .env("ETW_POWERSHELL", format!("cmd /c Z:{}", self.windows("bin/stage.cmd")))
            .env("ETW_PAUSE", "ping -n 2 127.0.0.1 >nul")
            // Under load, Wine can take a long time to start a stage.
            .env("ETW_TICKS", "300")
            .env("ETW_DUMP_ROUNDS", "3")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        drop(alone);
        // The batch files' exit codes are meaningless.
        assert!(status.code().is_some(), "{status}");
        drop(holder);
        let said = reader.join().unwrap();
        let calls = fs::read_to_string(self.path("calls")).unwrap_or_default();
        let lines = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect();
        let mut said: Vec<String> = lines(&said);
        said.retain(|line| !line.contains("alive"));
        (said, lines(&calls))
    }

    /// Assigns a drive letter to a folder.
    fn drive(&self, letter: &str, folder: &str) {
        let link = self.path("wine/dosdevices").join(format!("{letter}:"));
        let _ = fs::remove_file(&link);
        symlink(self.path(folder), link).unwrap();
    }
}

/// Returns a Wine command.
fn wine(prefix: &Path) -> Command {
    let program = env::var_os("WDK_ETW_WINE").filter(|path| !path.is_empty());
    let program = program.expect("WDK_ETW_WINE does not name Wine; `cargo xtask test` sets it");
    let mut command = Command::new(program);
    command
        .env("WINEPREFIX", prefix)
        .env("WINEDEBUG", "-all")
        .env("WINEDLLOVERRIDES", "mscoree,mshtml=");
    command
}

/// Returns a new Wine prefix to copy.
fn installed() -> PathBuf {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let status = wine(&folder.path().join("wine"))
            .args(["wineboot", "--init"])
            .stderr(Stdio::null())
            .status();
        assert!(status.unwrap().success());
        // The Wine server writes the registry when it ends. A copy made before that has no search
        // path for programs.
        let _ = wine(&folder.path().join("wine")).args(["wineboot", "--kill"]).status();
        let registry = folder.path().join("wine/system.reg");
        let until = Instant::now() + Duration::from_mins(1);
        let is_written = || {
            let text = fs::read(&registry).unwrap_or_default();
            let text = String::from_utf8_lossy(&text).to_lowercase();
            text.contains("\"path\"=") && folder.path().join("wine/user.reg").exists()
        };
        while !is_written() {
            assert!(Instant::now() < until, "Wine did not write its registry");
            thread::sleep(Duration::from_millis(100));
        }
        folder
    });
    folder.path().join("wine")
}

#[test]
#[ignore = "needs Wine; `cargo xtask test` runs it"]
fn the_agent_runs_a_plan_over_restarts_and_crashes() {
    let bench = Bench::new();
    bench.drive("d", "kit");
    bench.drive("e", "results");
    bench.plan(
        "01 plain machine 1 0 stages\\machine.ps1\n02 plain install 1 1 stages\\install.ps1\n\
         03 plain uninstall 1 0 stages\\uninstall.ps1\n04 verifier machine 1 0 stages\\machine.ps1\n",
    );
    // As when Windows starts: start.cmd finds the kit and the agent finds the results disk, both by
    // their tags.
    let (said, calls) = bench.run("start.cmd", &[]);
    assert_eq!(
        said,
        [
            "wdk-etw: boot", "wdk-etw: begin plain machine", "wdk-etw: end plain machine 0",
            "wdk-etw: begin plain install", "wdk-etw: end plain install 3010", "wdk-etw: reboot",
        ]
    );
    assert_eq!(calls.last().unwrap().trim(), "shutdown /r /f /t 0");
    let flush =
        calls.iter().filter(|call| call.contains("Write-VolumeCache E; Write-VolumeCache C"));
    assert_eq!(flush.count(), 2, "{calls:?}");
    assert!(bench.path("results/plain/install/output.txt").exists());

    // A crash in the third stage, with a dump that Windows saved.
    fs::write(bench.path("place/03.begun"), "begun").unwrap();
    fs::write(bench.path("system/MEMORY.DMP"), "dump").unwrap();
    fs::write(bench.path("system/Minidump/1.dmp"), "small").unwrap();
    let (said, calls) = bench.run("start.cmd", &[]);
    assert_eq!(
        said,
        [
            "wdk-etw: boot",
            "wdk-etw: lost plain uninstall",
            "wdk-etw: dump plain uninstall MEMORY.DMP",
            "wdk-etw: begin verifier machine",
            "wdk-etw: end verifier machine 0",
            "wdk-etw: finished",
        ]
    );
    assert_eq!(calls.last().unwrap().trim(), "shutdown /s /f /t 0");
    let of_stage = bench.path("results/plain/uninstall");
    assert_eq!(fs::read_to_string(of_stage.join("MEMORY.DMP")).unwrap(), "dump");
    assert_eq!(fs::read_to_string(of_stage.join("1.dmp")).unwrap(), "small");
    // The next crash has its own dump.
    assert!(!bench.path("system/MEMORY.DMP").exists());
    // The crash is attributed to the leg's stage.
    let crashes = fs::read_to_string(bench.path("results/plain/crashed.txt")).unwrap();
    assert_eq!(crashes.trim(), "uninstall");
    assert!(!bench.path("results/verifier/crashed.txt").exists());
}

#[test]
#[ignore = "needs Wine; `cargo xtask test` runs it"]
fn a_crash_dump_that_is_missing_or_cannot_be_copied_is_told() {
    let bench = Bench::new();
    bench.drive("d", "kit");
    bench.drive("e", "results");
    bench.write("kit/agent/slowness.txt", "6\n");
    bench.plan(
        "01 plain machine 1 0 stages\\machine.ps1\n02 plain probe 1 1 stages\\machine.ps1\n\
         03 plain probe-2 1 1 stages\\machine.ps1\n",
    );
    fs::write(bench.path("place/01.begun"), "begun").unwrap();
    let (said, _) = bench.run("kit/agent/agent.cmd", &["D:"]);
    assert_eq!(
        said,
        [
            "wdk-etw: boot",
            "wdk-etw: lost plain machine",
            "wdk-etw: error Windows restarted in the stage machine of the leg plain and left no crash dump",
            "wdk-etw: begin plain probe",
            "wdk-etw: end plain probe 0",
            "wdk-etw: begin plain probe-2",
            "wdk-etw: end plain probe-2 0",
            "wdk-etw: finished",
        ]
    );
    // A script that several stages share receives the stage's name.
    let output = fs::read_to_string(bench.path("results/plain/probe-2/output.txt")).unwrap();
    assert_eq!(output.trim(), "stage probe-2");

    // A folder with the dump's name prevents copying.
    let bench = Bench::new();
    bench.drive("d", "kit");
    bench.drive("e", "results");
    bench.plan("01 plain machine 1 0 stages\\machine.ps1\n");
    fs::write(bench.path("place/01.begun"), "begun").unwrap();
    fs::write(bench.path("system/MEMORY.DMP"), "dump").unwrap();
    fs::write(bench.path("system/Minidump/1.dmp"), "small").unwrap();
    fs::create_dir_all(bench.path("results/plain/machine/MEMORY.DMP/MEMORY.DMP")).unwrap();
    let (said, _) = bench.run("kit/agent/agent.cmd", &["D:"]);
    assert_eq!(
        said,
        [
            "wdk-etw: boot",
            "wdk-etw: lost plain machine",
            "wdk-etw: error the crash dump of the stage machine of the leg plain could not be copied",
            "wdk-etw: finished",
        ]
    );
    // The dump stays on the system disk, and the minidump is copied.
    assert!(bench.path("system/MEMORY.DMP").exists());
    assert!(bench.path("results/plain/machine/1.dmp").exists());
}

#[test]
#[ignore = "needs Wine; `cargo xtask test` runs it"]
fn the_agent_ends_a_stage_that_takes_too_long() {
    let bench = Bench::new();
    bench.drive("d", "kit");
    bench.drive("e", "results");
    bench.plan("01 plain late 0 0 stages\\late.ps1\n02 plain machine 1 0 stages\\machine.ps1\n");
    let (said, calls) = bench.run("kit/agent/agent.cmd", &["D:"]);
    assert_eq!(
        said,
        [
            "wdk-etw: boot", "wdk-etw: begin plain late", "wdk-etw: timeout plain late",
            "wdk-etw: begin plain machine", "wdk-etw: end plain machine 0", "wdk-etw: finished",
        ]
    );
    assert!(
        calls.iter().any(|call| call.trim() == "taskkill /f /t /im powershell.exe"),
        "{calls:?}"
    );
}

#[test]
#[ignore = "needs Wine; `cargo xtask test` runs it"]
fn without_a_results_disk_the_agent_says_so_and_turns_windows_off() {
    let bench = Bench::new();
    bench.drive("d", "kit");
    bench.plan("01 plain machine 1 0 stages\\machine.ps1\n");
    let (said, calls) = bench.run("kit/agent/agent.cmd", &["D:"]);
    assert_eq!(said, ["wdk-etw: boot", "wdk-etw: error no disk has the tag wdk-etw-results.tag",]);
    assert_eq!(calls, ["shutdown /s /f /t 0"]);
}

#[test]
#[ignore = "needs Wine; `cargo xtask test` runs it"]
fn setup_prepares_windows_and_tells_what_it_could_not() {
    let bench = Bench::new();
    let (said, calls) = bench.run("setup.cmd", &[]);
    assert_eq!(said.first().unwrap(), "wdk-etw: setup first-logon");
    assert!(!said.iter().any(|line| line.contains("installed")), "{said:?}");
    for call in [
        "bcdedit /set testsigning on",
        "bcdedit /set {current} recoveryenabled no",
        "powercfg /hibernate off",
        "shutdown /r /f /t 0",
    ] {
        assert!(calls.iter().any(|one| one.trim() == call), "{call}: {calls:?}");
    }
    let task = calls
        .iter()
        .find(|call| call.starts_with("schtasks /create /tn wdk-etw /sc onstart /ru SYSTEM"));
    assert!(task.unwrap().contains("start.cmd"), "{calls:?}");
    assert!(bench.path("home/start.cmd").exists());
    // Wine's registry contains the values from the command line.
    let output = wine(&bench.path("wine"))
        .args([
            "reg",
            "query",
            r"HKLM\SYSTEM\CurrentControlSet\Control\CrashControl",
            "/v",
            "NMICrashDump",
        ])
        .stderr(Stdio::null())
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("0x1"), "{shown}");

    // While this interpreter waits for input, one Wine server runs: what is added to the registry
    // need not be written when a server ends and read when the next one starts.
    let mut session = wine(&bench.path("wine"))
        .arg("cmd")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();

    // The next start checks the effective settings, because bcdedit's success message alone does
    // not prove that the base image is usable.
    let (said, calls) = bench.run("start.cmd", &[]);
    assert_eq!(
        said,
        ["wdk-etw: error test signing is not on, though bcdedit has set it; is Secure Boot on?"]
    );
    assert_eq!(calls, ["shutdown /s /f /t 0"]);
    assert!(!bench.path("home/settled").exists());
    let set = |arguments: &[&str]| {
        let status = wine(&bench.path("wine"))
            .arg("reg")
            .arg("add")
            .args(arguments)
            .arg("/f")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(status.unwrap().success());
    };
    let start_with = |options: &str| {
        let key = r"HKLM\SYSTEM\CurrentControlSet\Control";
        set(&[key, "/v", "SystemStartOptions", "/d", options]);
    };
    start_with(" NOEXECUTE=OPTOUT  FLIGHTSIGNING");
    let (said, _) = bench.run("start.cmd", &[]);
    assert!(said[0].starts_with("wdk-etw: error test signing"), "{said:?}");
    // Removing a component can require another start, but not indefinitely.
    start_with(" NOEXECUTE=OPTOUT  TESTSIGNING");
    set(&[
        r"HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing\RebootPending",
    ]);
    let (said, calls) = bench.run("start.cmd", &[]);
    let options = [r"HKLM\SYSTEM\CurrentControlSet\Control", "/v", "SystemStartOptions"];
    let options = || wine(&bench.path("wine")).args(["reg", "query"]).args(options).output();
    assert_eq!(said, ["wdk-etw: setup servicing needs another start"], "{:?}", options());
    assert_eq!(calls, ["shutdown /r /f /t 0"]);
    let (said, calls) = bench.run("start.cmd", &[]);
    assert!(said[0].starts_with("wdk-etw: installed Microsoft Windows"), "{said:?}");
    assert_eq!(calls, ["shutdown /s /f /t 0"]);
    assert!(bench.path("home/settled").exists());

    // A failure that would break every run is an error; other failures are only reported.
    bench.write("bin/bcdedit.cmd", "@exit /b 1\n");
    let (said, calls) = bench.run("setup.cmd", &[]);
    let noted = "wdk-etw: setup bcdedit /set {current} could not be run";
    assert!(said.iter().any(|line| line == noted), "{said:?}");
    let error = "wdk-etw: error the preparation of Windows failed:  bcdedit /set testsigning on;";
    assert_eq!(said.last().unwrap(), error);
    assert_eq!(calls.last().unwrap().trim(), "shutdown /s /f /t 0");
    // Waiting closes the interpreter's input, which ends it.
    session.wait().unwrap();
}

#[test]
#[ignore = "needs Wine; `cargo xtask test` runs it"]
fn setup_goes_on_without_a_serial_port() {
    let bench = Bench::new();
    let answer = root().join("tests/windows/unattended/autounattend.xml");
    let answer = fs::read_to_string(answer).unwrap();
    let commands: Vec<String> = answer
        .lines()
        .filter_map(|line| line.trim().strip_prefix("<Path>")?.strip_suffix("</Path>"))
        .filter(|command| command.contains("COM1"))
        .map(|command| command.replace("&gt;", ">").replace("&amp;", "&"))
        .collect();
    assert_eq!(commands.len(), 2, "{answer}");
    for command in commands {
        // On Windows, unlike with Wine's cmd, a port that is not there is an error of the command.
        assert!(command.ends_with(") & exit 0"), "{command}");
        for (port, is_there) in [("port", true), ("missing/port", false)] {
            let _ = fs::remove_file(bench.path("port"));
            let command = command.replace("COM1", &format!("Z:{}", bench.windows(port)));
            let status = wine(&bench.path("wine"))
                .args(command.split(' '))
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            assert_eq!(status.unwrap().code(), Some(0), "{command}");
            let said = fs::read_to_string(bench.path("port")).unwrap_or_default();
            assert_eq!(said.starts_with("wdk-etw: setup "), is_there, "{command}: {said}");
        }
    }
}

/// Runs a package's script with stand-ins that exit with these codes; any other program succeeds.
/// Returns the exit code, the output, and the command lines.
fn run_package_script(
    bench: &Bench,
    name: &str,
    codes: &[(&str, i32)],
) -> (Option<i32>, String, Vec<String>) {
    for program in ["manage-bde", "bcdedit", "certutil"] {
        let code = codes.iter().find(|(of, _)| *of == program).map_or(0, |(_, code)| *code);
        let calls = bench.windows("calls");
        let text = format!("@echo off\necho {program} %*>>Z:{calls}\nexit /b {code}\n");
        bench.write(&format!("bin/{program}.cmd"), &text);
    }
    let _ = fs::remove_file(bench.path("calls"));
    let ran = wine(&bench.path("wine"))
        .args(["cmd", "/c", &format!("Z:{}", bench.windows(name))])
        .env("WINEPATH", format!("Z:{}", bench.windows("bin")))
        .output()
        .unwrap();
    let calls = fs::read_to_string(bench.path("calls")).unwrap_or_default();
    let calls = calls.lines().map(|line| line.trim_end().to_owned()).collect();
    (ran.status.code(), String::from_utf8_lossy(&ran.stdout).into_owned(), calls)
}

#[test]
#[ignore = "needs Wine; `cargo xtask test` runs it"]
fn a_package_prepares_the_machine_only_if_nothing_is_lost() {
    let bench = Bench::new();
    let scripts = root().join("tools/driver-package/src/scripts");
    bench.write("prepare.cmd", &fs::read_to_string(scripts.join("prepare.cmd")).unwrap());
    bench.write("driver.cer", "");
    let status = "manage-bde -status C: -protectionaserrorlevel";
    let signing = "bcdedit /set testsigning on";
    let root_store = "certutil -addstore Root \"driver.cer\"";
    let publishers = "certutil -addstore TrustedPublisher \"driver.cer\"";
    // manage-bde exits with 0 for a protected drive, with 1 for others.
    for (codes, code, said, calls) in [
        (&[("manage-bde", 1)][..], 0, "Done", &[status, signing, root_store, publishers][..]),
        (&[], 1, "recovery key", &[status]),
        (&[("manage-bde", 1), ("bcdedit", 1)], 1, "nothing was changed", &[status, signing]),
        (
            &[("manage-bde", 1), ("certutil", 5)],
            1,
            "restore.cmd undoes",
            &[status, signing, root_store],
        ),
    ] {
        let (exit, output, called) = run_package_script(&bench, "prepare.cmd", codes);
        assert_eq!(called, calls, "{output}");
        assert_eq!(exit, Some(code), "{output}");
        assert!(output.contains(said), "{output}");
    }
}

#[test]
#[ignore = "needs Wine; `cargo xtask test` runs it"]
fn an_installation_understands_the_codes_of_pnputil() {
    let bench = Bench::new();
    let scripts = root().join("tools/driver-package/src/scripts");
    let text = fs::read_to_string(scripts.join("pnputil.txt")).unwrap();
    let (call, decisions) = text.split_once('\n').unwrap();
    assert_eq!(call, "pnputil /add-driver \"{inf}\" /install");
    for (code, exit, said) in [
        (0, 0, ""),
        (259, 0, "The driver is in the driver store."),
        (1641, 0, "Restart Windows"),
        (3010, 0, "Restart Windows"),
        (1, 1, ""),
        (5, 1, ""),
        (-536_870_334, 1, ""),
    ] {
        // Wine's cmd takes 259 for a program that still runs.
        let decisions = decisions.replacen("%ERRORLEVEL%", &code.to_string(), 1);
        bench.write("install.cmd", &format!("@echo off\n{decisions}"));
        let (ended, output, _) = run_package_script(&bench, "install.cmd", &[]);
        assert_eq!(ended, Some(exit), "{code}: {output}");
        assert!(output.contains(said), "{code}: {output}");
        assert_eq!(output.trim().is_empty(), said.is_empty(), "{code}: {output}");
    }
}
