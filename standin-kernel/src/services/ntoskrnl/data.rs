//! The variables that ntoskrnl.exe exports and that are equal in all kernels of a process.
//! [`variables`](super::variables) has the others.

use std::sync::OnceLock;

use super::well_known;
use crate::ground::{arena::Block, memory};

/// An exported variable. A driver's declaration may hide a level of indirection: what a header
/// declares as `PBOOLEAN KdDebuggerEnabled` without `dllimport` is a `BOOLEAN` in the kernel.
#[derive(Clone, Copy)]
enum Variable {
    /// A pointer to an object type, whose fields drivers do not use.
    ObjectType,
    /// A `BOOLEAN`.
    Boolean(bool),
    /// A `ULONG`.
    Long(u32),
    /// A `ULONG` with the build that `RtlGetVersion` returns, and the high bits of a kernel without checks.
    Build,
    /// A `PVOID` or a `ULONG64`.
    Word(u64),
    /// A pointer to a table of zeros of this size.
    Zeros(usize),
    /// A pointer to the well-known privileges and security identifiers.
    SecurityExports,
}

/// `MmUserProbeAddress`: where user space ends on x64, before a range that nobody can access.
pub const USER_PROBE_ADDRESS: u64 = 0x0000_7FFF_FFFF_0000;

const VARIABLES: [(&str, Variable); 32] = [
    ("CmKeyObjectType", Variable::ObjectType),
    ("ExDesktopObjectType", Variable::ObjectType),
    ("ExEventObjectType", Variable::ObjectType),
    ("ExSemaphoreObjectType", Variable::ObjectType),
    ("ExWindowStationObjectType", Variable::ObjectType),
    ("InitSafeBootMode", Variable::Long(0)),
    ("IoAdapterObjectType", Variable::ObjectType),
    ("IoDeviceObjectType", Variable::ObjectType),
    ("IoDriverObjectType", Variable::ObjectType),
    ("IoFileObjectType", Variable::ObjectType),
    ("KdDebuggerEnabled", Variable::Boolean(false)),
    ("KdDebuggerNotPresent", Variable::Boolean(true)),
    ("LpcPortObjectType", Variable::ObjectType),
    ("Mm64BitPhysicalAddress", Variable::Boolean(true)),
    ("MmHighestUserAddress", Variable::Word(USER_PROBE_ADDRESS - 1)),
    ("MmSectionObjectType", Variable::ObjectType),
    ("MmSystemRangeStart", Variable::Word(0xFFFF_8000_0000_0000)),
    ("MmUserProbeAddress", Variable::Word(USER_PROBE_ADDRESS)),
    ("NlsMbCodePageTag", Variable::Boolean(false)),
    ("NlsMbOemCodePageTag", Variable::Boolean(false)),
    // No byte starts a character of two in these code pages.
    ("NlsOemLeadByteInfo", Variable::Zeros(512)),
    ("NtBuildNumber", Variable::Build),
    ("NtGlobalFlag", Variable::Long(0)),
    ("PsJobType", Variable::ObjectType),
    ("PsProcessType", Variable::ObjectType),
    ("PsThreadType", Variable::ObjectType),
    ("SeExports", Variable::SecurityExports),
    ("SeTokenObjectType", Variable::ObjectType),
    ("TmEnlistmentObjectType", Variable::ObjectType),
    ("TmResourceManagerObjectType", Variable::ObjectType),
    ("TmTransactionManagerObjectType", Variable::ObjectType),
    ("TmTransactionObjectType", Variable::ObjectType),
];

/// The size of an object type.
const TYPE_SIZE: usize = 0x40;
/// The distance of two variables.
const SPACING: u64 = 16;

/// The memory of the variables.
struct Memory {
    /// The variables, in the order of [`VARIABLES`].
    variables: Block,
    /// The memory that pointers among the variables point to.
    _targets: Vec<Block>,
}

fn memory() -> &'static Memory {
    static MEMORY: OnceLock<Memory> = OnceLock::new();
    MEMORY.get_or_init(|| {
        let variables = Block::zeroed(VARIABLES.len() * 16);
        let mut targets = Vec::new();
        let mut point_to = |block: Block| {
            let address = block.address();
            targets.push(block);
            address.to_le_bytes()
        };
        for (at, (_, variable)) in places().zip(VARIABLES) {
            let value: [u8; 8] = match variable {
                Variable::ObjectType => point_to(Block::zeroed(TYPE_SIZE)),
                Variable::Boolean(value) => u64::from(value).to_le_bytes(),
                Variable::Long(value) => u64::from(value).to_le_bytes(),
                Variable::Build => {
                    let build = etl_file::LogFileHeader::default().os_build;
                    u64::from(0xF000_0000 | build).to_le_bytes()
                }
                Variable::Word(value) => value.to_le_bytes(),
                Variable::Zeros(size) => point_to(Block::zeroed(size)),
                Variable::SecurityExports => {
                    let (exports, identifiers) = well_known::exports();
                    point_to(identifiers);
                    point_to(exports)
                }
            };
            let written = memory::write(variables.address() + at, &value);
            debug_assert!(written.is_ok(), "the block was allocated above");
        }
        Memory { variables, _targets: targets }
    })
}

/// Returns the offsets of the variables.
fn places() -> impl Iterator<Item = u64> {
    (0..).map(|number: u64| number * SPACING)
}

/// Returns the exported variables, each with its name and address.
pub fn exports() -> impl Iterator<Item = (&'static str, u64)> {
    let first = memory().variables.address();
    let names = VARIABLES.into_iter().map(|(name, _)| name);
    names.zip(places().map(move |at| first + at))
}

/// Returns the object type that an exported variable points to.
pub fn object_type(name: &str) -> Option<u64> {
    let is_type = |(_, variable): &(&str, Variable)| matches!(variable, Variable::ObjectType);
    let known = VARIABLES.iter().find(|one| one.0 == name);
    known.filter(|one| is_type(one))?;
    let (_, at) = exports().find(|(one, _)| *one == name)?;
    memory::read(at).ok()
}
