//! The unwind information of functions (`RUNTIME_FUNCTION` and `UNWIND_INFO`), as the PE format
//! documents it for x64.

/// `UNW_FLAG_CHAININFO`: the information continues in another function entry.
const CHAINED: u8 = 4;
/// `UNW_FLAG_EHANDLER` and `UNW_FLAG_UHANDLER`: a handler of exceptions, and one that runs while frames
/// are unwound. They are the same routine.
pub const EXCEPTION_HANDLER: u8 = 1;
pub const TERMINATION_HANDLER: u8 = 2;

/// A function's entry in the exception directory. Addresses are offsets in the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The function's first byte.
    pub begin: u32,
    /// The first byte after the function.
    pub end: u32,
    /// The unwind information.
    pub info: u32,
}

impl Entry {
    /// The size of an entry in bytes.
    pub const SIZE: usize = 12;

    /// Reads the entry at offset `at`.
    pub fn read(image: &[u8], at: usize) -> Option<Self> {
        let word = |number: usize| u32_at(image, at.checked_add(4 * number)?);
        Some(Self { begin: word(0)?, end: word(1)?, info: word(2)? })
    }
}

/// An operation of a prologue, which unwinding reverses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A nonvolatile register was pushed.
    Push(u8),
    /// The stack pointer was lowered by this number of bytes.
    Allocate(u32),
    /// The frame register was set.
    SetFrame,
    /// A nonvolatile register was stored at an offset from the frame.
    Save {
        /// The register.
        register: u8,
        /// The offset in bytes.
        offset: u32,
    },
    /// An XMM register was stored.
    SaveXmm {
        /// The register.
        register: u8,
        /// The offset in bytes.
        offset: u32,
    },
    /// The processor pushed a machine frame. True if it also pushed an error code.
    MachineFrame(bool),
}

/// An unwind code: an operation, and the offset in the function of the next instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// The offset.
    pub offset: u8,
    /// The operation.
    pub operation: Operation,
}

/// The unwind information of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// The version, 1 or 2.
    pub version: u8,
    /// `UNW_FLAG_*`.
    pub flags: u8,
    /// The size of the prologue in bytes.
    pub prologue: u8,
    /// The frame register, and its distance above the stack pointer in bytes.
    pub frame: Option<(u8, u32)>,
    /// The codes, in the reverse order of the prologue. Codes for epilogues are omitted.
    pub codes: Vec<Code>,
    /// The entry that continues this one.
    pub chained: Option<Entry>,
    /// The offsets in the image of the handler and of its data, if the function has a handler.
    pub handler: Option<(u32, u32)>,
}

/// A defect of unwind information.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The information is outside the image.
    #[error("the unwind information at 0x{0:x} is not in the image")]
    Outside(u32),
    /// The version is unknown.
    #[error("the unwind information at 0x{0:x} has the unknown version {1}")]
    Version(u32, u8),
    /// A code has an unknown operation.
    #[error("the unwind information at 0x{0:x} has the unknown operation {1}")]
    Operation(u32, u8),
    /// The operands of a code are missing.
    #[error("the unwind information at 0x{0:x} ends within a code")]
    Operands(u32),
    /// The chain of entries is too long or is a cycle.
    #[error("the unwind information at 0x{0:x} continues in too many others")]
    Chain(u32),
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_le_bytes(*bytes))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}

impl Info {
    /// Reads the unwind information at offset `at` in an image.
    pub fn read(image: &[u8], at: u32) -> Result<Self, Malformed> {
        let outside = Malformed::Outside(at);
        let start = usize::try_from(at).map_err(|_| outside)?;
        let header: [u8; 4] = *image.get(start..).and_then(<[u8]>::first_chunk).ok_or(outside)?;
        let [first, prologue, count, frame] = header;
        let (version, flags) = (first & 7, first >> 3);
        if !matches!(version, 1 | 2) {
            return Err(Malformed::Version(at, version));
        }
        let count = usize::from(count);
        let codes = image.get(start + 4..).and_then(|rest| rest.get(..2 * count)).ok_or(outside)?;
        let register = frame & 15;
        // The codes are padded to a multiple of four bytes.
        let after = start + 4 + 2 * count.next_multiple_of(2);
        let chained = if flags & CHAINED == 0 {
            None
        } else {
            Some(Entry::read(image, after).ok_or(outside)?)
        };
        let has_handler = flags & (EXCEPTION_HANDLER | TERMINATION_HANDLER) != 0;
        let handler = (has_handler && chained.is_none())
            .then(|| Some((u32_at(image, after)?, u32::try_from(after + 4).ok()?)))
            .map(|handler| handler.ok_or(outside))
            .transpose()?;
        Ok(Self {
            version,
            flags,
            prologue,
            frame: (register != 0).then(|| (register, u32::from(frame >> 4) * 16)),
            codes: parse(at, version, codes)?,
            chained,
            handler,
        })
    }
}

/// Parses the slots of unwind codes.
fn parse(at: u32, version: u8, slots: &[u8]) -> Result<Vec<Code>, Malformed> {
    let mut codes = Vec::new();
    let mut slot = 0;
    let count = slots.len() / 2;
    while slot < count {
        let missing = Malformed::Operands(at);
        let word = u16_at(slots, 2 * slot).ok_or(missing)?;
        let [offset, kind] = word.to_le_bytes();
        let (kind, operand) = (kind & 15, kind >> 4);
        let short = || u16_at(slots, 2 * slot + 2).map(u32::from).ok_or(missing);
        let long = || u32_at(slots, 2 * slot + 2).ok_or(missing);
        let (operation, size) = match kind {
            0 => (Some(Operation::Push(operand)), 1),
            1 if operand == 0 => (Some(Operation::Allocate(short()? * 8)), 2),
            1 => (Some(Operation::Allocate(long()?)), 3),
            2 => (Some(Operation::Allocate(u32::from(operand) * 8 + 8)), 1),
            3 => (Some(Operation::SetFrame), 1),
            4 => (Some(save(operand, short()? * 8)), 2),
            5 => (Some(save(operand, long()?)), 3),
            // The positions of epilogues, one per slot.
            6 if version == 2 => (None, 1),
            8 => (Some(save_xmm(operand, short()? * 16)), 2),
            9 => (Some(save_xmm(operand, long()?)), 3),
            10 => (Some(Operation::MachineFrame(operand != 0)), 1),
            unknown => return Err(Malformed::Operation(at, unknown)),
        };
        if let Some(operation) = operation {
            codes.push(Code { offset, operation });
        }
        slot += size;
    }
    Ok(codes)
}

const fn save(register: u8, offset: u32) -> Operation {
    Operation::Save { register, offset }
}

const fn save_xmm(register: u8, offset: u32) -> Operation {
    Operation::SaveXmm { register, offset }
}
