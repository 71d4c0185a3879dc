//! Activity ids: what ties the events of one piece of work together.

use core::{fmt, marker::PhantomData};

use crate::{Guid, NtStatus, ffi, plain::PlainData};

/// `EVENT_ACTIVITY_CTRL_*`.
const GET_ID: u32 = 1;
const SET_ID: u32 = 2;
const CREATE_ID: u32 = 3;
const GET_SET_ID: u32 = 4;

/// The id of an activity: 16 bytes, unique on the machine until it restarts. All zero
/// is no activity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct ActivityId(Guid);

// SAFETY: the type is a GUID, which has no padding.
unsafe impl PlainData for ActivityId {}

/// There is no activity id to be had, or none could be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActivityError {
    /// `EtwActivityIdControl` returned this.
    Refused(NtStatus),
    /// It was called for the thread's id at this IRQL, above `APC_LEVEL`; only debug builds
    /// look.
    TooHighIrql(u8),
}

impl fmt::Display for ActivityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(status) => write!(f, "EtwActivityIdControl returned {status}"),
            Self::TooHighIrql(irql) => write!(
                f,
                "EtwActivityIdControl may be called for a thread's id at APC_LEVEL or below, and \
                 the IRQL is {irql}"
            ),
        }
    }
}

impl core::error::Error for ActivityError {}

/// Calls `EtwActivityIdControl` with an id to read, to replace, or both.
fn control(code: u32, id: Guid) -> Result<ActivityId, ActivityError> {
    if code != CREATE_ID {
        ffi::check_irql(ffi::APC_LEVEL).map_err(ActivityError::TooHighIrql)?;
    }
    let mut id = id;
    // SAFETY: the routine reads and writes the local only.
    let status = NtStatus(unsafe { ffi::EtwActivityIdControl(code, &raw mut id) });
    if status.is_success() {
        Ok(ActivityId(id))
    } else {
        Err(ActivityError::Refused(status))
    }
}

/// A piece of work that may end on another thread, and at another IRQL, than it started: a
/// request, for instance, whose context keeps this.
///
/// Its start event names the activity that it comes from
/// ([`WriteOptions::starts`](crate::WriteOptions::starts)); its other events, up to the stop
/// event, carry its id.
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
///     // An id costs a call, so there is none while nobody listens.
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
    /// None. All its bytes are zero.
    pub const NONE: Self = Self {
        id: ActivityId::NONE,
        related: ActivityId::NONE,
    };

    /// A new one that comes from none.
    ///
    /// # IRQL
    ///
    /// Any.
    ///
    /// # Errors
    ///
    /// What `EtwActivityIdControl` returns.
    pub fn new() -> Result<Self, ActivityError> {
        Self::from_activity(ActivityId::NONE)
    }

    /// A new one that comes from this activity.
    ///
    /// # IRQL
    ///
    /// Any.
    ///
    /// # Errors
    ///
    /// What `EtwActivityIdControl` returns.
    pub fn from_activity(related: ActivityId) -> Result<Self, ActivityError> {
        Ok(Self {
            id: ActivityId::create()?,
            related,
        })
    }

    /// A new one that comes from what the thread is doing: for a request, what its sender
    /// does, if the request is handled on the sender's thread.
    ///
    /// # IRQL
    ///
    /// `APC_LEVEL` or below.
    ///
    /// # Errors
    ///
    /// [`ActivityError`].
    pub fn from_thread() -> Result<Self, ActivityError> {
        Self::from_activity(ActivityId::of_thread()?)
    }

    /// The id that its events carry.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn id(&self) -> ActivityId {
        self.id
    }

    /// The activity that it comes from, if any.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn related(&self) -> Option<ActivityId> {
        if self.related.0.is_null() {
            None
        } else {
            Some(self.related)
        }
    }
}

impl ActivityId {
    /// No activity.
    pub const NONE: Self = Self(Guid::NULL);

    /// The id with these 16 bytes.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn from_guid(guid: Guid) -> Self {
        Self(guid)
    }

    /// The id's 16 bytes.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn guid(self) -> Guid {
        self.0
    }

    /// The bytes, for ETW.
    pub(crate) const fn as_guid(&self) -> &Guid {
        &self.0
    }

    /// A new id (`EVENT_ACTIVITY_CTRL_CREATE_ID`).
    ///
    /// # IRQL
    ///
    /// Any.
    ///
    /// # Errors
    ///
    /// What `EtwActivityIdControl` returns.
    pub fn create() -> Result<Self, ActivityError> {
        control(CREATE_ID, Guid::NULL)
    }

    /// The id that events of this thread carry when they name none
    /// (`EVENT_ACTIVITY_CTRL_GET_ID`).
    ///
    /// # IRQL
    ///
    /// `APC_LEVEL` or below.
    ///
    /// # Errors
    ///
    /// What `EtwActivityIdControl` returns.
    pub fn of_thread() -> Result<Self, ActivityError> {
        control(GET_ID, Guid::NULL)
    }

    /// Makes this the thread's id (`EVENT_ACTIVITY_CTRL_SET_ID`); [`Self::enter`] also
    /// takes it back.
    ///
    /// # IRQL
    ///
    /// `APC_LEVEL` or below.
    ///
    /// # Errors
    ///
    /// What `EtwActivityIdControl` returns.
    pub fn set_for_thread(self) -> Result<(), ActivityError> {
        control(SET_ID, self.0).map(|_| ())
    }

    /// Makes this the thread's id and returns the one before it
    /// (`EVENT_ACTIVITY_CTRL_GET_SET_ID`).
    ///
    /// # IRQL
    ///
    /// `APC_LEVEL` or below.
    ///
    /// # Errors
    ///
    /// What `EtwActivityIdControl` returns.
    pub fn swap_for_thread(self) -> Result<Self, ActivityError> {
        control(GET_SET_ID, self.0)
    }

    /// Makes this the thread's id until the scope ends, on whatever path
    /// (`EVENT_ACTIVITY_CTRL_GET_SET_ID`).
    ///
    /// # IRQL
    ///
    /// `APC_LEVEL` or below, to its end.
    ///
    /// # Errors
    ///
    /// What `EtwActivityIdControl` returns.
    pub fn enter(self) -> Result<ActivityScope, ActivityError> {
        Ok(ActivityScope {
            previous: self.swap_for_thread()?,
            thread: PhantomData,
        })
    }
}

/// A stretch of a thread's work during which its events belong to an activity. The
/// thread's earlier id comes back when it is dropped, on the thread that entered it.
#[derive(Debug)]
#[must_use = "the activity ends when the scope is dropped"]
pub struct ActivityScope {
    previous: ActivityId,
    /// A scope is its thread's own: it must not be sent to another one.
    thread: PhantomData<*const ()>,
}

impl ActivityScope {
    /// The id that the thread had before: the related id for a start event.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn previous(&self) -> ActivityId {
        self.previous
    }
}

impl Drop for ActivityScope {
    fn drop(&mut self) {
        // It was possible when the scope was entered, on this thread and at this IRQL,
        // and there is nobody to tell if it is no more.
        let _result = self.previous.set_for_thread();
    }
}
