//! The stand-in kernel as a host.

use std::{path::Path, time::Duration};

use etl_file::{Guid, Trace};
use etw_probes_interface::{ASK_IN_DRIVER_ENTRY, SERVICE};
use etw_scenarios::{HostError, Session, Slots, Source};
use standin_kernel::{
    Device, Driver, EnableParameters, EventFilters, EventIdFilter, File, FilterData, Identity,
    Kernel, KernelConfig, SessionConfig, SessionHandle, Target,
};
use tempfile::TempDir;

use crate::{
    answers::System,
    host::{Completed, Enabling, Host, Recorded, SessionPlan, Thread},
    stage::error,
};

/// The process and thread that send requests.
const CLIENT: Identity = Identity { process: 4242, thread: 4244 };

/// A host that runs the driver's image in the stand-in kernel.
pub struct StandIn {
    kernel: Kernel,
    /// The device's open file, the device and the driver, in the order in which they are closed.
    loaded: Option<(File, Device, Driver)>,
    folder: TempDir,
    sessions: Slots<SessionHandle>,
    /// The number of files that sessions have written.
    files: usize,
}

impl StandIn {
    /// Loads the driver in `image` into a new kernel, and opens its device.
    ///
    /// # Errors
    ///
    /// Returns an error if the driver cannot be loaded or its device cannot be opened, or if the
    /// folder for the sessions' files cannot be created.
    pub fn new(image: &Path, config: KernelConfig) -> Result<Self, HostError> {
        let folder = tempfile::tempdir()
            .map_err(|why| error(format!("cannot create a temporary folder for traces: {why}")))?;
        let kernel = Kernel::with_config(config);
        let loaded = Self::load(&kernel, image).inspect_err(|_| kernel.leave_behind())?;
        Ok(Self {
            kernel,
            loaded: Some(loaded),
            folder,
            sessions: Slots::new("session", "is not running"),
            files: 0,
        })
    }

    fn load(kernel: &Kernel, image: &Path) -> Result<(File, Device, Driver), HostError> {
        kernel.set_parameter(SERVICE, ASK_IN_DRIVER_ENTRY, 1_u32);
        let driver = kernel.load_as(image, SERVICE)?;
        let device = driver.add_device()?;
        let file = device.open(CLIENT)?;
        Ok((file, device, driver))
    }

    /// Closes the device and unloads the driver.
    ///
    /// # Errors
    ///
    /// Returns an error if the driver leaks a resource, or if the kernel has bugchecked.
    pub fn close(mut self) -> Result<(), HostError> {
        let Some((file, device, driver)) = self.loaded.take() else {
            return Ok(());
        };
        let closed = file.close().and_then(|()| device.remove()).and_then(|()| driver.unload());
        Ok(closed.inspect_err(|_| self.kernel.leave_behind())?)
    }

    fn session(&self, session: Session) -> Result<SessionHandle, HostError> {
        self.sessions.get(session.0).copied()
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        if self.loaded.is_some() {
            self.kernel.leave_behind();
        }
    }
}

const fn target(source: Source) -> Target {
    match source {
        Source::Provider(guid) => Target::Provider(guid),
        Source::Group(guid) => Target::Group(guid),
    }
}

impl Host for StandIn {
    fn system(&self) -> Result<System, HostError> {
        Ok(System {
            name: "the stand-in kernel".to_owned(),
            build: "stand-in".to_owned(),
            architecture: "x86_64".to_owned(),
        })
    }

    fn thread(&self) -> Thread {
        Thread { process: CLIENT.process, thread: CLIENT.thread }
    }

    fn control(&mut self, code: u32, input: &[u8], output: usize) -> Result<Completed, HostError> {
        let (file, ..) = self.loaded.as_ref().ok_or_else(|| error("the driver is not loaded"))?;
        let request = file.start_device_control(code, input, output)?;
        let completion = request.finish()?;
        Ok(Completed { status: completion.status.0.cast_unsigned(), output: completion.output })
    }

    fn start_session(&mut self, plan: SessionPlan) -> Result<Session, HostError> {
        let number = self.files;
        self.files += 1;
        let path = self.folder.path().join(format!("{number}.etl"));
        let config = SessionConfig::to_file(format!("Probes {number}"), path);
        let handle = self.kernel.start_session(SessionConfig {
            buffer_kb: if plan.buffer_kb == 0 { config.buffer_kb } else { plan.buffer_kb },
            maximum_buffers: if plan.few_buffers { 2 } else { 0 },
            independent: plan.independent,
            paged_memory: plan.paged,
            ..config
        })?;
        if plan.few_buffers {
            // The stand-in kernel's writer thread keeps up with any burst, so it is paused to cause
            // losses.
            self.kernel.hold_writer(handle, true)?;
        }
        Ok(Session(self.sessions.add(handle)))
    }

    fn stop_session(&mut self, session: Session) -> Result<Recorded, HostError> {
        let handle = self.session(session)?;
        let report = self.kernel.stop_session(handle)?;
        self.sessions.take(session.0)?;
        let trace = Trace::open(&report.file)
            .map_err(|why| error(format!("{}: {why}", report.file.display())))?;
        Recorded::from_trace(&trace, u64::from(report.events_lost))
    }

    fn enable(
        &mut self,
        session: Session,
        source: Source,
        enabling: &Enabling,
    ) -> Result<(), HostError> {
        let parameters = EnableParameters {
            level: enabling.level,
            match_any: enabling.any,
            match_all: enabling.all,
            source: enabling.source,
            filter: enabling.filter.clone().map(|data| FilterData { id: 1, version: 0, data }),
            events: EventFilters {
                ids: enabling.ids.clone().map(|ids| EventIdFilter { keep: true, ids }),
                ..EventFilters::default()
            },
            ..EnableParameters::default()
        };
        let session = self.session(session)?;
        Ok(self.kernel.enable(session, target(source), parameters)?)
    }

    fn disable(
        &mut self,
        session: Session,
        source: Source,
        id: Option<Guid>,
    ) -> Result<(), HostError> {
        let session = self.session(session)?;
        Ok(self.kernel.disable(session, target(source), id)?)
    }

    fn capture_state(&mut self, session: Session, source: Source) -> Result<(), HostError> {
        let session = self.session(session)?;
        Ok(self.kernel.capture_state(session, target(source), None)?)
    }

    fn set_activity(&mut self, activity: Option<Guid>) -> Result<(), HostError> {
        self.kernel.set_thread_activity(CLIENT, activity.unwrap_or_default());
        Ok(())
    }

    fn deny_group(&mut self, group: Guid) -> Result<(), HostError> {
        self.kernel.deny_group(group);
        Ok(())
    }

    fn pass(&mut self, time: Duration) -> Result<(), HostError> {
        Ok(self.kernel.advance(time)?)
    }

    fn clear(&mut self) -> Result<(), HostError> {
        for session in self.sessions.drain() {
            self.kernel.stop_session(session)?;
        }
        self.set_activity(None)
    }
}
