//! Unspecified behaviour of ETW: each question a switch, with the stand-in kernel's default.
//!
//! A driver that works with every setting does not depend on what is not promised.

use crate::ground::status::NtStatus;

/// The outcome for traits that name a group which the driver may not join (ETW-5.8). That it
/// is denied is documented, and not what else happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupDenial {
    /// None of them are set.
    #[default]
    RefusesAll,
    /// All but the group are set; the call fails all the same.
    RefusesTheGroup,
}

/// Which activity id an event has that names none, written at `DISPATCH_LEVEL` or above
/// (O8, ETW-6.5.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImplicitActivity {
    /// That of the thread that happens to be interrupted.
    #[default]
    OfTheThread,
    /// None.
    Null,
}

/// When a session in paged memory is kept from drivers (O10, ETW-6.1.11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PagedSession {
    /// It can enable them, and gets no event of theirs.
    #[default]
    GetsNoEvents,
    /// It cannot enable them.
    CannotEnable,
}

/// A choice for each unspecified behaviour, O1 to O10 of `docs/reference/etw-runtime.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a question of its own, answered with yes or no"
)]
pub struct UnspecifiedBehaviour {
    /// O1 (ETW-3.3.3): whether a driver is told level 0 where every session asked for 0. If
    /// not, it is told 255.
    pub level_0_is_told: bool,
    /// O2 (ETW-3.4.4): whether match-all counts where match-any is 0.
    pub match_all_without_any: bool,
    /// O3 (ETW-4.3.2): what a second attempt to set traits returns.
    pub second_traits: NtStatus,
    /// O4 (ETW-2.7): whether a provider that is enabled before it registers is told of filters
    /// at its registration.
    pub filters_at_registration: bool,
    /// O5 (ETW-2.16): whether `EtwUnregister` tells a provider that is enabled that it is not.
    pub disabled_at_unregistration: bool,
    /// O6 (ETW-6.1.5): whether a write succeeds that only independent sessions recorded, while
    /// others had no room.
    pub success_if_an_independent_session_records: bool,
    /// O6 (ETW-6.1.6): whether a session that had room for an event, and did not get it because
    /// another had none, counts it as lost.
    pub all_count_the_loss: bool,
    /// O7 (ETW-6.2.1): the most bytes that an event has, its header and items included.
    pub largest_event: usize,
    /// O8 (ETW-6.5.7).
    pub activity_at_dispatch: ImplicitActivity,
    /// O9 (ETW-3.6.5): whether a session that enables a group counts to the eight of each of
    /// the group's members.
    pub group_counts_to_the_eight: bool,
    /// O9 (ETW-5.4): whether a session's own enable info for a provider replaces what it enables
    /// by the group. If not, an event passes by either.
    pub direct_replaces_group: bool,
    /// O10 (ETW-6.1.11).
    pub paged_session: PagedSession,
}

impl Default for UnspecifiedBehaviour {
    fn default() -> Self {
        Self {
            level_0_is_told: false,
            match_all_without_any: true,
            second_traits: NtStatus::INVALID_PARAMETER,
            filters_at_registration: true,
            disabled_at_unregistration: false,
            success_if_an_independent_session_records: false,
            all_count_the_loss: false,
            largest_event: u16::MAX as usize,
            activity_at_dispatch: ImplicitActivity::OfTheThread,
            group_counts_to_the_eight: false,
            direct_replaces_group: false,
            paged_session: PagedSession::GetsNoEvents,
        }
    }
}
