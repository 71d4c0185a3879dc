//! The confinement of the process that runs a driver: small drivers try to escape in every way.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write},
    os::{fd::AsRawFd, unix::process::CommandExt},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use etw_test_support::small_image::Image;
use nix::libc;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter};
use syscalls::Sysno;

use crate::common;

/// The location of the `syscall` instruction that a driver executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The instruction in the C library's function `syscall`.
    Library,
    /// An instruction that the driver writes to new executable memory.
    OwnMemory,
    /// An instruction in new executable memory, with the stack in the C library's data, where no
    /// driver stack is expected.
    OwnStack,
    /// `int 80h` in new executable memory, which makes 32-bit system calls.
    Interrupt,
    /// An instruction in the driver's image.
    Image,
}

/// An argument of a system call.
#[derive(Clone, Copy, Debug)]
enum Argument<'a> {
    Number(i64),
    /// The address of a string.
    Text(&'a str),
    /// The id of the process that waits for the driver's process.
    Parent,
}

use Argument::{Number, Parent, Text};

/// A system call to try.
type Call<'a> = (Sysno, &'a [Argument<'a>]);

/// The values that differ between processes.
#[derive(Clone, Copy)]
struct Target {
    /// The address of `syscall`.
    syscall: u64,
    parent: u32,
}

/// The registers' numbers in instructions.
const RAX: u8 = 0;
const RCX: u8 = 1;
const RDX: u8 = 2;
const RSI: u8 = 6;
const RDI: u8 = 7;
const R8: u8 = 8;
const R9: u8 = 9;
const R10: u8 = 10;

/// Machine code, and the texts that it refers to by their offsets in it.
#[derive(Default)]
struct Code {
    bytes: Vec<u8>,
    texts: Vec<(usize, String)>,
}

impl Code {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds `mov register, value`.
    fn load_number(&mut self, register: u8, value: u64) {
        self.add(&[0x48 | register >> 3, 0xB8 | register & 7]);
        self.add(&value.to_le_bytes());
    }

    /// Adds an instruction that loads an argument into a register.
    fn load(&mut self, register: u8, argument: Argument<'_>, target: Target) {
        match argument {
            Number(number) => self.load_number(register, number.cast_unsigned()),
            Parent => self.load_number(register, u64::from(target.parent)),
            // lea register, [rip + text]
            Text(text) => {
                self.add(&[0x48 | register >> 3 << 2, 0x8D, 5 | (register & 7) << 3]);
                self.texts.push((self.bytes.len(), format!("{text}\0")));
                self.add(&[0; 4]);
            }
        }
    }

    /// Adds a call of `syscall` in the C library.
    fn call(&mut self, target: Target) {
        self.load_number(RAX, target.syscall);
        self.add(&[0xFF, 0xD0]); // call rax
    }

    /// Returns the code with its texts.
    fn build(mut self) -> Vec<u8> {
        for (place, text) in self.texts {
            let distance = u32::try_from(self.bytes.len() - (place + 4)).unwrap();
            self.bytes[place..place + 4].copy_from_slice(&distance.to_le_bytes());
            self.bytes.extend(text.as_bytes());
        }
        self.bytes
    }
}

/// Assembles a driver whose `DriverEntry` makes a system call and returns its result.
fn assemble(way: Way, call: Call<'_>, target: Target) -> Vec<u8> {
    let mut code = Code::default();
    code.add(&[0x53, 0x57, 0x56]); // push rbx; push rdi; push rsi
    code.add(&[0x48, 0x83, 0xEC, 0x20]); // sub rsp, 0x20
    if !matches!(way, Way::Library | Way::Image) {
        // The driver maps a writable and executable page, and writes the instruction and `ret` to
        // it.
        let mmap = [Sysno::mmap as u64, 0, 0x1000, 7, 0x22, u64::MAX];
        for (register, value) in [RDI, RSI, RDX, RCX, R8, R9].into_iter().zip(mmap) {
            code.load_number(register, value);
        }
        code.add(&[0x48, 0xC7, 0x04, 0x24, 0, 0, 0, 0]); // mov qword ptr [rsp], 0
        code.call(target);
        code.add(&[0x48, 0x89, 0xC3]); // mov rbx, rax
        let [first, second] = if way == Way::Interrupt { [0xCD, 0x80] } else { [0x0F, 0x05] };
        code.add(&[0xC7, 0x03, first, second, 0xC3, 0]); // mov dword ptr [rbx], …
    }
    let (number, arguments) = call;
    if way == Way::Library {
        code.load_number(RDI, number as u64);
        for (register, argument) in [RSI, RDX, RCX, R8, R9].into_iter().zip(arguments) {
            code.load(register, *argument, target);
        }
        code.call(target);
    } else {
        for (register, argument) in [RDI, RSI, RDX, R10, R8, R9].into_iter().zip(arguments) {
            code.load(register, *argument, target);
        }
        code.load_number(RAX, number as u64);
        match way {
            Way::Image => code.add(&[0x0F, 0x05]), // syscall
            Way::OwnStack => {
                code.add(&[0x49, 0x89, 0xE1]); // mov r9, rsp
                // The stack is in the same page: lea rsp, [rbx + 0xF00].
                code.add(&[0x48, 0x8D, 0xA3, 0, 0x0F, 0, 0]);
                code.add(&[0x41, 0x51, 0xFF, 0xD3, 0x5C]); // push r9; call rbx; pop rsp
            }
            _ => code.add(&[0xFF, 0xD3]), // call rbx
        }
    }
    code.add(&[0x48, 0x83, 0xC4, 0x20]); // add rsp, 0x20
    code.add(&[0x5E, 0x5F, 0x5B, 0xC3]); // pop rsi; pop rdi; pop rbx; ret
    code.build()
}

/// Returns the address of the C library's code in a process.
fn library(process: &str) -> Option<u64> {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap();
    // A backtrace maps the file a second time, to read its symbols.
    let is_code = |line: &&str| line.contains(" r-xp ") && line.contains("/libc.so.6");
    let line = maps.lines().find(is_code)?;
    u64::from_str_radix(line.split('-').next()?, 16).ok()
}

/// Runs a driver that makes a system call. Returns the run's output.
fn attempt(folder: &Path, way: Way, call: Call<'_>, arguments: &[&str]) -> String {
    attempt_with(folder, way, call, |command| command.args(arguments))
}

fn attempt_with(
    folder: &Path,
    way: Way,
    call: Call<'_>,
    change: impl FnOnce(&mut Command) -> &mut Command,
) -> String {
    let image = folder.join("driver.sys");
    let mut command = common::run_command(&image, folder.join("driver.etl"));
    change(&mut command).args(["--script", "/dev/stdin", "--max-silence", "20"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The process is waiting for the script. In the driver's process, all addresses are the same.
    // For a moment after its start, a process still has the memory of this process.
    let own_program = fs::read_link("/proc/self/exe").unwrap();
    let program = format!("/proc/{}/exe", child.id());
    let base = loop {
        let is_started = fs::read_link(&program).is_ok_and(|program| program != own_program);
        if let Some(base) = is_started.then(|| library(&child.id().to_string())).flatten() {
            break base;
        }
        thread::sleep(Duration::from_millis(1));
    };
    // SAFETY: the name is a C string, and the function has no other preconditions.
    let here = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"syscall".as_ptr()) };
    let syscall = here.addr() as u64 - library("self").unwrap() + base;
    let entry = assemble(way, call, Target { syscall, parent: child.id() });
    let bytes = Image { imports: &[], entry: &entry, ..Image::default() }.build();
    fs::write(&image, bytes).unwrap();
    let mut script = child.stdin.take().unwrap();
    script.write_all(b"# Only loads the driver.\n").unwrap();
    drop(script);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.code().is_some(), "{way:?} {call:?}: {}: {said}", output.status);
    assert!(!said.contains("panicked at"), "{way:?} {call:?}: {said}");
    said
}

/// Returns the output for a load that failed with this error.
fn failed_with(error: i32) -> String {
    format!("DriverEntry returned 0x{:08X}", -error)
}

/// System calls that the kernel never makes, or that access more than its process.
const REFUSED: &[Call<'_>] = &[
    (Sysno::execve, &[Text("/bin/true"), Number(0), Number(0)]),
    (Sysno::execveat, &[Number(-100), Text("/bin/true"), Number(0), Number(0), Number(0)]),
    (Sysno::memfd_create, &[Text("program"), Number(0)]),
    (Sysno::fork, &[]),
    (Sysno::vfork, &[]),
    (Sysno::clone, &[Number(17), Number(0), Number(0), Number(0), Number(0)]),
    (Sysno::clone, &[Number(0x1001_0F00), Number(0), Number(0), Number(0), Number(0)]),
    (Sysno::socket, &[Number(1), Number(1), Number(0)]),
    (Sysno::socket, &[Number(2), Number(2), Number(0)]),
    (Sysno::socketpair, &[Number(1), Number(1), Number(0), Number(0)]),
    (Sysno::ptrace, &[Number(16), Parent, Number(0), Number(0)]),
    (Sysno::process_vm_readv, &[Parent, Number(0), Number(0), Number(0), Number(0)]),
    (Sysno::process_vm_writev, &[Parent, Number(0), Number(0), Number(0), Number(0)]),
    (Sysno::kill, &[Parent, Number(9)]),
    (Sysno::kill, &[Number(0), Number(9)]),
    (Sysno::kill, &[Number(-1), Number(0)]),
    (Sysno::tkill, &[Parent, Number(9)]),
    (Sysno::tgkill, &[Parent, Parent, Number(9)]),
    (Sysno::rt_sigqueueinfo, &[Parent, Number(9), Number(0)]),
    (Sysno::pidfd_open, &[Parent, Number(0)]),
    (Sysno::pidfd_send_signal, &[Number(0), Number(9), Number(0), Number(0)]),
    (Sysno::prlimit64, &[Parent, Number(0), Text("0123456789ABCDEF"), Number(0)]),
    (Sysno::setpriority, &[Number(0), Parent, Number(19)]),
    (Sysno::io_uring_setup, &[Number(8), Number(0)]),
    (Sysno::io_uring_enter, &[Number(3), Number(1), Number(0), Number(0), Number(0)]),
    (Sysno::bpf, &[Number(0), Number(0), Number(0)]),
    (Sysno::perf_event_open, &[Number(0), Number(0), Number(-1), Number(-1), Number(0)]),
    (Sysno::userfaultfd, &[Number(0)]),
    (Sysno::unshare, &[Number(0x1000_0000)]),
    (Sysno::setns, &[Number(0), Number(0)]),
    (Sysno::mount, &[Text("/"), Text("/tmp"), Number(0), Number(4096), Number(0)]),
    (Sysno::chroot, &[Text("/tmp")]),
    (Sysno::keyctl, &[Number(0), Number(-3), Number(0)]),
    (Sysno::shmget, &[Number(0), Number(4096), Number(0o1600)]),
    (Sysno::prctl, &[Number(4), Number(1), Number(0), Number(0), Number(0)]),
    (Sysno::seccomp, &[Number(1), Number(0), Number(0)]),
    (Sysno::open_by_handle_at, &[Number(-100), Number(0), Number(0)]),
    (Sysno::openat2, &[Number(-100), Text("/etc/passwd"), Number(0), Number(24)]),
    // The calls would create a program that anyone can run with the user's rights, and truncate a
    // file by a read-only open.
    (Sysno::openat, &[Number(-100), Text("program"), Number(0o101), Number(0o4755)]),
    (Sysno::openat, &[Number(-100), Text("driver.etl"), Number(0o1000), Number(0)]),
    (Sysno::open, &[Text("program"), Number(0o101), Number(0o6755)]),
    (Sysno::creat, &[Text("new"), Number(0o644)]),
    (Sysno::truncate, &[Text("victim"), Number(0)]),
    (Sysno::unlink, &[Text("victim")]),
    (Sysno::rename, &[Text("victim"), Text("taken")]),
    (Sysno::link, &[Text("victim"), Text("taken")]),
    (Sysno::symlink, &[Text("/etc/passwd"), Text("taken")]),
    (Sysno::mknod, &[Text("pipe"), Number(0o10644), Number(0)]),
    (Sysno::chmod, &[Text("victim"), Number(0o777)]),
    (Sysno::chown, &[Text("victim"), Number(1), Number(1)]),
    (Sysno::setxattr, &[Text("victim"), Text("user.a"), Text("b"), Number(1), Number(0)]),
    // The calls would read a terminal's input, and insert input.
    (Sysno::read, &[Number(0), Text("00000000"), Number(8)]),
    (Sysno::read, &[Number(1), Text("00000000"), Number(8)]),
    (Sysno::ioctl, &[Number(1), Number(0x5412), Text("a")]),
    (Sysno::ftruncate, &[Number(1), Number(0)]),
    (Sysno::dup, &[Number(1)]),
    (Sysno::dup2, &[Number(1), Number(9)]),
    (Sysno::fcntl, &[Number(1), Number(0), Number(9)]),
    (Sysno::fcntl, &[Number(1), Number(8), Parent]),
    (Sysno::fcntl, &[Number(1), Number(1030), Number(9)]),
    (Sysno::mmap, &[Number(0), Number(4096), Number(1), Number(1), Number(1), Number(0)]),
];

#[test]
fn a_driver_leaves_by_no_system_call() {
    let folder = tempfile::tempdir().unwrap();
    let victim = folder.path().join("victim");
    fs::write(&victim, "kept").unwrap();
    for call in REFUSED {
        let said = attempt_with(folder.path(), Way::Library, *call, |command| {
            command.current_dir(folder.path())
        });
        let refused = format!("the Linux system call `{}`, which the confinement", call.0);
        assert!(said.contains(&refused), "{call:?}: {said}");
        // Only the image, the trace and the victim remain.
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 3, "{call:?}: {left:?}; {said}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
    }
}

#[test]
fn no_other_instruction_makes_a_refused_call() {
    let folder = tempfile::tempdir().unwrap();
    for call in [REFUSED[0], REFUSED[7], REFUSED[13]] {
        let try_by = |way| attempt(folder.path(), way, call, &[]);
        let name = call.0;
        let refused = format!("the Linux system call `{name}`, which the confinement refused");
        let said = try_by(Way::OwnMemory);
        assert!(said.contains(&refused), "{said}");
        // Linux reports the image's own instruction, unless Linux is too old.
        let said = try_by(Way::Image);
        assert!(said.contains("the instruction `syscall`, which makes a system call"), "{said}");
        let said = attempt_with(folder.path(), Way::Image, call, |command| {
            command.env("WDK_ETW_SYSTEM_CALLS", "made")
        });
        assert!(said.contains(&refused), "{said}");
        // The call fails, and the run reports it.
        let said = try_by(Way::OwnStack);
        assert!(said.contains(&failed_with(libc::EPERM)), "{said}");
        let warning = format!(
            "warning: the confinement refused system calls that code outside the \
                               driver's stack made: `{name}`;"
        );
        assert!(said.contains(&warning), "{said}");
        // Many Linux kernels do not support 32-bit calls at all.
        let said = try_by(Way::Interrupt);
        let ended = said.contains("ended the process by the signal SIGSYS: the confinement");
        assert!(ended || said.contains("`int 80h`"), "{said}");
    }
}

#[test]
fn a_driver_opens_no_files_but_its_own() {
    const CREATE: i64 = 0o102;
    let outside = tempfile::tempdir().unwrap();
    let (secret, new) = (outside.path().join("secret"), outside.path().join("new"));
    fs::write(&secret, "secret").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("own");
    fs::create_dir(&own).unwrap();
    std::os::unix::fs::symlink(&secret, own.join("link")).unwrap();
    std::os::unix::fs::symlink(&secret, folder.path().join("driver.pdb")).unwrap();
    let above = own.join("../above");
    let own = own.to_str().unwrap();
    let open = |path: &Path, flags: i64, arguments: &[&str]| {
        let path = path.to_str().unwrap();
        let call = [Number(-100), Text(path), Number(flags), Number(0o644)];
        attempt(folder.path(), Way::OwnMemory, (Sysno::openat, &call), arguments)
    };
    let with_folder = ["--folder", own];
    let refused = failed_with(libc::EACCES);
    for (path, flags) in [
        (Path::new("/etc/passwd"), 0),
        (Path::new("/proc/self/mem"), 2),
        (Path::new("/dev/tty"), 2),
        (Path::new("/"), 0o200_000),
        (&secret, 0),
        (&secret, 1),
        (&secret, 0o1001),
        (&new, CREATE),
        (&above, CREATE),
        (&Path::new(own).join("link"), 0),
        (&folder.path().join("driver.pdb"), 0),
        (&folder.path().join("driver.sys"), 1),
    ] {
        let said = open(path, flags, &with_folder);
        assert!(said.contains(&refused), "{}: {said}", path.display());
    }
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    assert!(!new.exists() && !above.exists());
    // The driver is allowed to write these files.
    for (path, flags) in [
        (&Path::new(own).join("made"), CREATE),
        (&Path::new(own).join("made"), 0o1001),
        (&folder.path().join("driver.etl"), 1),
        (&folder.path().join("driver.sys"), 0),
    ] {
        let said = open(path, flags, &with_folder);
        assert!(!said.contains("DriverEntry returned"), "{}: {said}", path.display());
    }
    assert!(Path::new(own).join("made").exists());
    let said = open(&Path::new(own).join("more"), CREATE, &[]);
    assert!(said.contains(&refused), "{said}");
    // Without confinement, the driver can write the file.
    let said = open(&new, CREATE, &["--confinement", "none"]);
    assert!(!said.contains(&refused) && new.exists(), "{said}");
    let socket = REFUSED[7];
    let said = attempt(folder.path(), Way::Library, socket, &["--confinement", "none"]);
    assert!(!said.contains("DriverEntry returned") && !said.contains("refused"), "{said}");
}

#[test]
fn a_driver_changes_files_in_its_folder_also_by_sections() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("folder");
    fs::create_dir_all(folder.join("Windows")).unwrap();
    std::os::unix::fs::symlink("/", folder.join("link")).unwrap();
    let script = outer.path().join("script.txt");
    fs::write(&script, "# Only loads the driver.\n").unwrap();
    let mut command = common::run_command(common::kernel(), outer.path().join("driver.etl"));
    command.args(["--service", "files", "--confinement", "required", "--script"]).arg(&script);
    let (good, said) = common::said(command.arg("--folder").arg(&folder));
    assert!(good && said.contains("driver: done ") && !said.contains("FAILED"), "{said}");
}

#[test]
fn a_driver_inherits_no_files() {
    // No file of the tests that run in parallel has this number. Copying a file to its own number
    // would keep the flag that closes it in the new process.
    const COPY: i32 = 900;
    let folder = tempfile::tempdir().unwrap();
    let open = File::open("/etc/passwd").unwrap();
    assert!(open.as_raw_fd() < COPY);
    let read = [Number(COPY.into()), Text("00000000"), Number(8), Number(0)];
    for (confinement, failed) in [("available", true), ("none", false)] {
        let said =
            attempt_with(folder.path(), Way::OwnMemory, (Sysno::pread64, &read), |command| {
                let open = open.as_raw_fd();
                let copy = move || {
                    // SAFETY: the call reads and writes no memory.
                    let copied = unsafe { libc::dup2(open, COPY) };
                    if copied == COPY { Ok(()) } else { Err(io::Error::last_os_error()) }
                };
                // SAFETY: the closure only copies a descriptor.
                unsafe { command.pre_exec(copy) };
                command.args(["--confinement", confinement])
            });
        assert_eq!(said.contains(&failed_with(libc::EBADF)), failed, "{said}");
    }
}

#[test]
fn a_driver_that_only_sleeps_is_stopped_at_once() {
    let mut entry = vec![
        0x48, 0x83, 0xEC, 0x28, // sub rsp, 0x28
        0x48, 0x8D, 0x1D, 0xF5, 0xFF, 0xFF, 0xFF, // lea rbx, [rip - 11]: the code's start
        0x31, 0xC9, // again: xor ecx, ecx
        0x31, 0xD2, // xor edx, edx
        0x4C, 0x8D, 0x05, 10, 0, 0, 0, // lea r8, [rip + 10]: the interval
        // The code calls the first import slot, which is one page after the code.
        0xFF, 0x93, 0x38, 0x10, 0, 0, // call [rbx + 0x1038]
        0xEB, 0xED, // jmp again
        0xCC, 0xCC, // The interval is aligned.
    ];
    entry.extend((-10_000_000_i64).to_le_bytes());
    let imports: &[(&str, &[&str])] = &[("ntoskrnl.exe", &["KeDelayExecutionThread"])];
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("driver.sys");
    fs::write(&image, Image { imports, entry: &entry, ..Image::default() }.build()).unwrap();
    let mut command = common::run_command(&image, folder.path().join("driver.etl"));
    let start = Instant::now();
    let (good, said) = common::said(&mut command);
    let expected = "driver code waited 20000 times in a row, without another call";
    assert!(!good && said.contains(expected), "{said}");
    assert!(start.elapsed() < Duration::from_secs(30), "{said}");
}

#[test]
fn mutated_images_end_a_run_in_an_orderly_way() {
    let bytes = fs::read(common::sample()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    common::for_each_seed(48, |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut mutated = bytes.clone();
        // In every second image, only the headers are damaged; in the others, any bytes.
        let end = if seed % 2 == 0 { 0x400 } else { bytes.len() };
        for _ in 0..random.usize(1..=8) {
            mutated[random.usize(..end)] = random.u8(..);
        }
        let image = folder.path().join(format!("{seed}.sys"));
        fs::write(&image, mutated).unwrap();
        let mut command = common::run_command(&image, image.with_extension("etl"));
        command.args(["--time-limit", "1", "--max-silence", "5"]);
        let start = Instant::now();
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.code().is_some_and(|code| code <= 1), "{}: {said}", output.status);
        assert!(said.contains("found: ") || said.contains("error: "), "{said}");
        assert!(!said.contains("panicked at"), "{said}");
        // This is much longer than both limits, because the machine may be busy with other work.
        assert!(start.elapsed() < Duration::from_mins(2), "{said}");
    });
}

/// Returns a filter that makes a system call fail, as on a system that lacks it.
fn without(call: Sysno) -> BpfProgram {
    let rules = BTreeMap::from([(call as i64, Vec::new())]);
    let error = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, error, TargetArch::x86_64);
    filter.unwrap().try_into().unwrap()
}

#[test]
fn a_run_says_what_the_system_cannot_keep_a_driver_from() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("driver.sys");
    fs::write(&image, Image { imports: &[], ..Image::default() }.build()).unwrap();
    for (call, sentence) in [
        (Sysno::landlock_create_ruleset, "the driver is not kept from files: "),
        (Sysno::seccomp, "the driver is not kept from system calls: "),
    ] {
        let run = |arguments: &[&str]| {
            let filter = without(call);
            let mut command = common::run_command(&image, folder.path().join("driver.etl"));
            // SAFETY: the closure only makes system calls.
            unsafe {
                command.args(arguments).pre_exec(move || {
                    apply_filter(&filter).map_err(|_| io::Error::last_os_error())
                });
            }
            common::said(&mut command)
        };
        let (good, said) = run(&["--no-notes"]);
        assert!(good && said.contains(&format!("note: {sentence}")), "{said}");
        let (good, said) = run(&["--message-format", "json"]);
        let line = said.lines().find(|line| line.contains(sentence)).unwrap();
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(good && line["kind"] == "note", "{said}");
        let (good, said) = run(&["--confinement", "required"]);
        let refused = format!("error: cannot confine the driver, and it does not run: {sentence}");
        assert!(!good && said.contains(&refused) && !said.contains("events in "), "{said}");
    }
    let mut command = common::run_command(&image, folder.path().join("driver.etl"));
    let (good, said) = common::said(command.args(["--confinement", "required"]));
    assert!(good, "{said}");
}
