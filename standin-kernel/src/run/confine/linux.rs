//! The confinement of the process that runs a driver.
//!
//! A driver's machine code can do anything that its process can do. Before it loads the image, the
//! process therefore permanently gives up the rights that it does not need. Landlock allows access only
//! to the trace, the driver's folder and the files that describe the image. A system call filter
//! (seccomp) allows only the system calls that the kernel's own code makes.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    os::unix,
    path::Path,
};

use anyhow::{Context, Result, bail, ensure};
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope, path_beneath_rules,
};
use nix::{
    libc,
    sys::{prctl, signal::Signal},
    unistd::dup2_stdin,
};
use seccompiler::{
    BpfProgram, SeccompAction,
    SeccompCmpArgLen::{Dword, Qword},
    SeccompCmpOp::{self, Eq, Gt, MaskedEq},
    SeccompCondition, SeccompFilter, SeccompRule, TargetArch, apply_filter,
};
use syscalls::Sysno;

use super::files::Files;
use crate::ground::{host, loader::symbol_files};

/// The confinement mechanisms that the system provides.
#[derive(Clone, Copy)]
pub struct Confinement {
    has_landlock: bool,
    has_seccomp: bool,
}

impl Confinement {
    /// Determines what the system supports.
    pub fn of_this_system() -> Self {
        let landlock = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(ABI::V1))
            .and_then(Ruleset::create);
        let action = libc::SECCOMP_RET_TRAP;
        let get = libc::SECCOMP_GET_ACTION_AVAIL;
        // SAFETY: the call only reads the action.
        let seccomp = unsafe { libc::syscall(libc::SYS_seccomp, get, 0, &raw const action) };
        Self { has_landlock: landlock.is_ok(), has_seccomp: seccomp == 0 }
    }

    /// Returns a sentence for each mechanism that the system lacks.
    pub fn missing(self) -> impl Iterator<Item = &'static str> {
        let files = "the driver is not kept from files: it can open all that you can, since this \
                     system does not have Landlock (Linux 5.13 and later have it, if it is enabled)";
        let calls = "the driver is not kept from system calls: it can start programs and open \
                     sockets, since this system does not have seccomp filters (Linux 4.14 and later \
                     have them, if they are enabled)";
        let missing = [(self.has_landlock, files), (self.has_seccomp, calls)];
        missing.into_iter().filter(|(found, _)| !found).map(|(_, sentence)| sentence)
    }

    /// Returns this process's parent.
    pub fn parent() -> u32 {
        unix::process::parent_id()
    }

    /// Confines this process to its files as far as the system can. The process must have only one
    /// thread, and `parent` must be its parent.
    pub fn apply(self, parent: u32, files: Files<'_>) -> Result<()> {
        prctl::set_pdeathsig(Signal::SIGKILL).context("cannot end with the parent process")?;
        ensure!(unix::process::parent_id() == parent, "the parent process has ended");
        self.close_files()?;
        if self.has_landlock {
            restrict_files(files)?;
        }
        if self.has_seccomp {
            host::watch();
            host::report_refused();
            let process = u64::from(std::process::id());
            for filter in filters(process, files.folder.is_some())? {
                apply_filter(&filter)?;
            }
        }
        Ok(())
    }

    /// Closes all files except standard output and standard error, including those inherited from the
    /// shell and other programs.
    fn close_files(self) -> Result<()> {
        let nothing = File::open("/dev/null").context("cannot open /dev/null")?;
        dup2_stdin(&nothing).context("cannot close standard input")?;
        drop(nothing);
        // SAFETY: the caller has one thread, which never returns to frames that own descriptors.
        let closed = unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
        // Linux before 5.9 has neither this system call nor Landlock.
        ensure!(closed == 0 || !self.has_landlock, "cannot close inherited files");
        Ok(())
    }
}

/// Restricts the files that this process can open.
fn restrict_files(files: Files<'_>) -> Result<()> {
    if let Some(trace) = files.trace {
        // A Landlock rule requires that the file exists.
        let created = File::options().create(true).append(true).open(trace);
        drop(created.with_context(|| format!("cannot write {}", trace.display()))?);
    }
    let mut readable = vec![files.image.to_owned()];
    readable.extend(symbol_files(files.image).into_iter().filter(|path| is_pdb(path)));
    readable.extend(files.described_by.iter().cloned());
    // The backtrace of a panic needs the program's file.
    readable.extend(std::env::current_exe());
    let write = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate;
    let change = write
        | AccessFs::ReadDir
        | AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::RemoveFile
        | AccessFs::RemoveDir;
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(ABI::V9))?
        .handle_access(AccessNet::from_all(ABI::V4))?
        .scope(Scope::from_all(ABI::V6))?
        .create()?
        .add_rules(path_beneath_rules(readable, AccessFs::ReadFile | AccessFs::ReadDir))?
        .add_rules(path_beneath_rules(files.trace, write))?
        .add_rules(path_beneath_rules(files.folder, change))?
        .restrict_self()?;
    if status.ruleset == RulesetStatus::NotEnforced {
        bail!("Landlock does not restrict the driver's process");
    }
    Ok(())
}

/// Returns whether a path, after resolving symbolic links, is a PDB's. The image chooses the path.
fn is_pdb(path: &Path) -> bool {
    let real = fs::canonicalize(path).unwrap_or_default();
    real.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("pdb"))
}

/// The system calls, with any arguments, that the kernel's own code and the libraries make.
const ALWAYS: &[Sysno] = &[
    // Output, and the descriptors of files that Landlock allowed the process to open.
    Sysno::close,
    Sysno::fstat,
    Sysno::getcwd,
    Sysno::newfstatat,
    Sysno::readlink,
    Sysno::stat,
    Sysno::lstat,
    Sysno::statx,
    Sysno::write,
    Sysno::writev,
    // The memory of this process.
    Sysno::brk,
    Sysno::madvise,
    Sysno::mprotect,
    Sysno::mremap,
    Sysno::munmap,
    // The threads of this process, and their signals.
    Sysno::arch_prctl,
    Sysno::exit,
    Sysno::exit_group,
    Sysno::futex,
    Sysno::getpid,
    Sysno::gettid,
    Sysno::restart_syscall,
    Sysno::rseq,
    Sysno::rt_sigaction,
    Sysno::rt_sigprocmask,
    Sysno::rt_sigreturn,
    Sysno::sched_getaffinity,
    Sysno::sched_yield,
    Sysno::set_robust_list,
    Sysno::sigaltstack,
    // Time and random numbers.
    Sysno::clock_getres,
    Sysno::clock_gettime,
    Sysno::clock_nanosleep,
    Sysno::getrandom,
    Sysno::gettimeofday,
    Sysno::nanosleep,
];

/// System calls on the descriptor of an opened file but not on standard output, because a terminal could
/// be read and a file could be truncated.
const OF_OPENED_FILES: &[Sysno] = &[
    Sysno::fdatasync,
    Sysno::fsync,
    Sysno::ftruncate,
    Sysno::getdents64,
    Sysno::lseek,
    Sysno::pread64,
    Sysno::pwrite64,
    Sysno::read,
    Sysno::readv,
];

/// System calls that access to the driver's folder requires.
const OF_FOLDERS: &[Sysno] = &[Sysno::mkdir, Sysno::rmdir, Sysno::unlink, Sysno::unlinkat];

/// `ioctl`s that query the properties of a terminal.
const OF_TERMINALS: [u64; 2] = [libc::TCGETS, libc::TIOCGWINSZ];

/// `prctl`s that affect only this thread: its name, system calls in images, and the names of
/// mappings.
const OF_THREADS: [libc::c_int; 3] = [libc::PR_SET_NAME, host::SET_DISPATCH, libc::PR_SET_VMA];

/// `fcntl`s that query the properties of any descriptor.
const OF_DESCRIPTORS: [libc::c_int; 2] = [libc::F_GETFD, libc::F_GETFL];

/// The `clone` flags that create a thread, and the flags that create anything else.
const THREAD: libc::c_int = libc::CLONE_VM | libc::CLONE_SIGHAND | libc::CLONE_THREAD;
const MORE_THAN_A_THREAD: libc::c_int = libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_PTRACE
    | libc::CLONE_VFORK;

/// The mode bits that run a file with its owner's rights.
const SET_ID: u64 = 0o7000;

/// A condition on an argument.
type Condition = (u8, SeccompCmpOp, u64);

/// Returns the filters for a process. The second filter refuses every system call that this file
/// does not list. The first makes the C library use `clone`, as on Linux before 5.3, because a
/// filter can check the flags of `clone`.
fn filters(process: u64, has_folder: bool) -> Result<[BpfProgram; 2]> {
    let mut allowed: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    let folders = if has_folder { OF_FOLDERS } else { &[] };
    for call in ALWAYS.iter().chain(folders).chain([&Sysno::clone3]) {
        allowed.insert(number(*call), Vec::new());
    }
    let mut allow = |call: Sysno, conditions: &[Condition]| {
        let conditions = conditions.iter().map(|(argument, operator, value)| {
            // The system uses all 64 bits of an argument only for pointers.
            let length = if call == Sysno::prlimit64 && *argument > 1 { Qword } else { Dword };
            SeccompCondition::new(*argument, length, operator.clone(), *value)
        });
        let rule = SeccompRule::new(conditions.collect::<Result<_, _>>()?)?;
        allowed.entry(number(call)).or_default().push(rule);
        anyhow::Ok(())
    };
    for call in OF_OPENED_FILES {
        allow(*call, &[(0, Gt, 2)])?;
    }
    for (call, flags, mode) in [(Sysno::open, 1, 2), (Sysno::openat, 2, 3)] {
        let plain = (mode, MaskedEq(SET_ID), 0);
        let bits = |flag: libc::c_int| u64::from(flag.unsigned_abs());
        let access = MaskedEq(bits(libc::O_ACCMODE));
        // Before Linux 6.2, Landlock cannot prevent the truncation of a file that is opened for reading.
        allow(call, &[plain.clone(), (flags, MaskedEq(bits(libc::O_TRUNC)), 0)])?;
        allow(call, &[plain.clone(), (flags, access.clone(), bits(libc::O_WRONLY))])?;
        allow(call, &[plain, (flags, access, bits(libc::O_RDWR))])?;
    }
    for call in [Sysno::kill, Sysno::tgkill] {
        allow(call, &[(0, Eq, process)])?;
    }
    for request in OF_TERMINALS {
        allow(Sysno::ioctl, &[(1, Eq, request)])?;
    }
    for (call, argument, commands) in
        [(Sysno::prctl, 0, OF_THREADS.as_slice()), (Sysno::fcntl, 1, &OF_DESCRIPTORS)]
    {
        for command in commands {
            allow(call, &[(argument, Eq, u64::from(command.unsigned_abs()))])?;
        }
    }
    // A copy of the standard output descriptor could be used for reading.
    allow(Sysno::fcntl, &[(0, Gt, 2), (1, Eq, u64::from(libc::F_DUPFD_CLOEXEC.unsigned_abs()))])?;
    // A file can be read through a mapping. Memory without a file has the descriptor -1.
    allow(Sysno::mmap, &[(4, Gt, 2)])?;
    // The process may only read its own limits.
    allow(Sysno::prlimit64, &[(0, Eq, 0), (2, Eq, 0)])?;
    let flags = u64::from((THREAD | MORE_THAN_A_THREAD).unsigned_abs());
    allow(Sysno::clone, &[(0, MaskedEq(flags), u64::from(THREAD.unsigned_abs()))])?;
    let unknown = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let first = BTreeMap::from([(number(Sysno::clone3), Vec::new())]);
    let compiled = |rules, otherwise, matching| {
        SeccompFilter::new(rules, otherwise, matching, TargetArch::x86_64)?.try_into()
    };
    Ok([
        compiled(first, SeccompAction::Allow, unknown)?,
        compiled(allowed, SeccompAction::Trap, SeccompAction::Allow)?,
    ])
}

/// Returns the number of a system call.
const fn number(call: Sysno) -> i64 {
    call as i64
}
