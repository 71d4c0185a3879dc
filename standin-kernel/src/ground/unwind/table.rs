//! An image's function table, and the step from an instruction to the function's caller.

use super::{
    epilogue,
    info::{Entry, Info, Malformed, Operation},
    registers::Registers,
};

/// The maximum number of entries in a chain.
const MAX_CHAIN: usize = 32;

/// The reason that a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum End {
    /// The caller is not in an image.
    #[error("0x{0:016X} is not in a loaded driver")]
    Left(u64),
    /// The stack cannot be read.
    #[error("the stack cannot be read at 0x{0:016X}")]
    Unreadable(u64),
    /// The unwind information is malformed.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The caller's frame is not above the callee's frame.
    #[error("the stack pointer of the caller of 0x{0:016X} is not above its callee's")]
    Backwards(u64),
    /// The stack exceeds the maximum number of frames.
    #[error("the stack has more than {0} frames")]
    TooMany(usize),
}

/// The language handler of a function, which handles exceptions and runs while frames are unwound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handler {
    /// The image's address.
    pub base: u64,
    /// [`EXCEPTION_HANDLER`](super::EXCEPTION_HANDLER) and
    /// [`TERMINATION_HANDLER`](super::TERMINATION_HANDLER).
    pub flags: u8,
    /// The address of the handler's routine.
    pub routine: u64,
    /// The address of the handler's data.
    pub data: u64,
    /// The address of the function's entry in the exception directory.
    pub entry: u64,
    /// The base of the function's frame on the stack.
    pub frame: u64,
}

/// The functions of an image, as listed in its exception directory.
#[derive(Debug)]
pub struct Table {
    /// The mapped image before relocation. Neither unwind information nor the instructions of
    /// epilogues contain addresses.
    image: Vec<u8>,
    /// The directory's offset in the image.
    directory: usize,
    /// The number of entries in the directory.
    count: usize,
}

impl Table {
    /// Creates the table of an image, given the offset and size of its exception directory. If the
    /// directory is outside the image, the table has no entries.
    pub fn new(image: Vec<u8>, directory: u32, size: u32) -> Self {
        let directory = usize::try_from(directory).unwrap_or(usize::MAX);
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let is_inside = directory.checked_add(size).is_some_and(|end| end <= image.len());
        Self { image, directory, count: if is_inside { size / Entry::SIZE } else { 0 } }
    }

    /// Returns the entry with a number, which counts from 0 in the directory's order.
    pub fn entry(&self, number: usize) -> Option<Entry> {
        if number >= self.count {
            return None;
        }
        Entry::read(&self.image, self.directory + number * Entry::SIZE)
    }

    /// Returns the unwind information of an entry.
    pub fn info(&self, entry: Entry) -> Result<Info, Malformed> {
        // The low bit is set in an entry that refers to another entry.
        if entry.info & 1 == 0 {
            return Info::read(&self.image, entry.info);
        }
        let outside = Malformed::Outside(entry.info);
        let at = usize::try_from(entry.info & !1).map_err(|_| outside)?;
        let other = Entry::read(&self.image, at).ok_or(outside)?;
        Info::read(&self.image, other.info)
    }

    /// Returns the entry of the function that contains an offset. Functions that make no calls and
    /// do not change the stack pointer have no entry.
    pub fn find(&self, offset: u32) -> Option<Entry> {
        self.entry(self.number_of(offset)?)
    }

    /// Returns the number of the entry of the function that contains an offset.
    fn number_of(&self, offset: u32) -> Option<usize> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.entry(middle)?.begin <= offset {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let number = low.checked_sub(1)?;
        self.entry(number).filter(|entry| offset < entry.end).map(|_| number)
    }

    /// Returns the handler of the function that contains an instruction, unless its prologue has not run
    /// yet. See [`Self::unwind`].
    pub fn handler(
        &self,
        base: u64,
        registers: &Registers,
        is_return: bool,
    ) -> Result<Option<Handler>, End> {
        let left = End::Left(registers.rip);
        let offset = u32::try_from(registers.rip.checked_sub(base).ok_or(left)?);
        let offset = offset.map_err(|_| left)?;
        let Some(number) =
            self.number_of(if is_return { offset.saturating_sub(1) } else { offset })
        else {
            return Ok(None);
        };
        let entry = self.entry(number).ok_or(left)?;
        let position = offset - entry.begin;
        let mut info = self.info(entry)?;
        if !is_return && position < u32::from(info.prologue) {
            return Ok(None);
        }
        let frame = match info.frame {
            Some((register, above)) => registers.get(register).wrapping_sub(u64::from(above)),
            None => registers.rsp(),
        };
        for _ in 0..MAX_CHAIN {
            let Some(next) = info.chained else {
                let at = self.directory + number * Entry::SIZE;
                return Ok(info.handler.map(|(routine, data)| Handler {
                    base,
                    flags: info.flags,
                    routine: base.wrapping_add(u64::from(routine)),
                    data: base.wrapping_add(u64::from(data)),
                    entry: base.wrapping_add(at as u64),
                    frame,
                }));
            };
            info = self.info(next)?;
        }
        Err(Malformed::Chain(entry.info).into())
    }

    /// Returns whether an offset follows a call instruction.
    pub fn is_after_call(&self, offset: u32) -> bool {
        let Ok(offset) = usize::try_from(offset) else {
            return false;
        };
        let before = |count: usize| {
            let start = offset.checked_sub(count)?;
            self.image.get(start..offset)
        };
        // The forms of a call: relative, through [rip + disp32], and through a register or memory.
        let is_relative = before(5).is_some_and(|code| code.first() == Some(&0xE8));
        is_relative
            || (2..=7).any(
                |length| matches!(before(length), Some([0xFF, mode, ..]) if mode >> 3 & 7 == 2),
            )
    }

    /// Replaces the registers at an instruction in the image with the registers of the function's
    /// caller.
    ///
    /// `base` is the image's address. `is_return` is true if the instruction follows a call; it may
    /// then be past the function's end. `read` reads eight bytes of the stack.
    pub fn unwind(
        &self,
        base: u64,
        registers: &mut Registers,
        is_return: bool,
        read: impl Fn(u64) -> Option<u64>,
    ) -> Result<bool, End> {
        self.unwind_saving(base, registers, is_return, read, &mut |_, _| {})
    }

    /// See [`Self::unwind`]. Passes the number of each XMM register that the function has saved, and the
    /// address of its value, to `saved`.
    pub fn unwind_saving(
        &self,
        base: u64,
        registers: &mut Registers,
        is_return: bool,
        read: impl Fn(u64) -> Option<u64>,
        saved: &mut dyn FnMut(u8, u64),
    ) -> Result<bool, End> {
        let left = End::Left(registers.rip);
        let offset = u32::try_from(registers.rip.checked_sub(base).ok_or(left)?);
        let offset = offset.map_err(|_| left)?;
        let inside = if is_return { offset.saturating_sub(1) } else { offset };
        let word = |address: u64| read(address).ok_or(End::Unreadable(address));
        if let Some(entry) = self.find(inside) {
            let position = offset - entry.begin;
            let info = self.info(entry)?;
            if !is_return && position >= u32::from(info.prologue) {
                let is_own = |to: i64| {
                    let to = u32::try_from(i64::from(offset) + to);
                    to.is_ok_and(|to| self.is_in_function(entry, &info, to))
                };
                let code = usize::try_from(offset)
                    .ok()
                    .and_then(|at| self.image.get(at..))
                    .unwrap_or_default();
                let frame = info.frame.map(|(register, _)| register);
                if let Some(caller) = epilogue::leave(code, frame, registers, is_own, &read) {
                    *registers = caller;
                    return Ok(true);
                }
            }
            if self.reverse(entry, info, position, registers, &word, saved)? {
                return Ok(false);
            }
        }
        registers.rip = word(registers.rsp())?;
        registers.set_rsp(registers.rsp().wrapping_add(8));
        Ok(true)
    }

    /// Returns whether a jump to the offset `to` stays in the function to which an entry belongs. A
    /// jump to the function's start is a tail call to itself.
    fn is_in_function(&self, entry: Entry, info: &Info, target: u32) -> bool {
        if (entry.begin..entry.end).contains(&target) {
            return target != entry.begin || info.chained.is_some();
        }
        let other = self.find(target).and_then(|other| self.start(other));
        other.is_some_and(|other| self.start(entry) == Some(other) && other != target)
    }

    /// Returns the start of the function to which an entry belongs.
    fn start(&self, mut entry: Entry) -> Option<u32> {
        for _ in 0..MAX_CHAIN {
            let next = if entry.info & 1 == 0 {
                self.info(entry).ok()?.chained
            } else {
                Entry::read(&self.image, usize::try_from(entry.info & !1).ok()?)
            };
            match next {
                Some(next) => entry = next,
                None => return Some(entry.begin),
            }
        }
        None
    }

    /// Reverses the part of a prologue that has run at the instruction `position` bytes after the
    /// function's start. Returns whether a machine frame provided the caller's registers.
    fn reverse(
        &self,
        entry: Entry,
        mut info: Info,
        mut position: u32,
        registers: &mut Registers,
        word: &impl Fn(u64) -> Result<u64, End>,
        saved: &mut dyn FnMut(u8, u64),
    ) -> Result<bool, End> {
        // The registers of all chained entries are stored relative to the same frame.
        let mut base = None;
        for _ in 0..MAX_CHAIN {
            let was_executed =
                |offset: u8| position >= u32::from(info.prologue) || u32::from(offset) <= position;
            let frame = match info.frame {
                Some((register, above)) if is_set(&info, position) => {
                    registers.get(register).wrapping_sub(u64::from(above))
                }
                _ => registers.rsp(),
            };
            let base = *base.get_or_insert(frame);
            for code in info.codes.iter().filter(|code| was_executed(code.offset)) {
                match code.operation {
                    Operation::Push(register) => {
                        let value = word(registers.rsp())?;
                        registers.set(register, value);
                        registers.set_rsp(registers.rsp().wrapping_add(8));
                    }
                    Operation::Allocate(bytes) => {
                        registers.set_rsp(registers.rsp().wrapping_add(u64::from(bytes)));
                    }
                    Operation::SetFrame => registers.set_rsp(frame),
                    Operation::Save { register, offset } => {
                        let value = word(base.wrapping_add(u64::from(offset)))?;
                        registers.set(register, value);
                    }
                    Operation::SaveXmm { register, offset } => {
                        saved(register, base.wrapping_add(u64::from(offset)));
                    }
                    Operation::MachineFrame(has_error) => {
                        let at = registers.rsp().wrapping_add(if has_error { 8 } else { 0 });
                        registers.rip = word(at)?;
                        let stack = word(at.wrapping_add(24))?;
                        registers.set_rsp(stack);
                        return Ok(true);
                    }
                }
            }
            let Some(next) = info.chained else {
                return Ok(false);
            };
            info = self.info(next)?;
            // The prologue of the entry that continues this one has run completely.
            position = u32::MAX;
        }
        Err(Malformed::Chain(entry.info).into())
    }
}

/// Returns whether the frame register is set `position` bytes after the function's start.
fn is_set(info: &Info, position: u32) -> bool {
    position >= u32::from(info.prologue)
        || info
            .codes
            .iter()
            .any(|code| code.operation == Operation::SetFrame && u32::from(code.offset) <= position)
}
