//! The event descriptor and the types of its fields.

/// The severity or verbosity of an event. A session receives the events whose level is at most the
/// level that it enables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Level(pub u8);

impl Level {
    /// Passes the level filter of every session; not meant for ordinary events.
    pub const LOG_ALWAYS: Self = Self(0);
    /// Abnormal exit or termination.
    pub const CRITICAL: Self = Self(1);
    /// Severe errors.
    pub const ERROR: Self = Self(2);
    /// Warnings, such as a failed allocation that the driver can handle.
    pub const WARNING: Self = Self(3);
    /// Noteworthy steps of normal operation.
    pub const INFO: Self = Self(4);
    /// Detailed steps.
    pub const VERBOSE: Self = Self(5);
}

/// The step of a task that an event reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Opcode(pub u8);

impl Opcode {
    /// An informational event that marks no particular step.
    pub const INFO: Self = Self(0);
    /// The start of an activity.
    pub const START: Self = Self(1);
    /// The end of an activity.
    pub const STOP: Self = Self(2);
    /// The state when collection started.
    pub const DC_START: Self = Self(3);
    /// The state when collection stopped.
    pub const DC_STOP: Self = Self(4);
    /// Additional data for an earlier event.
    pub const EXTENSION: Self = Self(5);
    /// The answer to an earlier event.
    pub const REPLY: Self = Self(6);
    /// An activity resumes.
    pub const RESUME: Self = Self(7);
    /// An activity is suspended.
    pub const SUSPEND: Self = Self(8);
    /// A message or an activity was sent to another component.
    pub const SEND: Self = Self(9);
    /// A message or an activity was received from another component.
    pub const RECEIVE: Self = Self(240);
    /// The lowest opcode that a provider can define.
    pub const FIRST_USER: Self = Self(10);
    /// The highest opcode that a provider can define.
    pub const LAST_USER: Self = Self(239);
}

/// The event log that receives an event in addition to sessions, or a marker for the event's
/// encoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Channel(pub u8);

impl Channel {
    /// No channel.
    pub const NONE: Self = Self(0);
    /// The System event log.
    pub const SYSTEM: Self = Self(8);
    /// The Application event log.
    pub const APPLICATION: Self = Self(9);
    /// The Security event log.
    pub const SECURITY: Self = Self(10);
    /// The marker of `TraceLogging` events.
    pub const TRACELOGGING: Self = Self(11);
    /// The marker of manifest events whose provider has traits.
    pub const PROVIDER_METADATA: Self = Self(12);
}

/// A set of keywords, which are an event's topics. Providers define the low 48 bits; Microsoft
/// defines the high 16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Keyword(u64);

impl Keyword {
    /// No keyword. An event without keywords passes the keyword filter of every session.
    pub const NONE: Self = Self(0);
    /// The bits that a provider can define.
    pub const USER_BITS: u64 = (1 << 48) - 1;

    /// Microsoft's keyword for response times.
    pub const RESPONSE_TIME: Self = Self(1 << 48);
    /// Microsoft's keyword for diagnostics.
    pub const WDI_DIAGNOSTIC: Self = Self(1 << 50);
    /// Microsoft's keyword for service quality metrics.
    pub const SQM: Self = Self(1 << 51);
    /// Microsoft's keyword for failed audits.
    pub const AUDIT_FAILURE: Self = Self(1 << 52);
    /// Microsoft's keyword for successful audits.
    pub const AUDIT_SUCCESS: Self = Self(1 << 53);
    /// Microsoft's keyword for events that contain a correlation hint.
    pub const CORRELATION_HINT: Self = Self(1 << 54);
    /// Microsoft's keyword for events of the classic event log.
    pub const EVENTLOG_CLASSIC: Self = Self(1 << 55);

    /// Returns the keyword with this bit, 0 to 47; a higher bit does not compile. In a declaration,
    /// `Keyword::bit(0)` is the syntax of `#[keyword]`, not a call.
    #[must_use]
    pub const fn bit<const BIT: u32>() -> Self {
        const { Self::require_providers(BIT) }
        Self(1 << BIT)
    }

    /// Fails at compile time unless providers can use the bit. `track_caller` moves the error to
    /// the caller, even if the source of `core` is not installed.
    #[track_caller]
    const fn require_providers(bit: u32) {
        assert!(
            bit < 48,
            "a provider's keyword must be one of the bits 0 to 47; bits 48 to 63 are reserved for \
             Microsoft"
        );
    }

    /// Returns a set of arbitrary bits, including Microsoft's: for a controller's masks or a
    /// channel's bit.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns the bits.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Returns the keywords of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The identity and classification of an event (`EVENT_DESCRIPTOR` in evntprov.h).
///
/// 16 bytes: `id` at 0, `version` at 2, `channel` at 3, `level` at 4, `opcode` at
/// 5, `task` at 6, `keyword` at 8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct EventDescriptor {
    id: u16,
    version: u8,
    channel: Channel,
    level: Level,
    opcode: Opcode,
    task: u16,
    keyword: Keyword,
}

const _: () = {
    assert!(size_of::<EventDescriptor>() == 16);
    assert!(core::mem::offset_of!(EventDescriptor, channel) == 3);
    assert!(core::mem::offset_of!(EventDescriptor, task) == 6);
    assert!(core::mem::offset_of!(EventDescriptor, keyword) == 8);
};

/// Defines a getter, an in-place setter (like `EventDescSet*` in evntprov.h), and a `const` setter
/// by value.
macro_rules! accessors {
    ($($(#[$doc:meta])* $field:ident / $set:ident / $with:ident: $type:ty;)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub const fn $field(&self) -> $type {
            self.$field
        }

        #[doc = concat!("Sets the ", stringify!($field), ".")]
        pub const fn $set(&mut self, $field: $type) -> &mut Self {
            self.$field = $field;
            self
        }

        #[doc = concat!("Returns the descriptor with a different ", stringify!($field), ".")]
        #[must_use]
        pub const fn $with(mut self, $field: $type) -> Self {
            self.$field = $field;
            self
        }
    )*};
}

impl EventDescriptor {
    /// Returns a descriptor with all fields zero (`EventDescZero`).
    #[must_use]
    pub const fn zero() -> Self {
        Self {
            id: 0,
            version: 0,
            channel: Channel::NONE,
            level: Level::LOG_ALWAYS,
            opcode: Opcode::INFO,
            task: 0,
            keyword: Keyword::NONE,
        }
    }

    /// Returns a descriptor; the `with_*` functions set the other fields.
    #[must_use]
    pub const fn new(id: u16, version: u8, level: Level, keyword: Keyword) -> Self {
        Self { id, version, level, keyword, ..Self::zero() }
    }

    accessors! {
        /// Returns the ID. An ID and a version together permanently identify one layout.
        id / set_id / with_id: u16;
        /// Returns the version.
        version / set_version / with_version: u8;
        /// Returns the channel.
        channel / set_channel / with_channel: Channel;
        /// Returns the level.
        level / set_level / with_level: Level;
        /// Returns the opcode.
        opcode / set_opcode / with_opcode: Opcode;
        /// Returns the task, or 0 for an event without a task.
        task / set_task / with_task: u16;
        /// Returns the keywords.
        keyword / set_keyword / with_keyword: Keyword;
    }

    /// Adds keywords (`EventDescOrKeyword`).
    pub const fn or_keyword(&mut self, keyword: Keyword) -> &mut Self {
        self.keyword = self.keyword.union(keyword);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // R-D1, R-D6
    #[test]
    fn accessors_change_their_own_field() {
        let mut event = EventDescriptor::zero();
        event
            .set_id(0x0201)
            .set_version(3)
            .set_channel(Channel(4))
            .set_level(Level(5))
            .set_opcode(Opcode(6))
            .set_task(0x0807)
            .set_keyword(Keyword::from_bits(0x100F_0E0D_0C0B_0A00))
            .or_keyword(Keyword::from_bits(9));
        // SAFETY: the structure has no padding, as its size shows.
        let bytes: [u8; 16] = unsafe { core::mem::transmute(event) };
        assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
        assert_eq!(event.id(), 0x0201);
        assert_eq!(
            EventDescriptor::new(1, 2, Level::ERROR, Keyword::bit::<3>())
                .with_task(7)
                .with_opcode(Opcode::START)
                .with_channel(Channel::PROVIDER_METADATA),
            EventDescriptor {
                id: 1,
                version: 2,
                channel: Channel(12),
                level: Level(2),
                opcode: Opcode(1),
                task: 7,
                keyword: Keyword(8),
            }
        );
    }

    // R-K1, R-K2
    #[test]
    fn a_providers_keyword_is_one_bit_of_the_low_48() {
        assert_eq!(Keyword::bit::<0>().bits(), 1);
        assert_eq!(Keyword::bit::<47>().bits(), 1 << 47);
        assert_eq!(Keyword::USER_BITS, 0x0000_FFFF_FFFF_FFFF);
    }

    // R-K1
    #[test]
    fn microsofts_keywords_are_those_of_winmeta() {
        assert_eq!(
            [
                Keyword::RESPONSE_TIME,
                Keyword::WDI_DIAGNOSTIC,
                Keyword::SQM,
                Keyword::AUDIT_FAILURE,
                Keyword::AUDIT_SUCCESS,
                Keyword::CORRELATION_HINT,
                Keyword::EVENTLOG_CLASSIC
            ]
            .map(Keyword::bits),
            [
                0x0001_0000_0000_0000, 0x0004_0000_0000_0000, 0x0008_0000_0000_0000,
                0x0010_0000_0000_0000, 0x0020_0000_0000_0000, 0x0040_0000_0000_0000,
                0x0080_0000_0000_0000
            ]
        );
        let union = Keyword::from_bits(0b0110).union(Keyword::from_bits(0b0011));
        assert_eq!(union, Keyword::from_bits(0b0111));
    }

    // R-D2, R-D3, R-D4, R-O4
    #[test]
    fn named_values_are_those_of_the_headers() {
        assert_eq!(
            [
                Level::LOG_ALWAYS,
                Level::CRITICAL,
                Level::ERROR,
                Level::WARNING,
                Level::INFO,
                Level::VERBOSE
            ]
            .map(|level| level.0),
            [0, 1, 2, 3, 4, 5]
        );
        assert_eq!(
            [
                Opcode::INFO,
                Opcode::START,
                Opcode::STOP,
                Opcode::DC_START,
                Opcode::DC_STOP,
                Opcode::EXTENSION,
                Opcode::REPLY,
                Opcode::RESUME,
                Opcode::SUSPEND,
                Opcode::SEND,
                Opcode::FIRST_USER,
                Opcode::LAST_USER,
                Opcode::RECEIVE
            ]
            .map(|opcode| opcode.0),
            [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 239, 240]
        );
        assert_eq!(
            [
                Channel::NONE,
                Channel::SYSTEM,
                Channel::APPLICATION,
                Channel::SECURITY,
                Channel::TRACELOGGING,
                Channel::PROVIDER_METADATA
            ]
            .map(|channel| channel.0),
            [0, 8, 9, 10, 11, 12]
        );
    }
}
