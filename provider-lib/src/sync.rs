//! The atomics of the core library, or of the model checker.

#[cfg(not(loom))]
pub use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

/// Declares a function that is `const`, except under the model checker, whose atomics have no
/// `const` constructors.
macro_rules! const_unless_loom {
    ($(#[$meta:meta])* $vis:vis const fn $($rest:tt)*) => {
        #[cfg(not(loom))]
        $(#[$meta])*
        $vis const fn $($rest)*

        #[cfg(loom)]
        $(#[$meta])*
        #[allow(clippy::missing_const_for_fn, reason = "the function is `const` without loom")]
        $vis fn $($rest)*
    };
}

pub(crate) use const_unless_loom;

/// The size of the parts of stacks that [`place`] tells apart, as a power of two: a page.
#[cfg(not(loom))]
const PART: u32 = 12;

/// Returns a number that is the same for code at about the same depth of the same stack, and mostly
/// differs between stacks, also in its low bits.
///
/// Every thread has a stack of its own, and so has every processor for its DPCs. The stacks of the
/// kernel have 7 pages with the one that guards them, which is prime to every power of two: stacks
/// that follow one another have different numbers, whatever power of two they are taken modulo.
#[cfg(not(any(loom, feature = "user-mode")))]
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "the stack must be that of the caller's frame"
)]
pub fn place() -> usize {
    stack_pointer() >> PART
}

/// Returns a number that is the same for code at about the same depth of the same stack, and mostly
/// differs between stacks, also in its low bits.
///
/// Stacks in user mode begin at multiples of 64 KiB, and mostly of their size, so that the low bits of
/// their pages' numbers are alike. Multiplying spreads the differences over the high half of the
/// product (D. E. Knuth, The Art of Computer Programming, volume 3, 6.4).
#[cfg(all(not(loom), feature = "user-mode"))]
#[inline(always)]
#[expect(
    clippy::inline_always,
    clippy::cast_possible_truncation,
    reason = "the stack must be that of the caller's frame; only the low bits matter"
)]
pub fn place() -> usize {
    /// 2 to the 64th, divided by the golden ratio.
    const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
    let page = stack_pointer() as u64 >> PART;
    (page.wrapping_mul(SPREAD) >> 56) as usize
}

/// Returns an address in the current frame.
#[cfg(all(not(loom), not(miri), target_arch = "x86_64"))]
#[inline(always)]
#[expect(clippy::inline_always, reason = "the function is one instruction")]
fn stack_pointer() -> usize {
    let pointer;
    // SAFETY: the instruction only copies a register.
    unsafe {
        core::arch::asm!(
            "mov {}, rsp", out(reg) pointer, options(nomem, nostack, preserves_flags),
        );
    }
    pointer
}

#[cfg(all(not(loom), not(miri), target_arch = "aarch64"))]
#[inline(always)]
#[expect(clippy::inline_always, reason = "the function is one instruction")]
fn stack_pointer() -> usize {
    let pointer;
    // SAFETY: the instruction only copies a register.
    unsafe {
        core::arch::asm!(
            "mov {}, sp", out(reg) pointer, options(nomem, nostack, preserves_flags),
        );
    }
    pointer
}

#[cfg(all(
    not(loom),
    any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))),
))]
#[inline(always)]
#[expect(clippy::inline_always, reason = "the frame must be that of the caller")]
fn stack_pointer() -> usize {
    let here = core::mem::MaybeUninit::<u8>::uninit();
    (&raw const here).addr()
}

#[cfg(loom)]
loom::thread_local! {
    static PLACE: core::cell::Cell<usize> = core::cell::Cell::new(0);
}

/// Returns the number that the thread has set by [`set_place`], or 0.
#[cfg(loom)]
pub fn place() -> usize {
    PLACE.with(core::cell::Cell::get)
}

/// Sets the current thread's place.
#[cfg(loom)]
pub fn set_place(place: usize) {
    PLACE.with(|here| here.set(place));
}
