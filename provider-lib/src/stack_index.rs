//! Computes an index from the current stack. Threads and processors usually get different indexes.
//!
//! Every thread has its own stack, and so does every processor for its DPCs. In the kernel,
//! adjacent stacks are 7 pages apart, including the guard page. 7 is coprime to every power of two,
//! so the page number modulo any power of two distinguishes adjacent stacks. User-mode stacks begin
//! at multiples of 64 KiB, and usually at multiples of their size, so the low bits of their page
//! numbers are equal.

/// The size of a page, as a power of two.
#[cfg(not(loom))]
const PAGE: u32 = 12;

/// 2 to the 64th, divided by the golden ratio: multiplying by it spreads differences over the high bits
/// of the product (Fibonacci hashing).
#[cfg(all(not(loom), any(test, feature = "user-mode")))]
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// Returns the index of an element among `groups` times `SIZE`. The current stack's page selects
/// the group; the offset in the page selects the element. Both numbers must be powers of two, and
/// `groups` at most 64.
#[cfg(not(any(loom, feature = "user-mode")))]
#[inline(always)]
#[expect(clippy::inline_always, reason = "the stack must be that of the caller's frame")]
pub fn stack_index<const SIZE: usize>(groups: usize) -> usize {
    let shift = const { PAGE - SIZE.trailing_zeros() };
    if groups << PAGE == 1 << 16 {
        // The index then depends only on the low 16 bits of the address, which take one
        // instruction less to load.
        return low_bits() >> shift;
    }
    (stack_pointer() >> shift) & groups.wrapping_mul(SIZE).wrapping_sub(1)
}

/// Returns the index of the first element of a group among `groups` with `SIZE` elements each. The
/// current stack's page selects the group. Both numbers must be powers of two, and `groups` at most
/// 64.
#[cfg(all(not(loom), feature = "user-mode"))]
#[inline(always)]
#[expect(clippy::inline_always, reason = "the stack must be that of the caller's frame")]
pub fn stack_index<const SIZE: usize>(groups: usize) -> usize {
    group_of(stack_pointer() as u64 >> PAGE, groups).wrapping_mul(SIZE)
}

/// Returns the group of a user-mode stack's page. `groups` must be a power of two, and at most 64.
#[cfg(all(not(loom), any(test, feature = "user-mode")))]
#[inline(always)]
#[expect(clippy::inline_always, reason = "the function is a few instructions of each write")]
const fn group_of(page: u64, groups: usize) -> usize {
    let high = (page.wrapping_mul(SPREAD) >> 56) as usize;
    high & groups.wrapping_sub(1)
}

/// Returns the low 16 bits of an address in the current frame.
#[cfg(all(not(any(loom, miri, feature = "user-mode")), target_arch = "x86_64"))]
#[inline(always)]
#[expect(clippy::inline_always, reason = "the function is one instruction")]
fn low_bits() -> usize {
    let bits: usize;
    // SAFETY: the instruction only copies a part of a register, and clears the rest.
    unsafe {
        core::arch::asm!(
            "movzx {:e}, sp", out(reg) bits, options(nomem, nostack, preserves_flags),
        );
    }
    // SAFETY: the other bits are 0.
    unsafe { core::hint::assert_unchecked(bits <= 0xFFFF) };
    bits
}

/// Returns the low 16 bits of an address in the current frame.
#[cfg(all(not(any(loom, feature = "user-mode")), any(miri, not(target_arch = "x86_64"))))]
#[inline(always)]
#[expect(clippy::inline_always, reason = "the frame must be that of the caller")]
fn low_bits() -> usize {
    stack_pointer() & 0xFFFF
}

/// Returns an address in the current frame.
#[cfg(all(not(any(loom, miri)), target_arch = "x86_64"))]
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

/// Returns an address in the current frame.
#[cfg(all(not(any(loom, miri)), target_arch = "aarch64"))]
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

/// Returns an address in the current frame.
#[cfg(all(not(loom), any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))),))]
#[inline(always)]
#[expect(clippy::inline_always, reason = "the frame must be that of the caller")]
fn stack_pointer() -> usize {
    let here = core::mem::MaybeUninit::<u8>::uninit();
    (&raw const here).addr()
}

#[cfg(loom)]
loom::thread_local! {
    static GROUP: core::cell::Cell<usize> = core::cell::Cell::new(0);
}

/// Returns the index of the first element of the group that the thread set with [`set_group`], or
/// of the first group.
#[cfg(loom)]
pub fn stack_index<const SIZE: usize>(groups: usize) -> usize {
    GROUP.with(|group| (group.get() & groups.wrapping_sub(1)).wrapping_mul(SIZE))
}

/// Sets the current thread's group.
#[cfg(loom)]
pub fn set_group(group: usize) {
    GROUP.with(|here| here.set(group));
}

#[cfg(all(test, not(loom)))]
mod tests {
    extern crate std;
    use std::collections::HashSet;

    use super::*;

    // User-mode stacks begin at multiples of 64 KiB, and stacks of the same size are adjacent.
    #[test]
    fn stacks_in_user_mode_use_many_groups() {
        for pages_between in [16, 256, 2048, 2049] {
            for groups in [1, 2, 16, 64] {
                let used: HashSet<usize> = (0..64)
                    .map(|stack| group_of(0x7_FFFF_7A00 + stack * pages_between, groups))
                    .collect();
                assert!(used.iter().all(|group| *group < groups), "{used:?}");
                assert!(
                    used.len() * 3 >= groups,
                    "{} of {groups} groups, {pages_between} pages apart",
                    used.len()
                );
            }
        }
    }
}
