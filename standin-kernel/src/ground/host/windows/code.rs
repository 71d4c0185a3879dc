//! The code of images, in which instructions that Windows would not report are replaced.
//!
//! In a Windows process, GS addresses the thread's own block, `syscall` makes a system call, and
//! `int 29h` ends the process. Each such instruction of an image is therefore replaced by a
//! breakpoint, and the breakpoint is reported as the fault that the instruction stands for. The
//! kernel then serves the original instruction.

use std::{
    collections::BTreeMap,
    io,
    ops::Range,
    sync::atomic::{AtomicU64, Ordering},
};

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register,
};
use parking_lot::RwLock;

use super::memory::Mapping;
use crate::ground::{host::fault::Fault, unwind::Table};

/// The addresses at which images are mapped. Windows chooses other addresses.
pub const IMAGES: Range<u64> = 0x2000_0000_0000..0x3000_0000_0000;
/// The distance between the addresses that are tried.
const STEP: u64 = 1 << 20;
/// The number of addresses that are tried.
const TRIES: u32 = 64;

/// The instructions that make system calls.
pub const INSTRUCTIONS: [([u8; 2], &str); 4] = [
    ([0x0F, 0x05], "syscall"),
    ([0xCD, 0x2E], "int 2Eh"),
    ([0xCD, 0x80], "int 80h"),
    ([0x0F, 0x34], "sysenter"),
];

/// `int3`.
const BREAKPOINT: u8 = 0xCC;

/// The replaced instructions of all images, by address: the fault that each stands for, and its
/// first byte.
static REPLACED: RwLock<BTreeMap<u64, (Fault, u8)>> = RwLock::new(BTreeMap::new());

/// Maps writable memory for an image, at an address that identifies the code of images.
pub fn map_image(size: usize) -> io::Result<Mapping> {
    // Event data often contains numbers with many zero bytes, which must not look like addresses.
    static NEXT: AtomicU64 = AtomicU64::new(0x0A5C_9E30_0000);
    let length = IMAGES.end - IMAGES.start;
    // A gap between two images makes an access past the end of an image fault.
    let space = (size as u64).next_multiple_of(STEP) + STEP;
    let mut addresses =
        (0..TRIES).map(|_| IMAGES.start + NEXT.fetch_add(space, Ordering::Relaxed) % length);
    let mapped = addresses.find_map(|address| Mapping::at(address, size).ok());
    mapped.map_or_else(|| Mapping::new(size), Ok)
}

/// The instructions of an image that the host has replaced. They are forgotten when this value is
/// dropped.
pub struct Replaced(Range<u64>);

impl Drop for Replaced {
    fn drop(&mut self) {
        let mut replaced = REPLACED.write();
        let gone: Vec<u64> = replaced.range(self.0.clone()).map(|(address, _)| *address).collect();
        for address in gone {
            replaced.remove(&address);
        }
    }
}

/// Replaces the instructions of an image that the host cannot report as faults. `sections` are the
/// offsets of its code.
pub fn replace_instructions(
    image: &mut [u8],
    base: u64,
    functions: &Table,
    sections: &[Range<usize>],
) -> Replaced {
    let mut found = Vec::new();
    for (code, is_function) in regions(image, functions, sections) {
        let Some(bytes) = image.get(code.clone()) else {
            continue;
        };
        let decoder = Decoder::with_ip(64, bytes, base + code.start as u64, DecoderOptions::NONE);
        let unreported = decoder.into_iter().filter_map(|instruction| {
            Some((instruction.ip(), unreported(&instruction, is_function)?))
        });
        found.extend(unreported);
    }
    let mut replaced = REPLACED.write();
    for (address, fault) in found {
        let byte = usize::try_from(address - base).ok().and_then(|offset| image.get_mut(offset));
        // Functions of a malformed table may overlap.
        if let Some(byte) = byte
            && !replaced.contains_key(&address)
        {
            replaced.insert(address, (fault, std::mem::replace(byte, BREAKPOINT)));
        }
    }
    Replaced(base..base + image.len() as u64)
}

/// Returns whether an image's code contains the bytes of an instruction that makes a system call, and
/// that is not replaced because it is outside all functions.
pub fn has_system_calls(image: &[u8], functions: &Table, sections: &[Range<usize>]) -> bool {
    let regions = regions(image, functions, sections).into_iter();
    let mut others =
        regions.filter(|(_, is_function)| !is_function).filter_map(|(code, _)| image.get(code));
    others.any(|code| {
        let mut pairs = code.windows(2);
        pairs.any(|two| INSTRUCTIONS.iter().any(|(instruction, _)| instruction == two))
    })
}

/// Returns the parts of the code that are decoded: the functions that are in the table or that code of
/// a function refers to, and the rest, which contains other functions, padding and data.
fn regions(
    image: &[u8],
    functions: &Table,
    sections: &[Range<usize>],
) -> Vec<(Range<usize>, bool)> {
    let offset = |offset: u32| usize::try_from(offset).unwrap_or(usize::MAX);
    let mut known: Vec<Range<usize>> = (0..)
        .map_while(|number| functions.entry(number))
        .map(|entry| offset(entry.begin)..offset(entry.end))
        .collect();
    known.sort_unstable_by_key(|range| range.start);
    let leaves = leaves(image, &known, sections);
    known.extend(leaves.into_iter().map(|(start, end)| start..end));
    known.sort_unstable_by_key(|range| range.start);
    let mut regions = Vec::new();
    for section in sections {
        let mut at = section.start;
        for function in known.iter().filter(|one| section.contains(&one.start)) {
            if at < function.start {
                regions.push((at..function.start, false));
            }
            at = at.max(function.end).min(section.end);
            regions.push((function.start..function.end.min(section.end), true));
        }
        regions.push((at..section.end, false));
    }
    regions
}

/// Returns the starts and ends of functions that are not in the table, because they make no calls and
/// do not change the stack pointer. They are found where a function calls them, jumps to them or takes
/// their address; `known` are the functions in the table, sorted by their starts.
fn leaves(
    image: &[u8],
    known: &[Range<usize>],
    sections: &[Range<usize>],
) -> BTreeMap<usize, usize> {
    let mut found = BTreeMap::new();
    let mut waiting = known.to_vec();
    while let Some(function) = waiting.pop() {
        for instruction in decode(image, function) {
            let target = match instruction.flow_control() {
                _ if instruction.mnemonic() == Mnemonic::Lea => instruction.ip_rel_memory_address(),
                FlowControl::Call
                | FlowControl::UnconditionalBranch
                | FlowControl::ConditionalBranch => instruction.near_branch_target(),
                _ => continue,
            };
            let target = usize::try_from(target).unwrap_or(usize::MAX);
            let after = known.partition_point(|function| function.start <= target);
            let is_known = after > 0 && known[after - 1].contains(&target);
            let is_found = found.range(..=target).next_back().is_some_and(|(_, end)| *end > target);
            let section = sections.iter().find(|section| section.contains(&target));
            if let (Some(section), false) = (section, is_known || is_found) {
                let next = known.get(after).map_or(section.end, |next| next.start);
                let end = end_of(image, target..next.min(section.end));
                found.insert(target, end);
                waiting.push(target..end);
            }
        }
    }
    found
}

/// Decodes code of an image that is at address 0.
fn decode(image: &[u8], code: Range<usize>) -> impl Iterator<Item = Instruction> {
    let start = code.start as u64;
    let bytes = image.get(code).unwrap_or_default();
    Decoder::with_ip(64, bytes, start, DecoderOptions::NONE).into_iter()
}

/// Returns the end of the first instruction in a range after which code does not continue, or the end
/// of the range.
fn end_of(image: &[u8], code: Range<usize>) -> usize {
    let last = decode(image, code.clone()).find(|instruction| {
        let is_fast_fail = instruction.code() == Code::Int_imm8 && instruction.immediate8() == 0x29;
        is_fast_fail
            || instruction.is_invalid()
            || matches!(
                instruction.flow_control(),
                FlowControl::Return
                    | FlowControl::UnconditionalBranch
                    | FlowControl::IndirectBranch
            )
    });
    last.map_or(code.end, |last| usize::try_from(last.next_ip()).unwrap_or(code.end))
}

/// Returns the fault that an instruction stands for, if Windows would not report it. Outside
/// functions, only a form that data hardly ever has is recognized.
fn unreported(instruction: &Instruction, is_function: bool) -> Option<Fault> {
    /// The interrupts that Windows serves: a fast fail, a failed assertion and a debugger call.
    const SERVED: [u8; 3] = [0x29, 0x2C, 0x2D];
    const CALLS: [u8; 2] = [0x2E, 0x80];
    let has_memory = (0..instruction.op_count())
        .any(|number| instruction.op_kind(number) == OpKind::Memory && !instruction.is_invalid());
    if has_memory && instruction.segment_prefix() == Register::GS {
        let is_absolute = instruction.memory_base() == Register::None
            && instruction.memory_index() == Register::None;
        let is_load = is_function && instruction.mnemonic() == Mnemonic::Mov;
        return (is_absolute || is_load).then_some(Fault::Read);
    }
    match instruction.code() {
        _ if !is_function => None,
        Code::Syscall | Code::Sysenter => Some(Fault::SystemCall),
        Code::Int_imm8 if CALLS.contains(&instruction.immediate8()) => Some(Fault::SystemCall),
        Code::Int_imm8 if SERVED.contains(&instruction.immediate8()) => Some(Fault::Protection),
        _ => None,
    }
}

/// Returns the fault that a breakpoint stands for, if it replaces an instruction.
pub fn fault_at(address: u64) -> Option<Fault> {
    REPLACED.read().get(&address).map(|(fault, _)| *fault)
}

/// Restores the replaced instructions in code that was read at an address.
pub fn restore(address: u64, code: &mut [u8]) {
    let end = address.saturating_add(code.len() as u64);
    for (at, (_, first)) in REPLACED.read().range(address..end) {
        let byte = usize::try_from(at - address).ok().and_then(|offset| code.get_mut(offset));
        if let Some(byte) = byte {
            *byte = *first;
        }
    }
}

/// Returns the reason that this host executes an instruction in an image that makes a system call
/// although [`replace_instructions`] has not found it.
#[expect(clippy::unnecessary_wraps, reason = "other hosts report all calls")]
pub const fn unreported_calls() -> Option<&'static str> {
    Some(
        "they are outside the functions that the image lists, where Windows would make the call \
         instead of reporting the instruction",
    )
}

/// Returns a phrase with the number of a system call.
pub fn call_name(number: u64) -> String {
    format!("with the number {number}")
}

/// Makes system calls by images on this thread fault from now on, if the system supports that.
pub const fn report_on_this_thread() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_without_an_entry_are_found_where_others_refer_to_them() {
        // call +3; ret; int3; int3; then, without an entry, int 29h; and after it, without a reference, int 29h.
        let code =
            [0xE8, 3, 0, 0, 0, 0xC3, BREAKPOINT, BREAKPOINT, 0xCD, 0x29, BREAKPOINT, 0xCD, 0x29];
        let (bytes, _kept) = replaced(0x100_0000, &code, 6);
        assert_eq!((bytes[8], bytes[11]), (BREAKPOINT, 0xCD));
        assert_eq!(fault_at(0x100_1008), Some(Fault::Protection));
    }

    /// Replaces the instructions of code at the offset 0x1000, of which the first `length` bytes are
    /// a function.
    fn replaced(base: u64, code: &[u8], length: u32) -> (Vec<u8>, Replaced) {
        let mut image = vec![0; 0x2000];
        image[0x1000..0x1000 + code.len()].copy_from_slice(code);
        image[..4].copy_from_slice(&0x1000_u32.to_le_bytes());
        image[4..8].copy_from_slice(&(0x1000 + length).to_le_bytes());
        let functions = Table::new(image.clone(), 0, 12);
        let replaced = replace_instructions(&mut image, base, &functions, &[0x1000..0x2000]);
        (image[0x1000..0x1000 + code.len()].to_vec(), replaced)
    }

    #[test]
    fn instructions_that_windows_does_not_report_are_breakpoints() {
        // mov rax, gs:[188h]; mov rax, gs:[rcx]; add gs:[rax], al; and the same without a function.
        const THREAD: &[u8] = &[0x65, 0x48, 0x8B, 0x04, 0x25, 0x88, 0x01, 0, 0];
        for (number, (code, is_function, fault)) in [
            (THREAD, true, Some(Fault::Read)),
            (THREAD, false, Some(Fault::Read)),
            (&[0x65, 0x48, 0x8B, 0x01], true, Some(Fault::Read)),
            (&[0x65, 0x48, 0x8B, 0x01], false, None),
            (&[0x65, 0x48, 0x00, 0x00], true, None),
            (&[0x0F, 0x05], true, Some(Fault::SystemCall)),
            (&[0x0F, 0x05], false, None),
            (&[0xCD, 0x29], true, Some(Fault::Protection)),
            (&[0x48, 0x8B, 0x01], true, None),
        ]
        .into_iter()
        .enumerate()
        {
            let base = 0x1_0000 * (number as u64 + 1);
            let length = if is_function { code.len() as u32 } else { 0 };
            let (mut bytes, kept) = replaced(base, code, length);
            let at = base + 0x1000;
            assert_eq!(fault_at(at), fault, "{code:X?}");
            assert_eq!(bytes[0] == BREAKPOINT, fault.is_some(), "{code:X?}");
            restore(at, &mut bytes);
            assert_eq!(bytes, code);
            drop(kept);
            assert_eq!(fault_at(at), None);
        }
    }
}
