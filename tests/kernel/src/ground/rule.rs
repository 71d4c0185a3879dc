//! The rules that a driver can break.

/// `DRIVER_VERIFIER_DETECTED_VIOLATION`.
const VERIFIER_STOP: u32 = 0xC4;
/// `WDF_VIOLATION`.
const WDF_VIOLATION: u32 = 0x10D;
/// `BAD_POOL_CALLER`.
const BAD_POOL_CALLER: u32 = 0xC2;
/// `IRQL_NOT_LESS_OR_EQUAL`.
const IRQL_NOT_LESS_OR_EQUAL: u32 = 0xA;

/// The consequence of a broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The kernel bugchecks, as a real one would or might.
    Stop,
    /// The kernel continues and keeps a warning (see `Kernel::warnings`).
    Warning,
}

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident $(= $number:literal)? $severity:ident;)*) => {
        /// A rule that a driver broke.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Rule {
            $($(#[$doc])* $name,)*
        }

        impl Rule {
            /// Every rule.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Returns the rule's id among the verifier rules of `docs/reference/etw-runtime.md`,
            /// such as V04, or `None` for rules that are not about ETW.
            #[must_use]
            pub const fn number(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => rules!(@number $($number)?),)*
                }
            }

            /// Returns the consequence of breaking the rule.
            #[must_use]
            pub const fn severity(self) -> Severity {
                match self {
                    $(Self::$name => Severity::$severity,)*
                }
            }
        }
    };
    (@number $number:literal) => { Some($number) };
    (@number) => { None };
}

rules! {
    /// `EtwRegister` above `PASSIVE_LEVEL`.
    EtwRegisterIrql = "V01" Stop;
    /// `EtwUnregister` above `PASSIVE_LEVEL`.
    EtwUnregisterIrql = "V02" Stop;
    /// `EtwSetInformation` above `PASSIVE_LEVEL`.
    EtwSetInformationIrql = "V03" Stop;
    /// A provider is still registered when its driver is unloaded.
    ProviderLeftRegistered = "V04" Stop;
    /// A registration handle is used after `EtwUnregister`.
    HandleReleased = "V05" Stop;
    /// `EtwUnregister` from the registration's own enable callback.
    UnregisterInCallback = "V06" Stop;
    /// `EtwRegister` overwrites a handle that was not released.
    HandleOverwritten = "V07" Warning;
    /// `EtwRegister` with a pointer that is in user space. A null one is refused, and noted.
    RegisterPointer = "V08" Stop;
    /// The enable callback is in a section that was discarded, or its context in memory that
    /// was freed.
    DiscardedCode = "V09" Stop;
    /// A provider is registered and unregistered again and again.
    RegistrationChurn = "V10" Warning;
    /// What a failed `EtwRegister` left in the handle's place is used as a handle.
    HandleOfFailure = "V11" Warning;
    /// A registration handle that was never given out.
    HandleNeverIssued = "V12" Stop;
    /// The enable callback returned at another IRQL.
    EnableCallbackIrql = "V20" Stop;
    /// The enable callback waits, or takes a lock that is held over `EtwUnregister` or
    /// `EtwSetInformation`.
    EnableCallbackBlocks = "V21" Stop;
    /// Filter data or a source id was used after the enable callback had returned.
    BorrowedDataKept = "V22" Stop;
    /// The provider acts on a control code that it cannot know.
    ActsOnUnknownCode = "V23" Warning;
    /// The provider takes another session's disable for its own.
    DisablesItself = "V24" Warning;
    /// The provider takes level 0 for "nothing but level 0".
    LevelZeroTakenLiterally = "V25" Warning;
    /// A request to capture state changes the enabled state.
    CaptureChangesState = "V26" Warning;
    /// The provider writes with a handle that `EtwRegister` has not stored yet.
    HandleNotYetStored = "V27" Stop;
    /// The provider follows a chain of filters past its end.
    FilterOverrun = "V28" Stop;
    /// An enable callback runs after `EtwUnregister` has returned: this kernel's own fault.
    CallbackAfterUnregister = "V29" Stop;
    /// Traits whose sizes contradict each other, or whose name is no text. They are refused.
    MalformedTraits = "V30" Warning;
    /// Traits are set a second time.
    TraitsSetTwice = "V31" Warning;
    /// Traits of more than 255 bytes.
    LargeTraits = "V32" Warning;
    /// A trait of type 0, or of one that is Microsoft's to define.
    ReservedTrait = "V33" Warning;
    /// A group trait that is no GUID, or more than one.
    GroupTrait = "V34" Warning;
    /// `EventProviderUseDescriptorType` with anything but one byte, 0 or 1.
    DescriptorTypeSwitch = "V35" Warning;
    /// `EtwSetInformation` with a class that does not exist.
    InformationClass = "V36" Warning;
    /// Data descriptors have types before types mean anything.
    TypeTooEarly = "V37" Warning;
    /// Channel 12 without traits, or channel 11 without an event's description.
    Channel = "V38" Warning;
    /// Data in pageable memory above `APC_LEVEL`.
    PageableData = "V40" Stop;
    /// Data in user space.
    UserSpaceData = "V41" Stop;
    /// More than 128 data descriptors. The event is refused.
    TooManyDescriptors = "V42" Warning;
    /// Data descriptors, or data, that are null.
    NullData = "V43" Stop;
    /// An event that is larger than 64 KB, or than a session's buffer.
    LargeEvent = "V44" Warning;
    /// Reserved fields of a data descriptor are not zero.
    ReservedBytes = "V45" Warning;
    /// A data descriptor's type is none that exists.
    UnknownType = "V46" Warning;
    /// Flags of a write that do not exist.
    UnknownFlags = "V47" Warning;
    /// A write keeps an event from sessions that were never told of.
    UnknownFilterBits = "V48" Warning;
    /// An event's level, keyword, opcode or channel is not the provider's to use.
    ReservedDescriptorValue = "V49" Warning;
    /// A failed write changes what the driver does, or what it writes later.
    FailureChangesDriver = "V50" Warning;
    /// An event is written where page faults are not allowed, without saying so.
    FaultingWrite = "V51" Warning;
    /// An event without an activity id at `DISPATCH_LEVEL` or above.
    ImplicitActivity = "V52" Warning;
    /// An event that describes itself wrongly.
    Description = "V53" Warning;
    /// Data that was freed, or whose stack frame is gone.
    FreedData = "V54" Stop;
    /// Data that nobody wrote, or addresses of kernel memory.
    LeakingData = "V55" Warning;
    /// An activity control code above its IRQL.
    ActivityIrql = "V60" Stop;
    /// `EtwActivityIdControl` with a pointer that is in user space or pageable. A null one is
    /// refused, and noted.
    ActivityPointer = "V61" Stop;
    /// An activity control code that does not exist.
    ActivityCode = "V62" Warning;
    /// The thread's activity id was not restored.
    ActivityNotRestored = "V63" Warning;
    /// The id that `EVENT_ACTIVITY_CTRL_CREATE_SET_ID` returns was taken for the new one.
    OldActivityUsed = "V64" Warning;
    /// An address that cannot be accessed.
    BadAddress Stop;
    /// A routine was called above its highest IRQL.
    IrqlTooHigh Stop;
    /// Pool is still allocated when the driver is unloaded.
    PoolLeak Stop;
    /// A block was freed twice, or was no pool block.
    BadFree Stop;
    /// A handle is of another kind, or names nothing.
    BadHandle Stop;
    /// A request was completed twice.
    RequestCompletedTwice Stop;
    /// A request was never completed.
    RequestNotCompleted Stop;
    /// A request was used as its state does not allow.
    RequestMisused Stop;
    /// A callback returned at another IRQL.
    CallbackIrql Stop;
    /// A callback's address is no driver code.
    BadCallback Stop;
    /// The IRQL was "raised" downwards.
    IrqlNotRaised Stop;
    /// The IRQL was "lowered" upwards, or a lock released that was not held.
    IrqlNotLowered Stop;
    /// A spin lock was acquired by its owner, or threads wait for each other.
    Deadlock Stop;
    /// A routine that the stand-in kernel does not provide.
    NotProvided Stop;
    /// A fault of the stand-in kernel's own.
    Internal Stop;
}

impl Rule {
    /// Returns the rule against calling this routine at too high an IRQL.
    #[must_use]
    pub fn irql_of(routine: &str) -> Self {
        match routine {
            "EtwRegister" => Self::EtwRegisterIrql,
            "EtwUnregister" => Self::EtwUnregisterIrql,
            "EtwSetInformation" => Self::EtwSetInformationIrql,
            _ => Self::IrqlTooHigh,
        }
    }

    /// Returns the rule that a bad pointer to this routine breaks.
    pub(crate) fn pointer_of(routine: &str) -> Self {
        match routine {
            "EtwRegister" => Self::RegisterPointer,
            "EtwActivityIdControl" => Self::ActivityPointer,
            name if name.starts_with("EtwWrite") => Self::UserSpaceData,
            _ => Self::BadAddress,
        }
    }

    pub(crate) const fn bugcheck_code(self) -> u32 {
        match self {
            Self::BadFree => BAD_POOL_CALLER,
            Self::BadHandle
            | Self::RequestCompletedTwice
            | Self::RequestNotCompleted
            | Self::RequestMisused
            | Self::NotProvided => WDF_VIOLATION,
            Self::IrqlNotRaised | Self::IrqlNotLowered => IRQL_NOT_LESS_OR_EQUAL,
            _ => VERIFIER_STOP,
        }
    }

    /// Returns the bugcheck's first parameter: a real verifier's sub-code, where one is
    /// known.
    pub(crate) const fn parameter(self) -> u64 {
        match self {
            Self::ProviderLeftRegistered => 0xDD,
            Self::PoolLeak => 0x62,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Rule, Severity};

    /// The document that messages refer to by a rule's id.
    const REFERENCE: &str = include_str!("../../../../docs/reference/etw-runtime.md");

    #[test]
    fn the_reference_lists_every_numbered_rule_with_its_class() {
        for rule in Rule::ALL {
            let Some(id) = rule.number() else {
                continue;
            };
            let class = match rule.severity() {
                Severity::Stop => "stop",
                Severity::Warning => "warning",
            };
            let anchor = id.to_lowercase();
            let row = format!("\n| <a id=\"{anchor}\"></a>{id} | {class} | ");
            assert_eq!(REFERENCE.matches(&row).count(), 1, "{rule:?}: {row}");
        }
    }
}
