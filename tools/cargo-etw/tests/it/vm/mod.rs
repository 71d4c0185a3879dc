//! Tests the whole of `cargo etw vm` with a guest that stands in for Windows.
//!
//! The guest is a Linux kernel with [a script](init.sh) that follows the same protocol as Setup and
//! the agent in Windows. This tests the host side: images, QEMU, limits, results, exit codes. It
//! proves nothing about Windows.

mod guest;

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader, Read as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use etw_vm::{bugcheck::Bugcheck, iso};
use serde_json::Value;
use tempfile::TempDir;

/// The script of a stage that passes.
const PASS: &str = "result passed null\nexit 0\n";

/// The words with which the kernel omits measurements and tests at its start, and what slows emulation.
const QUICK: &str = "no_timer_check lpj=4000000 tsc=reliable mitigations=off nokaslr cryptomgr.notests \
                     security=none";

/// A folder with everything that a run needs.
struct Bench {
    folder: TempDir,
    /// Additional words for the kernel's command line.
    words: String,
}

/// The outcome of a run.
struct Ended {
    code: Option<i32>,
    shown: String,
    errors: String,
    report: Value,
}

impl Bench {
    /// Creates a bench without a base image.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        guest::write_initramfs(&path.join("initramfs"));
        let editions = b"Stand-in Core\nStand-in Desktop\n".to_vec();
        let files = iso::Files::from([("sources/editions.txt".to_owned(), editions)]);
        iso::write(&path.join("windows-server-2022.iso"), "STAND_IN", &files).unwrap();
        let package = path.join("package");
        fs::create_dir(&package).unwrap();
        fs::write(
            package.join("contoso.inf"),
            "[Version]\nSignature=\"$WINDOWS NT$\"\n[Manufacturer]\n%M%=Models,NTamd64\n\
             [Models.NTamd64]\n%D%=Install,Root\\Contoso\n[Install.NT.Services]\n\
             AddService=contoso_service,2,Service\n[Service]\nServiceType=1\n\
             [Strings]\nM=\"Contoso\"\nD=\"Sensor\"\n",
        )
        .unwrap();
        for name in ["contoso.sys", "contoso.cat", "contoso.cer"] {
            fs::write(package.join(name), name).unwrap();
        }
        fs::create_dir(path.join("stages")).unwrap();
        Self { folder, words: String::new() }
    }

    /// Creates a bench with a copy of a base image, which is only installed once.
    fn installed() -> Self {
        let base = &base().0;
        let bench = Self::new();
        // The cached hash depends on the image's modification time, which a copy would change.
        let copy = Command::new("cp")
            .args(["-a"])
            .arg(base.path("images"))
            .arg(bench.path("images"))
            .status();
        assert!(copy.unwrap().success());
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Gives a stage a script, which can use `$out` (the results folder) and `result STATUS
    /// REASON`.
    fn stage(&self, name: &str, script: &str) {
        let text = format!(
            "out=$4\nresult() {{\n    printf '{{\"stage\": \"{name}\", \"status\": \"%s\", \"reason\": %s, \
             \"reboot\": false, \"checks\": [], \"seconds\": 1}}' \"$1\" \"$2\" >$out/{name}/result.json\n}}\n\
             {script}"
        );
        fs::write(self.path("stages").join(format!("{name}.sh")), text).unwrap();
    }

    /// Returns the maximum time without output from a guest that does not hang; on a busy machine,
    /// it starts slowly.
    fn silence() -> String {
        let start = base().1 / 4;
        (start * 2).as_secs().max(30).to_string()
    }

    /// Returns the command with these arguments after the common ones.
    fn command(&self, arguments: &[&str]) -> Command {
        self.command_with(&["tcg"], arguments)
    }

    /// Returns the command with these accelerators.
    fn command_with(&self, accelerators: &[&str], arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-etw"));
        command.current_dir(self.folder.path()).args(["etw", "vm", "--driver", "package"]);
        self.add_arguments(&mut command, accelerators, arguments);
        command
    }

    /// Adds the common arguments, followed by these.
    fn add_arguments(&self, command: &mut Command, accelerators: &[&str], arguments: &[&str]) {
        for (option, name) in [
            ("--iso", "windows-server-2022.iso"),
            ("--stages", "stages"),
            ("--out", "out"),
            ("--images", "images"),
        ] {
            command.arg(option).arg(self.path(name));
        }
        command
            // No test needs cargo-etw built for Windows.
            .args(["--tracer", "none"])
            .args(["--disk", "1"])
            .args(["--memory", "192", "--processors", "1"])
            .args(["--firmware", "bios"].iter().filter(|_| !arguments.contains(&"--firmware")))
            .args(accelerators.iter().flat_map(|one| ["--accelerator", one]))
            .args(["--qemu-arg", "-kernel", "--qemu-arg"])
            .arg(guest::kernel(arguments.contains(&"--firmware")))
            .args(["--qemu-arg", "-initrd", "--qemu-arg"])
            .arg(self.path("initramfs"))
            .args(["--qemu-arg", "-append", "--qemu-arg"])
            .arg(format!("quiet loglevel=0 panic=1 unknown_nmi_panic=1 {QUICK} {}", self.words))
            .args(["--qemu-arg", "-device", "--qemu-arg", "pvpanic-pci"])
            .args(arguments);
    }

    /// Runs the command until it ends.
    fn run(&self, arguments: &[&str]) -> Ended {
        let output = self.command(arguments).output().unwrap();
        self.ended(output.status.code(), &output.stdout, &output.stderr)
    }

    fn ended(&self, code: Option<i32>, shown: &[u8], errors: &[u8]) -> Ended {
        self.check_nothing_is_left();
        let report = fs::read(self.path("out/report.json")).unwrap_or_default();
        Ended {
            code,
            shown: String::from_utf8_lossy(shown).into_owned(),
            errors: String::from_utf8_lossy(errors).into_owned(),
            report: serde_json::from_slice(&report).unwrap_or_default(),
        }
    }

    /// Starts the command, and waits until the guest has printed `said`.
    fn start_until(&self, arguments: &[&str], said: &str) -> Child {
        let child =
            self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let until = Instant::now() + Duration::from_mins(5);
        while !fs::read_to_string(self.path("out/serial.log")).is_ok_and(|log| log.contains(said)) {
            assert!(Instant::now() < until, "the guest did not say {said:?}");
            thread::sleep(Duration::from_millis(50));
        }
        child
    }

    fn end(&self, child: Child) -> Ended {
        let output = child.wait_with_output().unwrap();
        self.ended(output.status.code(), &output.stdout, &output.stderr)
    }

    /// Returns this bench's QEMU processes, whose command lines contain its folder.
    fn machines(&self) -> Vec<u32> {
        let folder = self.folder.path().to_str().unwrap();
        let ids = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let id: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let line = fs::read(format!("/proc/{id}/cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).into_owned();
            (line.starts_with("qemu") || line.contains("/qemu"))
                .then_some(())
                .filter(|()| line.contains(folder))
                .map(|()| id)
        });
        ids.collect()
    }

    /// Fails if a process is still running or a run's disks still exist.
    fn check_nothing_is_left(&self) {
        assert_eq!(self.machines(), Vec::<u32>::new());
        assert_eq!(self.runs(), Vec::<PathBuf>::new());
    }

    /// Returns the folders of the runs, which are next to the base images.
    fn runs(&self) -> Vec<PathBuf> {
        let images = fs::read_dir(self.path("images")).into_iter().flatten();
        images
            .filter_map(|image| fs::read_dir(image.ok()?.path()).ok())
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("run-"))
            .collect()
    }
}

/// Returns the bench whose base image others copy, and the duration of its installation, during
/// which the guest starts four times.
fn base() -> &'static (Bench, Duration) {
    static BASE: OnceLock<(Bench, Duration)> = OnceLock::new();
    BASE.get_or_init(|| {
        let bench = Bench::new();
        let start = Instant::now();
        let ended = bench.run(&["--install-only"]);
        assert_eq!(ended.code, Some(0), "{}", ended.errors);
        (bench, start.elapsed())
    })
}

impl Ended {
    /// Returns the results in the report: stage, leg, outcome.
    fn results(&self) -> Vec<(&str, &str, &str)> {
        let rows = self.report["stages"].as_array().unwrap();
        let text = |row: &'_ Value, name: &str| -> &'static str {
            Box::leak(row[name].as_str().unwrap().to_owned().into_boxed_str())
        };
        rows.iter().map(|row| (text(row, "stage"), text(row, "leg"), text(row, "result"))).collect()
    }

    /// Returns the reason in the result of a stage in the plain leg.
    fn reason(&self, stage: &str) -> &str {
        let rows = self.report["stages"].as_array().unwrap();
        let row = rows.iter().find(|row| row["stage"] == stage && row["leg"] == "plain");
        row.unwrap()["reason"].as_str().unwrap_or_default()
    }

    fn assert(&self, code: i32, results: &[(&str, &str)]) {
        let wanted: Vec<_> =
            results.iter().map(|(stage, result)| (*stage, "plain", *result)).collect();
        assert_eq!(self.results(), wanted, "{}{}", self.shown, self.errors);
        assert_eq!(self.code, Some(code), "{}{}", self.shown, self.errors);
        // The table agrees with the report.
        for (stage, result) in results {
            let line = self.shown.lines().find(|line| line.trim_start().starts_with(stage));
            assert!(line.unwrap().contains(result), "{}", self.shown);
        }
    }
}

/// Short tests, which `cargo xtask test` runs.
mod short {
    use super::*;

    #[test]
    #[ignore = "needs QEMU and the stand-in guest; `cargo xtask test` runs it"]
    fn windows_is_installed_and_the_stages_run_over_a_restart() {
        let bench = Bench::new();
        bench.stage("machine", "echo 26100 >$out/machine/build.txt\nresult passed null\n");
        // The kit contains the planned files, with contents and long names unchanged.
        bench.stage(
            "install",
            "set -e\ngrep -q '\"service\": \"contoso_service\"' /kit/wdk-etw-kit.json\n\
             grep -q '\"hardware_id\": \"Root.*Contoso\"' /kit/wdk-etw-kit.json\n\
             [ \"$(cat /kit/package/contoso.sys)\" = contoso.sys ]\n\
             echo kept >/system/kept\nresult passed null\nexit 194\n",
        );
        bench.stage("uninstall", "[ \"$(cat /system/kept)\" = kept ] || exit 1\nresult skipped '\"nothing is installed\"'\n");
        let only = ["machine", "install", "uninstall"].map(|stage| ["--only", stage]).concat();
        let ended = bench.run(&only);
        ended.assert(0, &[("machine", "passed"), ("install", "passed"), ("uninstall", "skipped")]);
        assert_eq!(ended.reason("uninstall"), "nothing is installed");
        for step in ["setup", "Stand-in Desktop", "restarting at a stage's request"] {
            let told = ended.errors.contains(step) || step == "setup";
            assert!(told, "{step}: {}", ended.errors);
        }
        let build = fs::read_to_string(bench.path("out/plain/machine/build.txt")).unwrap();
        assert_eq!(build, "26100\n");
        let log = fs::read_to_string(bench.path("out/serial.log")).unwrap();
        assert_eq!(log.matches("wdk-etw: boot").count(), 2, "{log}");
        assert_eq!(ended.report["ended_early"], Value::Null);
        // An evaluation edition is reinstalled some days after this time.
        let image = fs::read_dir(bench.path("images")).unwrap();
        let about =
            image.filter_map(|entry| fs::read(entry.unwrap().path().join("base.json")).ok());
        let about: Value = serde_json::from_slice(&about.last().unwrap()).unwrap();
        let installed = Duration::from_secs(about["installed"].as_u64().unwrap());
        let age = SystemTime::now().duration_since(UNIX_EPOCH + installed);
        assert!(age.unwrap() < Duration::from_hours(1), "{about}");
    }
}

/// Tests that only `cargo xtask test --deep` runs.
mod whole {
    use super::*;

    const NEEDS: [&str; 2] = ["--only", "install"];

    #[test]
    #[ignore = "needs QEMU and the stand-in guest; `cargo xtask test --deep` runs it"]
    fn a_base_image_is_used_again_and_stays_as_it_was() {
        let bench = Bench::installed();
        bench.stage(
            "install",
            "[ -e /system/kept ] && exit 1\ntouch /system/kept\nresult passed null\n",
        );
        let base = || {
            let image = fs::read_dir(bench.path("images")).unwrap();
            let image = image.map(|entry| entry.unwrap().path().join("base.qcow2"));
            fs::read(image.into_iter().find(|path| path.exists()).unwrap()).unwrap()
        };
        let before = base();
        for _ in 0..2 {
            let ended = bench.run(&NEEDS);
            ended.assert(0, &[("install", "passed")]);
            assert!(!ended.errors.contains("Installing"), "{}", ended.errors);
        }
        assert!(before == base(), "a run changed the base image");
        // Another edition has another base image.
        let ended = bench.run(&["--image", "1", "--install-only"]);
        assert_eq!(ended.code, Some(0), "{}", ended.errors);
        assert!(ended.errors.contains("installed Stand-in Core"), "{}", ended.errors);
        // A kept run keeps its disks.
        let output = bench.command(&[&NEEDS[..], &["--keep"]].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        let [run] = &bench.runs()[..] else { panic!() };
        assert!(run.join("overlay.qcow2").exists() && run.join("results.img").exists());
        fs::remove_dir_all(run).unwrap();
        bench.check_nothing_is_left();
    }

    #[test]
    #[ignore = "needs QEMU and the stand-in guest; `cargo xtask test --deep` runs it"]
    fn the_samples_command_gives_the_guest_all_that_it_makes() {
        let bench = Bench::installed();
        bench.stage(
            "install",
            "set -e\n\
             for file in package/etw_sample_driver.sys package-catalog-2/etw_sample_driver.sys \
             probe/etw_probes_driver.sys client/etw-sample-client.exe; do\n\
             [ \"$(head -c 2 /kit/$file)\" = MZ ] || exit 1\ndone\n\
             ls /kit/package/*.inf /kit/package/*.cat /kit/package/*.cer /kit/probe/*.inf\n\
             grep -q '\"hardware_id\": \"Root.*EtwSampleDriver\"' /kit/wdk-etw-kit.json\n\
             grep -q logman /kit/recipes.json\nresult passed null\n",
        );
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(workspace).args(["run", "--quiet", "--package", "xtask", "--", "vm"]);
        bench.add_arguments(&mut command, &["tcg"], &NEEDS);
        let output = command.output().unwrap();
        let ended = bench.ended(output.status.code(), &output.stdout, &output.stderr);
        ended.assert(0, &[("install", "passed")]);
    }

    #[test]
    #[ignore = "needs QEMU and the stand-in guest; `cargo xtask test --deep` runs it"]
    fn a_stage_that_fails_does_not_stop_the_next() {
        let bench = Bench::installed();
        bench.stage("machine", "result failed '\"test signing is off\"'\nexit 1\n");
        bench.stage("install", "exit 7\n");
        bench.stage(
            "trace",
            "grep -q '\"strict\": false' /kit/wdk-etw-kit.json && result differs '\"2 of 3 events\"'\n",
        );
        bench.stage("scenarios", "echo '{' >$out/scenarios/result.json\n");
        bench.stage(
            "recipes",
            "echo '{\"status\": \"failed\", \"reason\": null, \"checks\": [{\"name\": \"logman\", \
             \"expected\": 3, \"got\": 2, \"passed\": false}]}' >$out/recipes/result.json\nexit 1\n",
        );
        // A requested restart happens before the next stage.
        bench.stage("boot", "echo '{}' >$out/boot/started.json\nresult passed null\nexit 194\n");
        bench.stage("booted", "[ -e $out/boot/started.json ] && result passed null\n");
        // The stage exceeds its time limit.
        bench.stage("decode", "sleep 1000\n");
        // One script serves several stages, and receives the stage's name.
        bench.stage(
            "probe",
            "result passed null\n[ $WDK_ETW_STAGE = probe ] && exit 1\n\
             sed -i s/probe/$WDK_ETW_STAGE/ $out/probe/result.json\n\
             cp $out/probe/result.json $out/$WDK_ETW_STAGE/\n",
        );
        bench.stage("uninstall", PASS);
        let bench = Bench { words: "etw.seconds=30".to_owned(), ..bench };
        let ended = bench.run(&["--leg", "plain", "--evidence"]);
        ended.assert(
            1,
            &[
                ("machine", "failed"),
                ("install", "failed"),
                ("trace", "differs"),
                ("scenarios", "failed"),
                ("recipes", "failed"),
                ("boot", "passed"),
                ("booted", "passed"),
                ("decode", "timed out"),
                ("probe", "failed"),
                ("probe-2", "passed"),
                ("probe-3", "passed"),
                ("probe-4", "passed"),
                ("uninstall", "passed"),
            ],
        );
        assert_eq!(ended.reason("machine"), "test signing is off");
        assert_eq!(ended.reason("install"), "it left no result.json (exit code 7)");
        assert_eq!(
            ended.reason("probe"),
            "its exit code is 1, but the status in its result.json is passed"
        );
        assert!(ended.reason("scenarios").starts_with("its result.json cannot be read: "));
        assert_eq!(ended.reason("recipes"), "logman: expected 3, got 2");
        let log = fs::read_to_string(bench.path("out/serial.log")).unwrap();
        assert_eq!(log.matches("wdk-etw: boot").count(), 2, "{log}");
    }

    #[test]
    #[ignore = "needs QEMU and the stand-in guest; `cargo xtask test --deep` runs it"]
    fn the_whole_plan_runs_in_both_legs_and_a_crash_is_recorded_in_its_leg() {
        let bench = Bench::installed();
        // Each stage records its position in the order.
        let pass = "echo \"$WDK_ETW_STAGE $out\" >>/system/order\n\
                    printf '{\"status\": \"passed\", \"reason\": null, \"checks\": []}' \
                    >$out/$WDK_ETW_STAGE/result.json\n";
        for stage in
            ["machine", "install", "trace", "scenarios", "recipes", "decode", "booted", "probe"]
        {
            bench.stage(stage, pass);
        }
        for stage in ["boot", "verifier"] {
            bench.stage(stage, &format!("{pass}exit 194\n"));
        }
        // In the verifier leg, the scenarios stage crashes Windows.
        bench.stage(
            "scenarios",
            &format!("{pass}case $out in */verifier) sync; echo c >/proc/sysrq-trigger; esac\n"),
        );
        let after =
            "[ \"$(cat $out/crashed.txt)\" = scenarios ] || exit 1\nresult skipped '\"off\"'\n";
        for stage in ["recipes", "decode"] {
            bench.stage(stage, &format!("case $out in */verifier) {after}exit 0;; esac\n{pass}"));
        }
        bench.stage("uninstall", &format!("{pass}cp /system/order $out/uninstall/order.txt\n"));
        let ended = bench.run(&[]);
        let plain = [
            "machine", "install", "trace", "scenarios", "recipes", "boot", "booted", "decode",
            "probe", "probe-2", "probe-3", "probe-4", "uninstall",
        ];
        let mut wanted = Vec::from(plain.map(|stage| (stage, "plain", "passed")));
        wanted.extend([
            ("verifier", "verifier", "passed"),
            ("install", "verifier", "passed"),
            ("scenarios", "verifier", "bugcheck"),
            ("recipes", "verifier", "skipped"),
            ("decode", "verifier", "skipped"),
            ("probe", "verifier", "passed"),
            ("uninstall", "verifier", "passed"),
        ]);
        assert_eq!(ended.results(), wanted, "{}{}", ended.shown, ended.errors);
        assert_eq!(ended.code, Some(1), "{}{}", ended.shown, ended.errors);
        // No stage ran twice or out of order.
        let order = fs::read_to_string(bench.path("out/verifier/uninstall/order.txt")).unwrap();
        let order: Vec<&str> =
            order.lines().filter_map(|line| line.split_once(' ').map(|(stage, _)| stage)).collect();
        let verifier = ["verifier", "install", "scenarios", "probe", "uninstall"];
        assert_eq!(order, [&plain[..], &verifier[..]].concat());
        let log = fs::read_to_string(bench.path("out/serial.log")).unwrap();
        // The restarts that the boot and verifier stages request, and the restart after the crash.
        assert_eq!(log.matches("wdk-etw: boot").count(), 4, "{log}");
        assert!(ended.shown.contains("left no crash dump"), "{}", ended.shown);
    }

    /// A QEMU whose KVM runs firmware but no operating system.
    const KVM_WITHOUT_SYSTEMS: &str = r#"#!/bin/bash
for one in "$@"; do [ "$one" = kvm ] && has_kvm=1; done
[ -n "$has_kvm" ] || exec qemu-system-x86_64 "$@"
for one in "$@"; do
    if [ -n "$skip" ]; then skip=; continue; fi
    case "$one" in
        -kernel | -initrd | -append) skip=1; continue ;;
        kvm) one=tcg ;;
        host,*) one=max ;;
    esac
    all+=("$one")
done
exec qemu-system-x86_64 "${all[@]}"
"#;

    #[test]
    #[ignore = "needs QEMU and the stand-in guest; `cargo xtask test --deep` runs it"]
    fn an_accelerator_that_starts_nothing_is_given_up() {
        let bench = Bench::new();
        let program = bench.path("qemu-system-x86_64");
        fs::write(&program, KVM_WITHOUT_SYSTEMS).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let qemu = program.to_str().unwrap();
        bench.stage("machine", PASS);
        let silence = Bench::silence();
        let arguments = ["--qemu", qemu, "--only", "machine", "--silence", &silence];
        let run = || {
            let mut command = bench.command_with(&["kvm", "tcg"], &arguments);
            let output = command.output().unwrap();
            bench.ended(output.status.code(), &output.stdout, &output.stderr)
        };
        let ended = run();
        ended.assert(0, &[("machine", "passed")]);
        let told = format!("The guest did not start with kvm within {silence} s; trying tcg");
        assert!(ended.errors.contains(&told), "{}", ended.errors);
        // The next run remembers the failure.
        let ended = run();
        ended.assert(0, &[("machine", "passed")]);
        assert!(ended.errors.contains("Using tcg, like the installation"), "{}", ended.errors);
        assert!(!ended.errors.contains("Nothing started"));
    }

    #[test]
    #[ignore = "needs QEMU and the stand-in guest; `cargo xtask test --deep` runs it"]
    fn a_hang_is_interrupted_and_the_next_stage_runs() {
        let bench = Bench::installed();
        bench.stage("machine", "kill -STOP -1\nwhile :; do sleep 60; done\n");
        bench.stage("uninstall", PASS);
        let silence = Bench::silence();
        let only = ["--only", "machine", "--only", "uninstall", "--silence", &silence];
        let ended = bench.run(&only);
        ended.assert(1, &[("machine", "hung"), ("uninstall", "passed")]);
        assert!(
            ended.reason("machine").contains("the machine hung"),
            "{}",
            ended.reason("machine")
        );
        let picture = fs::read(bench.path("out/hang-1.png")).unwrap();
        assert!(picture.starts_with(b"\x89PNG"));
        assert_eq!(ended.report["ended_early"], Value::Null);
    }

    #[test]
    #[ignore = "needs QEMU and the stand-in guest; `cargo xtask test --deep` runs it"]
    fn a_hang_that_no_interrupt_ends_ends_the_run() {
        let bench = Bench::installed();
        // The guest only logs the interrupt.
        bench.stage(
            "machine",
            "echo 0 >/proc/sys/kernel/unknown_nmi_panic\nkill -STOP -1\nwhile :; do sleep 60; done\n",
        );
        bench.stage("uninstall", PASS);
        let silence = Bench::silence();
        let only = ["--only", "machine", "--only", "uninstall", "--silence", &silence];
        let ended = bench.run(&only);
        ended.assert(3, &[("machine", "hung"), ("uninstall", "not run")]);
        let early = ended.report["ended_early"].as_str().unwrap();
        assert!(early.starts_with("the virtual machine hung: it sent no message for "), "{early}");
    }

    #[test]
    #[ignore = "needs QEMU and the stand-in guest; `cargo xtask test --deep` runs it"]
    fn a_bugcheck_is_named_and_its_dump_is_brought_out() {
        let bench = Bench::installed();
        let mut dump = b"PAGEDU64".to_vec();
        dump.resize(0x4000, 0);
        dump[0x38..0x3a].copy_from_slice(&[0xD1, 0]);
        dump[0x40] = 0x10;
        dump[0x48] = 2;
        fs::write(bench.path("package/crash.dmp"), &dump).unwrap();
        bench.stage(
            "install",
            "cp /kit/package/crash.dmp /system/MEMORY.DMP\nsync\necho c >/proc/sysrq-trigger\n",
        );
        bench.stage("uninstall", PASS);
        let ended = bench.run(&["--only", "install", "--only", "uninstall"]);
        ended.assert(1, &[("install", "bugcheck"), ("uninstall", "passed")]);
        assert_eq!(
            ended.reason("install"),
            "bugcheck 0xD1 DRIVER_IRQL_NOT_LESS_OR_EQUAL (0x10, 0x2, 0x0, 0x0)"
        );
        assert!(ended.errors.contains("the guest crashed"), "{}", ended.errors);
        let copy = bench.path("out/plain/install/MEMORY.DMP");
        assert!(fs::read(&copy).unwrap() == dump);
        assert!(Bugcheck::of_dump(&copy).unwrap().is_some());
    }

    #[test]
    #[ignore = "needs QEMU and the stand-in guest; `cargo xtask test --deep` runs it"]
    fn a_full_results_disk_is_named() {
        let bench = Bench::installed();
        bench.stage(
            "machine",
            "mount -o remount,async /results\ndd if=/dev/zero of=$out/machine/trace.etl bs=64k 2>/dev/null\nresult passed null || exit 1\n",
        );
        let ended = bench.run(&["--only", "machine", "--results", "48"]);
        ended.assert(1, &[("machine", "failed")]);
        let reason = ended.reason("machine");
        assert!(reason.starts_with("the results disk is full; "), "{reason}");
        assert!(bench.path("out/plain/machine/trace.etl").metadata().unwrap().len() > 40 << 20);
    }

    #[test]
    #[ignore = "needs QEMU and the stand-in guest; `cargo xtask test --deep` runs it"]
    fn a_loop_of_restarts_ends_the_run() {
        let bench = Bench::installed();
        // The agent loses its position in the plan at each restart.
        bench.stage("machine", "rm -r /system/place\nsync\nreboot -f\n");
        let ended = bench.run(&["--only", "machine"]);
        ended.assert(3, &[("machine", "unfinished")]);
        let early = ended.report["ended_early"].as_str().unwrap();
        assert_eq!(
            early,
            "the virtual machine restarted more than 5 times; it may be in a restart loop"
        );
    }

    #[test]
    #[ignore = "needs QEMU and the stand-in guest; `cargo xtask test --deep` runs it"]
    fn a_killed_qemu_ends_the_run_and_its_results_are_brought_out() {
        let bench = Bench::installed();
        bench.stage("machine", "echo 1 >$out/machine/first.txt\nresult passed null\n");
        bench.stage("install", "sync\nsleep 1000\n");
        let child =
            bench.start_until(&["--only", "machine", "--only", "install"], "begin plain install");
        thread::sleep(Duration::from_secs(3));
        let [machine] = bench.machines()[..] else { panic!() };
        kill("-KILL", machine);
        let ended = bench.end(child);
        ended.assert(3, &[("machine", "passed"), ("install", "unfinished")]);
        let early = ended.report["ended_early"].as_str().unwrap();
        assert!(early.starts_with("QEMU ended unexpectedly (signal: 9"), "{early}");
        assert_eq!(fs::read_to_string(bench.path("out/plain/machine/first.txt")).unwrap(), "1\n");
    }

    #[test]
    #[ignore = "needs QEMU and the stand-in guest; `cargo xtask test --deep` runs it"]
    fn no_machine_outlives_the_command() {
        let bench = Bench::installed();
        bench.stage("machine", "sleep 1000\n");
        for (signal, is_told) in [("-TERM", true), ("-INT", true), ("-KILL", false)] {
            let _ = fs::remove_dir_all(bench.path("out"));
            let child = bench.start_until(&["--only", "machine"], "begin plain machine");
            assert_eq!(bench.machines().len(), 1);
            kill(signal, child.id());
            let output = child.wait_with_output().unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            if is_told {
                assert_eq!(output.status.code(), Some(1), "{signal}: {errors}");
                assert!(errors.contains("error: interrupted"), "{signal}: {errors}");
                bench.check_nothing_is_left();
            } else {
                // The kernel ends QEMU a moment after the command ends.
                let until = Instant::now() + Duration::from_secs(10);
                while !bench.machines().is_empty() {
                    assert!(Instant::now() < until, "the machine is still running");
                    thread::sleep(Duration::from_millis(50));
                }
            }
        }
    }

    #[test]
    #[ignore = "needs QEMU, OVMF and the stand-in guest; `cargo xtask test --deep` runs it"]
    fn a_machine_with_uefi_firmware_runs_the_stages() {
        let bench = Bench::new();
        bench.stage("machine", "[ -d /sys/firmware/efi ] || exit 1\nresult passed null\n");
        let arguments = ["--firmware", "uefi", "--only", "machine"];
        let ended = bench.run(&arguments);
        ended.assert(0, &[("machine", "passed")]);
        // Each run has its own firmware variables; the installation's variables stay unchanged.
        let ended = bench.run(&arguments);
        ended.assert(0, &[("machine", "passed")]);
    }

    #[test]
    #[ignore = "needs QEMU and the stand-in guest; `cargo xtask test --deep` runs it"]
    fn a_machine_to_work_with_by_hand_is_shown_by_vnc_until_it_turns_itself_off() {
        let bench = Bench::installed();
        bench.stage("machine", PASS);
        let mut child = bench
            .command(&["--connect"])
            .env_remove("DISPLAY")
            .env_remove("WAYLAND_DISPLAY")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let place = lines.find_map(|line| {
            let line = line.unwrap();
            let (_, place) = line.split_once("VNC on ")?;
            Some(place.split_once(';')?.0.to_owned())
        });
        let mut version = [0; 4];
        TcpStream::connect(place.unwrap()).unwrap().read_exact(&mut version).unwrap();
        assert_eq!(&version, b"RFB ");
        // The guest finds no plan, and shuts down.
        assert_eq!(child.wait().unwrap().code(), Some(0));
        bench.check_nothing_is_left();
    }

    #[test]
    #[ignore = "needs QEMU and the stand-in guest; `cargo xtask test --deep` runs it"]
    fn an_installation_that_fails_leaves_no_base_image() {
        let cases = BTreeMap::from([
            ("etw.install=error", "Windows reported: Setup could not read the answer file"),
            ("etw.install=hang", "the virtual machine hung: it sent no message for "),
            (
                "etw.install=loop",
                "the virtual machine restarted more than 10 times; it may be in a restart loop",
            ),
        ]);
        let mut bench = Bench::new();
        bench.stage("install", PASS);
        for (word, reason) in cases {
            bench.words = word.to_owned();
            let silence = Bench::silence();
            let ended = bench.run(&[&NEEDS[..], &["--silence", &silence]].concat());
            assert_eq!(ended.code, Some(1), "{}", ended.errors);
            let sentence = format!("error: the installation did not finish: {reason}");
            assert!(ended.errors.contains(&sentence), "{}", ended.errors);
            assert!(ended.errors.contains("has the serial log"), "{}", ended.errors);
        }
        // A run can reuse the folder of an earlier run.
        bench.words = String::new();
        let ended = bench.run(&NEEDS);
        ended.assert(0, &[("install", "passed")]);
    }

    /// Sends a signal to one process.
    fn kill(signal: &str, id: u32) {
        let status = Command::new("kill").args([signal, &id.to_string()]).status();
        assert!(status.unwrap().success());
    }
}

#[test]
fn what_cannot_be_run_is_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::create_dir(path("empty")).unwrap();
    fs::write(path("notes.iso"), "no image").unwrap();
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_cargo-etw"))
            .current_dir(Path::new(&path("")))
            .args(["etw", "vm"])
            .args(arguments)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), errors)
    };
    let (code, errors) = run(&[]);
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("--iso <FILE>"), "{errors}");
    let (code, errors) = run(&["--iso", "notes.iso", "--qemu", "/nowhere/qemu"]);
    assert_eq!(code, Some(1), "{errors}");
    let sentence = "error: cannot find /nowhere/qemu; install the Debian package qemu-system-x86, or \
                    name the program's path with --qemu";
    assert!(errors.contains(sentence), "{errors}");
    // Any program suffices, because the package is checked before the program starts.
    let (code, errors) = run(&["--iso", "notes.iso", "--qemu", "/bin/sh", "--driver", "empty"]);
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.contains("is not a driver package: it has no .inf file"), "{errors}");
    // A driver of devices whose models section has another decoration.
    let text = "[Manufacturer]\nA=Models,NTamd64\n[Models.NTarm64]\nB=Install,Root\\B\n\
                [Install.Services]\nAddService=b,2,Service\n";
    fs::write(path("empty/contoso.inf"), text).unwrap();
    fs::write(path("empty/contoso.sys"), "").unwrap();
    let (code, errors) = run(&["--iso", "notes.iso", "--qemu", "/bin/sh", "--driver", "empty"]);
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.contains("contoso.inf lists no hardware ID"), "{errors}");
}
