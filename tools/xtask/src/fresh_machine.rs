//! `cargo xtask fresh-machine`: runs the README's two commands on newly installed machines.
//!
//! Each machine is a folder with a minimal Debian system from debootstrap, a Rust toolchain without
//! libraries for Windows, and a clone of the current commit. Each machine lacks something: recent
//! package lists, permission to install packages, or apt-get.

use std::{
    env,
    fmt::Write as _,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

use driver_build::{files, toolchain::Rust};

use crate::{
    packages,
    process::{find_program, output_of, root, run_quietly, symlink, target},
    progress::step,
};

/// The expected result of a command.
#[derive(Clone, Copy, Debug)]
enum Expected {
    /// The command succeeds and leaves the clone clean.
    Success,
    /// The command fails with a message that contains these words.
    Refusal(&'static [&'static str]),
}

/// The user who runs the commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum User {
    Root,
    /// A user who can run sudo without a password.
    WithSudo,
    /// A user who cannot use sudo.
    WithoutSudo,
}

impl User {
    const fn home(self) -> &'static str {
        match self {
            Self::Root => "/root",
            Self::WithSudo | Self::WithoutSudo => "/home/developer",
        }
    }

    const fn describe(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::WithSudo => "user with sudo",
            Self::WithoutSudo => "user without sudo",
        }
    }
}

/// A machine and the expected results of the two commands.
struct Machine {
    name: &'static str,
    release: &'static str,
    user: User,
    /// True if apt-get uses Debian's security archive.
    security: bool,
    /// True if rustup manages the toolchain and can add components.
    rustup: bool,
    /// True if the machine has apt-get.
    apt: bool,
    demo: Expected,
    test: Expected,
}

/// An ordinary machine, whose package lists date from its installation and can be updated.
const ORDINARY: Machine = Machine {
    name: "debian-12",
    release: "bookworm",
    user: User::Root,
    security: true,
    rustup: false,
    apt: true,
    demo: Expected::Success,
    test: Expected::Success,
};

/// The expected refusal if Debian's compiler is too old.
const TOO_OLD: Expected =
    Expected::Refusal(&["rustc-web is 1.", "or later is needed", "rustup target add"]);

const MACHINES: [Machine; 7] = [
    ORDINARY,
    Machine { name: "debian-13", release: "trixie", ..ORDINARY },
    Machine { name: "debian-12-user", user: User::WithSudo, ..ORDINARY },
    Machine { name: "debian-12-rustup", rustup: true, ..ORDINARY },
    Machine {
        name: "debian-12-old",
        security: false,
        demo: TOO_OLD,
        test: Expected::Refusal(&["rustc-web is 1.", "or later is needed", "rustup component add"]),
        ..ORDINARY
    },
    Machine {
        name: "debian-12-no-sudo",
        user: User::WithoutSudo,
        demo: Expected::Refusal(&[
            "`sudo apt-get install rustc-web cargo-web rust-web-src lld-19`",
        ]),
        test: Expected::Refusal(&[
            "`sudo apt-get install ", "osslsigncode", "wine64", "chromium", "clang-19",
        ]),
        ..ORDINARY
    },
    Machine {
        name: "debian-12-no-apt",
        rustup: true,
        apt: false,
        test: Expected::Refusal(&["no apt-get", "osslsigncode", "wine64", "chromium", "clang-19"]),
        ..ORDINARY
    },
];

/// The packages that are installed in addition to the minimal system.
const INSTALLED: &str = "ca-certificates,gcc,git,libc6-dev,sudo";

/// The result of a command.
struct Outcome {
    took: Duration,
    /// The difference from the expected result, if any.
    failure: Option<String>,
    /// The error, if a refusal was expected.
    refusal: Option<String>,
}

fn folder() -> PathBuf {
    target().join("fresh-machine")
}

fn succeed(command: &mut Command) -> Result<()> {
    run_quietly(command)
}

/// Creates a release's minimal system, unless it exists, and returns its folder. Machines are
/// copies of it.
fn base(release: &str) -> Result<PathBuf> {
    let base = folder().join("base").join(release);
    let finished = base.join("finished");
    if finished.exists() {
        return Ok(base.join("root"));
    }
    files::remove_dir_all(&base)?;
    files::create_dir_all(&base)?;
    succeed(
        Command::new("debootstrap")
            .arg("--variant=minbase")
            .arg(format!("--include={INSTALLED}"))
            .arg(release)
            .arg(base.join("root")),
    )?;
    files::write(&finished, "")?;
    Ok(base.join("root"))
}

/// Copies a file from this machine, if it exists.
fn copy_file(from: &Path, root: &Path) -> Result<()> {
    if !from.exists() {
        return Ok(());
    }
    let to = root.join(from.strip_prefix("/").unwrap_or(from));
    files::create_dir_all(to.parent().unwrap_or(root))?;
    files::copy(from, &to)
}

/// Returns whether a file in a toolchain is for Windows or is part of the standard library's
/// source.
fn is_left_out(name: &str) -> bool {
    name.contains("windows") || matches!(name, "src" | "doc" | "manifest-rust-src")
}

/// The line that starts a component in rustup's list of a toolchain's components.
const COMPONENT: &str = "[[components]]";

/// Copies a toolchain, without its Windows libraries and the standard library's source.
fn copy_toolchain(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let to = to.join(&name);
        if is_left_out(&name.to_string_lossy()) {
            continue;
        }
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_toolchain(&entry.path(), &to)?;
        } else if kind.is_symlink() {
            symlink(&fs::read_link(entry.path())?, &to)?;
        } else if name == "components" {
            let text = fs::read_to_string(entry.path())?;
            let mut kept = String::new();
            for line in text.lines() {
                if !(line.contains("windows") || line == "rust-src") {
                    kept.push_str(line);
                    kept.push('\n');
                }
            }
            fs::write(to, kept)?;
        } else if name == "multirust-config.toml" {
            // rustup does not add components that this file lists.
            let text = fs::read_to_string(entry.path())?;
            let mut parts = text.split(COMPONENT);
            let mut kept = parts.next().unwrap_or_default().to_owned();
            for part in parts.filter(|part| !part.contains("windows") && !part.contains("rust-src"))
            {
                kept += COMPONENT;
                kept += part;
            }
            fs::write(to, kept)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

impl Machine {
    fn root(&self) -> PathBuf {
        folder().join(self.name)
    }

    fn log(&self) -> PathBuf {
        folder().join(format!("{}.log", self.name))
    }

    /// Creates the machine.
    fn make(&self) -> Result<()> {
        let root = self.root();
        let write = |path: &Path| format!("cannot write {}", path.display());
        files::remove_dir_all(&root)?;
        succeed(
            Command::new("cp")
                .args(["--archive", "--reflink=auto"])
                .arg(base(self.release)?)
                .arg(&root),
        )?;
        // These files configure the network.
        for file in ["/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf"] {
            copy_file(Path::new(file), &root)?;
        }
        if self.security {
            let sources = root.join("etc/apt/sources.list");
            let text = files::read_to_string(&sources)?;
            let security = text
                .replace("/debian ", "/debian-security ")
                .replace(&format!(" {} ", self.release), &format!(" {}-security ", self.release));
            fs::write(&sources, format!("{text}{security}")).with_context(|| write(&sources))?;
        }
        if self.user != User::Root {
            let home = self.user.home();
            self.inside("useradd --create-home --shell /bin/sh developer")?;
            fs::create_dir_all(root.join(&home[1..])).with_context(|| write(&root))?;
        }
        if self.user == User::WithSudo {
            let rule = root.join("etc/sudoers.d/developer");
            fs::write(&rule, "developer ALL=(ALL) NOPASSWD: ALL\n")
                .with_context(|| write(&rule))?;
        }
        if !self.apt {
            self.inside("rm /usr/bin/apt-get")?;
        }
        self.install_rust()?;
        let clone = root.join(&self.user.home()[1..]).join("wdk-etw");
        succeed(
            Command::new("git")
                .args(["clone", "--quiet", "--no-hardlinks"])
                .arg(crate::process::root())
                .arg(&clone),
        )?;
        if self.user != User::Root {
            self.inside("chown --recursive developer:developer /home/developer")?;
        }
        Ok(())
    }

    /// Copies the toolchain that runs cargo.
    fn install_rust(&self) -> Result<()> {
        let sysroot = Rust::Current.sysroot().context("`rustc --print sysroot` fails")?;
        let home = self.root().join(&self.user.home()[1..]);
        let toolchain = if self.rustup {
            home.join(".rustup/toolchains/copied")
        } else {
            self.root().join("opt/rust")
        };
        copy_toolchain(&sysroot, &toolchain)
            .with_context(|| format!("cannot copy the toolchain to {}", toolchain.display()))?;
        if self.rustup {
            // rustup takes the channel, host and version from a toolchain's name.
            let name = sysroot.file_name().context("the sysroot has no name")?;
            let folder = toolchain.with_file_name(name);
            files::rename(&toolchain, &folder)?;
            let rustup = find_program("rustup").context(
                "cannot find rustup in PATH: the test machines with rustup get a copy of it; \
                 install rustup and try again",
            )?;
            let bin = home.join(".cargo/bin");
            let make = || -> io::Result<()> {
                fs::create_dir_all(&bin)?;
                fs::copy(fs::canonicalize(&rustup)?, bin.join("rustup"))?;
                for proxy in [
                    "cargo", "rustc", "rustdoc", "rustfmt", "cargo-fmt", "cargo-clippy",
                    "clippy-driver",
                ] {
                    fs::hard_link(bin.join("rustup"), bin.join(proxy))?;
                }
                fs::write(
                    home.join(".rustup/settings.toml"),
                    format!(
                        "version = \"12\"\ndefault_toolchain = {:?}\nprofile = \"minimal\"\n",
                        name.to_string_lossy()
                    ),
                )
            };
            make().with_context(|| format!("cannot install rustup in {}", bin.display()))?;
        }
        Ok(())
    }

    /// Returns a command that runs a shell line in the machine; the machine's mounts disappear when
    /// it ends.
    fn shell(&self, line: &str, user: User) -> Command {
        let root = self.root();
        let root = root.display();
        let home = user.home();
        let path = if self.rustup {
            format!("{home}/.cargo/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
        } else {
            "/opt/rust/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin".to_owned()
        };
        let mut script = format!(
            "set -e\n\
             mount -t proc proc '{root}/proc'\n\
             mount --rbind /dev '{root}/dev'\n\
             mount --rbind /sys '{root}/sys'\n\
             exec env --ignore-environment HOME={home} PATH={path} LANG=C.UTF-8"
        );
        for (name, value) in env::vars() {
            if is_about_the_network(&name) {
                let _ = write!(script, " '{name}={}'", value.replace('\'', "'\\''"));
            }
        }
        let identity = match user {
            User::Root => "",
            User::WithSudo | User::WithoutSudo => "--userspec=developer:developer ",
        };
        let _ = write!(
            script,
            " chroot {identity}'{root}' /bin/sh -c '{}'",
            line.replace('\'', "'\\''")
        );
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child", "/bin/sh", "-c"]).arg(script);
        command
    }

    /// Runs a shell line in the machine as root.
    fn inside(&self, line: &str) -> Result<()> {
        succeed(&mut self.shell(line, User::Root))
    }

    /// Runs one of the README's commands.
    fn run(&self, command: &str, expected: Expected) -> Result<Outcome> {
        let log = self.log();
        let open = || format!("cannot write {}", log.display());
        let file = File::options().create(true).append(true).open(&log).with_context(open)?;
        let line = format!("cd ~/wdk-etw && {command} 2>&1");
        let start_of_log = fs::metadata(&log).with_context(open)?.len();
        let start = Instant::now();
        let status = self
            .shell(&line, self.user)
            .stdin(Stdio::null())
            .stdout(file.try_clone().with_context(open)?)
            .stderr(file)
            .status()
            .context("cannot start unshare")?;
        let took = start.elapsed();
        let text = fs::read(&log).with_context(open)?;
        let start_of_log = usize::try_from(start_of_log).unwrap_or(0);
        let text = String::from_utf8_lossy(text.get(start_of_log..).unwrap_or_default());
        // The error is on a line after the progress steps, and can continue on further lines.
        let error = text.find("\nerror: ").map(|at| text[at..].trim().to_owned());
        let (failure, refusal) = match expected {
            Expected::Success if status.success() => (self.uncommitted(), None),
            Expected::Success => (Some(error.unwrap_or_else(|| status.to_string())), None),
            Expected::Refusal(_) if status.success() => {
                (Some("the command succeeded; expected a refusal".to_owned()), None)
            }
            Expected::Refusal(words) => {
                let error = error.unwrap_or_default();
                let missing = words.iter().find(|word| !error.contains(**word));
                let failure = missing
                    .map(|word| format!("the error message does not contain {word:?}: {error}"));
                (failure, Some(error))
            }
        };
        Ok(Outcome { took, failure, refusal })
    }

    /// Describes the changes in the clone, if there are any.
    fn uncommitted(&self) -> Option<String> {
        let status =
            output_of(&mut self.shell("cd ~/wdk-etw && git status --porcelain", self.user));
        match status {
            Some(status) if status.is_empty() => None,
            Some(status) => Some(format!("the clone has changes: {status}")),
            None => Some("`git status` fails in the clone".to_owned()),
        }
    }

    /// Creates the machine and runs both commands. Returns the table row, and whether the machine
    /// passed.
    fn try_out(&self) -> Result<(String, bool)> {
        match fs::remove_file(self.log()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error)
                    .with_context(|| format!("cannot remove {}", self.log().display()));
            }
            // Both commands append to the log.
            _ => {}
        }
        self.make().with_context(|| format!("cannot create the machine {}", self.name))?;
        let demo = self.run("cargo xtask demo", self.demo)?;
        let test = self.run("cargo xtask test", self.test)?;
        let passed = demo.failure.is_none() && test.failure.is_none();
        let show = |outcome: &Outcome| {
            let minutes = outcome.took.as_secs_f64() / 60.0;
            let result = match (&outcome.failure, &outcome.refusal) {
                (Some(_), _) => "FAILED",
                (None, Some(_)) => "failed as expected",
                (None, None) => "passed",
            };
            format!("{result}, {minutes:.1} min")
        };
        let row = format!(
            "| {} | {} | {} | {} | {} |",
            self.name,
            self.describe(),
            self.user.describe(),
            show(&demo),
            show(&test)
        );
        for (command, outcome) in [("demo", demo), ("test", test)] {
            if let Some(failure) = outcome.failure {
                eprintln!("{}: cargo xtask {command}: {failure}", self.name);
                eprintln!("{}: the output is in {}", self.name, self.log().display());
            } else if let Some(refusal) = outcome.refusal {
                eprintln!("{}: cargo xtask {command}: {refusal}", self.name);
            }
        }
        if passed {
            // A machine takes up several gigabytes.
            files::remove_dir_all(self.root())?;
        }
        Ok((row, passed))
    }

    /// Describes the machine for the table.
    fn describe(&self) -> String {
        let mut text = format!("{}, ", self.release);
        text += match (self.apt, self.security) {
            (false, _) => "no apt-get",
            (true, true) => "package lists of the installation",
            (true, false) => "old package lists, no security archive",
        };
        text += if self.rustup { ", rustup" } else { ", no rustup" };
        text
    }
}

/// Returns true if an environment variable configures the network.
fn is_about_the_network(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name.ends_with("_PROXY")
        || name.ends_with("CA_BUNDLE")
        || name.ends_with("_INDEX_URL")
        || name.starts_with("SSL_CERT_")
        || name.starts_with("CARGO_REGISTR")
        || name.starts_with("RUSTUP_DIST_")
        || matches!(
            &*name,
            "PIP_CERT" | "GIT_SSL_CAINFO" | "NODE_EXTRA_CA_CERTS" | "PIP_DEFAULT_TIMEOUT"
        )
}

/// Returns the names of the machines.
pub fn names() -> impl Iterator<Item = &'static str> {
    MACHINES.iter().map(|machine| machine.name)
}

/// Tests the machines with these names, or all machines; `at_once` machines run simultaneously.
pub fn run(wanted: &[String], at_once: usize) -> Result<()> {
    ensure!(
        output_of(Command::new("id").arg("-u")).is_some_and(|id| id == "0"),
        "cannot create machines without root, which debootstrap and chroot need; run the command as root"
    );
    step("Finding debootstrap", || match find_program("debootstrap") {
        Some(_) => Ok(()),
        None => packages::install(&["debootstrap"]),
    })?;
    let changed =
        output_of(Command::new("git").current_dir(root()).args(["status", "--porcelain"]));
    if changed.is_none_or(|changed| !changed.is_empty()) {
        eprintln!("note: the machines get the current commit, without uncommitted changes");
    }
    let machines: Vec<&Machine> = MACHINES
        .iter()
        .filter(|machine| wanted.is_empty() || wanted.iter().any(|name| name == machine.name))
        .collect();
    for release in ["bookworm", "trixie"] {
        if machines.iter().any(|machine| machine.release == release) {
            step(&format!("Creating a minimal Debian ({release})"), || base(release))?;
        }
    }
    let mut rows = Vec::new();
    for group in machines.chunks(at_once.max(1)) {
        let results = thread::scope(|scope| {
            let mut threads = Vec::new();
            for machine in group {
                threads.push(
                    scope.spawn(|| step(&format!("Trying {}", machine.name), || machine.try_out())),
                );
            }
            let join = thread::ScopedJoinHandle::join;
            threads.into_iter().map(join).collect::<Vec<_>>()
        });
        for result in results {
            match result {
                Ok(row) => rows.push(row?),
                Err(_) => bail!("a machine's thread panicked"),
            }
        }
    }
    println!("| machine | system | run by | cargo xtask demo | cargo xtask test |");
    println!("|---|---|---|---|---|");
    for (row, _) in &rows {
        println!("{row}");
    }
    let failed = rows.iter().filter(|(_, passed)| !passed).count();
    ensure!(
        failed == 0,
        "{failed} of {} machines failed; their logs are in {}",
        rows.len(),
        folder().display()
    );
    Ok(())
}
