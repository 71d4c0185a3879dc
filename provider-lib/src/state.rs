//! A provider's enable state, which code on any processor reads at any IRQL without waiting.
//!
//! Write sites check one mask per level: the match-any keywords if a session enables that level,
//! or zero. They load one word, so they cannot combine the level of one update with the keywords
//! of another. `docs/reference/event-cost.md` compares this design with others.
//!
//! Reading the enable info (level and both keyword masks) takes more than one load. A lock cannot
//! be used: a reader at `DISPATCH_LEVEL` may have interrupted the writer on the same processor,
//! and would deadlock. Instead there are two slots and an index: the writer fills the slot that is
//! not current, and then makes it current. If the writer finishes one update and begins another
//! during a read, the slot's version changes, and the reader tries again. After a few attempts it
//! returns the widest enable info. That is always safe, because ETW filters events again for each
//! session.
//!
//! ETW is believed to serialize the notifications of a registration, but no document says so. If
//! notifications overlap nevertheless, only the first writes a slot, and the last to end publishes
//! the widest enable info, which stays until the next notification.

use crate::{
    Keyword, Level,
    notification::EnableInfo,
    sync::{AtomicU32, AtomicU64, Ordering, const_unless_loom, fence},
};

/// The number of levels with a mask: 0 to 5. Other levels are checked against the enable info.
const LEVELS: usize = 6;
/// The number of times that a reader attempts to read a slot before it returns the widest info.
const TRIES: usize = 4;

/// One copy of the enable info.
struct Slot {
    /// Odd while the slot is being written.
    version: AtomicU32,
    /// The level with [`ENABLED`] set, or 0 while the provider is disabled.
    level: AtomicU32,
    match_any: AtomicU64,
    match_all: AtomicU64,
}

/// Set in a slot's level while a session enables the provider.
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

/// Set if a notification overlapped another, and none came later: the masks pass everything.
const OVERLAPPED: u32 = 1 << 31;
/// Set instead of [`OVERLAPPED`] while a later notification publishes its enable info.
const REPLACED: u32 = 1 << 29;
/// Set while the masks stay clear.
const CLOSED: u32 = 1 << 30;
/// The low bits, which count the notifications that are being published.
const COUNT: u32 = REPLACED - 1;

/// A provider's enable state.
#[repr(C)]
pub struct EnableState {
    masks: [AtomicU64; LEVELS],
    current: AtomicU32,
    /// The number of notifications that are being published, and [`OVERLAPPED`], [`REPLACED`] and
    /// [`CLOSED`].
    publishing: AtomicU32,
    slots: [Slot; 2],
}

impl EnableState {
    const_unless_loom! {
        /// Creates the state of a provider that no session enables.
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
                current: AtomicU32::new(0),
                publishing: AtomicU32::new(0),
                slots: [Slot::new(), Slot::new()],
            }
        }
    }

    /// Returns whether a session enables events of this level and keyword, ignoring the match-all
    /// keywords. For a constant level from 0 to 5 this is one load and one test.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a call would cost more than the check")]
    pub fn is_enabled_fast(&self, level: Level, keyword: Keyword) -> bool {
        // The load needs no ordering: which events around a change are recorded is unspecified.
        self.masks.get(usize::from(level.0)).map_or_else(
            || self.is_enabled_without_mask(level, keyword),
            |mask| {
                let mask = mask.load(Ordering::Relaxed);
                if keyword.bits() == 0 { mask != 0 } else { mask & keyword.bits() != 0 }
            },
        )
    }

    /// Does the same as [`Self::is_enabled_fast`], for a level without a mask.
    #[cold]
    fn is_enabled_without_mask(&self, level: Level, keyword: Keyword) -> bool {
        let any = |info| EnableInfo { match_all: Keyword::NONE, ..info };
        !self.is_closed()
            && self.enable_info().map(any).is_some_and(|info| info.passes(level, keyword))
    }

    fn is_closed(&self) -> bool {
        self.publishing.load(Ordering::Relaxed) & CLOSED != 0
    }

    /// Returns whether a session enables events of this level and keyword, according to the enable
    /// info: its level, match-any and match-all keywords.
    #[cold]
    pub fn is_enabled_slow(&self, level: Level, keyword: Keyword) -> bool {
        self.enable_info().is_some_and(|info| info.passes(level, keyword))
    }

    /// Returns the enable info, or `None` while no session enables the provider. Wait-free.
    pub fn enable_info(&self) -> Option<EnableInfo> {
        if self.publishing.load(Ordering::Acquire) & (OVERLAPPED | REPLACED) != 0 {
            return Some(EnableInfo::EVERYTHING);
        }
        for _ in 0..TRIES {
            let Some(slot) = self.slots.get(self.current.load(Ordering::Acquire) as usize) else {
                break;
            };
            let before = slot.version.load(Ordering::Acquire);
            let level = slot.level.load(Ordering::Relaxed);
            let match_any = slot.match_any.load(Ordering::Relaxed);
            let match_all = slot.match_all.load(Ordering::Relaxed);
            fence(Ordering::Acquire);
            if before % 2 == 0 && slot.version.load(Ordering::Relaxed) == before {
                let [level, flags, ..] = level.to_le_bytes();
                return (flags != 0).then_some(EnableInfo {
                    level: Level(level),
                    match_any: Keyword::from_bits(match_any),
                    match_all: Keyword::from_bits(match_all),
                });
            }
        }
        Some(EnableInfo::EVERYTHING)
    }

    /// Enables the provider with enable info that [`EnableInfo::delivered`] returned.
    pub fn enable(&self, info: EnableInfo) {
        self.update(Some(info));
    }

    /// Disables the provider.
    pub fn disable(&self) {
        self.update(None);
    }

    /// Publishes the state of a notification.
    fn update(&self, info: Option<EnableInfo>) {
        self.begin_update(info);
        self.end_update();
    }

    fn begin_update(&self, info: Option<EnableInfo>) {
        if self.begin_alone() {
            // The masks pass no event while the enable info is out of date.
            if info.is_none() {
                self.set_masks(None);
            }
            self.publish(info);
            self.publishing.fetch_and(!REPLACED, Ordering::SeqCst);
            if info.is_some() {
                self.set_open_masks(info);
            }
        } else {
            self.publishing.fetch_add(1, Ordering::SeqCst);
            self.publishing.fetch_or(OVERLAPPED, Ordering::SeqCst);
        }
    }

    /// Begins a notification and returns `true`, unless another one is being published.
    fn begin_alone(&self) -> bool {
        for _ in 0..TRIES {
            let before = self.publishing.load(Ordering::SeqCst);
            if before & COUNT != 0 {
                return false;
            }
            let was_overlapped = before & (OVERLAPPED | REPLACED) != 0;
            let alone = before & CLOSED | if was_overlapped { REPLACED } else { 0 } | 1;
            // The exchange also fails if another thread closes or opens the state.
            if (self.publishing)
                .compare_exchange(before, alone, Ordering::SeqCst, Ordering::Relaxed)
                .is_ok()
            {
                return true;
            }
        }
        false
    }

    fn end_update(&self) {
        // Either this thread sees the other notification, or the other one sets the masks after the
        // stores above.
        fence(Ordering::SeqCst);
        if self.publishing.load(Ordering::SeqCst) & OVERLAPPED != 0 {
            self.set_open_masks(Some(EnableInfo::EVERYTHING));
        }
        self.publishing.fetch_sub(1, Ordering::SeqCst);
    }

    /// Sets the masks, unless the state is closed.
    fn set_open_masks(&self, info: Option<EnableInfo>) {
        if self.is_closed() {
            return;
        }
        self.set_masks(info);
        // Either this thread sees that the state is closed, or `close` clears the masks after the
        // stores above.
        fence(Ordering::SeqCst);
        if self.is_closed() {
            self.set_masks(None);
        }
    }

    /// Clears the masks and keeps them clear until [`Self::open`], so that every check at a write
    /// site fails, even for levels without a mask. The enable info stays current. Another thread
    /// may call [`Self::enable`] at the same time; the masks are clear after both calls.
    pub fn close(&self) {
        self.publishing.fetch_or(CLOSED, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.set_masks(None);
    }

    /// Lets [`Self::enable`] set the masks again. No other thread may change the state at the same
    /// time.
    pub fn open(&self) {
        self.publishing.fetch_and(!CLOSED, Ordering::Relaxed);
    }

    fn set_masks(&self, info: Option<EnableInfo>) {
        for (level, mask) in (0_u8..).zip(&self.masks) {
            let value = match info {
                Some(info) if level <= info.level.0 => info.match_any.bits(),
                _ => 0,
            };
            mask.store(value, Ordering::Relaxed);
        }
    }

    fn publish(&self, info: Option<EnableInfo>) {
        let next = self.current.load(Ordering::Relaxed) ^ 1;
        let Some(slot) = self.slots.get(next as usize) else {
            return;
        };
        let version = slot.version.load(Ordering::Relaxed);
        slot.version.store(version.wrapping_add(1), Ordering::Relaxed);
        // No reader sees the stores below before it can see the odd version.
        fence(Ordering::Release);
        let (level, match_any, match_all) = info.map_or((0, 0, 0), |info| {
            (ENABLED | u32::from(info.level.0), info.match_any.bits(), info.match_all.bits())
        });
        slot.level.store(level, Ordering::Relaxed);
        slot.match_any.store(match_any, Ordering::Relaxed);
        slot.match_all.store(match_all, Ordering::Relaxed);
        slot.version.store(version.wrapping_add(2), Ordering::Release);
        self.current.store(next, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_notification_inside_another_leaves_everything_enabled_until_the_next_one() {
        const FIRST: EnableInfo = EnableInfo::delivered(2, 0x11, 0);
        const SECOND: EnableInfo = EnableInfo::delivered(5, 0x22, 0);
        for second in [Some(SECOND), None] {
            let state = EnableState::new();
            state.begin_update(Some(FIRST));
            state.update(second);
            state.end_update();
            assert_eq!(state.enable_info(), Some(EnableInfo::EVERYTHING));
            for (level, keyword) in [(2, 0x11), (5, 0x22), (9, 0x40)] {
                assert!(state.is_enabled_fast(Level(level), Keyword::from_bits(keyword)));
            }
            state.disable();
            assert_eq!(state.enable_info(), None);
            assert!(!state.is_enabled_fast(Level(2), Keyword::from_bits(0x11)));
        }
        // The masks of a closed state stay clear.
        let state = EnableState::new();
        state.close();
        state.begin_update(Some(FIRST));
        state.update(Some(SECOND));
        state.end_update();
        assert!(!state.is_enabled_fast(Level(2), Keyword::from_bits(0x11)));
    }

    // After an overlap, the slots contain only the first notification's enable info.
    #[test]
    fn the_notification_after_an_overlap_hides_nothing_before_it_has_published_its_enable_info() {
        const FIRST: EnableInfo = EnableInfo::delivered(2, 0x11, 0);
        const NEXT: EnableInfo = EnableInfo::delivered(4, 0x22, 0);
        let state = EnableState::new();
        state.begin_update(Some(FIRST));
        state.disable();
        state.end_update();
        for _ in 0..2 {
            assert!(state.begin_alone());
            assert_eq!(state.enable_info(), Some(EnableInfo::EVERYTHING));
            assert!(state.is_enabled_fast(Level(5), Keyword::from_bits(0x40)));
            state.end_update();
        }
        state.enable(NEXT);
        assert_eq!(state.enable_info(), Some(NEXT));
    }
}
