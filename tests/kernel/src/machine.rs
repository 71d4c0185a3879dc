//! The machine: what a test loads drivers into and uses their devices on.

use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    time::{Duration, SystemTime},
};

use zerocopy::IntoBytes;

use crate::{
    abi::{DriverExtension, DriverObject, UnicodeString},
    clock::{self, Clock},
    etw::{
        ControlError, EnableParameters, Etw, GroupDenial, Guid, SessionConfig, SessionHandle,
        SessionReport, Target, controller, report_left_registered,
    },
    faults::{Fault, Faults},
    image::{Image, LoadError},
    kmdf::{self, Completion, Framework, IoRequest, RegistryValue, RequestKind},
    memory,
    pool::{Block, Pool},
    status::NtStatus,
    thread::{Call, Identity, Thread},
    verifier::{BugCheck, Rule, Verifier, Violation, Violations},
};

/// What the machine's threads share.
pub struct Shared {
    /// The clock.
    pub clock: Clock,
    /// What is found wrong.
    pub verifier: Verifier,
    /// Routines that are to fail.
    pub faults: Faults,
    /// The framework's objects.
    pub framework: Mutex<Framework>,
    images: Mutex<Vec<Arc<Image>>>,
    pool: Mutex<Pool>,
    etw: Mutex<Etw>,
    printed: Mutex<Vec<String>>,
}

impl Shared {
    /// The pool.
    pub fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ETW runtime. The lock is never held over a call of the driver.
    pub fn etw(&self) -> MutexGuard<'_, Etw> {
        self.etw.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn images(&self) -> MutexGuard<'_, Vec<Arc<Image>>> {
        self.images.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a line that a driver printed.
    pub fn print(&self, line: String) {
        self.printed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(line);
    }

    /// A return address in words: image, offset and, where known, symbol.
    pub fn place(&self, return_address: u64) -> String {
        self.images()
            .iter()
            .find_map(|image| image.place(return_address))
            .map_or_else(
                || format!("0x{return_address:016X}, outside every loaded driver"),
                |place| place.to_string(),
            )
    }

    /// An instruction's address in words, if it is a driver's.
    pub fn instruction(&self, address: u64) -> Option<String> {
        let images = self.images();
        let place = images.iter().find_map(|image| image.instruction(address))?;
        Some(place.to_string())
    }

    /// Whether an address is in a loaded driver, or is the framework's own
    /// unload routine, which a driver object may hold.
    pub fn is_driver_code(&self, address: u64) -> bool {
        self.images().iter().any(|image| image.contains(address))
    }
}

type Job = Box<dyn FnOnce(&Thread) + Send>;

/// Why a call of the machine failed.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The file is no driver that can be loaded here.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The machine stopped.
    #[error(transparent)]
    BugCheck(#[from] BugCheck),
    /// A routine of the driver failed.
    #[error("{routine} returned {status}")]
    Status {
        /// The routine.
        routine: &'static str,
        /// What it returned.
        status: NtStatus,
    },
    /// The driver did something wrong that shows at its unload.
    #[error(transparent)]
    Violations(#[from] Violations),
    /// A controller's call failed.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The routine cannot be made to fail.
    #[error("{0} cannot be made to fail; there are {known}", known = Fault::ROUTINES.join(", "))]
    NoSuchFault(&'static str),
    /// The driver has no unload routine.
    #[error("{0} has no unload routine, so it cannot be unloaded")]
    NotUnloadable(String),
    /// The driver holds the request, and nothing is left that would make it
    /// complete it; time may have to pass first.
    #[error("the driver has not completed the request yet")]
    Pending,
}

/// What the machine has seen so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Calls of the kernel by drivers, each checked against its IRQL ceiling.
    pub calls: u64,
    /// Pool blocks that were allocated.
    pub allocations: u64,
    /// Pool blocks that were freed.
    pub frees: u64,
    /// Enable callbacks that were called.
    pub notifications: u64,
    /// Providers that are registered now.
    pub registrations: usize,
}

/// A stand-in kernel. Its handles ([`Driver`], [`Device`], [`File`]) may be used
/// from any thread; driver code runs on the machine's one processor.
#[derive(Clone)]
pub struct Kernel {
    shared: Arc<Shared>,
    jobs: mpsc::Sender<Job>,
}

impl Default for Kernel {
    fn default() -> Self {
        Self::new()
    }
}

impl Kernel {
    /// A machine whose clock starts at the present time.
    #[must_use]
    pub fn new() -> Self {
        Self::starting_at(SystemTime::now())
    }

    /// A machine whose clock starts at `time`: the same run has the same
    /// timestamps.
    ///
    /// # Panics
    ///
    /// When the system has no thread left.
    #[must_use]
    pub fn starting_at(time: SystemTime) -> Self {
        let shared = Arc::new(Shared {
            clock: Clock::starting_at(time),
            verifier: Verifier::default(),
            faults: Faults::default(),
            framework: Mutex::default(),
            images: Mutex::default(),
            pool: Mutex::default(),
            etw: Mutex::default(),
            printed: Mutex::default(),
        });
        let (jobs, inbox) = mpsc::channel::<Job>();
        let machine = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("processor 0".to_owned())
            .spawn(move || {
                let thread = Thread::become_current(machine);
                for job in inbox {
                    job(&thread);
                }
            })
            .expect("a thread for the processor");
        Self { shared, jobs }
    }

    /// Runs a job on the machine's processor and waits for its end, or for the
    /// machine's.
    fn run<R: Send + 'static>(
        &self,
        identity: Identity,
        job: impl FnOnce(&Thread) -> R + Send + 'static,
    ) -> Result<R, BugCheck> {
        if let Some(bugcheck) = self.shared.verifier.crashed() {
            return Err(bugcheck);
        }
        let (answer, result) = mpsc::sync_channel(1);
        let stopped = answer.clone();
        let sent = self.jobs.send(Box::new(move |thread| {
            // Nobody waits any more when sending fails, so nothing is lost.
            let on_bugcheck = Box::new(move |bugcheck| drop(stopped.send(Err(bugcheck))));
            thread.run_job(identity, on_bugcheck, || {
                let result = job(thread);
                kmdf::run_work(thread);
                controller::tell_of_full_sessions(thread);
                drop(answer.send(Ok(result)));
            });
        }));
        assert!(sent.is_ok(), "the processor outlives the machine's handles");
        result.recv().unwrap_or_else(|_| {
            Err(self
                .shared
                .verifier
                .crashed()
                .expect("only a bugcheck ends a job early"))
        })
    }

    /// Loads a driver: maps the file, binds its imports, and calls its entry
    /// point. The service has the file's name.
    ///
    /// # Errors
    ///
    /// When the file is no driver, imports what the kernel does not provide, or
    /// its entry point fails.
    pub fn load(&self, path: &Path) -> Result<Driver, KernelError> {
        let service = path
            .file_stem()
            .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        self.load_as(path, &service)
    }

    /// As [`Self::load`], for a service of another name.
    ///
    /// # Errors
    ///
    /// As [`Self::load`].
    pub fn load_as(&self, path: &Path, service: &str) -> Result<Driver, KernelError> {
        let image = Arc::new(Image::load(path)?);
        self.shared.images().push(Arc::clone(&image));
        let objects = Arc::new(DriverMemory::new(&image, service));
        let driver = Driver {
            kernel: self.clone(),
            image: Arc::clone(&image),
            memory: Arc::clone(&objects),
        };
        let status = self.run(Identity::SYSTEM, move |thread| {
            let arguments = [objects.object.address(), objects.registry_path.address()];
            NtStatus::from_register(thread.call_driver("DriverEntry", image.entry(), arguments))
        })?;
        if status.is_success() {
            return Ok(driver);
        }
        let violations = driver.forget()?;
        if violations.is_empty() {
            Err(KernelError::Status {
                routine: "DriverEntry",
                status,
            })
        } else {
            Err(Violations(violations).into())
        }
    }

    /// Starts a session (`StartTrace`).
    ///
    /// # Errors
    ///
    /// When the session cannot be started or its file not be created.
    pub fn start_session(&self, config: SessionConfig) -> Result<SessionHandle, KernelError> {
        Ok(self.run(Identity::SYSTEM, move |thread| {
            controller::start(thread, config)
        })??)
    }

    /// Stops a session and finishes its file (`ControlTrace`).
    ///
    /// # Errors
    ///
    /// When the session is not running, or its file cannot be written.
    pub fn stop_session(&self, session: SessionHandle) -> Result<SessionReport, KernelError> {
        Ok(self.run(Identity::SYSTEM, move |thread| {
            controller::stop(thread, session)
        })??)
    }

    /// Writes what a session has in its buffers (`ControlTrace`): for a session in memory,
    /// a file of what it holds now.
    ///
    /// # Errors
    ///
    /// When the session is not running, or its file cannot be written.
    pub fn flush_session(&self, session: SessionHandle) -> Result<(), KernelError> {
        Ok(self.run(Identity::SYSTEM, move |thread| {
            controller::flush(thread, session)
        })??)
    }

    /// Enables a provider or group for a session, or changes how
    /// (`EnableTraceEx2`).
    ///
    /// # Errors
    ///
    /// When the session is not running, or the provider has too many.
    pub fn enable(
        &self,
        session: SessionHandle,
        target: Target,
        parameters: EnableParameters,
    ) -> Result<(), KernelError> {
        Ok(self.run(Identity::SYSTEM, move |thread| {
            controller::enable(thread, session, target, &parameters)
        })??)
    }

    /// Disables a provider or group for a session (`EnableTraceEx2`).
    ///
    /// # Errors
    ///
    /// When the session is not running.
    pub fn disable(
        &self,
        session: SessionHandle,
        target: Target,
        source: Option<Guid>,
    ) -> Result<(), KernelError> {
        Ok(self.run(Identity::SYSTEM, move |thread| {
            controller::disable(thread, session, target, source)
        })??)
    }

    /// Asks a provider or group to describe its state (`EnableTraceEx2`).
    ///
    /// # Errors
    ///
    /// When the session is not running.
    pub fn capture_state(
        &self,
        session: SessionHandle,
        target: Target,
        source: Option<Guid>,
    ) -> Result<(), KernelError> {
        Ok(self.run(Identity::SYSTEM, move |thread| {
            controller::capture_state(thread, session, target, source)
        })??)
    }

    /// Sets the providers that a session does not reach by groups, in place of those before
    /// (`TraceSetInformation` with `TraceSetDisallowList`).
    ///
    /// # Errors
    ///
    /// When the session is not running.
    pub fn set_disallow_list(
        &self,
        session: SessionHandle,
        providers: Vec<Guid>,
    ) -> Result<(), KernelError> {
        Ok(self.run(Identity::SYSTEM, move |thread| {
            controller::set_disallow_list(thread, session, &providers)
        })??)
    }

    /// Lets no driver join a group from now on.
    pub fn deny_group(&self, group: Guid, denial: GroupDenial) {
        self.shared.etw().denied_groups.insert(group, denial);
    }

    /// Makes a routine fail. Faults of one routine come in the order they were injected.
    ///
    /// # Errors
    ///
    /// When the routine is none that can be made to fail.
    pub fn inject(&self, fault: Fault) -> Result<(), KernelError> {
        if !Fault::ROUTINES.contains(&fault.routine) {
            return Err(KernelError::NoSuchFault(fault.routine));
        }
        self.shared.faults.add(fault);
        Ok(())
    }

    /// Gives a thread an activity id, as a program does with its own thread
    /// (`EventActivityIdControl`): events that name no activity carry it.
    pub fn set_thread_activity(&self, identity: Identity, activity: Guid) {
        self.shared
            .etw()
            .activities
            .insert(identity.thread, activity);
    }

    /// Lets time pass on an idle machine: timers that come due fire.
    ///
    /// # Errors
    ///
    /// When the machine stops.
    pub fn advance(&self, duration: Duration) -> Result<(), KernelError> {
        self.run(Identity::IDLE, move |thread| {
            let clock = &thread.shared().clock;
            let until = clock.last().saturating_add(clock::ticks(duration));
            kmdf::run_timers(thread, until);
        })?;
        Ok(())
    }

    /// What the machine has seen so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let (allocations, frees) = self.shared.pool().counts();
        let etw = self.shared.etw();
        Statistics {
            calls: self.shared.verifier.calls(),
            allocations,
            frees,
            notifications: etw.notifications,
            registrations: etw.registration_count(),
        }
    }

    /// What drivers printed with `DbgPrint`, oldest first.
    #[must_use]
    pub fn debug_output(&self) -> Vec<String> {
        self.shared
            .printed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Sets a value of a service's parameters key in the registry, which a driver
    /// opens with `WdfDriverOpenParametersRegistryKey`. Services are known by the
    /// name that a driver is loaded as, before it is loaded or after.
    pub fn set_parameter(&self, service: &str, name: &str, value: impl Into<RegistryValue>) {
        kmdf::lock_framework(&self.shared)
            .parameters
            .set(service, name, value.into());
    }

    /// A value of a service's parameters key, as it is now.
    #[must_use]
    pub fn parameter(&self, service: &str, name: &str) -> Option<RegistryValue> {
        kmdf::lock_framework(&self.shared)
            .parameters
            .get(service, name)
    }

    /// Opens a device by a path (`CreateFile`): its name or a symbolic link, for
    /// instance `\\.\MyDevice`, and what follows is the file's name. It reaches
    /// control devices, too.
    ///
    /// # Errors
    ///
    /// When nothing has this name, or the driver refuses.
    pub fn open(&self, path: &str, identity: Identity) -> Result<File, KernelError> {
        let path = path.to_owned();
        let handle = self
            .run(identity, move |thread| {
                let (device, name) =
                    kmdf::find_device(thread, &path).ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)?;
                kmdf::create_file(thread, device, &name)
            })?
            .map_err(|status| KernelError::Status {
                routine: "opening the device",
                status,
            })?;
        Ok(File {
            kernel: self.clone(),
            identity,
            handle,
        })
    }
}

/// The structures that a driver's entry point gets.
struct DriverMemory {
    object: Block,
    registry_path: Block,
    _extension: Block,
    _texts: [Block; 2],
}

impl DriverMemory {
    fn new(image: &Image, service: &str) -> Self {
        let (path_text, path) = unicode_string(&format!(
            r"\Registry\Machine\System\CurrentControlSet\Services\{service}"
        ));
        let (name_text, driver_name) = unicode_string(&format!(r"\Driver\{service}"));
        let object = Block::zeroed(size_of::<DriverObject>());
        let extension = Block::zeroed(size_of::<DriverExtension>());
        let registry_path = Block::zeroed(size_of::<UnicodeString>());
        let fill = |block: &Block, bytes: &[u8]| {
            memory::write_bytes(block.address(), bytes).expect("the kernel's own memory");
        };
        fill(&registry_path, path.as_bytes());
        fill(
            &object,
            DriverObject {
                // IO_TYPE_DRIVER
                kind: 4,
                size: i16::try_from(size_of::<DriverObject>()).unwrap_or(i16::MAX),
                reserved: 0,
                device_object: 0,
                flags: 0,
                reserved_1: 0,
                driver_start: image.base(),
                driver_size: u32::try_from(image.size()).unwrap_or(u32::MAX),
                reserved_2: 0,
                driver_section: 0,
                driver_extension: extension.address(),
                driver_name,
                hardware_database: 0,
                fast_io_dispatch: 0,
                driver_init: image.entry(),
                driver_start_io: 0,
                driver_unload: 0,
                major_function: [0; 28],
            }
            .as_bytes(),
        );
        fill(
            &extension,
            DriverExtension {
                driver_object: object.address(),
                add_device: 0,
                count: 0,
                reserved: 0,
                service_key_name: driver_name,
            }
            .as_bytes(),
        );
        Self {
            object,
            registry_path,
            _extension: extension,
            _texts: [path_text, name_text],
        }
    }
}

/// A counted string and the memory that its text is in.
fn unicode_string(text: &str) -> (Block, UnicodeString) {
    let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let block = Block::zeroed(bytes.len());
    memory::write_bytes(block.address(), &bytes).expect("the kernel's own memory");
    let length = u16::try_from(bytes.len()).expect("a path is shorter than 32,767 characters");
    let string = UnicodeString {
        length,
        maximum_length: length,
        reserved: 0,
        buffer: block.address(),
    };
    (block, string)
}

/// A loaded driver.
pub struct Driver {
    kernel: Kernel,
    image: Arc<Image>,
    memory: Arc<DriverMemory>,
}

impl Driver {
    /// What the image imports, each as `module!name`.
    #[must_use]
    pub fn imports(&self) -> &[String] {
        self.image.imports()
    }

    /// Offers the driver a device, as the plug-and-play manager does with a
    /// root-enumerated one, and starts it.
    ///
    /// # Errors
    ///
    /// When the driver refuses the device or cannot start it.
    pub fn add_device(&self) -> Result<Device, KernelError> {
        let memory = Arc::clone(&self.memory);
        let handle = self.kernel.run(Identity::SYSTEM, move |thread| {
            kmdf::add_device(thread, memory.object.address())
        })?;
        let handle = handle.map_err(|status| KernelError::Status {
            routine: "adding the device",
            status,
        })?;
        Ok(Device {
            kernel: self.kernel.clone(),
            handle,
        })
    }

    /// Unloads the driver: its unload routine runs, and what it left behind is
    /// reported. Devices are to be removed before.
    ///
    /// # Errors
    ///
    /// When the driver cannot be unloaded, or left pool or registrations behind.
    pub fn unload(self) -> Result<(), KernelError> {
        let address = self.memory.object.address();
        let name = self.image.name();
        let unloaded = self.kernel.run(Identity::SYSTEM, move |thread| {
            let object: DriverObject = thread.read(address);
            if object.driver_unload == 0 {
                return false;
            }
            if object.driver_unload == kmdf::framework_unload as *const () as u64 {
                kmdf::framework_unload(address);
            } else {
                thread.call_driver("DriverUnload", object.driver_unload, [address]);
            }
            true
        })?;
        if !unloaded {
            return Err(KernelError::NotUnloadable(name));
        }
        let violations = self.forget()?;
        if violations.is_empty() {
            Ok(())
        } else {
            Err(Violations(violations).into())
        }
    }

    /// Takes the driver's leftovers away, and its image, and says what they were.
    fn forget(&self) -> Result<Vec<Violation>, BugCheck> {
        let image = Arc::clone(&self.image);
        self.kernel.run(Identity::SYSTEM, move |thread| {
            let shared = thread.shared();
            let name = image.name();
            let belongs = |call: &Call| image.contains(call.return_address);
            let leaks = shared.pool().take_leaks(belongs);
            let mut violations: Vec<Violation> = leaks
                .into_iter()
                .map(|leak| Violation {
                    rule: Rule::PoolLeak,
                    message: format!(
                        "{name} was unloaded without freeing {} bytes of {} pool with the tag {}, \
                         allocated by {} at {} from {}",
                        leak.size,
                        if leak.paged { "paged" } else { "non-paged" },
                        leak.tag,
                        leak.allocated_by.name(),
                        leak.allocated_by.irql,
                        shared.place(leak.allocated_by.return_address)
                    ),
                })
                .collect();
            violations.extend(report_left_registered(thread, belongs, &name));
            shared
                .images()
                .retain(|loaded| !Arc::ptr_eq(loaded, &image));
            violations
        })
    }
}

/// A device that a driver added.
pub struct Device {
    kernel: Kernel,
    handle: u64,
}

impl Device {
    /// Opens the device from a process (`CreateFile`).
    ///
    /// # Errors
    ///
    /// When the driver refuses it.
    pub fn open(&self, identity: Identity) -> Result<File, KernelError> {
        let device = self.handle;
        let handle = self
            .kernel
            .run(identity, move |thread| {
                kmdf::create_file(thread, device, "")
            })?
            .map_err(|status| KernelError::Status {
                routine: "opening the device",
                status,
            })?;
        Ok(File {
            kernel: self.kernel.clone(),
            identity,
            handle,
        })
    }

    /// Sends the device to sleep (D3) and wakes it (D0).
    ///
    /// # Errors
    ///
    /// When the driver refuses.
    pub fn power_cycle(&self) -> Result<(), KernelError> {
        let device = self.handle;
        let status = self.kernel.run(Identity::SYSTEM, move |thread| {
            kmdf::power_cycle(thread, device)
        })?;
        if status.is_success() {
            Ok(())
        } else {
            Err(KernelError::Status {
                routine: "the power transition",
                status,
            })
        }
    }

    /// The security descriptor that the driver gave the device, as text.
    ///
    /// # Errors
    ///
    /// When the machine has stopped.
    pub fn sddl(&self) -> Result<Option<String>, KernelError> {
        let device = self.handle;
        Ok(self
            .kernel
            .run(Identity::SYSTEM, move |thread| kmdf::sddl(thread, device))?)
    }

    /// Removes the device in order.
    ///
    /// # Errors
    ///
    /// When the machine stops, for instance over a request that was never
    /// completed.
    pub fn remove(self) -> Result<(), KernelError> {
        let device = self.handle;
        self.kernel.run(Identity::SYSTEM, move |thread| {
            kmdf::remove_device(thread, device);
        })?;
        Ok(())
    }

    /// Opens a file of the device's from a process: the name is what stands after the
    /// device in the path, for instance `\channel`.
    ///
    /// # Errors
    ///
    /// When the driver refuses it.
    pub fn open_file(&self, name: &str, identity: Identity) -> Result<File, KernelError> {
        let device = self.handle;
        let name = name.to_owned();
        let handle = self
            .kernel
            .run(identity, move |thread| {
                kmdf::create_file(thread, device, &name)
            })?
            .map_err(|status| KernelError::Status {
                routine: "opening the device",
                status,
            })?;
        Ok(File {
            kernel: self.kernel.clone(),
            identity,
            handle,
        })
    }

    /// Pulls the device out: the driver hears of it when it is gone. Files that are
    /// open keep the device's object; it goes with the last one.
    ///
    /// # Errors
    ///
    /// When the machine stops, for instance over a request that was never
    /// completed.
    pub fn surprise_remove(self) -> Result<(), KernelError> {
        let device = self.handle;
        self.kernel.run(Identity::SYSTEM, move |thread| {
            kmdf::surprise_remove(thread, device);
        })?;
        Ok(())
    }
}

/// A file that a process has open on a device.
pub struct File {
    kernel: Kernel,
    identity: Identity,
    handle: u64,
}

/// A request that was sent.
pub struct Request {
    kernel: Kernel,
    identity: Identity,
    handle: u64,
}

impl File {
    fn submit(&self, request: IoRequest) -> Result<Request, KernelError> {
        let file = self.handle;
        let handle = self
            .kernel
            .run(self.identity, move |thread| {
                kmdf::submit(thread, file, &request)
            })?
            .map_err(|status| KernelError::Status {
                routine: "sending the request",
                status,
            })?;
        Ok(Request {
            kernel: self.kernel.clone(),
            identity: self.identity,
            handle,
        })
    }

    /// Starts a read of `length` bytes (`ReadFile`).
    ///
    /// # Errors
    ///
    /// When the machine stops.
    pub fn start_read(&self, length: usize) -> Result<Request, KernelError> {
        self.submit(IoRequest {
            kind: RequestKind::Read,
            input: Vec::new(),
            output_length: length,
        })
    }

    /// Starts a write (`WriteFile`).
    ///
    /// # Errors
    ///
    /// When the machine stops.
    pub fn start_write(&self, bytes: &[u8]) -> Result<Request, KernelError> {
        self.submit(IoRequest {
            kind: RequestKind::Write,
            input: bytes.to_vec(),
            output_length: 0,
        })
    }

    /// Starts a device control (`DeviceIoControl`).
    ///
    /// # Errors
    ///
    /// When the code is not for buffered data, or the machine stops.
    pub fn start_device_control(
        &self,
        code: u32,
        input: &[u8],
        output_length: usize,
    ) -> Result<Request, KernelError> {
        self.submit(IoRequest {
            kind: RequestKind::DeviceControl { code },
            input: input.to_vec(),
            output_length,
        })
    }

    /// Reads `length` bytes and waits for the end.
    ///
    /// # Errors
    ///
    /// When the machine stops, or the driver keeps the request.
    pub fn read(&self, length: usize) -> Result<Completion, KernelError> {
        self.start_read(length)?.finish()
    }

    /// Writes bytes and waits for the end.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    pub fn write(&self, bytes: &[u8]) -> Result<Completion, KernelError> {
        self.start_write(bytes)?.finish()
    }

    /// Sends a device control and waits for the end.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    pub fn device_control(
        &self,
        code: u32,
        input: &[u8],
        output_length: usize,
    ) -> Result<Completion, KernelError> {
        self.start_device_control(code, input, output_length)?
            .finish()
    }

    /// Closes the file (`CloseHandle`).
    ///
    /// # Errors
    ///
    /// When the machine stops.
    pub fn close(self) -> Result<(), KernelError> {
        let file = self.handle;
        self.kernel
            .run(self.identity, move |thread| kmdf::close_file(thread, file))?;
        Ok(())
    }
}

impl Request {
    /// How the request ended, or nothing if the driver still holds it.
    ///
    /// # Errors
    ///
    /// When the machine stops.
    pub fn try_finish(&self) -> Result<Option<Completion>, KernelError> {
        let request = self.handle;
        Ok(self
            .kernel
            .run(self.identity, move |thread| kmdf::outcome(thread, request))?)
    }

    /// How the request ended.
    ///
    /// # Errors
    ///
    /// [`KernelError::Pending`] if the driver still holds it.
    pub fn finish(self) -> Result<Completion, KernelError> {
        self.try_finish()?.ok_or(KernelError::Pending)
    }

    /// Cancels the request (`CancelIoEx`): one that waits in a queue ends, and the
    /// driver is called for one that it holds and made cancelable.
    ///
    /// # Errors
    ///
    /// When the machine stops.
    pub fn cancel(&self) -> Result<(), KernelError> {
        let request = self.handle;
        self.kernel
            .run(self.identity, move |thread| kmdf::cancel(thread, request))?;
        Ok(())
    }
}
