//! Activity ids, which relate the events of one operation.

use core::{fmt, marker::PhantomData};

use crate::{Guid, NtStatus, ffi, irql, plain::PlainData};

/// `EVENT_ACTIVITY_CTRL_*`.
const GET_ID: u32 = 1;
const SET_ID: u32 = 2;
const CREATE_ID: u32 = 3;
const GET_SET_ID: u32 = 4;

/// The id of an activity: 16 bytes, unique on the computer until it restarts. An id of zeros means
/// no activity: an event that is written with it has no activity id, not even the thread's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct ActivityId(Guid);

// SAFETY: the type is a GUID, which has no padding.
unsafe impl PlainData for ActivityId {}

/// The error of creating, reading or setting an activity id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActivityError {
    /// `EtwActivityIdControl` failed with this status.
    Refused(NtStatus),
    /// The IRQL at which the thread's id was to be accessed, above `APC_LEVEL`. ETW was not called.
    ///
    /// Kernel-mode drivers for ARM64 cannot read the IRQL, so there the caller must keep the limit: the
    /// function does not check it.
    TooHighIrql(u8),
}

impl fmt::Display for ActivityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(status) => write!(
                f,
                "cannot create, read or set the activity id: {} returned {status}",
                ffi::NAMES.activity
            ),
            Self::TooHighIrql(irql) => write!(
                f,
                "cannot read or set the thread's activity id at IRQL {irql}: call \
                 EtwActivityIdControl at APC_LEVEL (1) or below"
            ),
        }
    }
}

impl core::error::Error for ActivityError {}

/// Calls `EtwActivityIdControl`, and returns the id that it stores.
fn control(code: u32, id: Guid) -> Result<ActivityId, ActivityError> {
    if code != CREATE_ID {
        irql::check(ffi::APC_LEVEL).map_err(ActivityError::TooHighIrql)?;
    }
    let mut id = id;
    // SAFETY: the routine reads and writes only the local variable.
    let status = NtStatus(unsafe { ffi::EtwActivityIdControl(code, &raw mut id) });
    if status.is_success() { Ok(ActivityId(id)) } else { Err(ActivityError::Refused(status)) }
}

/// An operation that can end on a different thread, and at a different IRQL, than it started. For
/// example, a driver keeps the activity of a request in the request's context.
///
/// The start event contains the activity's id and the id of the related activity that it
/// originates from ([`WriteOptions::starts`](crate::WriteOptions::starts)). The other events of the
/// activity contain its id.
///
/// ```
/// # #[wdk_etw::provider(name = "Contoso.Driver")]
/// # mod trace {
/// #     #[keyword]
/// #     pub const REQUEST: Keyword = Keyword::bit(0);
/// #     #[event(level = Info, keyword = REQUEST, opcode = Start)]
/// #     pub fn request_start(length: u32);
/// #     #[event(level = Info, keyword = REQUEST, opcode = Stop)]
/// #     pub fn request_stop(status: NtStatus);
/// # }
/// use wdk_etw::{Activity, NtStatus, emit};
///
/// fn start(length: u32) -> Activity {
///     // Creating an id is a call, so skip it while no session enables the event.
///     if !trace::request_start::is_enabled() {
///         return Activity::NONE;
///     }
///     let activity = Activity::from_thread().unwrap_or_default();
///     emit!(trace::request_start(length), starts = activity);
///     activity
/// }
///
/// fn stop(activity: Activity, status: NtStatus) {
///     emit!(trace::request_stop(status), activity = activity.id());
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    id: ActivityId,
    related: ActivityId,
}

impl Activity {
    /// No activity. All bytes are zero.
    pub const NONE: Self = Self { id: ActivityId::NONE, related: ActivityId::NONE };

    /// Creates an activity without a related activity.
    ///
    /// # Errors
    ///
    /// Returns an [`ActivityError`] if ETW cannot create an id.
    pub fn new() -> Result<Self, ActivityError> {
        Self::from_activity(ActivityId::NONE)
    }

    /// Creates an activity that originates from `related`.
    ///
    /// # Errors
    ///
    /// Returns an [`ActivityError`] if ETW cannot create an id.
    pub fn from_activity(related: ActivityId) -> Result<Self, ActivityError> {
        Ok(Self { id: ActivityId::create()?, related })
    }

    /// Creates an activity that originates from the thread's activity. For a request that is
    /// handled on its sender's thread, this is the sender's activity.
    ///
    /// Threads of the system process, such as those that run work items, have no thread environment
    /// block, where ETW keeps the id. If ETW refuses to read the thread's id, the activity has no
    /// related activity.
    ///
    /// # IRQL
    ///
    /// `APC_LEVEL` or below, which only x64 builds check. Above it, call [`Self::new`].
    ///
    /// # Errors
    ///
    /// Returns an [`ActivityError`] if ETW cannot create an id, or if the IRQL is too high.
    pub fn from_thread() -> Result<Self, ActivityError> {
        match ActivityId::current() {
            Ok(id) => Self::from_activity(id),
            Err(ActivityError::Refused(_)) => Self::new(),
            Err(error) => Err(error),
        }
    }

    /// Returns the activity whose id another component created, for example the sender of a
    /// request, which passes the id with the request. The events of all components then belong to
    /// one activity. The result has no related activity.
    #[must_use]
    pub const fn continuing(id: ActivityId) -> Self {
        Self { id, related: ActivityId::NONE }
    }

    /// Returns the activity's id, which its events contain.
    #[must_use]
    pub const fn id(&self) -> ActivityId {
        self.id
    }

    /// Returns the related activity that this one originates from.
    #[must_use]
    pub const fn related(&self) -> Option<ActivityId> {
        if self.related.0.is_null() { None } else { Some(self.related) }
    }
}

impl ActivityId {
    /// No activity.
    pub const NONE: Self = Self(Guid::NULL);

    /// Creates an id from its 16 bytes.
    #[must_use]
    pub const fn from_guid(guid: Guid) -> Self {
        Self(guid)
    }

    /// Returns the id's 16 bytes.
    #[must_use]
    pub const fn guid(self) -> Guid {
        self.0
    }

    /// Returns the bytes by reference, as ETW expects them.
    pub(crate) const fn as_guid(&self) -> &Guid {
        &self.0
    }

    /// Creates an id (`EVENT_ACTIVITY_CTRL_CREATE_ID`).
    ///
    /// # Errors
    ///
    /// Returns an [`ActivityError`] if ETW cannot create an id.
    pub fn create() -> Result<Self, ActivityError> {
        control(CREATE_ID, Guid::NULL)
    }

    /// Returns the thread's id, which its events contain unless they have their own
    /// (`EVENT_ACTIVITY_CTRL_GET_ID`).
    ///
    /// # IRQL
    ///
    /// `APC_LEVEL` or below.
    ///
    /// # Errors
    ///
    /// Returns an [`ActivityError`] if ETW refuses the call, as it may on a thread of the
    /// system process, or if the IRQL is too high.
    pub fn current() -> Result<Self, ActivityError> {
        control(GET_ID, Guid::NULL)
    }

    /// Sets this as the thread's id (`EVENT_ACTIVITY_CTRL_SET_ID`). [`Self::enter`] sets it for a
    /// scope only.
    ///
    /// # IRQL
    ///
    /// `APC_LEVEL` or below.
    ///
    /// # Errors
    ///
    /// Returns an [`ActivityError`] if ETW refuses the call, as it may on a thread of the
    /// system process, or if the IRQL is too high.
    pub fn set_for_thread(self) -> Result<(), ActivityError> {
        control(SET_ID, self.0).map(|_| ())
    }

    /// Sets this as the thread's id, and returns the previous id
    /// (`EVENT_ACTIVITY_CTRL_GET_SET_ID`).
    ///
    /// # IRQL
    ///
    /// `APC_LEVEL` or below.
    ///
    /// # Errors
    ///
    /// Returns an [`ActivityError`] if ETW refuses the call, as it may on a thread of the
    /// system process, or if the IRQL is too high.
    pub fn swap_for_thread(self) -> Result<Self, ActivityError> {
        control(GET_SET_ID, self.0)
    }

    /// Sets this as the thread's id until the returned scope is dropped
    /// (`EVENT_ACTIVITY_CTRL_GET_SET_ID`).
    ///
    /// # IRQL
    ///
    /// `APC_LEVEL` or below, when the scope is entered and when it is dropped.
    ///
    /// # Errors
    ///
    /// Returns an [`ActivityError`] if ETW refuses the call, as it may on a thread of the
    /// system process, or if the IRQL is too high.
    pub fn enter(self) -> Result<ActivityScope, ActivityError> {
        Ok(ActivityScope { previous: self.swap_for_thread()?, thread: PhantomData })
    }
}

/// A scope in which the thread's events belong to an activity. Dropping it restores the thread's
/// previous id.
///
/// # IRQL
///
/// Drop the scope at `APC_LEVEL` or below. Above it, ETW must not be called, so dropping has no
/// effect: the thread keeps the scope's activity until other code, such as an outer scope, sets
/// another. [`ActivityId::set_for_thread`] with [`Self::previous`] restores the activity later.
#[derive(Debug)]
#[must_use = "dropping the scope ends the activity"]
pub struct ActivityScope {
    previous: ActivityId,
    /// Makes the type `!Send`: a scope must be dropped on the thread that entered it.
    thread: PhantomData<*const ()>,
}

impl ActivityScope {
    /// Returns the thread's previous id, which is the related id of a start event.
    #[must_use]
    pub const fn previous(&self) -> ActivityId {
        self.previous
    }
}

impl Drop for ActivityScope {
    fn drop(&mut self) {
        // `drop` cannot return an error. The call succeeded when the scope was entered on this
        // thread; above `APC_LEVEL` it does not reach ETW.
        let _result = self.previous.set_for_thread();
    }
}
