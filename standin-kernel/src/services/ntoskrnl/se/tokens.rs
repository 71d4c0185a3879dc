//! The tokens of processes, and privilege checks.
//!
//! In the stand-in kernel, no thread impersonates a client, so all tokens are primary tokens. A
//! test's process has the privileges that all users have: to traverse folders, to impersonate, and
//! to create global objects. The system has all privileges.

use super::{
    access::{groups_of, user_of},
    capture::store_copy,
};
use crate::{
    execution::{
        identity::Identity,
        kinds::NtObject,
        routine::{At, Handle, Memory, Out, routine},
    },
    ground::{
        NtResult, NtStatus,
        opaque::{AccessToken, KernelProcess, KernelThread},
    },
    services::{
        managers::tokens,
        ntoskrnl::{
            context::{Context, Entries},
            ke::thread_objects,
            ob::handles::{self, Opening, Target},
            well_known::identifier,
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("PsReferencePrimaryToken", reference_primary),
    routine("PsDereferencePrimaryToken", dereference),
    routine("PsReferenceImpersonationToken", reference_impersonation),
    routine("PsDereferenceImpersonationToken", dereference),
    routine("SeQueryInformationToken", query),
    routine("SeQueryAuthenticationIdToken", query_authentication),
    routine("SeQuerySessionIdToken", query_session),
    routine("SeSinglePrivilegeCheck", has_privilege),
    routine("SeTokenIsAdmin", is_admin),
    routine("SeTokenIsRestricted", is_restricted),
    routine("SeTokenType", type_of),
    routine("ZwOpenProcessTokenEx", open_of_process),
    routine("ZwOpenThreadTokenEx", open_of_thread),
    routine("ZwQueryInformationToken", query_by_handle),
];

pub const TYPE: &str = "SeTokenObjectType";

/// `STATUS_NO_TOKEN`: the thread does not impersonate a client.
const NO_TOKEN: NtStatus = NtStatus::from_bits(0xC000_007C);

/// `TokenPrimary`.
const PRIMARY: i32 = 1;

/// The classes of information (`TOKEN_INFORMATION_CLASS`).
mod class {
    pub const USER: i32 = 1;
    pub const GROUPS: i32 = 2;
    pub const PRIVILEGES: i32 = 3;
    pub const OWNER: i32 = 4;
    pub const PRIMARY_GROUP: i32 = 5;
    pub const TYPE: i32 = 8;
    pub const STATISTICS: i32 = 10;
    pub const SESSION: i32 = 12;
    pub const ELEVATION_TYPE: i32 = 18;
    pub const ELEVATION: i32 = 20;
    pub const HAS_RESTRICTIONS: i32 = 21;
    pub const VIRTUALIZATION_ALLOWED: i32 = 23;
    pub const VIRTUALIZATION_ENABLED: i32 = 24;
    pub const INTEGRITY: i32 = 25;
    pub const UI_ACCESS: i32 = 26;
    pub const IS_APP_CONTAINER: i32 = 29;
    pub const PRIVATE_NAMESPACE: i32 = 42;
}

/// Returns the id of a token's process. Bugchecks if no token is at the address.
fn process_of(context: &Context, token: u64) -> u32 {
    let process = tokens::process_of(token);
    process.unwrap_or_else(|| context.stop_for_wrong(token, "an access token"))
}

const fn is_system(process: u32) -> bool {
    process == Identity::SYSTEM.process
}

/// Returns the id of a process. Bugchecks if no process object is at the address.
fn id_of(context: &Context, process: u64) -> u32 {
    let known = thread_objects::process_of(context, process).map(|(id, _)| id);
    known.unwrap_or_else(|| context.stop_for_wrong(process, "a process object"))
}

/// Returns the session of a process: 0 for the system process, and the console session for other
/// processes.
const fn session_of(process: u32) -> u32 {
    if is_system(process) { 0 } else { 1 }
}

fn reference_primary(context: &Context, process: At<KernelProcess>) -> At<AccessToken> {
    let token = tokens::of_process(id_of(context, process.0));
    handles::reference(context, At::new(token));
    At::new(token)
}

/// Releases a reference to a token. Does nothing for a null address.
fn dereference(context: &Context, token: At<AccessToken>) {
    if !token.is_null() {
        process_of(context, token.0);
        handles::dereference(context, token.cast());
    }
}

fn reference_impersonation(
    context: &Context,
    thread: At<KernelThread>,
    _copy: At<u8>,
    _effective: At<u8>,
    _level: At<i32>,
) -> At<AccessToken> {
    At::new(thread_objects::with(context, thread.0, |_| 0))
}

/// Returns the id of a process's logon session, which is the system's or the user's.
const fn authentication(process: u32) -> u64 {
    const SYSTEM_LUID: u64 = 0x3E7;
    const USER_LUID: u64 = 0x1_2345;
    if is_system(process) { SYSTEM_LUID } else { USER_LUID }
}

/// Returns the privileges of a process, and whether each is enabled.
fn privileges(process: u32) -> Vec<(u64, bool)> {
    /// `SeChangeNotifyPrivilege`, `SeImpersonatePrivilege` and `SeCreateGlobalPrivilege`.
    const ENABLED: [u64; 3] = [23, 29, 30];
    /// The privileges for shutdown, undocking, working sets and the time zone.
    const DISABLED: [u64; 4] = [19, 25, 33, 34];
    if is_system(process) {
        return (2..=36).map(|privilege| (privilege, true)).collect();
    }
    let enabled = ENABLED.map(|privilege| (privilege, true));
    enabled.into_iter().chain(DISABLED.map(|privilege| (privilege, false))).collect()
}

/// Returns whether the caller has the privilege with this number.
fn has_privilege(context: &Context, privilege: u64, mode: i8) -> bool {
    mode == 0 || privileges(context.identity().process).contains(&(privilege, true))
}

/// The relative identifier of the integrity level: `SECURITY_MANDATORY_SYSTEM_RID` or
/// `SECURITY_MANDATORY_MEDIUM_RID`.
const fn integrity(process: u32) -> u32 {
    if is_system(process) { 0x4000 } else { 0x2000 }
}

/// Returns the information of a class whose information is a number.
fn number(process: u32, class: i32) -> Option<u32> {
    /// `TokenElevationTypeDefault`.
    const DEFAULT: u32 = 1;
    match class {
        class::TYPE => Some(PRIMARY.unsigned_abs()),
        class::SESSION => Some(session_of(process)),
        class::ELEVATION_TYPE => Some(DEFAULT),
        class::ELEVATION => Some(is_system(process).into()),
        class::INTEGRITY => Some(integrity(process)),
        class::HAS_RESTRICTIONS
        | class::VIRTUALIZATION_ALLOWED
        | class::VIRTUALIZATION_ENABLED
        | class::UI_ACCESS
        | class::IS_APP_CONTAINER
        | class::PRIVATE_NAMESPACE => Some(0),
        _ => None,
    }
}

/// Returns a structure that begins with `fixed` and ends with security identifiers. The pointers to
/// the identifiers are stored at the offsets in `all`, for a structure at the address `at`.
fn with_identifiers(at: u64, fixed: Vec<u8>, all: &[(usize, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = fixed;
    for (offset, identifier) in all {
        let pointer = at.wrapping_add(bytes.len() as u64).to_le_bytes();
        if let Some(place) = bytes.get_mut(*offset..*offset + pointer.len()) {
            place.copy_from_slice(&pointer);
        }
        bytes.extend(identifier);
    }
    bytes
}

/// Returns an array of `SID_AND_ATTRIBUTES`, preceded by its count if `count` is not `None`.
fn sids_and_attributes(at: u64, count: Option<u32>, all: Vec<(Vec<u8>, u32)>) -> Vec<u8> {
    const ENTRY: usize = 16;
    let mut fixed: Vec<u8> =
        count.map_or_else(Vec::new, |count| u64::from(count).to_le_bytes().into());
    let start = fixed.len();
    for (_, attributes) in &all {
        fixed.extend([0; 8]);
        fixed.extend(u64::from(*attributes).to_le_bytes());
    }
    let places = (0..).map(|index| start + index * ENTRY);
    let all: Vec<_> = places.zip(all.into_iter().map(|(identifier, _)| identifier)).collect();
    with_identifiers(at, fixed, &all)
}

/// Returns the information of a class, for a structure at the address `at`.
fn describe(process: u32, class: i32, at: u64) -> NtResult<Vec<u8>> {
    /// `SE_GROUP_INTEGRITY` and `SE_GROUP_INTEGRITY_ENABLED`.
    const LABEL: u32 = 0x60;
    /// The attributes of a privilege that is enabled now and by default.
    const ENABLED: u32 = 3;
    let groups = groups_of(process);
    let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    Ok(match class {
        class::USER => sids_and_attributes(at, None, vec![(user_of(process), 0)]),
        class::INTEGRITY => {
            sids_and_attributes(at, None, vec![(identifier(16, &[integrity(process)]), LABEL)])
        }
        class::GROUPS => sids_and_attributes(at, Some(count(groups.len())), groups),
        class::OWNER => {
            let admins = groups.into_iter().next().filter(|_| is_system(process));
            let owner = admins.map_or_else(|| user_of(process), |(admins, _)| admins);
            with_identifiers(at, vec![0; 8], &[(0, owner)])
        }
        class::PRIMARY_GROUP => {
            // The group is the domain users or the system.
            let domain = || identifier(5, &[21, 1, 2, 3, 513]);
            let group = if is_system(process) { user_of(process) } else { domain() };
            with_identifiers(at, vec![0; 8], &[(0, group)])
        }
        class::PRIVILEGES => {
            let all = privileges(process);
            let mut bytes = count(all.len()).to_le_bytes().to_vec();
            for (privilege, is_enabled) in all {
                bytes.extend(privilege.to_le_bytes());
                bytes.extend(if is_enabled { ENABLED } else { 0 }.to_le_bytes());
            }
            bytes
        }
        class::STATISTICS => {
            let token = u64::from(process) << 4;
            let counts = [0, 0, count(groups.len()), count(privileges(process).len())];
            let words = [token, authentication(process), i64::MAX.unsigned_abs()];
            let mut bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
            bytes.extend([PRIMARY.unsigned_abs(), 0].into_iter().flat_map(u32::to_le_bytes));
            bytes.extend(counts.into_iter().flat_map(u32::to_le_bytes));
            bytes.extend(token.to_le_bytes());
            bytes
        }
        _ => {
            let number = number(process, class).ok_or(NtStatus::INVALID_INFO_CLASS)?;
            number.to_le_bytes().to_vec()
        }
    })
}

/// Returns information about a token: a number, or the address of a block of paged pool that the caller
/// must free.
fn query(
    context: &Context,
    token: At<AccessToken>,
    class: i32,
    token_information: At<u64>,
) -> NtResult {
    /// The classes whose information is returned in a block although it is a number.
    const IN_BLOCKS: [i32; 3] = [class::TYPE, class::ELEVATION_TYPE, class::ELEVATION];
    /// Classes from `TokenDefaultDacl` to `TokenAppContainerSid` that Windows provides.
    const UNPROVIDED: [i32; 10] = [6, 7, 11, 13, 17, 19, 27, 28, 30, 31];
    if UNPROVIDED.contains(&class) {
        context.stop_for_unprovided(&format!("for the TOKEN_INFORMATION_CLASS {class}"));
    }
    let process = process_of(context, token.0);
    if let Some(number) = number(process, class).filter(|_| !IN_BLOCKS.contains(&class)) {
        At::<u32>::new(token_information.0).write(context, number);
        return Ok(());
    }
    store_copy(context, token_information, &describe(process, class, 0)?)?;
    // The pointers refer to the block, whose address is now known.
    let block = token_information.read(context);
    context.write_bytes(block, &describe(process, class, block)?);
    Ok(())
}

fn query_by_handle(
    context: &Context,
    handle: Handle<NtObject>,
    class: i32,
    token_information: Memory,
    length: u32,
    needed: At<u32>,
) -> NtResult {
    let target = handles::target_of(context, handle.0)?;
    if target.type_name != TYPE {
        return Err(NtStatus::OBJECT_TYPE_MISMATCH);
    }
    let bytes = describe(process_of(context, target.object), class, token_information.0)?;
    needed.write(context, u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    if (length as usize) < bytes.len() {
        return Err(NtStatus::BUFFER_TOO_SMALL);
    }
    context.write_bytes(token_information.0, &bytes);
    Ok(())
}

fn query_authentication(
    context: &Context,
    token: At<AccessToken>,
    authentication_id: At<u64>,
) -> NtStatus {
    authentication_id.write(context, authentication(process_of(context, token.0)));
    NtStatus::SUCCESS
}

fn query_session(context: &Context, token: At<AccessToken>, session_id: At<u32>) -> NtStatus {
    session_id.write(context, session_of(process_of(context, token.0)));
    NtStatus::SUCCESS
}

/// Returns whether a token's process is an administrator.
fn is_admin(context: &Context, token: At<AccessToken>) -> bool {
    is_system(process_of(context, token.0))
}

fn is_restricted(context: &Context, token: At<AccessToken>) -> bool {
    process_of(context, token.0);
    false
}

fn type_of(context: &Context, token: At<AccessToken>) -> i32 {
    process_of(context, token.0);
    PRIMARY
}

/// Opens a handle to the token of a process.
fn open_of_process(
    context: &Context,
    process: Handle<NtObject>,
    access: u32,
    attributes: u32,
    handle: Out<NtObject>,
) -> NtResult {
    handles::must_be_process(context, process.0)?;
    let process = handles::target_of(context, process.0)?;
    let object = tokens::of_process(id_of(context, process.object));
    let target = Target { type_name: TYPE, object, close: |_, _| {}, has_reference: false };
    handle.write(context, handles::open(context, target, Opening { attributes, access }));
    Ok(())
}

fn open_of_thread(
    context: &Context,
    thread: Handle<NtObject>,
    _access: u32,
    _as_self: bool,
    _attributes: u32,
    _handle: Out<NtObject>,
) -> NtResult {
    let target = handles::target_of(context, thread.0)?;
    let is_thread = target.type_name == "PsThreadType";
    Err(if is_thread { NO_TOKEN } else { NtStatus::OBJECT_TYPE_MISMATCH })
}
