//! The gateways from the driver into the kernel.
//!
//! A driver calls every routine through a gateway: a few instructions, generated once per process,
//! that leave the driver's stack and pass the routine to [`serve`]. Only [`serve`] makes the checks
//! that apply to every call (the IRQL limit, the thread's call history), and creates the call's
//! context, which the routine receives with its arguments.

use std::{collections::HashMap, ffi::c_void, num::NonZeroUsize, ptr::NonNull, rc::Rc};

use iced_x86::code_asm::{
    CodeAssembler, eax, qword_ptr, r8, r9, r10, r11, r12, r13, r14, r15, rax, rbp, rbx, rcx, rdi,
    rdx, rsi, rsp,
};
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, mprotect};

use super::{
    call::{Call, Entered},
    context::Context,
    routine::{MAX_ARGUMENTS, Registers, Type},
    stack, thread,
};
use crate::ground::{flight, irql::Irql, rule::Rule, signals};

/// A routine that a driver can call.
pub struct Entry {
    /// The routine's module.
    pub module: &'static str,
    /// The routine's name.
    pub name: &'static str,
    /// The highest IRQL at which the routine may be called.
    pub ceiling: Irql,
    /// The types of the routine's parameters.
    pub parameters: &'static [Type],
    /// The type of the routine's result.
    pub result: Type,
    /// Serves a call. Unused argument registers are zero.
    pub serve: Box<dyn Fn(Context, Registers) -> u64 + Send + Sync>,
}

/// The module, name and address of a routine that compilers call implicitly, such as `memcpy`. It
/// has no gateway, no IRQL limit, and no entry in a thread's call history.
pub type BareRoutine = (&'static str, &'static str, u64);

/// The gateways of a table of routines.
pub struct Gateways {
    /// The routines.
    entries: &'static [Entry],
    /// The gateways' addresses by module, in the order of the table.
    by_module: HashMap<&'static str, Vec<u64>>,
    /// The routines that imports can be bound to: module, name, address.
    importable: Vec<(&'static str, &'static str, u64)>,
}

impl Gateways {
    /// Generates a gateway for each routine. Gateways live as long as the process. Imports can be
    /// bound only to the routines of the modules that `importable` names.
    pub fn generate(entries: Vec<Entry>, bare: Vec<BareRoutine>, importable: &[&str]) -> Self {
        let entries: &'static [Entry] = entries.leak();
        let code: Vec<Vec<u8>> = entries.iter().map(assemble).collect();
        let addresses = place(&code);
        let mut by_module: HashMap<&str, Vec<u64>> = HashMap::new();
        // The routines that compilers call implicitly come first.
        let mut bound = bare;
        for (entry, address) in entries.iter().zip(addresses) {
            by_module.entry(entry.module).or_default().push(address);
            if importable.contains(&entry.module) {
                bound.push((entry.module, entry.name, address));
            }
        }
        Self { entries, by_module, importable: bound }
    }

    /// Returns the routines.
    pub const fn entries(&self) -> &'static [Entry] {
        self.entries
    }

    /// Returns the address to which an import is bound. Module names are compared without regard to
    /// case, as in the Windows loader.
    pub fn find(&self, module: &str, name: &str) -> Option<u64> {
        self.importable
            .iter()
            .find(|(its_module, its_name, _)| {
                its_module.eq_ignore_ascii_case(module) && *its_name == name
            })
            .map(|(_, _, address)| *address)
    }

    /// Returns the gateways of a module's routines, in the table's order.
    pub fn of_module(&self, module: &str) -> &[u64] {
        self.by_module.get(module).map_or(&[], Vec::as_slice)
    }
}

/// Serves a driver's call: creates its context, makes the checks that apply to every call, and
/// calls the routine. `stack` is the driver's stack pointer, which points to the return address.
/// `entered` has the driver's registers and flags at the call.
///
/// # Safety
///
/// `stack` must point to the return address in a frame of the current thread's driver. The
/// arguments of the entry's routine, at least four, must be above the return address. Only gateways
/// call this function, and they set up the frame this way.
unsafe extern "win64" fn serve(
    entry: &'static Entry,
    return_address: u64,
    stack: u64,
    entered: &Entered,
) -> u64 {
    // The call is recorded first, because the driver may have corrupted the thread's state.
    let caller = || {
        let call = Call { return_address, stack, preserved: entered.preserved, ..Call::NONE };
        (call.registers(), stack::top_of(stack))
    };
    // SAFETY: the caller guarantees that the stack pointer is in the current thread's driver stack.
    unsafe { flight::note_call(entry.name, caller) };
    let thread = thread::current();
    let call = thread.enter(entry.name, return_address, stack, entered.preserved);
    if entered.flags & u64::from(signals::DIRECTION) != 0 {
        let sentence = "with the direction flag set, which the calling convention requires to be clear; the \
                        kernel has cleared it";
        let host = thread.host();
        host.warn(&thread, call, Rule::DirectionFlag, sentence);
    }
    if call.irql > entry.ceiling {
        thread.stop(
            Rule::irql_of(entry.name),
            format!(
                "{} was called at {} from {}; it may be called at IRQL <= {}",
                entry.name,
                call.irql,
                thread.place(return_address),
                entry.ceiling
            ),
        );
    }
    let mut arguments = [0; MAX_ARGUMENTS];
    let places = (stack + 8..).step_by(8).take(entry.parameters.len());
    for (argument, place) in arguments.iter_mut().zip(places) {
        // SAFETY: the caller's frame has home space for four arguments above the return address,
        // which the gateway has filled; the arguments beyond four, if the routine has more, follow.
        *argument = unsafe { (place as *const u64).read() };
    }
    let result = (entry.serve)(Context::new(Rc::clone(&thread), call), arguments);
    thread.leave();
    result
}

/// Assembles a gateway. It stores the register arguments in their home space, before the other
/// arguments, switches from the driver's stack to this program's stack, and calls [`serve`] with
/// the routine's entry, the return address, the driver's stack pointer, and the registers that a
/// stack walk needs to find the driver's frames. The code is position-independent.
fn assemble(entry: &'static Entry) -> Vec<u8> {
    /// The home space for the callee's register arguments.
    const SHADOW: i32 = 0x20;
    /// The space for [`Entered`], and the offset of the flags in it.
    const ENTERED: i32 = 0x50;
    const FLAGS: i32 = 0x40;
    const { assert!(size_of::<Entered>() == 0x50, "the gateways store it") };
    let to_clear = i32::try_from(signals::CLEAR_FLAGS).unwrap_or(0);
    let range = i32::try_from(stack::RANGE).unwrap_or(i32::MAX);
    let serve = serve as *const () as u64;
    let build = || -> Result<Vec<u8>, iced_x86::IcedError> {
        let mut a = CodeAssembler::new(64)?;
        for (place, register) in [(8, rcx), (0x10, rdx), (0x18, r8), (0x20, r9)] {
            a.mov(qword_ptr(rsp + place), register)?;
        }
        // r10: the driver's stack pointer; r11: the end of the range that contains its stack.
        a.mov(r10, rsp)?;
        a.mov(r11, rsp)?;
        a.and(r11, -range)?;
        a.add(r11, range)?;
        a.mov(rsp, qword_ptr(r11 + stack::HOST))?;
        a.push(r11)?;
        a.push(qword_ptr(r11 + stack::DRIVER))?;
        // A routine may call the driver, which then continues below this stack pointer.
        a.mov(qword_ptr(r11 + stack::DRIVER), r10)?;
        a.sub(rsp, SHADOW + ENTERED)?;
        let preserved = [rbx, rbp, rsi, rdi, r12, r13, r14, r15];
        for (place, register) in (SHADOW..).step_by(8).zip(preserved) {
            a.mov(qword_ptr(rsp + place), register)?;
        }
        // The driver's flags are stored and cleared, because this program's code cannot run with
        // some of them set.
        a.pushfq()?;
        a.pop(rax)?;
        a.mov(qword_ptr(rsp + SHADOW + FLAGS), rax)?;
        let mut is_clear = a.create_label();
        a.test(eax, to_clear)?;
        a.jz(is_clear)?;
        a.and(eax, !to_clear)?;
        a.push(rax)?;
        a.popfq()?;
        a.set_label(&mut is_clear)?;
        a.mov(rcx, std::ptr::from_ref(entry).addr() as u64)?;
        a.mov(rdx, qword_ptr(r10))?;
        a.mov(r8, r10)?;
        a.lea(r9, qword_ptr(rsp + SHADOW))?;
        a.mov(rax, serve)?;
        a.call(rax)?;
        a.add(rsp, SHADOW + ENTERED)?;
        a.pop(r10)?;
        a.pop(r11)?;
        a.mov(rcx, qword_ptr(r11 + stack::DRIVER))?;
        a.mov(qword_ptr(r11 + stack::DRIVER), r10)?;
        a.mov(rsp, rcx)?;
        a.ret()?;
        a.assemble(0)
    };
    build().expect("a fixed sequence of instructions always assembles")
}

/// Copies blocks of code into executable memory that lives as long as the process. Returns the
/// start of each block.
fn place(code: &[Vec<u8>]) -> Vec<u64> {
    const ALIGNMENT: usize = 16;
    let mut offsets = Vec::with_capacity(code.len());
    let mut length = 0_usize;
    for block in code {
        offsets.push(length);
        length = (length + block.len()).next_multiple_of(ALIGNMENT);
    }
    let size = NonZeroUsize::new(length.next_multiple_of(4096))
        .expect("at least one gateway is generated");
    // SAFETY: a fresh anonymous mapping aliases nothing.
    let mapping: NonNull<c_void> = unsafe {
        mmap_anonymous(
            None,
            size,
            ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
            MapFlags::MAP_PRIVATE,
        )
    }
    .expect("memory for the gateways can be mapped");
    for (block, offset) in code.iter().zip(&offsets) {
        // SAFETY: `offset` is within the mapping, by the sum above.
        let to = unsafe { mapping.cast::<u8>().add(*offset) };
        // SAFETY: the mapping is writable, and its blocks do not overlap.
        unsafe { to.copy_from_nonoverlapping(NonNull::from(block.as_slice()).cast(), block.len()) };
    }
    // SAFETY: this function owns the whole mapping, and nothing writes to it any more.
    unsafe { mprotect(mapping, size.get(), ProtFlags::PROT_READ | ProtFlags::PROT_EXEC) }
        .expect("the gateways become executable");
    let base = mapping.as_ptr() as u64;
    offsets.iter().map(|offset| base + *offset as u64).collect()
}
