//! The command line and process of QEMU.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    error::{Error, Result, file},
    interrupt,
    protocol::Lines,
    qmp::{Event, Qmp},
};

/// QEMU's method of running the guest's processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accelerator {
    /// The host's virtualization with the Hyper-V interface, for guests that support it.
    KvmHyperV,
    /// The host's virtualization without the Hyper-V interface.
    Kvm,
    /// Binary translation, which works on every host but is many times slower.
    Tcg,
}

impl Accelerator {
    /// All accelerators, fastest first.
    pub const ALL: [Self; 3] = [Self::KvmHyperV, Self::Kvm, Self::Tcg];

    /// Returns the name used on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::KvmHyperV => "kvm-hyperv",
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
        }
    }

    /// Returns the factor for time limits, relative to virtualization.
    #[must_use]
    pub const fn slowness(self) -> u32 {
        match self {
            Self::KvmHyperV | Self::Kvm => 1,
            Self::Tcg => 6,
        }
    }

    /// Returns the values of `-accel` and `-cpu`.
    ///
    /// Nested virtualization is masked: it made guests crash, and it lets Windows enable memory
    /// integrity. Under TCG, the processor model is one that Windows supports and that TCG
    /// implements almost completely.
    const fn arguments(self) -> (&'static str, &'static str) {
        match self {
            Self::KvmHyperV => (
                "kvm",
                "host,migratable=no,-vmx,-svm,-arch-capabilities,hv-relaxed,hv-vapic,\
                 hv-spinlocks=0x1fff,hv-vpindex,hv-runtime,hv-synic,hv-stimer,hv-time,\
                 hv-frequencies,hv-crash",
            ),
            Self::Kvm => ("kvm", "host,migratable=no,-vmx,-svm,-arch-capabilities"),
            Self::Tcg => ("tcg,thread=multi", "Skylake-Client-v4,-vmx"),
        }
    }
}

/// The firmware of a virtual machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Firmware {
    /// QEMU's own BIOS.
    Bios,
    /// UEFI without Secure Boot: shared code, and separate variables for each machine.
    Uefi {
        /// The file with the code, which is read-only.
        code: PathBuf,
        /// The file with the variables.
        variables: PathBuf,
    },
}

/// The settings that all virtual machines of a run share.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The QEMU program.
    pub program: PathBuf,
    /// The accelerator.
    pub accelerator: Accelerator,
    /// The number of virtual processors.
    pub processors: u32,
    /// The memory in MiB. With 8 GiB or more, Windows can enable memory integrity.
    pub memory: u32,
    /// Additional arguments, which follow all others.
    pub extra: Vec<OsString>,
}

/// A disk or CD of a virtual machine. The firmware tries the drives in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Drive {
    /// The system disk, in qcow2 format.
    System(PathBuf),
    /// A raw disk.
    Raw(PathBuf),
    /// A CD.
    Cd(PathBuf),
}

/// The display of a virtual machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Display {
    /// No display; screenshots can be taken.
    None,
    /// A window.
    Window,
    /// A VNC server for clients on this host.
    Vnc,
}

/// A virtual machine to start.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The shared settings.
    pub settings: Settings,
    /// The firmware.
    pub firmware: Firmware,
    /// The drives.
    pub drives: Vec<Drive>,
    /// The display.
    pub display: Display,
}

/// Returns the path of QEMU.
///
/// # Errors
///
/// Fails with [`Error::MissingProgram`] if the path does not exist or the program is not on the
/// search path.
pub fn find(program: &Path) -> Result<PathBuf> {
    let missing = || Error::MissingProgram {
        program: program.display().to_string(),
        package: "qemu-system-x86",
        option: "--qemu",
    };
    if program.components().count() > 1 {
        return if program.is_file() { Ok(program.to_owned()) } else { Err(missing()) };
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
        .ok_or_else(missing)
}

/// Returns the files with the UEFI firmware's code and variables.
///
/// # Errors
///
/// Fails with [`Error::MissingFirmware`], which contains the folders that were searched.
pub fn find_uefi() -> Result<(PathBuf, PathBuf)> {
    /// The folders of Debian and Ubuntu, Fedora, and Arch Linux.
    const FOLDERS: [&str; 3] = ["/usr/share/OVMF", "/usr/share/edk2/ovmf", "/usr/share/edk2/x64"];
    const NAMES: [(&str, &str); 3] = [
        ("OVMF_CODE_4M.fd", "OVMF_VARS_4M.fd"),
        ("OVMF_CODE.4m.fd", "OVMF_VARS.4m.fd"),
        ("OVMF_CODE.fd", "OVMF_VARS.fd"),
    ];
    let pairs = FOLDERS.iter().flat_map(|folder| {
        NAMES.iter().map(move |(code, variables)| {
            (Path::new(folder).join(code), Path::new(folder).join(variables))
        })
    });
    let found = |(code, variables): &(PathBuf, PathBuf)| code.is_file() && variables.is_file();
    pairs
        .into_iter()
        .find(found)
        .ok_or_else(|| Error::MissingFirmware { folders: FOLDERS.join(", ") })
}

impl Machine {
    /// Returns QEMU's arguments, except those for the serial port and QMP.
    #[must_use]
    pub fn arguments(&self) -> Vec<OsString> {
        let Settings { accelerator, processors, memory, .. } = self.settings;
        let (accel, cpu) = accelerator.arguments();
        let mut all: Vec<OsString> = Vec::new();
        let mut add = |name: &str, value: String| {
            all.push(name.into());
            all.push(value.into());
        };
        add("-machine", "q35,smm=off,vmport=off".to_owned());
        add("-accel", accel.to_owned());
        add("-cpu", cpu.to_owned());
        add("-smp", processors.to_string());
        add("-m", format!("{memory}M"));
        // Windows interprets the clock as local time, and the answer file sets the time zone to
        // UTC.
        add("-rtc", "base=utc,driftfix=slew".to_owned());
        for setting in ["ICH9-LPC.disable_s3=1", "ICH9-LPC.disable_s4=1"] {
            add("-global", setting.to_owned());
        }
        if accelerator != Accelerator::Tcg {
            add("-global", "kvm-pit.lost_tick_policy=discard".to_owned());
        }
        // A crashed guest writes its dump and restarts, so QEMU must not stop it before.
        add("-action", "panic=none,reboot=reset,shutdown=poweroff".to_owned());
        add("-vga", "std".to_owned());
        add("-device", "qemu-xhci,id=usb".to_owned());
        add("-device", "usb-tablet,bus=usb.0".to_owned());
        add(
            "-display",
            match self.display {
                Display::None => "none",
                Display::Window => "gtk",
                Display::Vnc => "vnc=127.0.0.1:0,to=99",
            }
            .to_owned(),
        );
        if let Firmware::Uefi { code, variables } = &self.firmware {
            for (unit, path, is_read_only) in [(0, code, "on"), (1, variables, "off")] {
                let path = path.display().to_string().replace(',', ",,");
                add(
                    "-drive",
                    format!("if=pflash,unit={unit},format=raw,readonly={is_read_only},file={path}"),
                );
            }
        }
        for (number, drive) in self.drives.iter().enumerate() {
            let (path, format, device, is_read_only) = match drive {
                Drive::System(path) => (path, "qcow2", "ide-hd", false),
                Drive::Raw(path) => (path, "raw", "ide-hd", false),
                Drive::Cd(path) => (path, "raw", "ide-cd", true),
            };
            let node = json!({
                "driver": format,
                "node-name": format!("drive{number}"),
                "read-only": is_read_only,
                "file": { "driver": "file", "filename": path.display().to_string() },
            });
            add("-blockdev", node.to_string());
            // With `-kernel`, QEMU itself uses boot index 0.
            let index = number.saturating_add(1);
            add(
                "-device",
                format!("{device},bus=ide.{number},drive=drive{number},bootindex={index}"),
            );
        }
        all.extend(self.settings.extra.iter().cloned());
        all
    }

    /// Starts the machine, whose serial output is logged to a file.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::NotStarted`], which contains QEMU's output.
    pub fn start(&self, serial: &Path) -> Result<Running> {
        File::create(serial).map_err(file("create", serial))?;
        let mut arguments: Vec<OsString> = self.arguments();
        let path = serial.display().to_string().replace(',', ",,");
        arguments.extend(
            [
                "-chardev".to_owned(),
                format!("file,id=serial0,path={path}"),
                "-serial".to_owned(),
                "chardev:serial0".to_owned(),
            ]
            .map(OsString::from),
        );
        let mut running = launch(&self.settings.program, &arguments)?;
        running.serial = Some(File::open(serial).map_err(file("open", serial))?);
        Ok(running)
    }
}

/// A running QEMU. Dropping it ends the process.
#[derive(Debug)]
pub struct Running {
    child: Child,
    qmp: Qmp,
    serial: Option<File>,
    lines: Lines,
    /// The file with QEMU's standard error.
    log: PathBuf,
    /// The folder of the socket and the log. It is temporary, because a socket's path is limited to
    /// 107 bytes.
    _folder: TempDir,
}

/// Starts QEMU with a QMP socket, and connects to it.
fn launch(program: &Path, arguments: &[OsString]) -> Result<Running> {
    /// The limit is generous, because QEMU may load from a slow disk on a busy host.
    const PATIENCE: Duration = Duration::from_mins(1);
    interrupt::catch();
    let folder = TempDir::with_prefix("etw-vm-")
        .map_err(file("create a folder in", &std::env::temp_dir()))?;
    let socket = folder.path().join("qmp");
    let log = folder.path().join("log");
    let output = File::create(&log).map_err(file("create", &log))?;
    let mut command = Command::new(program);
    command
        .args(["-nodefaults", "-no-user-config"])
        .args(arguments)
        .arg("-qmp")
        .arg(format!("unix:{},server=on,wait=off", socket.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(output);
    end_with_this_process(&mut command);
    let mut child = command.spawn().map_err(file("run", program))?;
    let until = Instant::now() + PATIENCE;
    let failed = |status: String| Error::NotStarted {
        status,
        output: fs::read_to_string(&log).unwrap_or_default().trim().to_owned(),
        command: format!("{command:?}"),
    };
    let qmp = loop {
        // If the connection fails, QEMU is about to end, which the loop detects.
        if let Ok(Some(qmp)) = Qmp::connect(&socket) {
            break qmp;
        }
        if let Ok(Some(status)) = child.try_wait() {
            return Err(failed(status.to_string()));
        }
        if Instant::now() > until || interrupt::check().is_err() {
            let _ = child.kill();
            let _ = child.wait();
            interrupt::check()?;
            return Err(failed(format!("no answer within {} s", PATIENCE.as_secs())));
        }
        thread::sleep(Duration::from_millis(20));
    };
    Ok(Running { child, qmp, serial: None, lines: Lines::default(), log, _folder: folder })
}

/// Makes the kernel end the child process when this process ends, for any reason.
#[cfg(target_os = "linux")]
fn end_with_this_process(command: &mut Command) {
    use std::os::unix::process::CommandExt as _;

    use nix::sys::{prctl, signal::Signal};

    // Terminal signals reach only this process, which then ends QEMU.
    command.process_group(0);
    let die = || prctl::set_pdeathsig(Signal::SIGKILL).map_err(Into::into);
    // SAFETY: the closure runs in the forked child before exec and only makes one system call,
    // which neither allocates nor takes a lock.
    unsafe {
        command.pre_exec(die);
    }
}

/// Other systems lack such a signal; dropping [`Running`] ends QEMU.
#[cfg(not(target_os = "linux"))]
fn end_with_this_process(command: &mut Command) {
    use std::os::unix::process::CommandExt as _;

    command.process_group(0);
}

impl Running {
    /// Returns the lines that the guest has written to its serial port since the last call.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::File`] if the log cannot be read.
    pub fn lines(&mut self) -> Result<Vec<String>> {
        let Some(serial) = &mut self.serial else {
            return Ok(Vec::new());
        };
        let mut bytes = Vec::new();
        serial.read_to_end(&mut bytes).map_err(file("read", Path::new("the serial log")))?;
        Ok(self.lines.push(&bytes))
    }

    /// Returns QEMU's next event.
    pub fn event(&mut self) -> Option<Event> {
        self.qmp.event()
    }

    /// Returns QEMU's exit status, if it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Returns QEMU's standard error output.
    #[must_use]
    pub fn output(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default().trim().to_owned()
    }

    /// Returns the process's id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Runs a QMP command.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::Control`].
    pub fn execute(&mut self, command: &str, arguments: &Value) -> Result<Value> {
        self.qmp.execute(command, arguments)
    }

    /// Writes a screenshot as a PNG file.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::Control`].
    pub fn screenshot(&mut self, to: &Path) -> Result<()> {
        let arguments = json!({ "filename": to.display().to_string(), "format": "png" });
        self.execute("screendump", &arguments).map(|_| ())
    }

    /// Returns the number of bytes that the guest has written to its disks.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::Control`].
    pub fn written(&mut self) -> Result<u64> {
        let all = self.execute("query-blockstats", &json!({}))?;
        let each = all.as_array().into_iter().flatten();
        Ok(each.filter_map(|one| one["stats"]["wr_bytes"].as_u64()).sum())
    }

    /// Asks QEMU to flush its data and quit, and waits until it has ended.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::Control`] if QEMU is still running; dropping the value kills the
    /// process.
    pub fn quit(mut self) -> Result<()> {
        const PATIENCE: Duration = Duration::from_mins(1);
        // QEMU may close the connection before it responds.
        let _ = self.execute("quit", &json!({}));
        let until = Instant::now() + PATIENCE;
        while self.ended().is_none() {
            if Instant::now() > until {
                return Err(Error::Control {
                    command: "quit".to_owned(),
                    reason: format!("QEMU was still running after {} s", PATIENCE.as_secs()),
                });
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both calls fail only if the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Creates an empty system disk in qcow2 format.
///
/// A QEMU process creates the image, so QEMU's other tools are not needed.
///
/// # Errors
///
/// Fails with [`Error::Control`], which contains QEMU's reason.
pub fn create_image(program: &Path, path: &Path, bytes: u64) -> Result<()> {
    create(program, path, |_| Ok(json!({ "size": bytes })))
}

/// Creates an overlay of a qcow2 image.
///
/// # Errors
///
/// Fails with [`Error::Control`], which contains QEMU's reason.
pub fn create_overlay(program: &Path, path: &Path, base: &Path) -> Result<()> {
    let name = base.display().to_string();
    create(program, path, |qemu| {
        let node = json!({
            "driver": "qcow2",
            "node-name": "base",
            "read-only": true,
            "file": { "driver": "file", "filename": name },
        });
        qemu.execute("blockdev-add", &node)?;
        let nodes = qemu.execute("query-named-block-nodes", &json!({}))?;
        let each = nodes.as_array().into_iter().flatten();
        let base = each.into_iter().find(|node| node["node-name"] == "base");
        let size = base.map_or(Value::Null, |node| node["image"]["virtual-size"].clone());
        Ok(json!({ "size": size, "backing-file": name, "backing-fmt": "qcow2" }))
    })
}

/// Creates a qcow2 image with additional options, in a running QEMU.
fn create(
    program: &Path,
    path: &Path,
    more: impl FnOnce(&mut Running) -> Result<Value>,
) -> Result<()> {
    let words = ["-machine", "none", "-display", "none", "-S"].map(OsString::from);
    let mut qemu = launch(program, &words)?;
    let name = path.display().to_string();
    let file = json!({ "driver": "file", "filename": name, "size": 0 });
    job(&mut qemu, &file)?;
    let node = json!({ "driver": "file", "filename": name, "node-name": "file" });
    qemu.execute("blockdev-add", &node)?;
    let mut options = more(&mut qemu)?;
    options["driver"] = json!("qcow2");
    options["file"] = json!("file");
    job(&mut qemu, &options)?;
    qemu.quit()
}

/// Runs a job that creates an image, and waits for its end.
fn job(qemu: &mut Running, options: &Value) -> Result<()> {
    const COMMAND: &str = "blockdev-create";
    qemu.execute(COMMAND, &json!({ "job-id": "create", "options": options }))?;
    let fail =
        |reason: &str| Error::Control { command: COMMAND.to_owned(), reason: reason.to_owned() };
    loop {
        interrupt::check()?;
        let jobs = qemu.execute("query-jobs", &json!({}))?;
        let job = jobs.get(0).ok_or_else(|| fail("QEMU no longer lists the job"))?;
        if job["status"] == "concluded" {
            if let Some(reason) = job["error"].as_str() {
                return Err(fail(reason));
            }
            break;
        }
        if let Some(status) = qemu.ended() {
            return Err(fail(&format!("QEMU ended ({status})")));
        }
        thread::sleep(Duration::from_millis(10));
    }
    qemu.execute("job-dismiss", &json!({ "id": "create" })).map(|_| ())
}
