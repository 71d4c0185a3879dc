//! A provider's own counters, and the event that carries them.

use crate::{
    Channel, EventDataDescriptor, EventDescriptor, Keyword, Level, NtStatus, Opcode, Provider,
    counters::WrittenCounts,
    event::EventBlob,
    failures::STATUSES,
    provider::{Counting, StaticProvider},
    write::Plain,
};

/// The values of a provider's counters since the driver was loaded.
///
/// [`Provider::statistics`] reads the counters one after another. While other processors write
/// events, the values can belong to slightly different moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Events that `EtwWriteEx` accepted, or `None` if the provider does not count them, because
    /// its declaration does not contain `statistics`. An accepted event is in the trace of every
    /// session that enables it and has room for it in its buffers.
    pub written: Option<u64>,
    /// Writes that failed with each status that the ETW documentation lists.
    pub failed: [(NtStatus, u64); STATUSES.len()],
    /// Writes that failed with any other status.
    pub failed_otherwise: u64,
    /// Values that did not fit in the event or its field; see [`Failures::cut`](crate::Failures::cut).
    pub cut: u64,
    /// Events that were not written because the provider was not registered: while
    /// [`Provider::register`] or [`Provider::unregister`] ran, or outside a registration.
    /// `emit!` and `event!` write nothing outside a registration, so their events count only
    /// during these two functions.
    pub dropped: u64,
    /// Events that a rate limit skipped; see [`RateLimit`](crate::RateLimit). A limit of one in n
    /// adds n - 1 when it admits the next event. So the count excludes the occurrences since the
    /// last admitted event and those before a [`reset`](crate::RateLimit::reset).
    /// [`RateLimit::left_out`](crate::RateLimit::left_out) includes the former.
    pub left_out: u64,
}

impl Statistics {
    /// Returns the number of failed writes, with any status.
    #[must_use]
    pub fn failed_in_total(&self) -> u64 {
        self.failed.iter().fold(self.failed_otherwise, |sum, (_, count)| sum.saturating_add(*count))
    }
}

/// The event's metadata: a structure with the failures by status, in the order of [`STATUSES`], and
/// the other counters. All fields are 64 bits wide.
const METADATA: &[u8; 182] = b"\xB6\0\0ProviderStatistics\0Written\0\x0aFailed\0\x98\x07\
NoMemory\0\x0aBufferOverflow\0\x0aIntegerOverflow\0\x0aLogFileFull\0\x0aInvalidHandle\0\x0a\
InvalidParameter\0\x0aOther\0\x0aFieldsCut\0\x0aDroppedWhileUnregistered\0\x0aLeftOut\0\x0a";

/// The event `ProviderStatistics`: level 0 and no keywords, so that it reaches every session that
/// requests the provider's state.
static EVENT: EventBlob<{ METADATA.len() }> = EventBlob::new(
    EventDescriptor::new(0, 0, Level::LOG_ALWAYS, Keyword::NONE)
        .with_channel(Channel::TRACELOGGING)
        .with_opcode(Opcode::DC_START),
    *METADATA,
);

#[doc(hidden)]
impl<const N: usize> StaticProvider<N> {
    /// Makes the provider count in `written` the events that ETW accepts ([`Statistics::written`]), and
    /// write an event `ProviderStatistics` when a session requests the provider's state.
    #[must_use]
    pub const fn with_statistics(mut self, written: &'static WrittenCounts) -> Self {
        self.counting = Some(Counting { written, write_statistics });
        self
    }
}

impl Provider {
    /// Returns the values of the provider's counters.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let counters = &self.counters;
        let failures = &counters.failures;
        Statistics {
            written: self.counting.map(|counting| counting.written.sum()),
            failed: STATUSES.map(|status| (status, failures.with_status(status))),
            failed_otherwise: failures.otherwise(),
            cut: failures.cut(),
            dropped: counters.dropped(),
            left_out: counters.left_out(),
        }
    }
}

/// Writes the event `ProviderStatistics`.
fn write_statistics(provider: &Provider) {
    let Statistics { written, failed, failed_otherwise, cut, dropped, left_out } =
        provider.statistics();
    let Some(write) = provider.enter_slow(EVENT.tracelogging()) else {
        return;
    };
    let failed = failed.map(|(_, count)| count);
    let last = [failed_otherwise, cut, dropped, left_out];
    // The provider counts the failure.
    let _status = write.finish_slow(
        &Plain,
        &[
            write.traits(),
            write.event_metadata(),
            EventDataDescriptor::of(&written.unwrap_or_default()),
            EventDataDescriptor::of(&failed),
            EventDataDescriptor::of(&last),
        ],
    );
}
