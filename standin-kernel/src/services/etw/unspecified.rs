//! The choices for the unspecified behavior of ETW, each with a default. A driver that works with
//! every choice does not depend on unspecified behavior.

use crate::ground::NtStatus;

/// The outcome for traits that name a group that the driver is not allowed to join (ETW-5.8).
/// Documents say that membership is denied, but not how the other traits are affected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupDenial {
    /// No traits are set.
    #[default]
    SkipsAllTraits,
    /// All traits except the group are set; the call still fails.
    SkipsGroup,
    /// All traits except the group are set, and the call succeeds.
    SkipsGroupSilently,
    /// The driver joins: the group's permissions restrict only programs.
    DoesNotApply,
}

/// The activity id of an event that is written without one at `DISPATCH_LEVEL` or above
/// (O8, ETW-6.5.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImplicitActivity {
    /// The activity id of the interrupted thread.
    #[default]
    OfTheThread,
    /// No activity id.
    Null,
}

/// The effect of `EVENT_TRACE_USE_PAGED_MEMORY` on drivers' providers (O10, ETW-6.1.11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PagedSession {
    /// The session can enable drivers, but receives no events from them.
    #[default]
    GetsNoEvents,
    /// The session cannot enable drivers.
    CannotEnable,
}

/// A choice for each kind of unspecified behavior, O1 to O12 of `docs/reference/etw-runtime.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each flag selects one of two outcomes of a separate behavior"
)]
pub struct UnspecifiedBehaviour {
    /// O1 (ETW-3.3.3): passes level 0 to a driver when every session enables level 0. If not set,
    /// the driver receives level 255.
    pub passes_level_zero: bool,
    /// O2 (ETW-3.4.4): applies match-all even when match-any is 0.
    pub match_all_without_any: bool,
    /// O3 (ETW-4.3.2): the status of a second attempt to set traits.
    pub second_traits: NtStatus,
    /// O3 (ETW-5.8): the outcome for traits that name a group that the driver is not allowed to
    /// join (`Kernel::deny_group`).
    pub denied_group: GroupDenial,
    /// O4 (ETW-2.7): passes filters to a provider at registration if it was enabled before.
    pub filters_at_registration: bool,
    /// O5 (ETW-2.16): `EtwUnregister` sends an enabled provider a disable notification.
    pub disabled_at_unregistration: bool,
    /// O6 (ETW-6.1.5): a write succeeds if only independent sessions recorded the event and
    /// other sessions had no room for it.
    pub independent_session_suffices: bool,
    /// O6 (ETW-6.1.6): a session that had room for an event, but did not receive it because another
    /// session had no room, counts the event as lost.
    pub every_session_counts_loss: bool,
    /// O7 (ETW-6.2.1): the largest event in bytes, including its header and extended items.
    pub largest_event: usize,
    /// O8 (ETW-6.5.7): the activity id of an event that is written without one.
    pub activity_at_dispatch: ImplicitActivity,
    /// O9 (ETW-3.6.5): a session that enables a group counts toward each member's limit of eight
    /// sessions.
    pub group_counts_toward_limit: bool,
    /// O9 (ETW-5.4): a session's enable info for a provider replaces its enable info for the
    /// provider's group. If not set, the session records an event that passes either.
    pub direct_replaces_group: bool,
    /// O10 (ETW-6.1.11): the effect of paged memory on a session that enables drivers.
    pub paged_session: PagedSession,
    /// O11 (ETW-6.5.9): the status of `EtwActivityIdControl` on a system thread, which has no
    /// thread environment block (TEB), for codes that read or set the thread's activity id. With
    /// `STATUS_SUCCESS`, system threads also have activity ids.
    pub activity_without_teb: NtStatus,
    /// O12 (ETW-6.5.10): `MmGetSystemRoutineAddress` finds `EtwActivityIdControlKernel`. A driver
    /// that imports the routine is bound to it regardless.
    pub activity_id_control_kernel: bool,
}

impl Default for UnspecifiedBehaviour {
    fn default() -> Self {
        Self {
            passes_level_zero: false,
            match_all_without_any: true,
            second_traits: NtStatus::INVALID_PARAMETER,
            denied_group: GroupDenial::SkipsAllTraits,
            filters_at_registration: true,
            disabled_at_unregistration: false,
            independent_session_suffices: false,
            every_session_counts_loss: false,
            largest_event: u16::MAX as usize,
            activity_at_dispatch: ImplicitActivity::OfTheThread,
            group_counts_toward_limit: false,
            direct_replaces_group: false,
            paged_session: PagedSession::GetsNoEvents,
            activity_without_teb: NtStatus::UNSUCCESSFUL,
            activity_id_control_kernel: true,
        }
    }
}
