//! Tokens, and privilege checks.

use super::{
    capture::store_copy,
    impersonation,
    token_objects::{
        self, BAD_IMPERSONATION_LEVEL, IMPERSONATES, IMPERSONATION, MANDATORY, PRIMARY, TYPE, Token,
    },
};
use crate::{
    execution::{
        identity::Identity,
        kinds::NtObject,
        routine::{At, Handle, Memory, Out, low_half, routine},
    },
    ground::{
        NtResult, NtStatus,
        abi::ObjectAttributesNt,
        opaque::{AccessToken, KernelProcess, TokenGroups, TokenPrivileges},
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
    routine("PsDereferenceImpersonationToken", dereference),
    routine("SeQueryInformationToken", query),
    routine("SeQueryAuthenticationIdToken", query_authentication),
    routine("SeQuerySessionIdToken", query_session),
    routine("SeFilterToken", filter),
    routine("SeSinglePrivilegeCheck", has_privilege),
    routine("SeTokenIsAdmin", is_admin),
    routine("SeTokenIsRestricted", is_restricted),
    routine("SeTokenIsWriteRestricted", is_write_restricted),
    routine("SeTokenType", type_of),
    routine("ZwDuplicateToken", duplicate),
    routine("ZwOpenProcessTokenEx", open_of_process),
    routine("ZwOpenThreadTokenEx", open_of_thread),
    routine("ZwQueryInformationToken", query_by_handle),
];

/// `STATUS_NO_TOKEN`: the thread does not impersonate a client.
const NO_TOKEN: NtStatus = NtStatus::from_bits(0xC000_007C);
/// `STATUS_CANT_OPEN_ANONYMOUS`.
const CANT_OPEN_ANONYMOUS: NtStatus = NtStatus::from_bits(0xC000_00A6);

/// The classes of information (`TOKEN_INFORMATION_CLASS`).
mod class {
    pub const USER: i32 = 1;
    pub const GROUPS: i32 = 2;
    pub const PRIVILEGES: i32 = 3;
    pub const OWNER: i32 = 4;
    pub const PRIMARY_GROUP: i32 = 5;
    pub const TYPE: i32 = 8;
    pub const IMPERSONATION_LEVEL: i32 = 9;
    pub const STATISTICS: i32 = 10;
    pub const RESTRICTED_SIDS: i32 = 11;
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
        token_objects::at(context, token.0);
        handles::dereference(context, token.cast());
    }
}

/// The ids of the system's and the user's logon sessions.
pub const SYSTEM_LUID: u64 = 0x3E7;
pub const USER_LUID: u64 = 0x1_2345;

/// Returns the id of a process's logon session, which is the system's or the user's.
const fn authentication(process: u32) -> u64 {
    if is_system(process) { SYSTEM_LUID } else { USER_LUID }
}

/// Returns whether the caller has the privilege with this number.
fn has_privilege(context: &Context, privilege: u64, mode: i8) -> bool {
    if mode == 0 {
        return true;
    }
    let Some(client) = impersonation::current(context) else {
        let token = tokens::of_process(context.identity().process);
        return token_objects::at(context, token).has(privilege);
    };
    // A client that the thread can only identify has no privileges here.
    client.level >= IMPERSONATES && token_objects::at(context, client.token).has(privilege)
}

/// The relative identifier of the integrity level: `SECURITY_MANDATORY_SYSTEM_RID` or
/// `SECURITY_MANDATORY_MEDIUM_RID`.
const fn integrity(process: u32) -> u32 {
    if is_system(process) { 0x4000 } else { 0x2000 }
}

/// Returns the information of a class whose information is a number.
fn number(token: &Token, class: i32) -> Option<u32> {
    /// `TokenElevationTypeDefault`.
    const DEFAULT: u32 = 1;
    let process = token.process;
    match class {
        class::TYPE => Some(token.kind.unsigned_abs()),
        class::HAS_RESTRICTIONS => Some(token.is_filtered.into()),
        class::SESSION => Some(session_of(process)),
        class::ELEVATION_TYPE => Some(DEFAULT),
        class::ELEVATION => Some(is_system(process).into()),
        class::INTEGRITY => Some(integrity(process)),
        class::VIRTUALIZATION_ALLOWED
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
fn describe(token: &Token, class: i32, at: u64) -> NtResult<Vec<u8>> {
    /// `SE_GROUP_INTEGRITY` and `SE_GROUP_INTEGRITY_ENABLED`.
    const LABEL: u32 = 0x60;
    /// The attributes of a privilege that is enabled now and by default.
    const ENABLED: u32 = 3;
    let process = token.process;
    let groups = token.groups.clone();
    let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    Ok(match class {
        class::USER => sids_and_attributes(at, None, vec![(token.user(), token.user_attributes)]),
        class::INTEGRITY => {
            sids_and_attributes(at, None, vec![(identifier(16, &[integrity(process)]), LABEL)])
        }
        class::GROUPS => sids_and_attributes(at, Some(count(groups.len())), groups),
        class::RESTRICTED_SIDS => {
            let restricted = token.restricted.clone().unwrap_or_default();
            sids_and_attributes(at, Some(count(restricted.len())), restricted)
        }
        class::IMPERSONATION_LEVEL if token.kind == PRIMARY => {
            return Err(NtStatus::INVALID_PARAMETER);
        }
        class::IMPERSONATION_LEVEL => token.level.to_le_bytes().to_vec(),
        class::OWNER => {
            let admins = groups.into_iter().next().filter(|_| is_system(process));
            let owner = admins.map_or_else(|| token.user(), |(admins, _)| admins);
            with_identifiers(at, vec![0; 8], &[(0, owner)])
        }
        class::PRIMARY_GROUP => {
            // The group is the domain users or the system.
            let domain = || identifier(5, &[21, 1, 2, 3, 513]);
            let group = if is_system(process) { token.user() } else { domain() };
            with_identifiers(at, vec![0; 8], &[(0, group)])
        }
        class::PRIVILEGES => {
            let all = &token.privileges;
            let mut bytes = count(all.len()).to_le_bytes().to_vec();
            for (privilege, is_enabled) in all {
                bytes.extend(privilege.to_le_bytes());
                bytes.extend(if *is_enabled { ENABLED } else { 0 }.to_le_bytes());
            }
            bytes
        }
        class::STATISTICS => {
            let id = u64::from(process) << 4;
            let counts = [0, 0, count(groups.len()), count(token.privileges.len())];
            let words = [id, authentication(process), i64::MAX.unsigned_abs()];
            let mut bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
            let level = if token.kind == PRIMARY { 0 } else { token.level };
            bytes.extend([token.kind, level].into_iter().flat_map(i32::to_le_bytes));
            bytes.extend(counts.into_iter().flat_map(u32::to_le_bytes));
            bytes.extend(id.to_le_bytes());
            bytes
        }
        _ => {
            let number = number(token, class).ok_or(NtStatus::INVALID_INFO_CLASS)?;
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
    const UNPROVIDED: [i32; 9] = [6, 7, 13, 17, 19, 27, 28, 30, 31];
    if UNPROVIDED.contains(&class) {
        context.stop_for_unprovided(&format!("for the TOKEN_INFORMATION_CLASS {class}"));
    }
    let token = token_objects::at(context, token.0);
    if let Some(number) = number(&token, class).filter(|_| !IN_BLOCKS.contains(&class)) {
        At::<u32>::new(token_information.0).write(context, number);
        return Ok(());
    }
    store_copy(context, token_information, &describe(&token, class, 0)?)?;
    // The pointers refer to the block, whose address is now known.
    let block = token_information.read(context);
    context.write_bytes(block, &describe(&token, class, block)?);
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
    let token = token_objects::at(context, token_of(context, handle)?);
    let bytes = describe(&token, class, token_information.0)?;
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
    let process = token_objects::at(context, token.0).process;
    authentication_id.write(context, authentication(process));
    NtStatus::SUCCESS
}

fn query_session(context: &Context, token: At<AccessToken>, session_id: At<u32>) -> NtStatus {
    session_id.write(context, session_of(token_objects::at(context, token.0).process));
    NtStatus::SUCCESS
}

fn is_admin(context: &Context, token: At<AccessToken>) -> bool {
    token_objects::at(context, token.0).is_admin()
}

fn is_restricted(context: &Context, token: At<AccessToken>) -> bool {
    token_objects::at(context, token.0).restricted.is_some()
}

/// Returns whether restricting identifiers limit only the token's access for writing. No token here is of
/// that kind.
fn is_write_restricted(context: &Context, token: At<AccessToken>) -> bool {
    token_objects::at(context, token.0);
    false
}

fn type_of(context: &Context, token: At<AccessToken>) -> i32 {
    token_objects::at(context, token.0).kind
}

/// Returns the token of a handle.
fn token_of(context: &Context, handle: Handle<NtObject>) -> NtResult<u64> {
    let target = handles::target_of(context, handle.0)?;
    if target.type_name == TYPE { Ok(target.object) } else { Err(NtStatus::OBJECT_TYPE_MISMATCH) }
}

/// Reads the security identifiers of a `TOKEN_GROUPS`, with their attributes.
fn read_groups(context: &Context, groups: At<TokenGroups>) -> Vec<(Vec<u8>, u32)> {
    const FIRST: u64 = 8;
    const ENTRY: u64 = 16;
    if groups.is_null() {
        return Vec::new();
    }
    let count = u64::from(context.read::<u32>(groups.0));
    let entry = |index: u64| {
        let at = groups.0.wrapping_add(FIRST + index * ENTRY);
        let [sid, attributes]: [u64; 2] = context.read(at);
        let count: u8 = context.read(sid.wrapping_add(1));
        let bytes = context.bytes(sid, 8 + 4 * u64::from(count));
        (bytes, low_half(attributes))
    };
    (0..count).map(entry).collect()
}

/// Makes a token from another one, without some of its privileges, with some identifiers that can only deny
/// access, and with identifiers that restrict it.
fn filter(
    context: &Context,
    token: At<AccessToken>,
    flags: u32,
    disabled: At<TokenGroups>,
    deleted: At<TokenPrivileges>,
    restricted: At<TokenGroups>,
    filtered: At<u64>,
) -> NtResult {
    /// `DISABLE_MAX_PRIVILEGE`, `SANDBOX_INERT`, `LUA_TOKEN` and `WRITE_RESTRICTED`.
    const DISABLE_MAX_PRIVILEGE: u32 = 1;
    const SANDBOX_INERT: u32 = 2;
    const PROVIDED: u32 = DISABLE_MAX_PRIVILEGE | SANDBOX_INERT;
    const ALL: u32 = 0xF;
    /// `SeChangeNotifyPrivilege`, which every token keeps.
    const CHANGE_NOTIFY: u64 = 23;
    const ENTRY: u64 = 12;
    if flags & !ALL != 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    if flags & !PROVIDED != 0 {
        context.stop_for_unprovided("with LUA_TOKEN or WRITE_RESTRICTED");
    }
    let mut new = token_objects::at(context, token.0);
    let restricting = read_groups(context, restricted);
    if restricting.iter().any(|(_, attributes)| *attributes != 0) {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    // The attributes of these do not matter.
    for (identifier, _) in read_groups(context, disabled) {
        new.deny_only(&identifier);
    }
    if flags & DISABLE_MAX_PRIVILEGE != 0 {
        new.privileges.retain(|(privilege, _)| *privilege == CHANGE_NOTIFY);
    } else if !deleted.is_null() {
        let count = u64::from(context.read::<u32>(deleted.0));
        let all: Vec<u64> = (0..count)
            .map(|index| context.read(deleted.0.wrapping_add(4 + index * ENTRY)))
            .collect();
        new.privileges.retain(|(privilege, _)| !all.contains(privilege));
    }
    if !restricted.is_null() {
        // Only what restricts the existing token too can restrict further.
        let is_left = |one: &Vec<u8>| {
            let existing = new.restricted.as_ref();
            existing.is_none_or(|existing| existing.iter().any(|(known, _)| known == one))
        };
        let left = restricting.into_iter().filter(|(one, _)| is_left(one));
        new.restricted = Some(left.map(|(one, _)| (one, MANDATORY)).collect());
    }
    new.is_filtered = true;
    filtered.write(context, token_objects::add(context, new));
    Ok(())
}

/// Duplicates a token as a primary token or as one for impersonation, with the level of the object
/// attributes' quality of service.
fn duplicate(
    context: &Context,
    existing: Handle<NtObject>,
    access: u32,
    attributes: At<ObjectAttributesNt>,
    is_effective: bool,
    kind: i32,
    handle: Out<NtObject>,
) -> NtResult {
    if kind != PRIMARY && kind != IMPERSONATION {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let given = attributes.read_optional(context);
    let quality = given.map_or(0, |given| given.security_quality_of_service);
    let new = token_objects::at(context, token_of(context, existing)?);
    let level = match quality {
        0 if new.kind == IMPERSONATION => new.level,
        0 => 0,
        at => context.read::<i32>(at.wrapping_add(4)),
    };
    let is_raised = new.kind == IMPERSONATION && level > new.level;
    if is_raised || kind == PRIMARY && new.kind == IMPERSONATION && new.level < IMPERSONATES {
        return Err(BAD_IMPERSONATION_LEVEL);
    }
    // No access stands for that of the existing handle.
    let access =
        if access == 0 { handles::granted(context, existing.0, ALL_ACCESS) } else { access };
    let attributes = given.map_or(0, |given| given.attributes);
    let new = new.duplicated(kind, level, is_effective);
    handle.write(context, open_new(context, new, Opening { attributes, access }));
    Ok(())
}

/// `TOKEN_ALL_ACCESS`.
const ALL_ACCESS: u32 = 0xF_01FF;

/// Adds a token that exists as long as its handle. Returns the handle.
fn open_new(context: &Context, token: Token, opening: Opening) -> u64 {
    let object = token_objects::add(context, token);
    let handle = open(context, object, opening);
    handles::dereference(context, At::new(object));
    handle
}

fn open(context: &Context, object: u64, opening: Opening) -> u64 {
    let target = Target { type_name: TYPE, object, close: |_, _| {}, has_reference: false };
    handles::open(context, target, opening)
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
    handle.write(context, open(context, object, Opening { attributes, access }));
    Ok(())
}

/// Opens a handle to the token with which a thread impersonates a client.
fn open_of_thread(
    context: &Context,
    thread: Handle<NtObject>,
    access: u32,
    _as_self: bool,
    attributes: u32,
    handle: Out<NtObject>,
) -> NtResult {
    let target = handles::target_of(context, thread.0)?;
    if target.type_name != "PsThreadType" {
        return Err(NtStatus::OBJECT_TYPE_MISMATCH);
    }
    let client = impersonation::of_thread(context, target.object).ok_or(NO_TOKEN)?;
    if client.level == 0 {
        return Err(CANT_OPEN_ANONYMOUS);
    }
    let opening = Opening { attributes, access };
    let opened = if client.copies {
        let copy = token_objects::at(context, client.token);
        open_new(
            context,
            copy.duplicated(IMPERSONATION, client.level, client.is_effective),
            opening,
        )
    } else {
        open(context, client.token, opening)
    };
    handle.write(context, opened);
    Ok(())
}
