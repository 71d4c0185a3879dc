//! Stack walks that use the unwind data of driver images.
//!
//! The walk depends only on bytes and a closure that reads the stack. Malformed unwind data and
//! unreadable stacks end it ([`End`]); they never make it panic, hang, or read other memory.

#![cfg_attr(
    feature = "fuzzing",
    allow(
        clippy::missing_errors_doc,
        clippy::must_use_candidate,
        reason = "the fuzz targets are not users of a documented interface"
    )
)]

mod epilogue;
mod info;
mod registers;
mod table;
#[cfg(test)]
mod tests;

pub use self::{
    info::{EXCEPTION_HANDLER, TERMINATION_HANDLER},
    registers::Registers,
    table::{End, Handler, Table},
};

/// The maximum number of frames in a walk. A kernel stack can contain more frames only if the
/// frames are empty.
pub const MAX_FRAMES: usize = 1024;

/// A stack frame. Each frame is the caller of the preceding one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The instruction's address.
    pub address: u64,
    /// Set if the instruction follows a call.
    pub is_return: bool,
}

/// Walks a stack from the frame with the given registers outward.
///
/// `is_return` is true if the first frame's instruction follows a call. `unwind` replaces a frame's
/// registers with the caller's, or returns [`End::Left`] with the frame's address if that address
/// is not in an image.
pub fn walk(
    mut registers: Registers,
    mut is_return: bool,
    limit: usize,
    unwind: impl Fn(&mut Registers, bool) -> Result<bool, End>,
) -> (Vec<Frame>, End) {
    let mut frames = Vec::new();
    loop {
        let at = registers.rip;
        let stack = registers.rsp();
        let result = unwind(&mut registers, is_return);
        if result == Err(End::Left(at)) {
            return (frames, End::Left(at));
        }
        frames.push(Frame { address: at, is_return });
        let follows_call = match result {
            Ok(follows_call) => follows_call,
            Err(end) => return (frames, end),
        };
        if registers.rsp() <= stack {
            return (frames, End::Backwards(at));
        }
        let limit = limit.min(MAX_FRAMES);
        if frames.len() >= limit {
            return (frames, End::TooMany(limit));
        }
        is_return = follows_call;
    }
}
