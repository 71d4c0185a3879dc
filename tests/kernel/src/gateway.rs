//! The doors from the driver into the kernel.
//!
//! Every routine that a driver can call is reached through a gateway: a few
//! instructions, generated once per process, that note which routine is being
//! called and from where, before they jump to it with the arguments untouched.
//! What holds for every call (its IRQL ceiling, its place in the thread's call
//! history) is checked there once and nowhere else.

use std::{collections::HashMap, ffi::c_void, num::NonZeroUsize, ptr::NonNull, sync::OnceLock};

use iced_x86::code_asm::{CodeAssembler, qword_ptr, r8, r9, r10, r11, rax, rcx, rdx, rsp};
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, mprotect};

use crate::{irql::Irql, kmdf, ntoskrnl, stack, thread, wdfldr};

/// The exporting module of the framework's function table's entries. They are
/// no exports: their gateways are found by index.
pub const KMDF: &str = "Wdf01000.sys";

/// The module of what the framework does not export at all.
const KMDF_ITSELF: &str = "Wdf01000.sys (internal)";

/// A routine that a driver can call.
pub struct Ddi {
    /// The module that exports it.
    pub module: &'static str,
    /// Its name.
    pub name: &'static str,
    /// The highest IRQL that it may be called at.
    pub ceiling: Irql,
    /// The address of its `extern "win64"` implementation.
    pub target: u64,
}

/// An exported routine, as the modules that provide them list theirs.
pub type Export = (&'static str, Irql, u64);

/// The gateways of every routine that the kernel provides.
pub struct Gateways {
    ddis: Vec<Ddi>,
    addresses: Vec<u64>,
    by_name: HashMap<(&'static str, &'static str), usize>,
    kmdf_table: Vec<u64>,
}

impl Gateways {
    /// The process's gateways.
    pub fn get() -> &'static Self {
        static GATEWAYS: OnceLock<Gateways> = OnceLock::new();
        GATEWAYS.get_or_init(Self::generate)
    }

    /// The routine behind a gateway's number.
    pub fn ddi(&self, number: usize) -> Option<&Ddi> {
        self.ddis.get(number)
    }

    /// The address to bind an import to. Module names are compared without
    /// regard to case, as the Windows loader does.
    pub fn find(&self, module: &str, name: &str) -> Option<u64> {
        let module = [ntoskrnl::MODULE, wdfldr::MODULE]
            .into_iter()
            .find(|known| known.eq_ignore_ascii_case(module))?;
        if module == ntoskrnl::MODULE
            && let Some(routine) = ntoskrnl::memory_routine(name)
        {
            return Some(routine);
        }
        // The key's lifetime is the statics'; the names compare by content.
        let number = self
            .by_name
            .iter()
            .find(|((its_module, its_name), _)| *its_module == module && *its_name == name)
            .map(|(_, number)| *number)?;
        self.addresses.get(number).copied()
    }

    /// The framework's own unload routine, which a driver object holds.
    pub fn framework_unload(&self) -> u64 {
        self.addresses.last().copied().unwrap_or(0)
    }

    /// The framework's function table: one gateway per entry.
    pub fn kmdf_table(&self) -> &[u64] {
        &self.kmdf_table
    }

    fn generate() -> Self {
        let mut ddis = Vec::new();
        for (module, exports) in [
            (ntoskrnl::MODULE, ntoskrnl::exports()),
            (wdfldr::MODULE, wdfldr::exports()),
            (KMDF, kmdf::entries()),
        ] {
            ddis.extend(exports.into_iter().map(|(name, ceiling, target)| Ddi {
                module,
                name,
                ceiling,
                target,
            }));
        }
        // The last one is no entry of the table, and found by its place.
        ddis.push(Ddi {
            module: KMDF_ITSELF,
            name: "FxDriverUnload",
            ceiling: Irql::PASSIVE_LEVEL,
            target: kmdf::framework_unload as *const () as u64,
        });
        let code: Vec<Vec<u8>> = ddis
            .iter()
            .enumerate()
            .map(|(number, ddi)| assemble(number, ddi.target))
            .collect();
        let addresses = place(&code);
        let by_name = ddis
            .iter()
            .enumerate()
            .map(|(number, ddi)| ((ddi.module, ddi.name), number))
            .collect();
        let kmdf_table = ddis
            .iter()
            .zip(&addresses)
            .filter(|(ddi, _)| ddi.module == KMDF)
            .map(|(_, address)| *address)
            .collect();
        Self {
            ddis,
            addresses,
            by_name,
            kmdf_table,
        }
    }
}

/// The gateway's instructions. They leave the driver's stack for the one that this
/// program's code runs on, tell [`thread::enter`] the gateway's number, the return address
/// and the driver's stack pointer, and call the routine with the arguments as they were; of
/// those on the stack, the first six. The code is position-independent.
fn assemble(number: usize, target: u64) -> Vec<u8> {
    /// Room for the callee's register arguments, and for alignment.
    const SHADOW: i32 = 0x28;
    /// Room for a routine's register arguments, and six more.
    const ARGUMENTS: i32 = 0x50;
    let range = i32::try_from(stack::RANGE).unwrap_or(i32::MAX);
    let enter = thread::enter as *const () as u64;
    let build = || -> Result<Vec<u8>, iced_x86::IcedError> {
        let mut a = CodeAssembler::new(64)?;
        // r10: the driver's stack pointer; r11: the end of the range that its stack is in.
        a.mov(r10, rsp)?;
        a.mov(r11, rsp)?;
        a.and(r11, -range)?;
        a.add(r11, range)?;
        a.mov(rsp, qword_ptr(r11 + stack::HOST))?;
        a.push(r11)?;
        a.push(qword_ptr(r11 + stack::DRIVER))?;
        // A routine may call the driver, which goes on below where it is now.
        a.mov(qword_ptr(r11 + stack::DRIVER), r10)?;
        a.push(r10)?;
        a.push(rcx)?;
        a.push(rdx)?;
        a.push(r8)?;
        a.push(r9)?;
        a.sub(rsp, SHADOW)?;
        a.mov(rcx, number as u64)?;
        a.mov(rdx, qword_ptr(r10))?;
        a.mov(r8, r10)?;
        a.mov(rax, enter)?;
        a.call(rax)?;
        a.add(rsp, SHADOW)?;
        a.pop(r9)?;
        a.pop(r8)?;
        a.pop(rdx)?;
        a.pop(rcx)?;
        a.pop(r10)?;
        a.sub(rsp, ARGUMENTS)?;
        for argument in 0..6 {
            // The driver's are behind the return address and the shadow space.
            a.mov(rax, qword_ptr(r10 + 0x28 + 8 * argument))?;
            a.mov(qword_ptr(rsp + 0x20 + 8 * argument), rax)?;
        }
        a.mov(rax, target)?;
        a.call(rax)?;
        a.add(rsp, ARGUMENTS)?;
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

/// Copies the pieces of code into executable memory that lives as long as the
/// process, and returns where each one starts.
fn place(code: &[Vec<u8>]) -> Vec<u64> {
    const ALIGNMENT: usize = 16;
    let mut offsets = Vec::with_capacity(code.len());
    let mut length = 0_usize;
    for piece in code {
        offsets.push(length);
        length = (length + piece.len()).next_multiple_of(ALIGNMENT);
    }
    let size = NonZeroUsize::new(length.next_multiple_of(4096)).expect("there are gateways");
    // SAFETY: a fresh anonymous mapping aliases nothing.
    let mapping: NonNull<c_void> = unsafe {
        mmap_anonymous(
            None,
            size,
            ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
            MapFlags::MAP_PRIVATE,
        )
    }
    .expect("memory for the gateways");
    for (piece, offset) in code.iter().zip(&offsets) {
        // SAFETY: `offset` is within the mapping, by the sum above.
        let to = unsafe { mapping.cast::<u8>().add(*offset) };
        // SAFETY: the mapping is writable, and its pieces do not overlap.
        unsafe { to.copy_from_nonoverlapping(NonNull::from(piece.as_slice()).cast(), piece.len()) };
    }
    // SAFETY: the mapping is ours, whole, and nothing writes to it any more.
    unsafe {
        mprotect(
            mapping,
            size.get(),
            ProtFlags::PROT_READ | ProtFlags::PROT_EXEC,
        )
    }
    .expect("the gateways become executable");
    let base = mapping.as_ptr() as u64;
    offsets.iter().map(|offset| base + *offset as u64).collect()
}
