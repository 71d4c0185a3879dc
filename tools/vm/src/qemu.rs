//! QEMU's command line and process.

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

/// QEMU's way of running the guest's processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accelerator {
    /// The host's virtualization, with the Hyper-V interface for guests that support it.
    KvmHyperV,
    /// The host's virtualization alone.
    Kvm,
    /// Binary translation, which works on every host and is many times slower.
    Tcg,
}

impl Accelerator {
    /// All accelerators, the fastest first.
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

    /// Returns the factor by which time limits grow compared with virtualization.
    #[must_use]
    pub const fn slowness(self) -> u32 {
        match self {
            Self::KvmHyperV | Self::Kvm => 1,
            Self::Tcg => 6,
        }
    }

    /// Returns `-accel` and `-cpu`.
    ///
    /// Virtualization inside the guest is masked: it made guests crash, and with it Windows may
    /// turn on memory integrity. Under TCG, the processor model is one that Windows supports and
    /// TCG implements almost completely.
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
    /// UEFI without Secure Boot: the shared code, and this machine's own variables.
    Uefi {
        /// The code, which is only read.
        code: PathBuf,
        /// The variables.
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
    /// Virtual processors.
    pub processors: u32,
    /// Memory in MiB. With 8 GiB and more, Windows may turn on memory integrity.
    pub memory: u32,
    /// Additional arguments, after all others.
    pub extra: Vec<OsString>,
}

/// A disk or CD of a virtual machine. The firmware tries the drives in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Drive {
    /// The system disk, qcow2.
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
    /// Its firmware.
    pub firmware: Firmware,
    /// Its drives.
    pub drives: Vec<Drive>,
    /// Its display.
    pub display: Display,
}

/// Returns the path of QEMU.
///
/// # Errors
///
/// Returns [`Error::MissingProgram`] if the path does not exist or the search path has no such
/// program.
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

/// Returns the UEFI firmware's code and variables files.
///
/// # Errors
///
/// Returns [`Error::MissingFirmware`] with the folders that were searched.
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
    /// Returns QEMU's arguments, without those for the serial port and QMP.
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
        // Windows reads the clock as the local time of its zone, and the answer file sets the zone to UTC.
        add("-rtc", "base=utc,driftfix=slew".to_owned());
        for setting in ["ICH9-LPC.disable_s3=1", "ICH9-LPC.disable_s4=1"] {
            add("-global", setting.to_owned());
        }
        if accelerator != Accelerator::Tcg {
            add("-global", "kvm-pit.lost_tick_policy=discard".to_owned());
        }
        // A guest that crashed writes its dump and restarts: QEMU must not stop it first.
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

    /// Starts the machine. Its serial log is written to a file.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NotStarted`] with QEMU's output.
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
    /// The folder of the socket and the log: a socket's path is at most 107 bytes long.
    _folder: TempDir,
}

/// Starts QEMU with a QMP socket, and connects to it.
fn launch(program: &Path, arguments: &[OsString]) -> Result<Running> {
    /// A generous limit, because QEMU may load from a slow disk while the host is busy.
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
        // If the connection fails, the process ends next, which the loop detects.
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

/// Makes the kernel end the child when this process ends, for whatever reason.
#[cfg(target_os = "linux")]
fn end_with_this_process(command: &mut Command) {
    use std::os::unix::process::CommandExt as _;

    use nix::sys::{prctl, signal::Signal};

    // The terminal's signals go to this process only, which then ends QEMU.
    command.process_group(0);
    let die = || prctl::set_pdeathsig(Signal::SIGKILL).map_err(Into::into);
    // SAFETY: the closure runs in the forked child before exec and only makes one system call,
    // which neither allocates nor takes a lock.
    unsafe {
        command.pre_exec(die);
    }
}

/// Other systems have no such signal; dropping [`Running`] ends QEMU.
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
    /// Returns [`Error::File`] if the log cannot be read.
    pub fn lines(&mut self) -> Result<Vec<String>> {
        let Some(serial) = &mut self.serial else {
            return Ok(Vec::new());
        };
        let mut bytes = Vec::new();
        serial.read_to_end(&mut bytes).map_err(file("read", Path::new("the serial log")))?;
        Ok(self.lines.push(&bytes))
    }

    /// Returns the next event of QEMU.
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
    /// Returns [`Error::Control`].
    pub fn execute(&mut self, command: &str, arguments: &Value) -> Result<Value> {
        self.qmp.execute(command, arguments)
    }

    /// Writes a screenshot as PNG.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Control`].
    pub fn screenshot(&mut self, to: &Path) -> Result<()> {
        let arguments = json!({ "filename": to.display().to_string(), "format": "png" });
        self.execute("screendump", &arguments).map(|_| ())
    }

    /// Returns the number of bytes that the guest has written to its disks.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Control`].
    pub fn written(&mut self) -> Result<u64> {
        let all = self.execute("query-blockstats", &json!({}))?;
        let each = all.as_array().into_iter().flatten();
        Ok(each.filter_map(|one| one["stats"]["wr_bytes"].as_u64()).sum())
    }

    /// Asks QEMU to flush its data and quit, and waits until it has.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Control`] if QEMU is still running; dropping it kills the process.
    pub fn quit(mut self) -> Result<()> {
        const PATIENCE: Duration = Duration::from_mins(1);
        // QEMU may close the connection before it answers.
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
/// QEMU itself creates the image, so its tools are not needed.
///
/// # Errors
///
/// Returns [`Error::Control`] with QEMU's reason.
pub fn create_image(program: &Path, path: &Path, bytes: u64) -> Result<()> {
    create(program, path, |_| Ok(json!({ "size": bytes })))
}

/// Creates an overlay of a qcow2 image.
///
/// # Errors
///
/// Returns [`Error::Control`] with QEMU's reason.
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

/// Creates a qcow2 image with additional options, through a running QEMU.
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

/// Runs a job that creates an image, and waits until it ends.
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
