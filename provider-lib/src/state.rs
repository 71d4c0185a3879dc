//! What sessions want of a provider, kept so that any processor can read it at any
//! IRQL without waiting.
//!
//! The hot check is one mask per level: the keywords that some session wants at
//! that level, or zero. A write site loads one mask, so level and keyword cannot be
//! read torn. `docs/reference/event-cost.md` compares this design with others.
//!
//! The whole composite (level and both keyword masks) needs more than one load. A
//! lock is out of the question: a reader at `DISPATCH_LEVEL` may have interrupted
//! the writer on its own processor, and would wait for ever. So there are two
//! slots and an index: the writer fills the slot that is not current and then makes
//! it current. A reader that was overtaken twice while it read sees so by the
//! slot's version, and tries again a few times; then it takes the widest answer,
//! which is always right to act on, since ETW filters again for each session.

use crate::{
    Keyword, Level,
    notification::Composite,
    sync::{AtomicU32, AtomicU64, Ordering, const_unless_loom, fence},
};

/// Levels with a mask of their own: 0 to 5. Others are checked by the composite.
const LEVELS: usize = 6;
/// A reader that was overtaken as often as this takes the widest answer.
const TRIES: usize = 4;

/// One copy of the composite.
struct Slot {
    /// Odd while the slot is being written.
    version: AtomicU32,
    /// 0 when nobody listens, otherwise the level with a bit above it.
    level: AtomicU32,
    match_any: AtomicU64,
    match_all: AtomicU64,
}

/// Set in a slot's level while somebody listens.
const ENABLED: u32 = 1 << 8;

impl Slot {
    const_unless_loom! {
        const fn new() -> Self {
            Self {
                version: AtomicU32::new(0),
                level: AtomicU32::new(0),
                match_any: AtomicU64::new(0),
                match_all: AtomicU64::new(0),
            }
        }
    }
}

/// Sessions filter by match-all keywords, which the masks know nothing of.
const MATCH_ALL: u32 = 1;
/// The registration has no traits, which an event in a manifest must not claim to have.
const WITHOUT_TRAITS: u32 = 2;

/// A provider's enable state.
pub struct EnableState {
    masks: [AtomicU64; LEVELS],
    /// Why a write must look at more than the masks: [`MATCH_ALL`], [`WITHOUT_TRAITS`].
    care: AtomicU32,
    current: AtomicU32,
    slots: [Slot; 2],
}

impl EnableState {
    const_unless_loom! {
        /// Nobody listens.
        pub const fn new() -> Self {
            Self {
                masks: [
                    AtomicU64::new(0),
                    AtomicU64::new(0),
                    AtomicU64::new(0),
                    AtomicU64::new(0),
                    AtomicU64::new(0),
                    AtomicU64::new(0),
                ],
                care: AtomicU32::new(0),
                current: AtomicU32::new(0),
                slots: [Slot::new(), Slot::new()],
            }
        }
    }

    /// Whether some session may want an event of this level and keyword. For a
    /// constant level this is one load and one test.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a call would cost more than the check"
    )]
    pub fn wants(&self, level: Level, keyword: Keyword) -> bool {
        // The order of this load against others decides nothing: which events around an
        // enable are recorded is never promised.
        self.masks.get(usize::from(level.0)).map_or_else(
            || self.wants_detail(level, keyword),
            |mask| {
                let mask = mask.load(Ordering::Relaxed);
                if keyword.bits() == 0 {
                    mask != 0
                } else {
                    mask & keyword.bits() != 0
                }
            },
        )
    }

    /// Whether the masks do not say all that a write must know, which is rare: sessions
    /// have match-all keywords, or the registration has no traits. Around a change the
    /// answer may be the one before it; ETW filters again for each session.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is one load")]
    pub fn needs_care(&self) -> bool {
        self.care.load(Ordering::Relaxed) != 0
    }

    /// Whether the registration has no traits.
    pub fn is_without_traits(&self) -> bool {
        self.care.load(Ordering::Relaxed) & WITHOUT_TRAITS != 0
    }

    /// Keeps whether the registration has traits.
    pub fn set_without_traits(&self, without: bool) {
        self.set_care(WITHOUT_TRAITS, without);
    }

    fn set_care(&self, why: u32, needed: bool) {
        if needed {
            self.care.fetch_or(why, Ordering::Relaxed);
        } else {
            self.care.fetch_and(!why, Ordering::Relaxed);
        }
    }

    /// The check of all three parts, with the match-all mask.
    #[cold]
    pub fn wants_detail(&self, level: Level, keyword: Keyword) -> bool {
        self.composite()
            .is_some_and(|composite| composite.passes(level, keyword))
    }

    /// The composite as a whole; nothing while nobody listens. Wait-free.
    pub fn composite(&self) -> Option<Composite> {
        for _ in 0..TRIES {
            let Some(slot) = self
                .slots
                .get(self.current.load(Ordering::Acquire) as usize)
            else {
                break;
            };
            let before = slot.version.load(Ordering::Acquire);
            let level = slot.level.load(Ordering::Relaxed);
            let match_any = slot.match_any.load(Ordering::Relaxed);
            let match_all = slot.match_all.load(Ordering::Relaxed);
            fence(Ordering::Acquire);
            if before % 2 == 0 && slot.version.load(Ordering::Relaxed) == before {
                let [level, flags, ..] = level.to_le_bytes();
                return (flags != 0).then_some(Composite {
                    level: Level(level),
                    match_any: Keyword::from_bits(match_any),
                    match_all: Keyword::from_bits(match_all),
                });
            }
        }
        Some(Composite::EVERYTHING)
    }

    /// Somebody listens, with this composite, in which 0 has been spelled out.
    ///
    /// One caller at a time: ETW calls a registration's enable callback one call
    /// after the other, and nothing else stores while it is registered.
    pub fn enable(&self, composite: Composite) {
        self.publish(Some(composite));
        self.set_masks(Some(composite));
    }

    /// Nobody listens any more. One caller at a time, as for [`Self::enable`].
    pub fn disable(&self) {
        self.set_masks(None);
        self.publish(None);
    }

    /// Makes every hot check fail, without touching the composite. Any number of
    /// callers.
    pub fn close(&self) {
        self.set_masks(None);
    }

    fn set_masks(&self, composite: Option<Composite>) {
        let matches_all = composite.is_some_and(|composite| composite.match_all.bits() != 0);
        self.set_care(MATCH_ALL, matches_all);
        for (level, mask) in (0_u8..).zip(&self.masks) {
            let value = match composite {
                Some(composite) if level <= composite.level.0 => composite.match_any.bits(),
                _ => 0,
            };
            mask.store(value, Ordering::Relaxed);
        }
    }

    fn publish(&self, composite: Option<Composite>) {
        let next = self.current.load(Ordering::Relaxed) ^ 1;
        let Some(slot) = self.slots.get(next as usize) else {
            return;
        };
        let version = slot.version.load(Ordering::Relaxed);
        slot.version
            .store(version.wrapping_add(1), Ordering::Relaxed);
        // What follows is not seen before the odd version.
        fence(Ordering::Release);
        let (level, match_any, match_all) = composite.map_or((0, 0, 0), |composite| {
            (
                ENABLED | u32::from(composite.level.0),
                composite.match_any.bits(),
                composite.match_all.bits(),
            )
        });
        slot.level.store(level, Ordering::Relaxed);
        slot.match_any.store(match_any, Ordering::Relaxed);
        slot.match_all.store(match_all, Ordering::Relaxed);
        slot.version
            .store(version.wrapping_add(2), Ordering::Release);
        self.current.store(next, Ordering::Release);
    }
}
