//! Tests with constructed unwind data, with damaged data, and with driver images.

use std::fmt::Write as _;

use object::{
    pe::IMAGE_DIRECTORY_ENTRY_EXCEPTION,
    read::pe::{ImageNtHeaders, ImageOptionalHeader, PeFile64},
};

use super::{
    End, Frame, MAX_FRAMES, Registers, Table,
    info::{Entry, Info, Malformed, Operation},
    walk,
};

const BASE: u64 = 0x1_4000_0000;
const STACK: u64 = 0x7000_0000;

/// Returns an image with a function at 0x100 to 0x140 and the function's unwind information at
/// 0x200.
fn image(code: &[u8], info: &[u8]) -> Table {
    let mut bytes = vec![0x90; 0x1000];
    bytes[0x100..0x100 + code.len()].copy_from_slice(code);
    bytes[0x200..0x200 + info.len()].copy_from_slice(info);
    let entry = [0x100_u32, 0x140, 0x200].map(u32::to_le_bytes).concat();
    bytes[0x300..0x30C].copy_from_slice(&entry);
    Table::new(bytes, 0x300, 12)
}

/// Reads a word of a stack that starts at [`STACK`] and whose words are their own indexes.
fn numbered(address: u64) -> Option<u64> {
    let offset = address.checked_sub(STACK)?;
    (offset < 0x10000).then_some(offset / 8)
}

/// Returns registers at this offset in the function, with the stack pointer at the stack's start.
fn at(offset: u64) -> Registers {
    let mut registers = Registers { rip: BASE + 0x100 + offset, general: [0xAA; 16] };
    registers.set_rsp(STACK);
    registers
}

/// Unwinds one frame and returns rip, the number of words popped off the stack, and the registers
/// rbx, rbp and r12.
fn unwound(table: &Table, registers: Registers, is_return: bool) -> [u64; 5] {
    let mut registers = registers;
    table.unwind(BASE, &mut registers, is_return, numbered).unwrap();
    [
        registers.rip,
        (registers.rsp() - STACK) / 8,
        registers.get(3),
        registers.get(5),
        registers.get(12),
    ]
}

#[test]
fn each_operation_is_reversed() {
    let old = 0xAA;
    let rows: [(&[u8], [u64; 5]); 7] = [
        // push rbx; push r12, in the codes' order: the last instruction first.
        (&[1, 4, 2, 0, 3, 0xC0, 1, 0x30], [2, 3, 1, old, 0]),
        // sub rsp, 0x28 (small); push rbp
        (&[1, 8, 2, 0, 8, 0x42, 1, 0x50], [6, 7, old, 5, old]),
        // sub rsp, 0x100 (large, 16 bits)
        (&[1, 8, 2, 0, 8, 0x01, 0x20, 0], [0x20, 0x21, old, old, old]),
        // sub rsp, 0x8000 (large, 32 bits)
        (&[1, 8, 3, 0, 8, 0x11, 0, 0x80, 0, 0], [0x1000, 0x1001, old, old, old]),
        // mov [rsp+0x40], rbx; sub rsp, 0x20
        (&[1, 8, 3, 0, 8, 0x34, 8, 0, 4, 0x32], [4, 5, 8, old, old]),
        // mov [rsp+0x50], r12 with a far offset; movaps [rsp+0x10], xmm6; sub rsp, 8
        (&[1, 9, 6, 0, 9, 0xC5, 0x50, 0, 0, 0, 6, 0x68, 1, 0, 4, 0x02], [1, 2, old, old, 10]),
        // Version 2, with the position of an epilogue and padding: push rbx
        (&[2, 4, 3, 0, 2, 0x16, 0, 0x06, 1, 0x30], [1, 2, 0, old, old]),
    ];
    for (info, expected) in rows {
        assert_eq!(unwound(&image(&[], info), at(0x30), true), expected, "{info:02x?}");
    }
}

#[test]
fn a_machine_frame_has_the_registers() {
    // If there is an error code, rip is the second word and rsp the fifth.
    let table = image(&[], &[1, 0, 1, 0, 0, 0x1A]);
    let mut registers = at(0x30);
    table.unwind(BASE, &mut registers, true, numbered).unwrap();
    assert_eq!((registers.rip, registers.rsp()), (1, 4));
}

#[test]
fn a_frame_register_locates_the_frame() {
    // push rbp; sub rsp, 0x40; lea rbp, [rsp+0x20]. The function lowers rsp further later.
    let table = image(&[], &[1, 10, 3, 0x25, 10, 0x03, 5, 0x72, 1, 0x50]);
    let mut registers = at(0x30);
    registers.set(5, STACK + 0x1000 + 0x20);
    let words = 0x1000 / 8;
    assert_eq!(unwound(&table, registers, true), [words + 9, words + 10, 0xAA, words + 8, 0xAA]);
    // In the prologue, before the frame register is set, the frame is found from the stack pointer:
    // at first only the push has been executed, and then also the allocation.
    assert_eq!(unwound(&table, at(1), false), [1, 2, 0xAA, 0, 0xAA]);
    assert_eq!(unwound(&table, at(5), false), [9, 10, 0xAA, 8, 0xAA]);
    assert_eq!(unwound(&table, at(0), false), [0, 1, 0xAA, 0xAA, 0xAA]);
}

#[test]
fn the_rest_of_an_epilogue_is_executed_instead() {
    let info = [1, 8, 3, 0, 8, 0x42, 2, 0xC0, 1, 0x30];
    // add rsp, 0x28; pop r12; pop rbx; ret
    let code = [0x48, 0x83, 0xC4, 0x28, 0x41, 0x5C, 0x5B, 0xC3];
    let mut function = vec![0x90; 0x20];
    function.extend(code);
    let table = image(&function, &info);
    assert_eq!(unwound(&table, at(0x1F), false), [7, 8, 6, 0xAA, 5]);
    assert_eq!(unwound(&table, at(0x20), false), [7, 8, 6, 0xAA, 5]);
    assert_eq!(unwound(&table, at(0x24), false), [2, 3, 1, 0xAA, 0]);
    assert_eq!(unwound(&table, at(0x26), false), [1, 2, 0, 0xAA, 0xAA]);
    assert_eq!(unwound(&table, at(0x27), false), [0, 1, 0xAA, 0xAA, 0xAA]);
    // A return address is never in an epilogue, so the walk does not execute these bytes.
    assert_eq!(unwound(&table, at(0x26), true), [7, 8, 6, 0xAA, 5]);
    // A jump out of the function ends an epilogue; a jump inside the function does not.
    for (jump, is_end) in [([0xE9, 0, 0, 1, 0], true), ([0xEB, 0xF0, 0, 0, 0], false)] {
        let mut function = vec![0x90; 0x20];
        function.push(0x5B);
        function.extend(jump);
        let table = image(&function, &info);
        let expected = if is_end { [1, 2, 0, 0xAA, 0xAA] } else { [7, 8, 6, 0xAA, 5] };
        assert_eq!(unwound(&table, at(0x20), false), expected, "{jump:02x?}");
    }
}

#[test]
fn chained_entries_are_reversed_too() {
    let mut bytes = vec![0x90; 0x1000];
    let put = |bytes: &mut Vec<u8>, at: usize, what: &[u8]| {
        bytes[at..at + what.len()].copy_from_slice(what);
    };
    let entry = |words: [u32; 3]| words.map(u32::to_le_bytes).concat();
    // The function part at 0x140 pushes rbx and continues the function at 0x100, which pushes rbp.
    put(&mut bytes, 0x200, &[1, 1, 1, 0, 1, 0x50, 0, 0]);
    put(&mut bytes, 0x220, &[1 | 4 << 3, 1, 1, 0, 1, 0x30, 0, 0]);
    put(&mut bytes, 0x228, &entry([0x100, 0x140, 0x200]));
    let directory = [entry([0x100, 0x140, 0x200]), entry([0x140, 0x180, 0x220])].concat();
    put(&mut bytes, 0x300, &directory);
    let table = Table::new(bytes.clone(), 0x300, 24);
    assert_eq!(unwound(&table, at(0x50), true), [2, 3, 0, 1, 0xAA]);
    // A cyclic chain ends.
    put(&mut bytes, 0x228, &entry([0x140, 0x180, 0x220]));
    let table = Table::new(bytes, 0x300, 24);
    let end = table.unwind(BASE, &mut at(0x50), true, numbered);
    assert_eq!(end, Err(End::Malformed(Malformed::Chain(0x220))));
}

/// Returns the table of a part at 0x140 to 0x180 that continues the function at 0x100. The
/// arguments are the unwind information of both, and the part's code from offset 0x20.
fn with_a_part(function: &[u8], part: &[u8], code: &[u8]) -> Table {
    let mut bytes = vec![0x90; 0x1000];
    let mut put = |at: usize, what: &[u8]| bytes[at..at + what.len()].copy_from_slice(what);
    let entry = |words: [u32; 3]| words.map(u32::to_le_bytes).concat();
    put(0x160, code);
    put(0x200, function);
    put(0x220, part);
    put(0x220 + part.len(), &entry([0x100, 0x140, 0x200]));
    put(0x300, &entry([0x100, 0x140, 0x200]));
    put(0x30C, &entry([0x140, 0x180, 0x220]));
    Table::new(bytes, 0x300, 24)
}

#[test]
fn a_jump_from_a_part_into_its_function_is_no_tail_call() {
    // push rbp in the function, push rbx in the part.
    let (function, part) = ([1, 1, 1, 0, 1, 0x50], [1 | 4 << 3, 1, 1, 0, 1, 0x30, 0, 0]);
    // pop rbx; jmp to an offset in the image
    let jump = |to: i32| {
        let mut code = vec![0x5B, 0xE9];
        code.extend((to - 0x166).to_le_bytes());
        with_a_part(&function, &part, &code)
    };
    // The part's prologue is reversed first, then the function's prologue.
    assert_eq!(unwound(&jump(0x120), at(0x60), false), [2, 3, 0, 1, 0xAA]);
    // The jumps go to another function, and to the start of this one.
    for to in [0x400, 0x100] {
        assert_eq!(unwound(&jump(to), at(0x60), false), [1, 2, 0, 0xAA, 0xAA]);
    }
}

#[test]
fn a_tail_call_through_any_register_ends_an_epilogue() {
    let info = [1, 1, 1, 0, 1, 0x30];
    for rex in [0x48, 0x49, 0x4A, 0x4B] {
        let mut function = vec![0x90; 0x20];
        // pop rbx; jmp rdx or r10
        function.extend([0x5B, rex, 0xFF, 0xE2]);
        let table = image(&function, &info);
        assert_eq!(unwound(&table, at(0x21), false), [0, 1, 0xAA, 0xAA, 0xAA]);
    }
}

#[test]
fn the_registers_of_chained_entries_are_relative_to_one_frame() {
    // The function stores r12 at its frame + 0x40. The part pushes rbx. Offsets from the stack
    // pointer apply before the push is reversed.
    let function = [1, 4, 2, 0, 4, 0xC4, 8, 0];
    let part = [1 | 4 << 3, 1, 1, 0, 1, 0x30, 0, 0];
    let table = with_a_part(&function, &part, &[]);
    assert_eq!(unwound(&table, at(0x60), true), [1, 2, 0, 0xAA, 8]);
}

#[test]
fn the_instruction_of_a_machine_frame_was_not_called() {
    let table = image(&[], &[1, 0, 1, 0, 0, 0x0A, 0, 0]);
    let mut registers = at(0x30);
    assert_eq!(table.unwind(BASE, &mut registers, true, numbered), Ok(false));
    let step = |registers: &mut Registers, is_return| {
        // rip is the first word and rsp the fourth.
        table.unwind(BASE, registers, is_return, |address| match address - STACK {
            0 => Some(BASE + 0x138),
            24 => Some(STACK + 0x100),
            _ => Some(0x1234),
        })
    };
    let (frames, _) = walk(at(0x30), true, 9, step);
    assert_eq!((frames[0].is_return, frames[1].is_return), (true, false));
}

#[test]
fn a_walk_ends_where_the_stack_does() {
    let table = image(&[], &[1, 1, 1, 0, 1, 0x30, 0, 0]);
    let step = |registers: &mut Registers, is_return| {
        table.unwind(BASE, registers, is_return, |address| {
            let number = numbered(address)?;
            // The stack has two words per frame. The fourth frame returns to another address.
            Some(if number < 8 { BASE + 0x130 } else { 0x1234 })
        })
    };
    let (frames, end) = walk(at(0x30), false, 100, step);
    assert_eq!((frames.len(), end), (5, End::Left(0x1234)));
    assert!(!frames[0].is_return && frames[1].is_return);
    assert_eq!(frames[4], Frame { address: BASE + 0x130, is_return: true });
    assert_eq!(walk(at(0x30), false, 3, step).1, End::TooMany(3));
    // A walk of a stack that always returns into the function reaches the limit. A stack pointer
    // that decreases ends the walk.
    let endless = |registers: &mut Registers, is_return| {
        table.unwind(BASE, registers, is_return, |_| Some(BASE + 0x130))
    };
    let (frames, end) = walk(at(0x30), false, usize::MAX, endless);
    assert_eq!((frames.len(), end), (MAX_FRAMES, End::TooMany(MAX_FRAMES)));
    let machine = image(&[], &[1, 0, 1, 0, 0, 0x0A, 0, 0]);
    let falling = |registers: &mut Registers, is_return| {
        machine.unwind(BASE, registers, is_return, |_| Some(BASE + 0x130))
    };
    let mut registers = at(0x30);
    registers.set_rsp(u64::MAX - 64);
    assert!(matches!(walk(registers, true, 9, falling).1, End::Backwards(_)));
    let unreadable = walk(at(0x30), true, 9, |registers, is_return| {
        table.unwind(BASE, registers, is_return, |_| None)
    });
    assert_eq!(unreadable.1, End::Unreadable(STACK));
}

#[test]
fn damaged_data_ends_a_walk_and_nothing_else() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut ends = [0_u32; 3];
    for _ in 0..20_000 {
        let mut bytes: Vec<u8> = (0..0x400).map(|_| random.u8(..)).collect();
        // The entries are plausible, so that the walk reads the information to which they refer.
        for number in 0..random.usize(..8) {
            let start = u32::try_from(number * 0x40).unwrap();
            let info = if random.bool() { random.u32(..0x420) & !3 } else { random.u32(..) };
            let entry = [start, start + 0x40, info].map(u32::to_le_bytes).concat();
            bytes[0x300 + number * 12..][..12].copy_from_slice(&entry);
            if let Some(byte) = bytes.get_mut(info as usize) {
                *byte = 1 + random.u8(..2) + (random.u8(..4) << 5);
            }
        }
        let table = Table::new(bytes, 0x300, random.u32(..0x180));
        let mut registers = Registers::default();
        registers.general.fill_with(|| random.u64(..));
        registers.set_rsp(STACK);
        registers.rip = BASE + random.u64(..0x500);
        let words: Vec<u64> = (0..64).map(|_| BASE + random.u64(..0x400)).collect();
        let (frames, end) = walk(registers, random.bool(), 64, |registers, is_return| {
            table.unwind(BASE, registers, is_return, |address| {
                let at = usize::try_from(address.checked_sub(STACK)? / 8).ok()?;
                words.get(at).copied()
            })
        });
        assert!(frames.len() <= 64);
        ends[match end {
            End::Malformed(_) => 0,
            End::Unreadable(_) => 1,
            End::Left(_) | End::Backwards(_) | End::TooMany(_) => 2,
        }] += 1;
    }
    assert!(ends.iter().all(|count| *count > 4), "{ends:?}");
}

/// The functions of a driver's image.
fn functions(driver: &str) -> Table {
    let path = etw_test_support::drivers("release").join(driver);
    let data = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let pe = PeFile64::parse(&*data).unwrap();
    let size = pe.nt_headers().optional_header().size_of_image() as usize;
    let mut bytes = vec![0; size];
    for section in pe.section_table().iter() {
        let (at, length) = section.pe_file_range();
        let from = &data[at as usize..][..length as usize];
        let to = section.virtual_address.get(object::LittleEndian) as usize;
        bytes[to..to + from.len()].copy_from_slice(from);
    }
    let directory = pe.data_directory(IMAGE_DIRECTORY_ENTRY_EXCEPTION).unwrap();
    let (start, length) = directory.address_range();
    Table::new(bytes, start, length)
}

/// Describes unwind information in the format of the third-party reader's script.
fn described(entry: Entry, info: &Info) -> String {
    const NAMES: [&str; 16] = [
        "RAX", "RCX", "RDX", "RBX", "RSP", "RBP", "RSI", "RDI", "R8", "R9", "R10", "R11", "R12",
        "R13", "R14", "R15",
    ];
    let name = |number: u8| NAMES[usize::from(number)];
    let mut text = format!("{:x} {:x} v{} {}", entry.begin, entry.end, info.version, info.prologue);
    for code in &info.codes {
        write!(text, " {}:", code.offset).unwrap();
        match code.operation {
            Operation::Push(register) => write!(text, "push {}", name(register)),
            Operation::Allocate(size) => write!(text, "alloc {size}"),
            Operation::SetFrame => {
                let (register, above) = info.frame.unwrap();
                write!(text, "frame {}+{above}", name(register))
            }
            Operation::Save { register, offset } => {
                write!(text, "save {} {offset}", name(register))
            }
            Operation::SaveXmm { register, offset } => write!(text, "save XMM{register} {offset}"),
            Operation::MachineFrame(error) => write!(text, "machine {error}"),
        }
        .unwrap();
    }
    text
}

// The third-party reader is pefile.
#[test]
fn a_third_party_reader_finds_the_same_unwind_data() {
    for driver in ["etw_sample_driver.sys", "etw_rules_driver.sys", "etw_kmdf_driver.sys"] {
        let table = functions(driver);
        let entries = (0..).map_while(|number| table.entry(number));
        let ours: Vec<String> =
            entries.map(|entry| described(entry, &table.info(entry).unwrap())).collect();
        let script = etw_test_support::oracle("unwind_dump.py");
        let path = etw_test_support::drivers("release").join(driver);
        let output = String::from_utf8(etw_test_support::run_python([script, path])).unwrap();
        let theirs: Vec<&str> = output.lines().collect();
        assert!(ours.len() > 50, "{driver}: {}", ours.len());
        assert_eq!(ours, theirs, "{driver}");
    }
}
