//! The verifier's checks of ETW calls, for rule violations that Windows does not report.

use std::ops::Deref;

use etl_file::PointerSize;
use etl_file::internals::schema::Schema;
use etl_file::internals::show::Escaped;

use super::{
    event::{Content, EVENT_METADATA, PROVIDER_METADATA, TIMESTAMP_OVERRIDE, WriteCall},
    filters,
    routes::Route,
    service::Context,
    traits::provider_name,
};
use crate::{
    ground::{
        abi::{EventDataDescriptor, EventDescriptor},
        arena::{FREED, UNINITIALIZED},
        irql::Irql,
        memory,
        rule::Rule,
    },
    services::verifier::warnings::Cause,
};

/// `EVENT_WRITE_FLAG_NO_FAULTING`.
const NO_FAULTING: u32 = 1;

/// All defined flags (ETW-6.1.9).
const KNOWN_FLAGS: u32 = 3;

/// The channels with a special meaning (ETW-8.6).
const TRACE_LOGGING: u8 = 11;

const PROVIDER_METADATA_CHANNEL: u8 = 12;

/// The channels of winmeta.xml that any provider may write to: `GlobalSystem`, `GlobalApplication`
/// and `GlobalSecurity` (ETW-8.6).
const GLOBAL_CHANNELS: std::ops::RangeInclusive<u8> = 8..=10;

/// The keyword bits that neither a provider nor winmeta.xml defines (ETW-8.2).
const RESERVED_KEYWORDS: u64 = !((1 << 56) - 1);

/// The number of payload bytes that are searched for uninitialized data and kernel addresses.
const LOOKED_AT: usize = 1024;

/// Checks a write with an invalid handle. Warns if `EtwRegister` has not stored the handle yet
/// (ETW-2.6).
pub fn handle_in_registration(context: &Context, handle: u64) {
    if !context.is_registering() {
        return;
    }
    let why = format!(
        "before EtwRegister stored the registration handle (handle passed: 0x{handle:016X}); an \
         enable callback that runs inside EtwRegister must not write events"
    );
    if handle == 0 {
        context.warn(Rule::HandleNotYetStored, || why);
    } else {
        context.stop_call(Rule::HandleNotYetStored, &why);
    }
}

/// A write and its event, which warnings name.
pub struct Written<'a> {
    context: &'a Context,
    call: &'a WriteCall,
    route: &'a Route,
    event: &'a EventDescriptor,
    data: &'a [EventDataDescriptor],
}

impl Deref for Written<'_> {
    type Target = Context;

    fn deref(&self) -> &Context {
        self.context
    }
}

impl<'a> Written<'a> {
    /// Combines a call with its route, event and data.
    pub const fn new(
        context: &'a Context,
        call: &'a WriteCall,
        route: &'a Route,
        event: &'a EventDescriptor,
        data: &'a [EventDataDescriptor],
    ) -> Self {
        Self { context, call, route, event, data }
    }

    /// Returns the data descriptor of the event metadata, if the event is a `TraceLogging` event.
    fn metadata(&self) -> Option<&EventDataDescriptor> {
        self.data.iter().find(|one| one.kind == EVENT_METADATA)
    }

    /// Returns the event's name, if the event has metadata with a name.
    fn name(&self) -> Option<String> {
        let metadata = self.metadata()?;
        let size = usize::from(u16::try_from(metadata.size).ok()?);
        let bytes = memory::read_bytes(metadata.ptr, size).ok()?;
        Some(filters::name_of(&bytes)?.to_owned())
    }

    /// Adds a warning, once per rule and event.
    fn warn(&self, rule: Rule, sentence: impl FnOnce() -> String) {
        let provider = self.route.provider;
        let EventDescriptor { id, version, .. } = *self.event;
        let metadata = self.metadata().map_or(0, |one| one.ptr);
        let cause = Cause::Event(provider, id, version, metadata);
        let event = || {
            let of = self
                .route
                .traits
                .as_deref()
                .and_then(provider_name)
                .map_or_else(|| format!("{{{provider}}}"), |name| Escaped(&name).to_string());
            self.name().map_or_else(
                || (format!("event {id}, version {version}, of {of}"), None),
                |name| {
                    let event = format!("event `{}` of {of}", Escaped(&name));
                    (event, Some(Cause::Named(provider, name)))
                },
            )
        };
        self.verifier().warn_of_event(self.context, rule, cause, event, sentence);
    }
}

/// Warns about arguments that make a write fail.
pub fn refused_arguments(context: &Context, call: &WriteCall) {
    if call.descriptor == 0 {
        context.warn(Rule::NullData, || "without an event descriptor".to_owned());
    } else if call.data == 0 {
        context
            .warn(Rule::NullData, || format!("with {} data descriptors that are null", call.count));
    } else {
        context.warn(Rule::TooManyDescriptors, || {
            format!("with {} data descriptors; the maximum is 128", call.count)
        });
    }
}

/// Bugchecks for a data descriptor with a null pointer and a nonzero size.
pub fn null_data(context: &Context, size: usize) -> ! {
    context.stop_call(Rule::NullData, &format!("with {size} bytes of data at address 0"))
}

/// Warns about an event that is too large for any session.
pub fn too_large(written: &Written<'_>, size: usize) {
    written.warn(Rule::LargeEvent, || {
        format!("with an event of {size} bytes including its header; the maximum is 65,535")
    });
}

/// Warns about an event that is too large for a session's buffer.
pub fn too_large_for_a_buffer(written: &Written<'_>, size: usize) {
    written.warn(Rule::LargeEvent, || {
        format!("with an event of {size} bytes, which does not fit in a session's buffer")
    });
}

/// Checks the arguments of a write.
pub fn arguments(written: &Written<'_>) {
    let Written { context, call, route, event, data } = *written;
    addresses(context, call, data);
    descriptors(written, route, data);
    descriptor_values(written, event);
    let traits = route.traits.is_some();
    if event.channel == PROVIDER_METADATA_CHANNEL && !traits {
        written.warn(Rule::Channel, || "with channel 12 for a provider without traits".to_owned());
    }
    let described = data.iter().any(|one| one.kind == EVENT_METADATA);
    if event.channel == TRACE_LOGGING && !described {
        written.warn(Rule::Channel, || {
            "with channel 11 for an event without event metadata".to_owned()
        });
    }
    if call.flags & !KNOWN_FLAGS != 0 {
        written.warn(Rule::UnknownFlags, || {
            format!("with the flags 0x{:x}; only the flags 1 and 2 exist", call.flags)
        });
    }
    let unknown = call.filter & !context.instances();
    if unknown != 0 {
        written.warn(Rule::UnknownFilterBits, || {
            format!(
                "with the filter bits 0x{unknown:x}, which no enable notification has announced"
            )
        });
    }
    if context.page_faults_forbidden()
        && context.irql() < Irql::DISPATCH_LEVEL
        && call.flags & NO_FAULTING == 0
    {
        written.warn(Rule::FaultingWrite, || {
            "without EVENT_WRITE_FLAG_NO_FAULTING where page faults are not allowed".to_owned()
        });
    }
    // TraceLogging events have no activity id unless the driver passes one.
    if call.activity.is_none() && context.irql() >= Irql::DISPATCH_LEVEL && !described {
        written.warn(Rule::ImplicitActivity, || {
            "without an activity id, so the event carries an arbitrary thread's activity id"
                .to_owned()
        });
    }
    if call.activity.is_some() && call.activity == context.replaced_activity() {
        written.warn(Rule::OldActivityUsed, || {
            "with the activity id that EVENT_ACTIVITY_CTRL_CREATE_SET_ID returned, which is the \
             thread's previous id; the thread has the new id"
                .to_owned()
        });
    }
}

fn addresses(context: &Context, call: &WriteCall, data: &[EventDataDescriptor]) {
    if call.descriptor != 0 {
        let size = size_of::<EventDescriptor>() as u64;
        context.check_address("an event descriptor", call.descriptor, size);
    }
    let size = size_of_val(data) as u64;
    context.check_address("data descriptors", call.data, size);
    for one in data {
        if one.ptr != 0 {
            context.check_address("event data", one.ptr, u64::from(one.size));
        }
    }
}

/// Checks the types, order and reserved fields of data descriptors.
fn descriptors(written: &Written<'_>, route: &Route, data: &[EventDataDescriptor]) {
    for (number, one) in data.iter().enumerate() {
        if one.reserved1 != 0 || one.reserved2 != 0 {
            written.warn(Rule::ReservedBytes, || {
                format!("with nonzero reserved bytes in data descriptor {number}")
            });
        }
        if one.kind > TIMESTAMP_OVERRIDE {
            written.warn(Rule::UnknownType, || {
                format!("with data descriptor {number} of the unknown type {}", one.kind)
            });
        } else if one.kind != 0 && !route.honours_types {
            written.warn(Rule::TypeTooEarly, || {
                format!(
                    "with data descriptor {number} of type {}, which has no meaning before \
                     traits are set",
                    one.kind
                )
            });
        }
    }
    let place = |kind| data.iter().position(|one| one.kind == kind);
    let provider = place(PROVIDER_METADATA);
    let event = place(EVENT_METADATA);
    let expected = usize::from(provider.is_some());
    let ordered =
        provider.is_none_or(|place| place == 0) && event.is_none_or(|place| place == expected);
    let single = data.iter().filter(|one| one.kind == EVENT_METADATA).count() <= 1;
    if !ordered || !single {
        written.warn(Rule::Description, || {
            "with metadata out of order; the order is provider metadata, event metadata, event \
             data"
                .to_owned()
        });
    }
}

/// Checks for reserved levels, keywords, opcodes and channels (ETW-8.1 to ETW-8.6).
fn descriptor_values(written: &Written<'_>, event: &EventDescriptor) {
    let of_a_channel = event.channel >= 16 || GLOBAL_CHANNELS.contains(&event.channel);
    let what = if (6..=15).contains(&event.level) {
        Some(format!("the reserved level {}", event.level))
    } else if event.opcode >= 241 {
        Some(format!("the reserved opcode {}", event.opcode))
    } else if event.keyword & RESERVED_KEYWORDS != 0 && !of_a_channel {
        Some(format!("the reserved keyword bits 0x{:x}", event.keyword & RESERVED_KEYWORDS))
    } else if matches!(event.channel, 1..=7 | 13..=15) {
        Some(format!("the reserved channel {}", event.channel))
    } else {
        None
    };
    if let Some(what) = what {
        written.warn(Rule::ReservedDescriptorValue, || format!("with {what}"));
    }
    // A TraceLogging event has a keyword, or level 0, only if the driver chose it.
    if written.metadata().is_some() {
        return;
    }
    if event.level == 0 {
        written.warn(Rule::NoLevel, || {
            "with level 0, which sessions cannot filter by level".to_owned()
        });
    }
    if event.keyword == 0 {
        written.warn(Rule::NoKeyword, || {
            "with no keyword, so sessions cannot filter it by keyword".to_owned()
        });
    }
}

/// Checks an event's content.
pub fn content(written: &Written<'_>, gathered: &Content) {
    if let Some(metadata) = &gathered.event_metadata {
        description(written, metadata, gathered);
    }
    leaks(written, &gathered.payload);
}

/// Checks that the event metadata is well-formed and matches the payload.
fn description(written: &Written<'_>, metadata: &[u8], gathered: &Content) {
    let stated = metadata.first_chunk::<2>().copied().map(u16::from_le_bytes);
    if stated.map(usize::from) != Some(metadata.len()) {
        written.warn(Rule::Description, || {
            let length = metadata.len();
            stated.map_or_else(
                || format!("with {length} bytes of event metadata, too few for the size field"),
                |size| format!("with {length} bytes of event metadata whose size field is {size}"),
            )
        });
        return;
    }
    // Parsing is slow, and the first writes of an event are enough to detect malformed metadata.
    if !written.should_check_in_detail() {
        return;
    }
    match Schema::parse_trace_logging(metadata) {
        Err(error) => written.warn(Rule::Description, || {
            format!("with event metadata that cannot be decoded: {error}")
        }),
        Ok(schema) => {
            let payload = schema.decode(&gathered.payload, PointerSize::Eight);
            if let Some(error) = &payload.error {
                written.warn(Rule::Description, || {
                    format!("with event data that does not match the event metadata: {error}")
                });
            } else if !payload.leftover.is_empty() {
                written.warn(Rule::Description, || {
                    format!(
                        "with {} bytes of event data after the last field of the event metadata",
                        payload.leftover.len()
                    )
                });
            }
        }
    }
}

/// Checks for uninitialized data and kernel addresses.
fn leaks(written: &Written<'_>, payload: &[u8]) {
    if !written.should_check_in_detail() {
        return;
    }
    for (at, window) in payload.windows(8).take(LOOKED_AT).enumerate() {
        let Ok(bytes) = <[u8; 8]>::try_from(window) else {
            return;
        };
        if bytes == [UNINITIALIZED; 8] || bytes == [FREED; 8] {
            written.warn(Rule::LeakingData, || {
                format!("with uninitialized or freed memory at offset {at} of the event data")
            });
            return;
        }
        let value = u64::from_le_bytes(bytes);
        if written.is_kernel_address(value) || written.environment().live_stacks.contains(value) {
            written.warn(Rule::LeakingData, || {
                format!("with the kernel address 0x{value:016X} at offset {at} of the event data")
            });
            return;
        }
    }
}
