//! The operations that probes use: the host's operations, and named operations of the driver.

use std::time::Duration;

use etl_file::{EventRecord, Guid, ext_type};
use etw_probes_interface::{
    ACTIVITY, Ask, Callback, Callbacks, GuidFields, IOCTL_ASK, IOCTL_CALLBACKS, NOT_CALLED,
    PROVIDER, Reply, VERSION, operation, place, pointer,
};
use etw_scenarios::{HostError, Session, Source};
use zerocopy::{FromBytes, IntoBytes};

use crate::host::{Enabling, Host, Recorded, SessionPlan};

/// `EventProviderBinaryTrackInfo`, `EventProviderSetTraits` and `EventProviderUseDescriptorType`.
pub const BINARY_TRACK_INFO: u32 = 0;
pub const SET_TRAITS: u32 = 2;
pub const USE_DESCRIPTOR_TYPE: u32 = 3;

/// `STATUS_NO_MEMORY`.
pub const NO_MEMORY: u32 = 0xC000_0017;

/// The group that registrations join.
pub const GROUP: Guid =
    Guid::new(0x1f0e_7d2a, 0x52c1, 0x4e0b, [0xb3, 0x5d, 0x0c, 0x77, 0x1a, 0x90, 0x4e, 0x26]);

/// The group that registrations are not allowed to join.
pub const DENIED_GROUP: Guid =
    Guid::new(0x1f0e_7d2a, 0x52c1, 0x4e0b, [0xb3, 0x5d, 0x0c, 0x77, 0x1a, 0x90, 0x4e, 0x27]);

/// The source id that probes pass.
pub const SOURCE_ID: Guid = Guid::new(0x5053_0001, 2, 3, [4, 5, 6, 7, 8, 9, 10, 11]);

/// The activity that probes set for the thread that sends requests.
pub const THREAD_ACTIVITY: Guid = Guid::new(0x7ead_0001, 2, 3, [4, 5, 6, 7, 8, 9, 10, 11]);

/// The metadata of a `TraceLogging` event named `E` without fields (ETW-7.1.1).
pub const METADATA: [u8; 5] = [5, 0, 0, b'E', 0];

const fn guid(fields: GuidFields) -> Guid {
    Guid::new(fields.0, fields.1, fields.2, fields.3)
}

/// Returns the driver's provider.
pub const fn provider() -> Source {
    Source::Provider(provider_id())
}

/// Returns the GUID of the driver's provider.
pub const fn provider_id() -> Guid {
    guid(PROVIDER)
}

/// Returns the activity id that the driver sets.
pub const fn activity() -> Guid {
    guid(ACTIVITY)
}

/// Returns traits with a name, a group, and a custom trait that pads them to `size` bytes
/// (ETW-4.1.1, ETW-4.1.2).
pub fn traits(name: &str, group: Option<Guid>, size: Option<u16>) -> Vec<u8> {
    /// The types of traits.
    const GROUP: u8 = 1;
    const CUSTOM: u8 = 128;
    let mut blob = vec![0, 0];
    blob.extend(name.bytes());
    blob.push(0);
    let mut add = |kind: u8, data: &[u8]| {
        let size = u16::try_from(data.len() + 3).unwrap_or(u16::MAX);
        blob.extend(size.to_le_bytes());
        blob.push(kind);
        blob.extend(data);
        blob.len()
    };
    if let Some(group) = group {
        add(GROUP, &group.to_bytes());
    }
    if let Some(size) = size {
        let rest = usize::from(size).saturating_sub(2 + name.len() + 1 + 3);
        add(CUSTOM, &vec![0x5A; rest]);
    }
    let size = u16::try_from(blob.len()).unwrap_or(u16::MAX);
    blob.splice(..2, size.to_le_bytes());
    blob
}

/// The parameters of a write.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    /// The registration.
    pub slot: u32,
    /// One of `etw_probes_interface::place`.
    pub place: u32,
    /// Bits of `etw_probes_interface::write`.
    pub form: u32,
    /// The size of the payload.
    pub size: u64,
    /// The number of events.
    pub count: u64,
    /// The keyword.
    pub keyword: u64,
    /// The level.
    pub level: u8,
    /// The flags of `EtwWriteEx`.
    pub flags: u32,
}

impl Default for Write {
    /// Returns one event with level 4 and keyword 1, without data.
    fn default() -> Self {
        Self {
            slot: 0,
            place: place::CALLER,
            form: 0,
            size: 0,
            count: 1,
            keyword: 1,
            level: 4,
            flags: 0,
        }
    }
}

/// The result of a write.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// The last status.
    pub status: u32,
    /// The number of writes that succeeded.
    pub succeeded: u64,
    /// The number of writes that failed.
    pub failed: u64,
}

/// The host of a probe, and the driver's operations.
pub struct Stage<'a> {
    /// The host.
    pub host: &'a mut dyn Host,
}

pub fn error(what: impl Into<String>) -> HostError {
    HostError::new(what)
}

impl<'a> Stage<'a> {
    /// Returns a stage for a host.
    pub fn new(host: &'a mut dyn Host) -> Self {
        Self { host }
    }

    /// Sends a request to the driver. `bytes` are the bytes that follow the [`Ask`].
    pub fn ask(&mut self, ask: Ask, bytes: &[u8]) -> Result<Reply, HostError> {
        let input = [ask.as_bytes(), bytes].concat();
        let completed =
            self.host.control(IOCTL_ASK, &input, size_of::<Reply>().max(input.len()))?;
        if completed.status.cast_signed() < 0 {
            return Err(error(format!(
                "the driver failed operation {} with NTSTATUS 0x{:08x}",
                ask.operation, completed.status
            )));
        }
        let reply = Reply::read_from_bytes(&completed.output).map_err(|_| {
            error(format!(
                "the driver answered operation {} with {} bytes; expected {}: the driver and the \
                 client are from different builds",
                ask.operation,
                completed.output.len(),
                size_of::<Reply>()
            ))
        })?;
        if reply.version != VERSION {
            return Err(error(format!(
                "the driver has interface version {}; expected {VERSION}: install the driver from \
                 this build",
                reply.version
            )));
        }
        Ok(reply)
    }

    /// Ends all registrations, and discards all recorded callbacks.
    pub fn reset(&mut self) -> Result<(), HostError> {
        self.ask_for(operation::RESET, 0, 0).map(|_| ())
    }

    /// Requests an operation without parameters from the driver.
    pub fn ask_for(&mut self, operation: u32, slot: u32, form: u32) -> Result<Reply, HostError> {
        let ask = Ask { operation, slot, form, ..Ask::default() };
        self.ask(ask, &[])
    }

    /// Requests that the driver perform an operation in this context.
    pub fn ask_in(&mut self, place: u32, operation: u32, form: u32) -> Result<Reply, HostError> {
        let ask = Ask { operation, place, form, ..Ask::default() };
        self.ask(ask, &[])
    }

    /// Registers the provider in a slot, and fails if the driver reports an error.
    pub fn register(&mut self, slot: u32) -> Result<Reply, HostError> {
        let reply = self.ask_for(operation::REGISTER, slot, 0)?;
        if reply.statuses[0] != 0 {
            return Err(error(format!("EtwRegister returned 0x{:08x}", reply.statuses[0])));
        }
        Ok(reply)
    }

    /// Unregisters the provider in a slot.
    pub fn unregister(&mut self, slot: u32) -> Result<Reply, HostError> {
        self.ask_for(operation::UNREGISTER, slot, 0)
    }

    /// Sets information for a registration, and returns the status.
    pub fn set(&mut self, slot: u32, class: u32, bytes: &[u8]) -> Result<u32, HostError> {
        let ask = Ask {
            operation: operation::SET_INFORMATION,
            slot,
            form: class,
            numbers: [pointer::BYTES, bytes.len() as u64, 0, 0],
            ..Ask::default()
        };
        Ok(self.ask(ask, bytes)?.statuses[0])
    }

    /// Sets information for a registration, passing one of `etw_probes_interface::pointer` instead
    /// of bytes. Returns the status.
    pub fn set_pointer(&mut self, slot: u32, class: u32, pointer: u64) -> Result<u32, HostError> {
        let ask = Ask {
            operation: operation::SET_INFORMATION,
            slot,
            form: class,
            numbers: [pointer, 0, 0, 0],
            ..Ask::default()
        };
        Ok(self.ask(ask, &[])?.statuses[0])
    }

    /// Sets a registration's traits, and returns the status.
    pub fn set_traits(&mut self, slot: u32, traits: &[u8]) -> Result<u32, HostError> {
        self.set(slot, SET_TRAITS, traits)
    }

    /// Sets a registration's traits, and fails if the driver reports an error.
    pub fn need_traits(&mut self, slot: u32, traits: &[u8]) -> Result<(), HostError> {
        match self.set_traits(slot, traits)? {
            0 => Ok(()),
            status => Err(error(format!("EtwSetInformation with traits returned 0x{status:08x}"))),
        }
    }

    /// Returns the enable callbacks since the probe began.
    pub fn callbacks(&mut self) -> Result<Vec<Callback>, HostError> {
        let completed = self.host.control(IOCTL_CALLBACKS, &[], size_of::<Callbacks>())?;
        let table = Callbacks::read_from_bytes(&completed.output).map_err(|_| {
            error(format!(
                "the driver answered with {} bytes of callbacks; expected {}: the driver and the \
                 client are from different builds",
                completed.output.len(),
                size_of::<Callbacks>()
            ))
        })?;
        let count = usize::try_from(table.count).unwrap_or(usize::MAX);
        table.callbacks.get(..count).map(<[Callback]>::to_vec).ok_or_else(|| {
            error(format!("the driver reports {count} callbacks, more than fit in its reply"))
        })
    }

    /// Returns the last enable callback.
    pub fn last_callback(&mut self) -> Result<Callback, HostError> {
        self.callbacks()?.last().copied().ok_or_else(|| error("no enable callback was called"))
    }

    /// Writes events.
    pub fn write(&mut self, write: Write) -> Result<Written, HostError> {
        self.write_with(write, &[])
    }

    /// Writes events with metadata.
    pub fn write_with(&mut self, write: Write, metadata: &[u8]) -> Result<Written, HostError> {
        let ask = Ask {
            operation: operation::WRITE,
            slot: write.slot,
            place: write.place,
            form: write.form,
            numbers: [
                write.size,
                write.count,
                write.keyword,
                u64::from(write.level) | (u64::from(write.flags) << 32),
            ],
            guid: GROUP.to_bytes(),
        };
        let reply = self.ask(ask, metadata)?;
        if reply.available == 0 || reply.statuses[1] == NOT_CALLED {
            return Err(error("the driver does not write such an event"));
        }
        Ok(Written {
            status: reply.statuses[1],
            succeeded: reply.numbers[0],
            failed: reply.numbers[1],
        })
    }

    /// Writes an event, retrying while the session has no free buffer. Returns the status.
    pub fn write_patiently(&mut self, write: Write) -> Result<u32, HostError> {
        const TRIES: u32 = 20;
        const PAUSE: Duration = Duration::from_millis(50);
        let mut status = NO_MEMORY;
        for _ in 0..TRIES {
            status = self.write(write)?.status;
            if status != NO_MEMORY {
                break;
            }
            self.host.pass(PAUSE)?;
        }
        Ok(status)
    }

    /// Returns the largest payload size with which a write succeeds, and the status for one byte
    /// more. The size `low` must succeed, and `high` must fail.
    pub fn largest_payload(
        &mut self,
        write: Write,
        mut low: u64,
        mut high: u64,
    ) -> Result<(u64, u32), HostError> {
        let first = self.write_patiently(Write { size: low, ..write })?;
        let mut above = self.write_patiently(Write { size: high, ..write })?;
        if first != 0 || above == 0 {
            return Err(error(format!(
                "payloads of {low} and {high} bytes returned 0x{first:08x} and 0x{above:08x}; the \
                 first should fit, the second should not"
            )));
        }
        while high - low > 1 {
            let middle = low.midpoint(high);
            match self.write_patiently(Write { size: middle, ..write })? {
                0 => low = middle,
                status => {
                    high = middle;
                    above = status;
                }
            }
        }
        Ok((low, above))
    }

    /// Starts a session with ordinary buffers.
    pub fn session(&mut self) -> Result<Session, HostError> {
        self.host.start_session(SessionPlan::default())
    }

    /// Starts a session that enables the provider at this level.
    pub fn enabled(&mut self, level: u8) -> Result<Session, HostError> {
        self.enabled_by(SessionPlan::default(), level)
    }

    /// Starts a session with this plan that enables the provider at this level.
    pub fn enabled_by(&mut self, plan: SessionPlan, level: u8) -> Result<Session, HostError> {
        let session = self.host.start_session(plan)?;
        self.enable(session, provider(), level)?;
        Ok(session)
    }

    /// Enables a provider or group at this level.
    pub fn enable(&mut self, session: Session, source: Source, level: u8) -> Result<(), HostError> {
        let enabling = Enabling { level, ..Enabling::default() };
        self.host.enable(session, source, &enabling)
    }

    /// Stops a session and returns its recording.
    pub fn stop(&mut self, session: Session) -> Result<Recorded, HostError> {
        self.host.stop_session(session)
    }
}

/// Returns the Windows error code of a controller's call, or 0 for success.
pub fn code_of(result: Result<(), HostError>) -> Result<u32, HostError> {
    match result {
        Ok(()) => Ok(0),
        Err(error) => error.code.ok_or(error),
    }
}

/// Returns the provider's name in the traits of an event.
pub fn traits_name(event: &EventRecord) -> Option<String> {
    let blob = event.item(ext_type::PROV_TRAITS)?;
    let name = blob.get(2..)?.split(|byte| *byte == 0).next()?;
    String::from_utf8(name.to_vec()).ok()
}

/// Returns a word that describes an event's activity id.
pub fn activity_word(event: Option<&EventRecord>) -> &'static str {
    match event.map(|event| event.activity_id) {
        None => "no event",
        Some(Guid::NULL) => "none",
        Some(THREAD_ACTIVITY) => "thread",
        Some(id) if id == activity() => "set",
        Some(_) => "other",
    }
}
