//! The instructions with which inline functions of the WDK headers read and set the processor's state:
//! the IRQL in CR8, the processor control region through GS, and the shared user data page.
//!
//! Each such instruction faults, and this module serves its access. CR8 is the thread's IRQL, and a
//! write to it is a call that raises or lowers the IRQL. To load from the region or page, the
//! thread executes a copy of the instruction whose operand is in this program's memory. The
//! processor therefore sets registers, widths and flags correctly for any instruction that the
//! compiler chose.

use std::{cell::RefCell, cmp::Ordering, ptr::NonNull, rc::Rc};

use iced_x86::{
    Code, Decoder, DecoderOptions, Encoder, FlowControl, IcedError, Instruction,
    InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};

use super::{
    call::Preserved,
    context::Context,
    frame::Frame,
    origin::origin,
    protection::{code_at, text, value},
    thread::{self, Thread},
};
use crate::ground::{
    arena::PAGE,
    host::{Mapping, protection::Protection},
    irql::Irql,
    processor_block::{self, ProcessorBlock},
    rule::Rule,
    shared_data,
};

/// The name that a thread's call history uses for a write to CR8.
const WRITE_CR8: &str = "mov cr8";

/// `KMODE_EXCEPTION_NOT_HANDLED`, and the status for a general-protection fault.
const EXCEPTION_NOT_HANDLED: u32 = 0x1E;
const ACCESS_VIOLATION: u64 = 0xC000_0005;

thread_local! {
    static SLOT: RefCell<Option<Slot>> = const { RefCell::new(None) };
}

/// Serves an instruction's access, so that the driver continues after the instruction. Bugchecks if
/// the kernel does not provide the accessed data. If the instruction makes no such access, returns
/// `false`; the frame then contains the fault.
pub fn serve(frame: &mut Frame) -> bool {
    let trap = &mut frame.trap;
    let original = SLOT.with_borrow(|slot| slot.as_ref()?.original_of(trap.registers.rip));
    if let Some(original) = original {
        // The load was served, but the copied instruction faulted for another reason.
        trap.registers.rip = original;
        return false;
    }
    let code = code_at(trap.registers.rip);
    let mut decoder = Decoder::with_ip(64, &code, trap.registers.rip, DecoderOptions::NONE);
    let instruction = decoder.decode();
    let thread = thread::current();
    match instruction.code() {
        Code::Mov_r64_cr => {
            let value = match instruction.op1_register() {
                Register::CR8 => u64::from(thread.irql().number()),
                Register::CR0 => CR0,
                Register::CR4 => CR4,
                _ => return false,
            };
            if instruction.op1_register() != Register::CR8 {
                let (_, place) = origin(&thread, frame.trap.registers);
                let sentence = format!(
                    "`{}` in {place} reads a register whose bits Microsoft documents no driver to need; its \
                     value here is the usual one of Windows",
                    text(&instruction)
                );
                thread.host().warn_once(Rule::ControlRegister, &sentence);
            }
            read(&instruction, frame, value);
            true
        }
        Code::Mov_cr_r64 if instruction.op0_register() == Register::CR8 => {
            write_cr8(&thread, &instruction, frame);
            true
        }
        Code::INVALID => false,
        _ => load(&thread, &instruction, frame),
    }
}

/// The values of CR0 (`PE`, `MP`, `ET`, `NE`, `WP`, `AM` and `PG`) and of CR4 (`DE` to `OSXMMEXCPT` except
/// `PCE`, `OSXSAVE`, `SMEP` and `SMAP`) of a processor that runs Windows.
const CR0: u64 = 0x8005_0033;
const CR4: u64 = 0x0034_06F8;

/// Stores a control register's value in a register.
fn read(instruction: &Instruction, frame: &mut Frame, value: u64) {
    let register = instruction.op0_register();
    if register == Register::RSP {
        frame.rsp = value;
    } else if let Some(place) = frame.general.get_mut(register.number()) {
        *place = value;
    }
    frame.rip = instruction.next_ip();
}

/// Raises or lowers the IRQL to the value of a register.
fn write_cr8(thread: &Rc<Thread>, instruction: &Instruction, frame: &mut Frame) {
    let registers = frame.trap.registers;
    let wanted = value(instruction.op1_register(), &registers).unwrap_or(u64::MAX);
    let number = u8::try_from(wanted).ok().filter(|number| *number <= 15);
    let Some(number) = number else {
        let (backtrace, place) = origin(thread, registers);
        thread.bugcheck(
            EXCEPTION_NOT_HANDLED,
            [ACCESS_VIOLATION, registers.rip, 0, u64::MAX],
            format!(
                "`{}` with 0x{wanted:X}, which is not an IRQL, at {}, in {place}",
                text(instruction),
                thread.irql()
            ),
            &backtrace,
        );
    };
    let to = Irql::from_number(number);
    let [_, _, _, rbx, rsp, rbp, rsi, rdi, _, _, _, _, r12, r13, r14, r15] = registers.general;
    let preserved = Preserved { low: [rbx, rbp, rsi, rdi], high: [r12, r13, r14, r15] };
    // A call would push a return address below rsp; this instruction does not.
    let stack = rsp.wrapping_sub(8);
    let call = thread.enter(WRITE_CR8, instruction.next_ip(), stack, preserved);
    let context = Context::new(Rc::clone(thread), call);
    match to.cmp(&thread.irql()) {
        Ordering::Greater => {
            context.raise_irql(to);
        }
        Ordering::Less => context.lower_irql(to),
        Ordering::Equal => {}
    }
    thread.leave();
    frame.rip = instruction.next_ip();
}

/// The location of data that the kernel serves after a fault.
#[derive(Clone, Copy)]
enum Place {
    /// The processor control region.
    Processor(u64),
    /// The shared user data page.
    Shared(u64),
}

impl Place {
    fn from_address(address: u64) -> Option<Self> {
        let shared = shared_data::ADDRESSES;
        if shared.contains(&address) {
            return Some(Self::Shared(address - shared.start));
        }
        processor_block::offset_of(address).map(Self::Processor)
    }

    /// Returns the bytes at the location, if the kernel provides them.
    fn read(self, thread: &Rc<Thread>, length: usize) -> Option<Vec<u8>> {
        match self {
            Self::Processor(offset) => {
                let block = ProcessorBlock {
                    number: thread.processor(),
                    thread: thread.host().thread_object(thread),
                };
                block.read(offset, length)
            }
            Self::Shared(offset) => thread.host().shared_data().read(offset, length),
        }
    }

    fn describe(self) -> String {
        match self {
            Self::Processor(offset) => {
                format!("gs:[0x{offset:X}], in the processor's block (KPCR),")
            }
            Self::Shared(offset) => {
                format!("offset 0x{offset:X} of the shared user data page (KUSER_SHARED_DATA)")
            }
        }
    }
}

/// Makes the driver continue with a copy of an instruction that loads from a [`Place`]. Returns
/// `false` if the instruction does not access one.
fn load(thread: &Rc<Thread>, instruction: &Instruction, frame: &mut Frame) -> bool {
    let trap = &frame.trap;
    let mut factory = InstructionInfoFactory::new();
    let used = factory.info(instruction).used_memory();
    let mut places = used.iter().filter_map(|memory| {
        let address =
            memory.virtual_address(0, |register, _, _| value(register, &trap.registers))?;
        Some((Place::from_address(address)?, memory.access(), memory.memory_size().size()))
    });
    let Some((place, access, size)) = places.next() else {
        return false;
    };
    let is_load = matches!(access, OpAccess::Read | OpAccess::CondRead)
        && places.next().is_none()
        && is_plain(instruction);
    let bytes = is_load.then(|| place.read(thread, size)).flatten();
    let Some(bytes) = bytes else {
        let what = match access {
            OpAccess::Read | OpAccess::CondRead if size == 1 => "a read of 1 byte".to_owned(),
            OpAccess::Read | OpAccess::CondRead => format!("a read of {size} bytes"),
            _ => "a write".to_owned(),
        };
        let (backtrace, at) = origin(thread, trap.registers);
        thread.stop_at(
            Rule::NotProvided,
            format!(
                "{what} at {} by `{}` at {}, in {at}; the stand-in kernel does not provide it",
                place.describe(),
                text(instruction),
                thread.irql()
            ),
            &backtrace,
        );
    };
    let copied = SLOT.with_borrow_mut(|slot| {
        if slot.is_none() {
            *slot = Slot::new();
        }
        slot.as_mut()?.copy(instruction, &bytes)
    });
    if let Some(copied) = copied {
        frame.rip = copied;
    }
    copied.is_some()
}

/// Returns whether a copy of an instruction, at another address and with another memory operand, is
/// equivalent.
fn is_plain(instruction: &Instruction) -> bool {
    let has_operand =
        (0..instruction.op_count()).any(|number| instruction.op_kind(number) == OpKind::Memory);
    // A bit test with a register operand can access memory beyond its memory operand.
    let is_far_bit_test =
        instruction.mnemonic() == Mnemonic::Bt && instruction.op1_kind() == OpKind::Register;
    has_operand && instruction.flow_control() == FlowControl::Next && !is_far_bit_test
}

/// One thread's memory for the copy of an instruction and its operand.
struct Slot {
    mapping: Mapping,
    /// The address of the most recently copied instruction.
    original: u64,
}

impl Slot {
    /// The offset of the operand.
    const OPERAND: usize = 2048;

    fn new() -> Option<Self> {
        let mapping = Mapping::new(PAGE).ok()?;
        // Each use writes the slot first. Changing its protection each time would interrupt all
        // processors that run this program.
        mapping.protect(0, PAGE, Protection::ReadWriteExecute).ok()?;
        Some(Self { mapping, original: 0 })
    }

    fn address(&self) -> u64 {
        self.mapping.address()
    }

    /// Returns the address of the instruction whose copy is at this address.
    fn original_of(&self, address: u64) -> Option<u64> {
        (address == self.address()).then_some(self.original)
    }

    /// Copies an instruction with `operand` as its memory operand, followed by a jump back to the
    /// driver. Returns the copy's address, or `None` if the instruction cannot be copied.
    fn copy(&mut self, instruction: &Instruction, operand: &[u8]) -> Option<u64> {
        let code = self.encode(instruction).ok()?;
        if code.len() > Self::OPERAND || operand.len() > PAGE - Self::OPERAND {
            return None;
        }
        self.write(0, &code);
        self.write(Self::OPERAND, operand);
        self.original = instruction.ip();
        Some(self.address())
    }

    fn encode(&self, instruction: &Instruction) -> Result<Vec<u8>, IcedError> {
        /// `jmp [rip]`, which jumps to the address that follows it.
        const JUMP: [u8; 6] = [0xFF, 0x25, 0, 0, 0, 0];
        let mut copy = *instruction;
        // Instructions with an absolute address have no equivalent form that is relative to rip.
        copy.set_code(match instruction.code() {
            Code::Mov_AL_moffs8 => Code::Mov_r8_rm8,
            Code::Mov_AX_moffs16 => Code::Mov_r16_rm16,
            Code::Mov_EAX_moffs32 => Code::Mov_r32_rm32,
            Code::Mov_RAX_moffs64 => Code::Mov_r64_rm64,
            other => other,
        });
        copy.set_segment_prefix(Register::None);
        copy.set_memory_base(Register::RIP);
        copy.set_memory_index(Register::None);
        copy.set_memory_index_scale(1);
        copy.set_memory_displ_size(8);
        copy.set_memory_displacement64(self.address() + Self::OPERAND as u64);
        let mut encoder = Encoder::new(64);
        encoder.encode(&copy, self.address())?;
        let mut code = encoder.take_buffer();
        code.extend(JUMP);
        code.extend(instruction.next_ip().to_le_bytes());
        Ok(code)
    }

    fn write(&self, offset: usize, bytes: &[u8]) {
        let to = self.mapping.at_offset(offset);
        // SAFETY: the callers pass offsets and lengths within the mapping, which is writable and
        // belongs to this thread, and no code runs in it now.
        unsafe { to.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
    }
}
