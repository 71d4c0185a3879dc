//! Structures that the kernel's routines pass on or read in part.

/// Declares types that stand for structures in parameters.
macro_rules! opaque {
    ($($name:ident $c_name:literal)*) => {$(
        #[doc = concat!("`", $c_name, "`.")]
        pub enum $name {}

        impl super::abi::Pointee for $name {
            const NAME: &'static str = $c_name;
        }
    )*};
}

opaque! {
    AccessToken "ACCESS_TOKEN"
    Acl "_ACL"
    AnsiString "_STRING"
    BaseMcb "_BASE_MCB"
    BugCheckReasonRecord "_KBUGCHECK_REASON_CALLBACK_RECORD"
    CacheAwareRundownRef "_EX_RUNDOWN_REF_CACHE_AWARE"
    CallbackObject "_CALLBACK_OBJECT"
    ChildAddress "_WDF_CHILD_ADDRESS_DESCRIPTION_HEADER"
    ChildIdentification "_WDF_CHILD_IDENTIFICATION_DESCRIPTION_HEADER"
    DispatcherContext "_DISPATCHER_CONTEXT"
    ExTimer "_EX_TIMER"
    ExceptionRecord "_EXCEPTION_RECORD"
    GenericMapping "_GENERIC_MAPPING"
    GroupAffinity "_GROUP_AFFINITY"
    ImpersonationState "_SE_IMPERSONATION_STATE"
    InterlockedEntry "_SLIST_ENTRY"
    InterlockedList "_SLIST_HEADER"
    InterruptObject "_KINTERRUPT"
    IoDriverCreateContext "_IO_DRIVER_CREATE_CONTEXT"
    IoRemoveLock "_IO_REMOVE_LOCK"
    IoWorkItem "_IO_WORKITEM"
    KernelEvent "_KEVENT"
    LargeMcb "_LARGE_MCB"
    ListEntry "_LIST_ENTRY"
    LookasideEx "_LOOKASIDE_LIST_EX"
    NonPagedLookaside "_NPAGED_LOOKASIDE_LIST"
    ObjectNameInformation "_OBJECT_NAME_INFORMATION"
    ObjectType "_OBJECT_TYPE"
    OsVersionInfo "_OSVERSIONINFOW"
    OsVersionInfoEx "_OSVERSIONINFOEXW"
    PagedLookaside "_PAGED_LOOKASIDE_LIST"
    PartialResourceDescriptor "_CM_PARTIAL_RESOURCE_DESCRIPTOR"
    KernelProcess "_KPROCESS"
    ProcessorNumber "_PROCESSOR_NUMBER"
    PropertyKey "_DEVPROPKEY"
    RunOnce "_RTL_RUN_ONCE"
    RundownRef "_EX_RUNDOWN_REF"
    SecurityDescriptor "_SECURITY_DESCRIPTOR"
    SecurityClientContext "_SECURITY_CLIENT_CONTEXT"
    SecurityQuality "_SECURITY_QUALITY_OF_SERVICE"
    SecuritySubjectContext "_SECURITY_SUBJECT_CONTEXT"
    Sid "_SID"
    SidIdentifierAuthority "_SID_IDENTIFIER_AUTHORITY"
    SingleListEntry "_SINGLE_LIST_ENTRY"
    KernelThread "_KTHREAD"
    ThreadContext "_CONTEXT"
    TimerDeleteParameters "_EXT_DELETE_PARAMETERS"
    TimerSetParameters "_EXT_SET_PARAMETERS_V0"
    TokenGroups "_TOKEN_GROUPS"
    TokenPrivileges "_TOKEN_PRIVILEGES"
    WaitBlock "_KWAIT_BLOCK"
}
