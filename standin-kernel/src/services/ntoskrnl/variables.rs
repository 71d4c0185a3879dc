//! The variables that ntoskrnl.exe exports and whose values are the same in all kernels of a
//! process. [`kernel_variables`](super::kernel_variables) contains the variables whose values differ.

use std::sync::OnceLock;

use crate::{
    ground::{arena::Block, memory},
    services::ntoskrnl::well_known::{
        self, ADMINISTRATORS, Identifier, LOCAL_SYSTEM, WORLD, access_list,
    },
};

/// An exported variable. A driver's declaration may hide a level of indirection: `PBOOLEAN
/// KdDebuggerEnabled` in a header, without `dllimport`, is a `BOOLEAN` in the kernel.
#[derive(Clone, Copy)]
enum Variable {
    /// A pointer to an object type, whose fields drivers do not use.
    ObjectType,
    /// A `BOOLEAN`.
    Boolean(bool),
    /// A `ULONG`, or a `USHORT`.
    Long(u32),
    /// A `ULONG` with the build number that `RtlGetVersion` returns, and the high bits of a free build.
    Build,
    /// A `PVOID`, a `ULONG64`, a `LARGE_INTEGER` or a spin lock.
    Word(u64),
    /// A pointer to a zeroed table of this size in bytes.
    Zeros(usize),
    /// A structure of this size that begins with its version and is otherwise zero.
    Structure(usize, u32),
    /// An empty `LIST_ENTRY`.
    List,
    /// A pointer to the properties of the characters below 128.
    LegalCharacters,
    /// A pointer to the well-known privileges and security identifiers.
    SecurityExports,
    /// The text of the build, which ends with a NUL.
    Lab,
    /// A pointer to an access-control list.
    AccessList(&'static [(u32, Identifier)]),
    /// A pointer to a security descriptor with the access-control list of `SeSystemDefaultDacl`.
    SystemDescriptor,
}

/// The discretionary access-control list of objects that everyone may use.
const PUBLIC_ACCESS: &[(u32, Identifier)] =
    &[(GENERIC_EXECUTE, WORLD), (GENERIC_ALL, LOCAL_SYSTEM), (GENERIC_ALL, ADMINISTRATORS)];

/// The discretionary access-control list of the system's objects.
const SYSTEM_ACCESS: &[(u32, Identifier)] =
    &[(GENERIC_ALL, LOCAL_SYSTEM), (GENERIC_READ | GENERIC_EXECUTE | READ_CONTROL, ADMINISTRATORS)];

const READ_CONTROL: u32 = 0x0002_0000;
const GENERIC_ALL: u32 = 0x1000_0000;
const GENERIC_EXECUTE: u32 = 0x2000_0000;
const GENERIC_READ: u32 = 0x8000_0000;

/// `MmUserProbeAddress`: the end of user space on x64, before an inaccessible range.
pub const USER_PROBE_ADDRESS: u64 = 0x0000_7FFF_FFFF_0000;

/// `MmSystemRangeStart`. The address is unused.
const SYSTEM_RANGE: u64 = 0xFFFF_8000_0000_0000;

const VARIABLES: [(&str, Variable); 77] = [
    ("CcFastMdlReadWait", Variable::Long(0)),
    ("CcFastReadNotPossible", Variable::Long(0)),
    ("CcFastReadWait", Variable::Long(0)),
    ("CmKeyObjectType", Variable::ObjectType),
    ("ExActivationObjectType", Variable::ObjectType),
    ("ExCompositionObjectType", Variable::ObjectType),
    ("ExCoreMessagingObjectType", Variable::ObjectType),
    ("ExDesktopObjectType", Variable::ObjectType),
    ("ExEventObjectType", Variable::ObjectType),
    ("ExRawInputManagerObjectType", Variable::ObjectType),
    ("ExSemaphoreObjectType", Variable::ObjectType),
    ("ExTimerObjectType", Variable::ObjectType),
    ("ExWindowStationObjectType", Variable::ObjectType),
    ("FsRtlLegalAnsiCharacterArray", Variable::LegalCharacters),
    // `HAL_DISPATCH`, version 4. Its routines are not provided.
    ("HalDispatchTable", Variable::Structure(184, 4)),
    // No header declares its members.
    ("HalPrivateDispatchTable", Variable::Structure(0x1000, 0)),
    ("InitSafeBootMode", Variable::Long(0)),
    ("IoAdapterObjectType", Variable::ObjectType),
    ("IoCompletionObjectType", Variable::ObjectType),
    ("IoDeviceHandlerObjectType", Variable::ObjectType),
    ("IoDeviceHandlerObjectSize", Variable::Long(0)),
    ("IoDeviceObjectType", Variable::ObjectType),
    ("IoDriverObjectType", Variable::ObjectType),
    ("IoFileObjectType", Variable::ObjectType),
    ("IoReadOperationCount", Variable::Long(0)),
    ("IoReadTransferCount", Variable::Word(0)),
    ("IoStatisticsLock", Variable::Word(0)),
    ("IoWriteOperationCount", Variable::Long(0)),
    ("IoWriteTransferCount", Variable::Word(0)),
    ("KdComPortInUse", Variable::Word(0)),
    ("KdDebuggerEnabled", Variable::Boolean(false)),
    ("KdDebuggerNotPresent", Variable::Boolean(true)),
    ("KdEnteredDebugger", Variable::Long(0)),
    ("KdEventLoggingEnabled", Variable::Boolean(false)),
    ("KdEventLoggingPresent", Variable::Boolean(false)),
    ("KdHvComPortInUse", Variable::Word(0)),
    ("KeDynamicPartitioningSupported", Variable::Boolean(false)),
    ("KeLastBranchMSR", Variable::Long(0)),
    ("KeLoaderBlock", Variable::Word(0)),
    // The code and the parameters of a bugcheck.
    ("KiBugCheckData", Variable::Structure(40, 0)),
    ("LpcPortObjectType", Variable::ObjectType),
    ("Mm64BitPhysicalAddress", Variable::Boolean(true)),
    ("MmBadPointer", Variable::Word(SYSTEM_RANGE)),
    ("MmHighestUserAddress", Variable::Word(USER_PROBE_ADDRESS - 1)),
    ("MmSectionObjectType", Variable::ObjectType),
    ("MmSystemRangeStart", Variable::Word(SYSTEM_RANGE)),
    ("MmUserProbeAddress", Variable::Word(USER_PROBE_ADDRESS)),
    ("NlsAnsiCodePage", Variable::Long(1252)),
    ("NlsLeadByteInfo", Variable::Zeros(512)),
    ("NlsMbCodePageTag", Variable::Boolean(false)),
    ("NlsMbOemCodePageTag", Variable::Boolean(false)),
    ("NlsOemCodePage", Variable::Long(437)),
    // In these code pages, no byte is the first of two bytes.
    ("NlsOemLeadByteInfo", Variable::Zeros(512)),
    ("NtBuildGUID", Variable::Structure(16, 0)),
    ("NtBuildLab", Variable::Lab),
    ("NtBuildNumber", Variable::Build),
    ("NtGlobalFlag", Variable::Long(0)),
    ("POGOBuffer", Variable::Word(0)),
    ("PsJobType", Variable::ObjectType),
    ("PsLoadedModuleList", Variable::List),
    ("PsPartitionType", Variable::ObjectType),
    ("PsProcessType", Variable::ObjectType),
    ("PsSiloContextNonPagedType", Variable::ObjectType),
    ("PsSiloContextPagedType", Variable::ObjectType),
    ("PsThreadType", Variable::ObjectType),
    // A `LANGID`, English of the United States.
    ("PsUILanguageComitted", Variable::Long(0x0409)),
    ("SeExports", Variable::SecurityExports),
    ("SeILSigningPolicyPtr", Variable::Zeros(1)),
    ("SePublicDefaultDacl", Variable::AccessList(PUBLIC_ACCESS)),
    ("SeSystemDefaultDacl", Variable::AccessList(SYSTEM_ACCESS)),
    ("SeSystemDefaultSd", Variable::SystemDescriptor),
    ("SeTokenObjectType", Variable::ObjectType),
    ("TmEnlistmentObjectType", Variable::ObjectType),
    ("TmResourceManagerObjectType", Variable::ObjectType),
    ("TmTransactionManagerObjectType", Variable::ObjectType),
    ("TmTransactionObjectType", Variable::ObjectType),
    ("psMUITest", Variable::Long(0)),
];

impl Variable {
    /// Returns the size of the variable, including the gap before the next variable.
    const fn size(self) -> usize {
        match self {
            Self::Structure(size, _) => size.next_multiple_of(16),
            Self::Lab => 64,
            _ => 16,
        }
    }
}

/// The size of an object type.
const TYPE_SIZE: usize = 0x40;

/// Marks of `FsRtlLegalAnsiCharacterArray`: the character can be in the names of a file system, or is a
/// wildcard.
pub const FAT: u8 = 1;
pub const HPFS: u8 = 2;
pub const WILDCARD: u8 = 8;

/// Returns the byte for a character in `FsRtlLegalAnsiCharacterArray`: the file systems that allow
/// the character in names, and whether it is a wildcard.
pub const fn legal_character(character: u8) -> u8 {
    const NTFS: u8 = 4;
    const OLE: u8 = 16;
    match character {
        b'/' | b'\\' | b':' | 0 => 0,
        b'|' | 1..32 => OLE,
        b'"' | b'*' | b'<' | b'>' | b'?' => WILDCARD | OLE,
        b'+' | b',' | b';' | b'=' | b'[' | b']' => HPFS | NTFS | OLE,
        _ => FAT | HPFS | NTFS | OLE,
    }
}

/// The memory of the variables.
struct Memory {
    /// The variables, in the order of [`VARIABLES`].
    variables: Block,
    /// The memory to which pointers in the variables point.
    _targets: Vec<Block>,
}

fn memory() -> &'static Memory {
    static MEMORY: OnceLock<Memory> = OnceLock::new();
    MEMORY.get_or_init(|| {
        let size = VARIABLES.iter().map(|(_, variable)| variable.size()).sum();
        let variables = Block::zeroed(size);
        let mut targets = Vec::new();
        let mut point_to = |block: Block| {
            let address = block.address();
            targets.push(block);
            address
        };
        for (at, (_, variable)) in places().zip(VARIABLES) {
            let place = variables.address() + at;
            let value = match variable {
                Variable::ObjectType => point_to(Block::zeroed(TYPE_SIZE)),
                Variable::Boolean(value) => u64::from(value),
                Variable::Long(value) | Variable::Structure(_, value) => u64::from(value),
                Variable::Build => u64::from(0xF000_0000 | build()),
                Variable::Lab => {
                    let text = format!("{}.1.amd64fre.standin.000101-0000", build());
                    write(place, text.as_bytes());
                    continue;
                }
                Variable::AccessList(entries) => point_to(filled(&access_list(entries))),
                Variable::SystemDescriptor => {
                    let list = point_to(filled(&access_list(SYSTEM_ACCESS)));
                    // Revision 1, `SE_DACL_PRESENT`, and the pointers to owner, group, SACL and DACL.
                    let mut descriptor = [0; 40];
                    descriptor[..4].copy_from_slice(&[1, 0, 4, 0]);
                    descriptor[32..].copy_from_slice(&list.to_le_bytes());
                    point_to(filled(&descriptor))
                }
                Variable::Word(value) => value,
                Variable::Zeros(size) => point_to(Block::zeroed(size)),
                Variable::List => {
                    write(place + 8, &place.to_le_bytes());
                    place
                }
                Variable::LegalCharacters => {
                    let bytes: Vec<u8> = (0..128).map(legal_character).collect();
                    point_to(filled(&bytes))
                }
                Variable::SecurityExports => {
                    let (exports, identifiers) = well_known::exports();
                    point_to(identifiers);
                    point_to(exports)
                }
            };
            write(place, &value.to_le_bytes());
        }
        Memory { variables, _targets: targets }
    })
}

/// Returns the build number.
fn build() -> u32 {
    etl_file::LogFileHeader::default().os_build
}

/// Returns a block with these bytes.
fn filled(bytes: &[u8]) -> Block {
    let block = Block::zeroed(bytes.len());
    write(block.address(), bytes);
    block
}

fn write(at: u64, bytes: &[u8]) {
    let written = memory::write_bytes(at, bytes);
    debug_assert!(written.is_ok(), "the block was allocated above");
}

/// Returns the offsets of the variables.
fn places() -> impl Iterator<Item = u64> {
    VARIABLES.iter().scan(0, |end, (_, variable)| {
        let place = *end;
        *end += variable.size() as u64;
        Some(place)
    })
}

/// Returns the exported variables, each with its name and address.
pub fn exports() -> impl Iterator<Item = (&'static str, u64)> {
    let first = memory().variables.address();
    let names = VARIABLES.into_iter().map(|(name, _)| name);
    names.zip(places().map(move |at| first + at))
}

/// Returns the object type to which an exported variable points.
pub fn object_type(name: &str) -> Option<u64> {
    let is_type = |(_, variable): &(&str, Variable)| matches!(variable, Variable::ObjectType);
    let known = VARIABLES.iter().find(|one| one.0 == name);
    known.filter(|one| is_type(one))?;
    let (_, at) = exports().find(|(one, _)| *one == name)?;
    memory::read(at).ok()
}
