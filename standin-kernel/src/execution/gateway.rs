//! The gateways from the driver into the kernel.
//!
//! A driver calls every routine through a gateway: three instructions, written once per process, that
//! pass the routine to [`enter`], which leaves the driver's stack and calls [`serve`]. Only [`serve`]
//! makes the checks that apply to every call (the IRQL limit, the thread's call history), and creates
//! the call's context, which the routine receives with its arguments.

#![expect(clippy::too_many_lines, reason = "a naked function has a line for each instruction")]

use std::{
    arch::naked_asm,
    collections::HashMap,
    mem::{self, offset_of},
    ptr,
    rc::Rc,
};

use super::{
    call::{Call, Entered},
    context::Context,
    declarations::{Declaration, Type},
    routine::{MAX_ARGUMENTS, Registers},
    stack, thread,
};
use crate::ground::{
    flight,
    host::{
        Mapping,
        fault::{CLEAR_FLAGS, DIRECTION},
        protection::Protection,
    },
    rule::Rule,
};

/// A routine that a driver can call.
pub struct Entry {
    /// The routine's module.
    pub module: &'static str,
    /// The routine's declaration.
    pub declaration: &'static Declaration,
    /// The type of the routine's result.
    pub result: Type,
    /// Set if a call bugchecks, because the routine is not provided.
    pub is_refused: bool,
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
        let addresses = place(entries);
        let mut by_module: HashMap<&str, Vec<u64>> = HashMap::new();
        // The routines that compilers call implicitly come first.
        let mut bound = bare;
        for (entry, address) in entries.iter().zip(addresses) {
            by_module.entry(entry.module).or_default().push(address);
            if importable.contains(&entry.module) {
                bound.push((entry.module, entry.declaration.name, address));
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
            .find(|(entry_module, entry_name, _)| {
                entry_module.eq_ignore_ascii_case(module) && *entry_name == name
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
/// arguments of the entry's routine, at least four, must be above the return address. Only [`enter`]
/// calls this function, and it sets up the frame this way.
unsafe extern "win64" fn serve(
    entry: &'static Entry,
    return_address: u64,
    stack: u64,
    entered: &mut Entered,
) -> u64 {
    let declaration = entry.declaration;
    // The call is recorded first, because the driver may have corrupted the thread's state.
    entered.continuation = 0;
    let preserved = entered.preserved;
    let caller = || {
        let call = Call { return_address, stack, preserved, ..Call::NONE };
        (call.registers(), stack::top_of(stack))
    };
    // SAFETY: the caller guarantees that the stack pointer is in the current thread's driver stack.
    unsafe { flight::note_call(declaration.name, caller) };
    let thread = thread::current();
    let call = thread.enter(declaration.name, return_address, stack, entered.preserved);
    if entered.flags & u64::from(DIRECTION) != 0 {
        let sentence = "with the direction flag set, which the calling convention requires to be clear; the \
                        kernel has cleared it";
        let host = thread.host();
        host.warn(&thread, call, Rule::DirectionFlag, sentence);
    }
    if call.irql > declaration.limit {
        thread.stop(
            Rule::irql_of(declaration.name),
            format!(
                "{} was called at {} from {}; it may be called at IRQL <= {}",
                declaration.name,
                call.irql,
                thread.place(return_address),
                declaration.limit
            ),
        );
    }
    if call.irql > declaration.annotated.min(declaration.documented) {
        let Declaration { annotated, documented, .. } = declaration;
        let mut sources = [("annotation in the header", annotated), ("documentation", documented)];
        sources.sort_by_key(|(_, limit)| **limit);
        let [(strict, low), (other, high)] = sources;
        let sentence = format!(
            "although its {strict} allows IRQL <= {low}; its {other} allows IRQL <= {high}"
        );
        thread.host().warn(&thread, call, Rule::IrqlSourcesDiffer, &sentence);
    }
    let mut arguments = [0; MAX_ARGUMENTS];
    let places = (stack + 8..).step_by(8).take(declaration.registers());
    for (argument, place) in arguments.iter_mut().zip(places) {
        // SAFETY: the caller's frame has home space for four arguments above the return address,
        // which `enter` has filled; the arguments beyond four, if the routine has more, follow.
        *argument = unsafe { (place as *const u64).read() };
    }
    let result = (entry.serve)(Context::new(Rc::clone(&thread), call), arguments);
    entered.continuation = thread.continuation.take();
    thread.leave();
    result
}

/// The home space for the register arguments of [`serve`].
const SHADOW: usize = 0x20;
/// The offset of the driver's flags on this program's stack. The registers are before them.
const FLAGS: usize = SHADOW + offset_of!(Entered, flags);
/// The offset of the address of a [`Continuation`](super::exceptions::Continuation).
const CONTINUATION: usize = SHADOW + offset_of!(Entered, continuation);
const _: () = assert!(offset_of!(Entered, preserved) == 0);

/// The size of a gateway's code in bytes.
const CODE: usize = 23;

/// Returns a gateway's code: `mov rax, entry`, `mov r11, enter`, `jmp r11`.
fn code(entry: &'static Entry) -> [u8; CODE] {
    let mut code = [0; CODE];
    code[..2].copy_from_slice(&[0x48, 0xB8]);
    code[2..10].copy_from_slice(&(ptr::from_ref(entry).addr() as u64).to_le_bytes());
    code[10..12].copy_from_slice(&[0x49, 0xBB]);
    code[12..20].copy_from_slice(&(enter as *const () as u64).to_le_bytes());
    code[20..].copy_from_slice(&[0x41, 0xFF, 0xE3]);
    code
}

/// The part that all gateways share. It stores the register arguments in their home space, before the
/// other arguments, switches from the driver's stack to this program's stack, and calls [`serve`] with
/// the routine's entry, the return address, the driver's stack pointer, and the registers that a stack
/// walk needs to find the driver's frames.
///
/// # Safety
///
/// Only gateways jump here, from a driver's stack, with the routine's entry in `rax`.
#[unsafe(naked)]
unsafe extern "win64" fn enter() {
    naked_asm!(
        "mov [rsp + 0x08], rcx",
        "mov [rsp + 0x10], rdx",
        "mov [rsp + 0x18], r8",
        "mov [rsp + 0x20], r9",
        "mov rcx, rax",
        // r10: the driver's stack pointer; r11: the end of the range that contains its stack.
        "mov r10, rsp",
        "mov r11, rsp",
        "and r11, -{range}",
        "add r11, {range}",
        "mov rsp, [r11 + {host}]",
        "push r11",
        "push qword ptr [r11 + {driver}]",
        // A routine may call the driver, which then continues below this stack pointer.
        "mov [r11 + {driver}], r10",
        "sub rsp, {frame}",
        "mov [rsp + 0x20], rbx",
        "mov [rsp + 0x28], rbp",
        "mov [rsp + 0x30], rsi",
        "mov [rsp + 0x38], rdi",
        "mov [rsp + 0x40], r12",
        "mov [rsp + 0x48], r13",
        "mov [rsp + 0x50], r14",
        "mov [rsp + 0x58], r15",
        // The driver's flags are stored and cleared, because this program's code cannot run with some
        // of them set.
        "pushfq",
        "pop rax",
        "mov [rsp + {flags}], rax",
        "test eax, {to_clear}",
        "jz 2f",
        "and eax, {kept}",
        "push rax",
        "popfq",
        "2:",
        "mov rdx, [r10]",
        "mov r8, r10",
        "lea r9, [rsp + {shadow}]",
        "call {serve}",
        "cmp qword ptr [rsp + {continuation}], 0",
        "jne 3f",
        "add rsp, {frame}",
        "pop r10",
        "pop r11",
        "mov rcx, [r11 + {driver}]",
        "mov [r11 + {driver}], r10",
        "mov rsp, rcx",
        "ret",
        // The driver continues in its handler for an exception. XMM registers that the frames between the
        // call and the handler did not save still have their values.
        "3:",
        "mov rbx, [rsp + {continuation}]",
        "add rsp, {frame}",
        "pop r10",
        "pop r11",
        "mov [r11 + {driver}], r10",
        "bt dword ptr [rbx + 136], 6",
        "jnc 4f",
        "movups xmm6, [rbx + 240]",
        "4:",
        "bt dword ptr [rbx + 136], 7",
        "jnc 4f",
        "movups xmm7, [rbx + 256]",
        "4:",
        "bt dword ptr [rbx + 136], 8",
        "jnc 4f",
        "movups xmm8, [rbx + 272]",
        "4:",
        "bt dword ptr [rbx + 136], 9",
        "jnc 4f",
        "movups xmm9, [rbx + 288]",
        "4:",
        "bt dword ptr [rbx + 136], 10",
        "jnc 4f",
        "movups xmm10, [rbx + 304]",
        "4:",
        "bt dword ptr [rbx + 136], 11",
        "jnc 4f",
        "movups xmm11, [rbx + 320]",
        "4:",
        "bt dword ptr [rbx + 136], 12",
        "jnc 4f",
        "movups xmm12, [rbx + 336]",
        "4:",
        "bt dword ptr [rbx + 136], 13",
        "jnc 4f",
        "movups xmm13, [rbx + 352]",
        "4:",
        "bt dword ptr [rbx + 136], 14",
        "jnc 4f",
        "movups xmm14, [rbx + 368]",
        "4:",
        "bt dword ptr [rbx + 136], 15",
        "jnc 4f",
        "movups xmm15, [rbx + 384]",
        "4:",
        "mov rsp, [rbx + 32]",
        "push qword ptr [rbx + 128]",
        "mov rax, [rbx]",
        "mov rcx, [rbx + 8]",
        "mov rdx, [rbx + 16]",
        "mov rbp, [rbx + 40]",
        "mov rsi, [rbx + 48]",
        "mov rdi, [rbx + 56]",
        "mov r8, [rbx + 64]",
        "mov r9, [rbx + 72]",
        "mov r12, [rbx + 96]",
        "mov r13, [rbx + 104]",
        "mov r14, [rbx + 112]",
        "mov r15, [rbx + 120]",
        "mov rbx, [rbx + 24]",
        "ret",
        continuation = const CONTINUATION,
        range = const stack::RANGE,
        host = const stack::HOST,
        driver = const stack::DRIVER,
        frame = const SHADOW + size_of::<Entered>(),
        flags = const FLAGS,
        to_clear = const CLEAR_FLAGS,
        kept = const !CLEAR_FLAGS,
        shadow = const SHADOW,
        serve = sym serve,
    )
}

/// Writes the gateways of routines into executable memory that lives as long as the process. Returns
/// each gateway's address.
fn place(entries: &'static [Entry]) -> impl Iterator<Item = u64> {
    const ALIGNED: usize = CODE.next_multiple_of(16);
    let size = (ALIGNED * entries.len()).next_multiple_of(4096);
    let mapping = Mapping::new(size).expect("memory for the gateways can be mapped");
    for (number, entry) in entries.iter().enumerate() {
        let to = mapping.at_offset(number * ALIGNED);
        // SAFETY: the mapping is writable, has room for all gateways, and they do not overlap.
        unsafe { to.cast::<[u8; CODE]>().write(code(entry)) };
    }
    mapping.protect(0, size, Protection::ReadExecute).expect("the gateways become executable");
    let base = mapping.address();
    mem::forget(mapping);
    (base..).step_by(ALIGNED).take(entries.len())
}
