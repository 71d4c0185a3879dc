//! The kernel stacks that driver code runs on: a thread's own stack, and the stack for DPCs on its
//! processor.
//!
//! A stack has the size of a thread's kernel stack on Windows, is separate from the stack of this
//! program's own code, and lies above an inaccessible page. Even a one-byte overflow is detected,
//! and the stack use can be measured. Calls switch stacks: `standin_kernel_call` switches to the
//! driver's stack, and the gateways switch back (see [`super::gateway`]).
//!
//! The stack is in a range with the size and alignment [`RANGE`], so that code on the stack can
//! find the range's last words, which contain the two stack pointers and the stack's lowest
//! address. When a driver expands its stack for a call, the stack extends further down in its
//! range.

use std::{
    arch::global_asm,
    cell::Cell,
    io,
    ops::Range,
    sync::atomic::{AtomicU64, Ordering},
};

use parking_lot::RwLock;

use crate::ground::{
    arena::PAGE,
    host::{
        FAULT_ROOM, Mapping,
        fault::{CLEAR_FLAGS, DIRECTION},
        protection::Protection,
    },
};

/// The size and alignment of the range that contains a stack. A stack with 13 nested expansions of
/// the largest size fits. Windows does not document its limit.
pub const RANGE: usize = 0x10_0000;
/// The size of a kernel stack on x64 in bytes.
pub const SIZE: usize = 24 * 1024;
/// The offset, from the range's end, of the word that stores the pointer to this program's stack.
pub const HOST: i32 = -8;
/// The offset, from the range's end, of the word that stores the driver's stack pointer.
pub const DRIVER: i32 = -16;
/// The offset, from the range's end, of the word that stores the stack's lowest address.
const BOTTOM: i32 = -24;

/// The number of mapped bytes, enough to contain two aligned ranges.
const MAPPED: usize = 3 * RANGE;

/// The pattern that fills the stack, to measure its use.
const UNUSED: u64 = 0xA5A5_A5A5_A5A5_A5A5;

// The routine is in rdi, eight arguments are at rsi, and the range's end is in rdx. The Windows
// calling convention preserves every register that the caller's convention preserves, and the
// control words of the floating-point units. A routine that ends its thread instead of returning
// does not restore the registers, so this code saves all of them. Other state that the driver did
// not preserve is restored and reported in rdx: the flags and, above them, one bit for MXCSR and
// one for the x87 control word.
global_asm!(
    ".globl standin_kernel_call",
    ".globl standin_kernel_exit",
    "standin_kernel_call:",
    "push rbp",
    "push rbx",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "mov rbx, rdx",
    "push qword ptr [rbx - 8]",
    "push qword ptr [rbx - 16]",
    "sub rsp, 24",
    "stmxcsr [rsp]",
    "fnstcw [rsp + 4]",
    "mov [rbx - 8], rsp",
    "mov rax, rdi",
    "mov r10, [rbx - 16]",
    "and r10, -16",
    "sub r10, 0x40",
    "mov r11, [rsi + 32]",
    "mov [r10 + 32], r11",
    "mov r11, [rsi + 40]",
    "mov [r10 + 40], r11",
    "mov r11, [rsi + 48]",
    "mov [r10 + 48], r11",
    "mov r11, [rsi + 56]",
    "mov [r10 + 56], r11",
    "mov rcx, [rsi]",
    "mov rdx, [rsi + 8]",
    "mov r8, [rsi + 16]",
    "mov r9, [rsi + 24]",
    "mov rsp, r10",
    "call rax",
    "2:",
    "mov rsp, [rbx - 8]",
    "pushfq",
    "pop rdx",
    "mov edx, edx",
    "test edx, {flags}",
    "jz 3f",
    "mov ecx, edx",
    "and ecx, {kept}",
    "push rcx",
    "popfq",
    "3:",
    // The lowest bits of MXCSR are status bits, which every function may change.
    "stmxcsr [rsp + 8]",
    "mov ecx, [rsp + 8]",
    "xor ecx, [rsp]",
    "test ecx, 0xFFC0",
    "jz 4f",
    "ldmxcsr [rsp]",
    "bts rdx, 32",
    "4:",
    "fnstcw [rsp + 8]",
    "mov cx, [rsp + 8]",
    "cmp cx, [rsp + 4]",
    "je 5f",
    "fldcw [rsp + 4]",
    "bts rdx, 33",
    "5:",
    "add rsp, 24",
    "pop qword ptr [rbx - 16]",
    "pop qword ptr [rbx - 8]",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbx",
    "pop rbp",
    "ret",
    // Returns from the last routine that standin_kernel_call called, even if other driver frames
    // are on the stack.
    "standin_kernel_exit:",
    "mov rbx, rsp",
    "and rbx, -{range}",
    "add rbx, {range}",
    "jmp 2b",
    range = const RANGE,
    flags = const CLEAR_FLAGS,
    kept = const !CLEAR_FLAGS,
);

/// The result of a call to a driver routine.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Returned {
    /// The return register.
    pub result: u64,
    state: u64,
}

impl Returned {
    /// Returns whether the routine left the direction flag set.
    pub const fn has_direction_flag(self) -> bool {
        self.state & DIRECTION as u64 != 0
    }

    /// Returns the name of the floating-point control register that the routine changed, if any.
    pub const fn changed_control(self) -> Option<&'static str> {
        match self.state >> 32 & 3 {
            0 => None,
            2 => Some("the x87 control word"),
            _ => Some("MXCSR"),
        }
    }
}

unsafe extern "sysv64" {
    fn standin_kernel_call(routine: u64, arguments: *const u64, end: u64) -> Returned;
    fn standin_kernel_exit();
}

/// Returns the top address of the stack that contains `address`.
pub const fn top_of(address: u64) -> u64 {
    Stack { base: address & !(RANGE as u64 - 1) }.top()
}

/// The reason that a stack cannot be expanded.
#[derive(Clone, Copy, Debug)]
pub enum NoRoom {
    /// Its range is not large enough.
    Range,
    /// The system has no memory.
    Memory,
}

/// A kernel stack. Its range belongs to [`Stacks`], which live as long as the thread.
pub struct Stack {
    /// The range's first address.
    base: u64,
}

/// The kernel stacks of a thread.
pub struct Stacks {
    mapping: Mapping,
    /// The stack for DPCs, which is filled with the pattern before its first use.
    dpc: Stack,
    is_dpc_painted: Cell<bool>,
    /// The stack for the rest of the thread's driver code.
    own: Stack,
}

impl Stacks {
    /// Creates stacks.
    pub fn new() -> Self {
        let mapping = Mapping::new(MAPPED).expect("memory for kernel stacks can be mapped");
        let start = mapping.address();
        let first = start.next_multiple_of(RANGE as u64);
        let stack = |base: u64| {
            let stack = Stack { base };
            let bottom = stack.top() - SIZE as u64;
            // The mapping is three times as large as a range, so both ranges are within it.
            close_below(&mapping, base..bottom)
                .expect("the pages below a kernel stack can be protected");
            stack.set(DRIVER, stack.top());
            stack.set(BOTTOM, bottom);
            stack
        };
        let (dpc, own) = (stack(first), stack(first + RANGE as u64));
        let stacks = Self { mapping, dpc, is_dpc_painted: Cell::new(false), own };
        stacks.own.paint(stacks.own.bottom());
        stacks
    }

    /// Returns the thread's own stack.
    pub const fn own(&self) -> &Stack {
        &self.own
    }

    /// Returns the stack for DPCs.
    pub fn of_dpcs(&self) -> &Stack {
        if !self.is_dpc_painted.replace(true) {
            self.dpc.paint(self.dpc.bottom());
        }
        &self.dpc
    }

    const fn both(&self) -> [&Stack; 2] {
        [&self.dpc, &self.own]
    }

    /// Returns the addresses that both stacks can use when expanded.
    pub fn addresses(&self) -> [Range<u64>; 2] {
        self.both().map(|stack| stack.base..stack.top())
    }

    /// Runs `body` with at least `size` bytes below the current driver code on a stack of this
    /// thread.
    pub fn with_room<R>(
        &self,
        stack: &Stack,
        size: usize,
        body: impl FnOnce() -> R,
    ) -> Result<R, NoRoom> {
        let before = stack.bottom();
        let lowest = stack.pointer().saturating_sub(size as u64) & !(PAGE as u64 - 1);
        if lowest >= before {
            return Ok(body());
        }
        // One page stays inaccessible.
        if lowest < stack.base + (PAGE + FAULT_ROOM) as u64 {
            return Err(NoRoom::Range);
        }
        let offset = |address| usize::try_from(address - self.mapping.address()).unwrap_or(0);
        let (start, end) = (offset(lowest), offset(before));
        let is_opened = self.mapping.protect(start, end - start, Protection::ReadWrite).is_ok()
            && close_below(&self.mapping, stack.base..lowest).is_ok();
        if !is_opened {
            return Err(NoRoom::Memory);
        }
        stack.set(BOTTOM, lowest);
        stack.paint_below(before);
        let result = body();
        stack.set(BOTTOM, before);
        let is_closed = close_below(&self.mapping, stack.base..before).is_ok();
        debug_assert!(is_closed, "the pages were protected before");
        Ok(result)
    }

    /// Returns whether an address is in one of the stacks.
    pub fn contains(&self, address: u64) -> bool {
        self.both().iter().any(|stack| stack.contains(address))
    }

    /// Returns whether an address is in the pages below one of the stacks.
    pub fn is_below(&self, address: u64) -> bool {
        self.both().iter().any(|stack| stack.is_below(address))
    }
}

/// The stacks of all threads of a kernel, identified by the first addresses of their ranges.
#[derive(Default)]
pub struct LiveStacks(RwLock<Vec<u64>>);

impl LiveStacks {
    /// Adds the stacks of a thread.
    pub fn add(&self, stacks: &Stacks) {
        let bases = stacks.both().map(|stack| stack.base);
        self.0.write().extend(bases);
    }

    /// Removes the stacks of a thread, before they are dropped.
    pub fn remove(&self, stacks: &Stacks) {
        let bases = stacks.both().map(|stack| stack.base);
        self.0.write().retain(|base| !bases.contains(base));
    }

    /// Returns whether an address is in any of the stacks.
    pub fn contains(&self, address: u64) -> bool {
        self.pointer_at(address).is_some()
    }

    /// Returns the stack pointer of the driver code on the stack that contains `address`, as of the
    /// code's last call to the kernel. Returns `None` if the address is in no stack.
    pub fn pointer_at(&self, address: u64) -> Option<u64> {
        let base = address & !(RANGE as u64 - 1);
        let live = self.0.read();
        let stack = Stack { base };
        (live.contains(&base) && stack.contains(address)).then(|| stack.pointer())
    }
}

impl Stack {
    /// Returns the stack pointer of the driver code on this stack, as of the code's last call to
    /// the kernel.
    pub fn pointer(&self) -> u64 {
        self.word(DRIVER)
    }

    fn word(&self, place: i32) -> u64 {
        let address = self.end().wrapping_add_signed(i64::from(place)) as *mut u64;
        // SAFETY: the place is one of the range's last words, which are aligned and live as long as the
        // stack. The stack's thread may change it concurrently.
        unsafe { AtomicU64::from_ptr(address) }.load(Ordering::Relaxed)
    }

    /// Returns the lowest address of the stack's memory.
    pub fn bottom(&self) -> u64 {
        self.word(BOTTOM)
    }

    /// Returns the address at the top of the stack.
    pub const fn top(&self) -> u64 {
        self.end() - PAGE as u64
    }

    /// Returns the stack's size in bytes.
    pub fn size(&self) -> u64 {
        self.top() - self.bottom()
    }

    /// Returns the stack's addresses.
    pub fn addresses(&self) -> Range<u64> {
        self.bottom()..self.top()
    }

    const fn end(&self) -> u64 {
        self.base + RANGE as u64
    }

    fn set(&self, place: i32, value: u64) {
        let address = self.end().wrapping_add_signed(i64::from(place)) as *mut u64;
        // SAFETY: the place is one of the range's last words, which belong to this thread.
        unsafe { address.write(value) };
    }

    /// Returns whether an address is in the pages below the stack.
    pub fn is_below(&self, address: u64) -> bool {
        address >= self.base && address < self.bottom()
    }

    /// Returns whether an address is in the stack.
    pub fn contains(&self, address: u64) -> bool {
        address >= self.bottom() && address < self.top()
    }

    /// Fills the stack's memory up to its top, from `start`.
    fn paint(&self, start: u64) {
        Self::fill(start..self.top());
    }

    /// Fills the stack's memory from its bottom up to `end`.
    fn paint_below(&self, end: u64) {
        Self::fill(self.bottom()..end);
    }

    fn fill(addresses: Range<u64>) {
        for address in addresses.step_by(8) {
            // SAFETY: the address is in the stack, on which no driver code runs now.
            unsafe { (address as *mut u64).write(UNUSED) };
        }
    }

    /// Returns the peak stack use in bytes since the last call of this method. Must not be called while
    /// driver code runs on the stack.
    pub fn take_most_used(&self) -> usize {
        let used = self.most_used();
        self.paint(self.top() - used as u64);
        used
    }

    /// Returns the peak stack use in bytes since the last call of [`Self::take_most_used`].
    pub fn most_used(&self) -> usize {
        let lowest = (self.bottom()..self.top()).step_by(8).find(|address| {
            // SAFETY: the address is in the stack's memory.
            unsafe { (*address as *const u64).read_volatile() != UNUSED }
        });
        let used = lowest.map_or(0, |lowest| self.top() - lowest);
        usize::try_from(used).unwrap_or(SIZE)
    }

    /// Makes a routine that the driver called with this stack pointer return from the innermost
    /// [`Self::call`] instead of to the driver. The routine's result becomes that call's result.
    pub fn exit_after(&self, stack_pointer: u64) {
        debug_assert!(self.contains(stack_pointer), "a call's frame is on its thread's stack");
        // SAFETY: a call's stack pointer is the address of its return address, on this thread's stack.
        unsafe { (stack_pointer as *mut u64).write(standin_kernel_exit as *const () as u64) };
    }

    /// Calls a routine with the Windows x64 calling convention on this stack, below the frames
    /// already there. The callee reads only the arguments that it declares; the other registers and
    /// stack slots may have any value.
    ///
    /// # Safety
    ///
    /// `routine` must be the address of a routine that follows the Windows calling convention, and
    /// this thread's driver code must run only on this stack.
    pub unsafe fn call(&self, routine: u64, arguments: &[u64; 8]) -> Returned {
        // SAFETY: the caller guarantees the routine and its arguments, and the range belongs to this
        // stack.
        unsafe { standin_kernel_call(routine, arguments.as_ptr(), self.end()) }
    }
}

/// Makes the pages of a range below its stack inaccessible, except for those that the host needs to
/// report a fault.
fn close_below(mapping: &Mapping, pages: Range<u64>) -> io::Result<()> {
    let offset = |address| usize::try_from(address - mapping.address()).unwrap_or(0);
    let (start, guard) = (offset(pages.start), offset(pages.end) - PAGE);
    let room = guard - FAULT_ROOM;
    mapping.protect(start, room - start, Protection::None)?;
    mapping.protect(room, FAULT_ROOM, Protection::ReadWrite)?;
    mapping.protect(guard, PAGE, Protection::Guard)
}
