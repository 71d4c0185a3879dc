//! The well-known privileges and security identifiers.

use crate::ground::{arena::Block, memory};

/// The size of `SE_EXPORTS`.
const SIZE: usize = 552;

/// The privileges, with their offsets in `SE_EXPORTS`. Each is a `LUID` whose high part is 0.
const PRIVILEGES: [(u64, u32); 35] = [
    (0, 2),    // SeCreateTokenPrivilege
    (8, 3),    // SeAssignPrimaryTokenPrivilege
    (16, 4),   // SeLockMemoryPrivilege
    (24, 5),   // SeIncreaseQuotaPrivilege
    (32, 6),   // SeUnsolicitedInputPrivilege, now called SeMachineAccountPrivilege
    (40, 7),   // SeTcbPrivilege
    (48, 8),   // SeSecurityPrivilege
    (56, 9),   // SeTakeOwnershipPrivilege
    (64, 10),  // SeLoadDriverPrivilege
    (72, 15),  // SeCreatePagefilePrivilege
    (80, 14),  // SeIncreaseBasePriorityPrivilege
    (88, 11),  // SeSystemProfilePrivilege
    (96, 12),  // SeSystemtimePrivilege
    (104, 13), // SeProfileSingleProcessPrivilege
    (112, 16), // SeCreatePermanentPrivilege
    (120, 17), // SeBackupPrivilege
    (128, 18), // SeRestorePrivilege
    (136, 19), // SeShutdownPrivilege
    (144, 20), // SeDebugPrivilege
    (152, 21), // SeAuditPrivilege
    (160, 22), // SeSystemEnvironmentPrivilege
    (168, 23), // SeChangeNotifyPrivilege
    (176, 24), // SeRemoteShutdownPrivilege
    (360, 25), // SeUndockPrivilege
    (368, 26), // SeSyncAgentPrivilege
    (376, 27), // SeEnableDelegationPrivilege
    (400, 28), // SeManageVolumePrivilege
    (408, 29), // SeImpersonatePrivilege
    (416, 30), // SeCreateGlobalPrivilege
    (424, 31), // SeTrustedCredManAccessPrivilege
    (432, 32), // SeRelabelPrivilege
    (440, 33), // SeIncreaseWorkingSetPrivilege
    (448, 34), // SeTimeZonePrivilege
    (456, 35), // SeCreateSymbolicLinkPrivilege
    (544, 36), // SeDelegateSessionUserImpersonatePrivilege
];

/// A security identifier: its authority and sub-authorities.
pub type Identifier = (u8, &'static [u32]);

/// `Everyone`.
pub const WORLD: Identifier = (1, &[0]);
/// `LocalSystem`.
pub const LOCAL_SYSTEM: Identifier = (5, &[18]);
/// `BUILTIN\Administrators`.
pub const ADMINISTRATORS: Identifier = (5, &[32, 544]);

/// The identifiers, with their offsets in `SE_EXPORTS`: the authority and the sub-authorities.
const IDENTIFIERS: &[(u64, u8, &[u32])] = &[
    (184, 0, &[0]),                 // SeNullSid
    (192, 1, &[0]),                 // SeWorldSid
    (200, 2, &[0]),                 // SeLocalSid
    (208, 3, &[0]),                 // SeCreatorOwnerSid
    (216, 3, &[1]),                 // SeCreatorGroupSid
    (224, 5, &[]),                  // SeNtAuthoritySid
    (232, 5, &[1]),                 // SeDialupSid
    (240, 5, &[2]),                 // SeNetworkSid
    (248, 5, &[3]),                 // SeBatchSid
    (256, 5, &[4]),                 // SeInteractiveSid
    (264, 5, &[18]),                // SeLocalSystemSid
    (272, 5, &[32, 544]),           // SeAliasAdminsSid
    (280, 5, &[32, 545]),           // SeAliasUsersSid
    (288, 5, &[32, 546]),           // SeAliasGuestsSid
    (296, 5, &[32, 547]),           // SeAliasPowerUsersSid
    (304, 5, &[32, 548]),           // SeAliasAccountOpsSid
    (312, 5, &[32, 549]),           // SeAliasSystemOpsSid
    (320, 5, &[32, 550]),           // SeAliasPrintOpsSid
    (328, 5, &[32, 551]),           // SeAliasBackupOpsSid
    (336, 5, &[11]),                // SeAuthenticatedUsersSid
    (344, 5, &[12]),                // SeRestrictedSid
    (352, 5, &[7]),                 // SeAnonymousLogonSid
    (384, 5, &[19]),                // SeLocalServiceSid
    (392, 5, &[20]),                // SeNetworkServiceSid
    (464, 5, &[17]),                // SeIUserSid
    (472, 16, &[0]),                // SeUntrustedMandatorySid
    (480, 16, &[0x1000]),           // SeLowMandatorySid
    (488, 16, &[0x2000]),           // SeMediumMandatorySid
    (496, 16, &[0x3000]),           // SeHighMandatorySid
    (504, 16, &[0x4000]),           // SeSystemMandatorySid
    (512, 3, &[4]),                 // SeOwnerRightsSid
    (520, 15, &[2, 1]),             // SeAllAppPackagesSid
    (528, 5, &[84, 0, 0, 0, 0, 0]), // SeUserModeDriversSid
    (536, 5, &[80, 956_008_885, 3_418_522_649, 1_831_038_044, 1_853_292_631, 2_271_478_464]), // SeTrustedInstallerSid
];

/// Returns the bytes of a security identifier.
pub fn identifier(authority: u8, sub_authorities: &[u32]) -> Vec<u8> {
    let count = u8::try_from(sub_authorities.len()).unwrap_or(0);
    let mut bytes = vec![1, count, 0, 0, 0, 0, 0, authority];
    for one in sub_authorities {
        bytes.extend(one.to_le_bytes());
    }
    bytes
}

/// Returns an access-control list that allows these rights to these identifiers.
pub fn access_list(entries: &[(u32, Identifier)]) -> Vec<u8> {
    /// `ACL_REVISION`.
    const REVISION: u8 = 2;
    let mut bytes = vec![REVISION, 0, 0, 0, 0, 0, 0, 0];
    bytes[4] = u8::try_from(entries.len()).unwrap_or(u8::MAX);
    for (mask, (authority, sub_authorities)) in entries {
        let sid = identifier(*authority, sub_authorities);
        // An `ACCESS_ALLOWED_ACE` without flags.
        bytes.extend([0, 0, u8::try_from(8 + sid.len()).unwrap_or(u8::MAX), 0]);
        bytes.extend(mask.to_le_bytes());
        bytes.extend(sid);
    }
    bytes[2] = u8::try_from(bytes.len()).unwrap_or(u8::MAX);
    bytes
}

/// Returns `SE_EXPORTS`, and the block with the identifiers to which it points.
pub fn exports() -> (Block, Block) {
    /// The space for the largest identifier.
    const STEP: usize = 32;
    let exports = Block::zeroed(SIZE);
    let identifiers = Block::zeroed(IDENTIFIERS.len() * STEP);
    let write = |at: u64, bytes: &[u8]| {
        let written = memory::write_bytes(at, bytes);
        debug_assert!(written.is_ok(), "the blocks were allocated above");
    };
    for (offset, number) in PRIVILEGES {
        let luid = u64::from(number).to_le_bytes();
        write(exports.address() + offset, &luid);
    }
    let places = (identifiers.address()..).step_by(STEP);
    for (at, (offset, authority, sub_authorities)) in places.zip(IDENTIFIERS) {
        write(at, &identifier(*authority, sub_authorities));
        write(exports.address() + offset, &at.to_le_bytes());
    }
    (exports, identifiers)
}
