//! The rules that a driver can break.

/// `DRIVER_VERIFIER_DETECTED_VIOLATION`.
const VERIFIER_STOP: u32 = 0xC4;
/// `WDF_VIOLATION`.
const WDF_VIOLATION: u32 = 0x10D;
/// `BAD_POOL_CALLER`.
const BAD_POOL_CALLER: u32 = 0xC2;
/// `KERNEL_SECURITY_CHECK_FAILURE`.
const SECURITY_CHECK_FAILURE: u32 = 0x139;
/// `IRQL_NOT_LESS_OR_EQUAL`.
const IRQL_NOT_LESS_OR_EQUAL: u32 = 0xA;

/// The consequence of a broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The kernel bugchecks, as Windows would or might.
    BugCheck,
    /// The kernel continues and reports a warning (see `Kernel::warnings`).
    Warning,
    /// The kernel continues and reports a note about style (see `Kernel::notes`).
    Note,
}

macro_rules! rules {
    ($($(#[doc = $doc:literal])* $name:ident $(= $number:literal)? $severity:ident;)*) => {
        /// A rule that a driver broke.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Rule {
            $($(#[doc = $doc])* $name,)*
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

            /// Describes the violation, in a sentence or a phrase.
            #[must_use]
            pub const fn description(self) -> &'static str {
                match self {
                    $(Self::$name => concat!($($doc),*).trim_ascii(),)*
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
    EtwRegisterIrql = "V01" BugCheck;
    /// `EtwUnregister` above `PASSIVE_LEVEL`.
    EtwUnregisterIrql = "V02" BugCheck;
    /// `EtwSetInformation` above `PASSIVE_LEVEL`.
    EtwSetInformationIrql = "V03" BugCheck;
    /// A provider is still registered when its driver is unloaded.
    ProviderLeftRegistered = "V04" BugCheck;
    /// A registration handle is used after `EtwUnregister`.
    HandleReleased = "V05" BugCheck;
    /// `EtwUnregister` from the registration's own enable callback.
    UnregisterInCallback = "V06" BugCheck;
    /// `EtwRegister` overwrites a handle that was not released.
    HandleOverwritten = "V07" Warning;
    /// `EtwRegister` with a pointer into user space. A null pointer fails the call and causes a
    /// warning.
    RegisterPointer = "V08" BugCheck;
    /// The enable callback is in a discarded section, or its context is in freed memory.
    DiscardedCode = "V09" BugCheck;
    /// A provider is registered and unregistered repeatedly.
    RegistrationChurn = "V10" Warning;
    /// The value that a failed `EtwRegister` left in the handle variable is used as a handle.
    HandleOfFailure = "V11" Warning;
    /// A registration handle that `EtwRegister` never returned.
    HandleNeverIssued = "V12" BugCheck;
    /// The enable callback returns at a different IRQL.
    EnableCallbackIrql = "V20" BugCheck;
    /// The enable callback waits, or acquires a lock that is held during a call of
    /// `EtwUnregister` or `EtwSetInformation`.
    EnableCallbackBlocks = "V21" BugCheck;
    /// Filter data or a source id is used after the enable callback has returned.
    BorrowedDataKept = "V22" BugCheck;
    /// The provider acts on an undefined control code.
    ActsOnUnknownCode = "V23" Warning;
    /// The provider treats one session's disable as the disable of all sessions.
    DisablesItself = "V24" Warning;
    /// The provider treats level 0 as "only level 0" instead of "every level".
    LevelZeroTakenLiterally = "V25" Warning;
    /// A request to capture state changes the enabled state.
    CaptureChangesState = "V26" Warning;
    /// The provider writes with a handle that `EtwRegister` has not stored yet.
    HandleNotYetStored = "V27" BugCheck;
    /// The provider follows a chain of filters past its end.
    FilterOverrun = "V28" BugCheck;
    /// An enable callback runs after `EtwUnregister` has returned, which is a defect of the stand-in
    /// kernel.
    CallbackAfterUnregister = "V29" BugCheck;
    /// Traits whose sizes are inconsistent, or whose name is not UTF-8. The call fails.
    MalformedTraits = "V30" Warning;
    /// Traits are set a second time.
    TraitsSetTwice = "V31" Warning;
    /// Traits of more than 255 bytes.
    LargeTraits = "V32" Warning;
    /// A trait of type 0, or of a type that is reserved for Microsoft.
    ReservedTrait = "V33" Warning;
    /// A group trait that is not a GUID, or a second group trait.
    GroupTrait = "V34" Warning;
    /// `EventProviderUseDescriptorType` with a value other than one byte of 0 or 1.
    DescriptorTypeSwitch = "V35" Warning;
    /// `EtwSetInformation` with a class that does not exist.
    InformationClass = "V36" Warning;
    /// `EtwSetInformation` with a length of 0 and an invalid pointer instead of a null pointer.
    EmptyInformation = "V39" Warning;
    /// A data descriptor has a type before traits have been set that give types a meaning.
    TypeTooEarly = "V37" Warning;
    /// Channel 12 without traits, or channel 11 without event metadata.
    Channel = "V38" Warning;
    /// Data in pageable memory above `APC_LEVEL`.
    PageableData = "V40" BugCheck;
    /// Data in user space.
    UserSpaceData = "V41" BugCheck;
    /// More than 128 data descriptors. The write fails.
    TooManyDescriptors = "V42" Warning;
    /// A null pointer for data descriptors or data.
    NullData = "V43" BugCheck;
    /// An event larger than 64 KB, or larger than a session's buffer.
    LargeEvent = "V44" Warning;
    /// Nonzero reserved fields in a data descriptor.
    ReservedBytes = "V45" Warning;
    /// A data descriptor of an unknown type.
    UnknownType = "V46" Warning;
    /// Unknown flags of a write.
    UnknownFlags = "V47" Warning;
    /// A write whose filter bits name sessions that no notification has announced.
    UnknownFilterBits = "V48" Warning;
    /// An event's level, keyword, opcode or channel is reserved.
    ReservedDescriptorValue = "V49" Warning;
    /// A manifest-based event without a keyword.
    NoKeyword = "V56" Note;
    /// A manifest-based event of level 0.
    NoLevel = "V57" Note;
    /// A WPP message with unknown or obsolete flags, or without the GUID of its format.
    MessageFlags = "V58" Warning;
    /// A failed write changes the driver's behavior or its later events.
    FailureChangesDriver = "V50" Warning;
    /// An event is written where page faults are not allowed, without `EVENT_WRITE_FLAG_NO_FAULTING`.
    FaultingWrite = "V51" Warning;
    /// A manifest-based event without an activity id at `DISPATCH_LEVEL` or above.
    ImplicitActivity = "V52" Note;
    /// Event metadata that is malformed or does not match the event data.
    Description = "V53" Warning;
    /// Data in freed memory or in a stack frame that no longer exists.
    FreedData = "V54" BugCheck;
    /// Uninitialized data or kernel addresses in an event.
    LeakingData = "V55" Warning;
    /// An activity control code above its highest IRQL.
    ActivityIrql = "V60" BugCheck;
    /// `EtwActivityIdControl` with a pointer into user space or pageable memory. A null pointer
    /// fails the call and causes a warning.
    ActivityPointer = "V61" BugCheck;
    /// An unknown activity control code.
    ActivityCode = "V62" Warning;
    /// The thread's activity id was not restored.
    ActivityNotRestored = "V63" Warning;
    /// The id that `EVENT_ACTIVITY_CTRL_CREATE_SET_ID` returns is used as the new id.
    OldActivityUsed = "V64" Warning;
    /// An address that cannot be accessed.
    BadAddress BugCheck;
    /// A routine was called above its highest IRQL.
    IrqlTooHigh BugCheck;
    /// A routine was called above the limit of its annotation or of its documentation, and the other
    /// allows the call.
    IrqlSourcesDiffer Note;
    /// Pool is still allocated when the driver is unloaded.
    PoolLeak BugCheck;
    /// A block was freed twice, or the address is not a pool block.
    BadFree BugCheck;
    /// A handle is of the wrong kind, or is not a handle.
    BadHandle BugCheck;
    /// A handle is used in a process in which it is not valid: it was opened in another process without
    /// `OBJ_KERNEL_HANDLE`.
    HandleOfOtherProcess Warning;
    /// A null handle is closed.
    NullHandle Warning;
    /// A request was completed twice.
    RequestCompletedTwice BugCheck;
    /// A request was never completed.
    RequestNotCompleted BugCheck;
    /// A request was used in a way that its state does not allow.
    RequestMisused BugCheck;
    /// A framework routine is called in a way that the routine ignores or rejects, and that the
    /// framework's verifier reports.
    FrameworkMisused Warning;
    /// A callback returned at a different IRQL.
    CallbackIrql BugCheck;
    /// A callback's address is not driver code.
    BadCallback BugCheck;
    /// A routine that raises the IRQL was called to lower it.
    IrqlNotRaised BugCheck;
    /// A routine that lowers the IRQL was called to raise it, or a lock that was not held was
    /// released.
    IrqlNotLowered BugCheck;
    /// A kernel object, such as an event or a lock, was used before it was initialized, or in a way
    /// that its state does not allow.
    ObjectMisused BugCheck;
    /// The state of an event that was not initialized is read.
    UninitializedEvent Warning;
    /// `RtlQueryRegistryValues` stores a value directly without a type check, from a key that
    /// others than the system can write.
    RegistryTypeUnchecked BugCheck;
    /// A driver is unloaded while its thread runs or its timer, DPC or work item is queued, or memory
    /// that contains a queued timer or DPC is freed.
    LeftQueued BugCheck;
    /// The direction flag is set at a call to the kernel, or when a driver routine returns.
    DirectionFlag Warning;
    /// A driver reads the control register CR0 or CR4.
    ControlRegister Warning;
    /// A driver routine changes the control bits of MXCSR, or the x87 control word, and does not
    /// restore them.
    FloatControl Warning;
    /// A spin lock was acquired by its owner, or threads wait for each other.
    Deadlock BugCheck;
    /// The stand-in kernel does not provide a routine, a field of the processor's block or of the
    /// shared user data page, or an open that ends in a later step.
    NotProvided BugCheck;
    /// A defect of the stand-in kernel.
    Internal BugCheck;
}

impl Rule {
    /// Returns the rule that a call to this routine at too high an IRQL breaks.
    #[must_use]
    pub fn irql_of(routine: &str) -> Self {
        match routine {
            "EtwRegister" | "EtwRegisterClassicProvider" => Self::EtwRegisterIrql,
            "EtwUnregister" => Self::EtwUnregisterIrql,
            "EtwSetInformation" => Self::EtwSetInformationIrql,
            _ => Self::IrqlTooHigh,
        }
    }

    /// Returns the rule that a bad pointer in a call to this routine breaks.
    pub(crate) fn pointer_of(routine: &str) -> Self {
        match routine {
            "EtwRegister" | "EtwRegisterClassicProvider" => Self::RegisterPointer,
            "EtwActivityIdControl" => Self::ActivityPointer,
            "WmiTraceMessage" | "WmiTraceMessageVa" | "IoWMIWriteEvent" => Self::UserSpaceData,
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
            Self::RegistryTypeUnchecked => SECURITY_CHECK_FAILURE,
            _ => VERIFIER_STOP,
        }
    }

    /// Returns the bugcheck's first parameter, if known: the sub-code of Driver Verifier, of the framework
    /// or of a failed security check.
    pub(crate) const fn parameter(self) -> u64 {
        match self {
            Self::ProviderLeftRegistered => 0xDD,
            Self::PoolLeak => 0x62,
            // WDF_INVALID_HANDLE
            Self::BadHandle => 5,
            // FAST_FAIL_UNSAFE_REGISTRY_ACCESS
            Self::RegistryTypeUnchecked => 9,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Rule, Severity};

    /// The document that explains the rules whose ids appear in messages.
    const REFERENCE: &str = include_str!("../../../docs/reference/etw-runtime.md");

    #[test]
    fn the_reference_lists_every_numbered_rule_with_its_class() {
        for rule in Rule::ALL {
            let Some(id) = rule.number() else {
                continue;
            };
            let class = match rule.severity() {
                Severity::BugCheck => "stop",
                Severity::Warning => "warning",
                Severity::Note => "note",
            };
            let anchor = id.to_lowercase();
            let row = format!("\n| <a id=\"{anchor}\"></a>{id} | {class} | ");
            assert_eq!(REFERENCE.matches(&row).count(), 1, "{rule:?}: {row}");
        }
    }
}
