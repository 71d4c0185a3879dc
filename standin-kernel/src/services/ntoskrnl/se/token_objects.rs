//! The contents of tokens: a process's user, groups and privileges, less those that a filter took away.
//!
//! The system is an administrator and has all privileges. A test's process belongs to a local user who is
//! not an administrator, and has the privileges that all users have: to traverse folders, to impersonate,
//! and to create global objects.

use std::collections::HashMap;

use crate::{
    execution::identity::Identity,
    ground::{NtStatus, arena::Block},
    services::{
        managers::tokens,
        ntoskrnl::{context::Context, ob::handles, well_known},
    },
};

/// The type of token objects.
pub const TYPE: &str = "SeTokenObjectType";

/// `TokenPrimary` and `TokenImpersonation`.
pub const PRIMARY: i32 = 1;
pub const IMPERSONATION: i32 = 2;

/// `SecurityImpersonation` and `SecurityDelegation`.
pub const IMPERSONATES: i32 = 2;
pub const DELEGATES: i32 = 3;

/// `STATUS_BAD_IMPERSONATION_LEVEL`.
pub const BAD_IMPERSONATION_LEVEL: NtStatus = NtStatus::from_bits(0xC000_00A5);

/// `SE_GROUP_MANDATORY`, `SE_GROUP_ENABLED_BY_DEFAULT` and `SE_GROUP_ENABLED`.
pub const MANDATORY: u32 = 7;
/// `SE_GROUP_ENABLED_BY_DEFAULT` and `SE_GROUP_ENABLED`.
const ENABLED: u32 = 6;
/// `SE_GROUP_USE_FOR_DENY_ONLY`.
pub const DENY_ONLY: u32 = 0x10;

/// A token.
#[derive(Clone)]
pub struct Token {
    /// The id of the process whose user the token is for.
    pub process: u32,
    pub kind: i32,
    /// The impersonation level.
    pub level: i32,
    /// The user's attributes.
    pub user_attributes: u32,
    /// The groups, with their attributes.
    pub groups: Vec<(Vec<u8>, u32)>,
    /// The privileges, and whether each is enabled.
    pub privileges: Vec<(u64, bool)>,
    /// The restricting security identifiers, with their attributes, if the token is restricted.
    pub restricted: Option<Vec<(Vec<u8>, u32)>>,
    /// Set if the token was filtered.
    pub is_filtered: bool,
}

impl Token {
    /// Returns the primary token of a process.
    pub fn of_process(process: u32) -> Self {
        Self {
            process,
            kind: PRIMARY,
            level: DELEGATES,
            user_attributes: 0,
            groups: groups_of(process),
            privileges: privileges_of(process),
            restricted: None,
            is_filtered: false,
        }
    }

    /// Returns the user's security identifier.
    pub fn user(&self) -> Vec<u8> {
        user_of(self.process)
    }

    /// Returns whether an administrators' group is enabled.
    pub fn is_admin(&self) -> bool {
        let admins = administrators();
        self.groups.iter().any(|(group, attributes)| *group == admins && attributes & 4 != 0)
    }

    /// Returns whether a privilege is enabled.
    pub fn has(&self, privilege: u64) -> bool {
        self.privileges.contains(&(privilege, true))
    }

    /// Returns a copy of another type and impersonation level, with only what is effective now if
    /// `is_effective` is set.
    pub fn duplicated(mut self, kind: i32, level: i32, is_effective: bool) -> Self {
        if is_effective {
            self.privileges.retain(|(_, is_enabled)| *is_enabled);
            self.groups.retain(|(_, attributes)| attributes & (4 | DENY_ONLY) != 0);
        }
        Self { kind, level, ..self }
    }

    /// Makes an identifier one that can only deny access.
    pub fn deny_only(&mut self, identifier: &[u8]) {
        if self.user() == identifier {
            self.user_attributes |= DENY_ONLY;
        }
        for (group, attributes) in &mut self.groups {
            if group == identifier {
                *attributes = *attributes & !ENABLED | DENY_ONLY;
            }
        }
    }

    /// Returns the identifiers of the user and the groups, and whether each can allow access.
    pub fn identifiers(&self) -> Vec<(Vec<u8>, bool)> {
        let user = (self.user(), self.user_attributes & DENY_ONLY == 0);
        let groups = self.groups.iter();
        let groups = groups.map(|(group, attributes)| (group.clone(), attributes & 4 != 0));
        groups.chain([user]).collect()
    }
}

fn administrators() -> Vec<u8> {
    well_known::identifier(5, &[32, 544])
}

/// Returns the security identifier of a process's user: the system's, or a local user's.
fn user_of(process: u32) -> Vec<u8> {
    let is_system = process == Identity::SYSTEM.process;
    well_known::identifier(5, if is_system { &[18] } else { &[21, 1, 2, 3, 1001] })
}

/// Returns the groups of a process, with their attributes. Administrators come first.
fn groups_of(process: u32) -> Vec<(Vec<u8>, u32)> {
    /// As for [`MANDATORY`], but with `SE_GROUP_OWNER` instead of `SE_GROUP_MANDATORY`.
    const OWNER: u32 = 0xE;
    // The system belongs to the administrators; a user belongs to the users and to the interactive
    // users.
    let own: &[(&[u32], u32)] = if process == Identity::SYSTEM.process {
        &[(&[32, 544], OWNER)]
    } else {
        &[(&[32, 545], MANDATORY), (&[4], MANDATORY)]
    };
    let own = own.iter().map(|(parts, attributes)| (well_known::identifier(5, parts), *attributes));
    // All processes belong to everyone, the authenticated users, and the local users.
    let all = [(1, 0), (5, 11), (2, 0)];
    let all = all.map(|(authority, part)| (well_known::identifier(authority, &[part]), MANDATORY));
    own.chain(all).collect()
}

/// Returns the privileges of a process, and whether each is enabled.
fn privileges_of(process: u32) -> Vec<(u64, bool)> {
    /// `SeChangeNotifyPrivilege`, `SeImpersonatePrivilege` and `SeCreateGlobalPrivilege`.
    const ENABLED: [u64; 3] = [23, 29, 30];
    /// The privileges for shutdown, undocking, working sets and the time zone.
    const DISABLED: [u64; 4] = [19, 25, 33, 34];
    if process == Identity::SYSTEM.process {
        return (2..=36).map(|privilege| (privilege, true)).collect();
    }
    let enabled = ENABLED.map(|privilege| (privilege, true));
    enabled.into_iter().chain(DISABLED.map(|privilege| (privilege, false))).collect()
}

/// The tokens that are made at run time, by address.
#[derive(Default)]
struct Made(HashMap<u64, (Token, Block)>);

/// Adds a token, with one reference. Returns its address.
pub fn add(context: &Context, token: Token) -> u64 {
    const SIZE: usize = 0x40;
    let block = Block::zeroed(SIZE);
    let address = block.address();
    context.with_state(|Made(all)| all.insert(address, (token, block)));
    handles::own(context, address, |context, address| {
        context.with_state(|Made(all)| all.remove(&address));
    });
    handles::reference_new(context, address, TYPE);
    address
}

/// Returns the token at an address.
pub fn find(context: &Context, address: u64) -> Option<Token> {
    if let Some(process) = tokens::process_of(address) {
        return Some(Token::of_process(process));
    }
    context.with_state(|Made(all)| all.get(&address).map(|(token, _)| token.clone()))
}

/// Returns the token at an address. Bugchecks if there is none.
pub fn at(context: &Context, address: u64) -> Token {
    let found = find(context, address);
    found.unwrap_or_else(|| context.stop_for_wrong(address, "an access token"))
}
