//! Activity ids: what ties the events of one piece of work together.

use core::{fmt, marker::PhantomData};

use crate::{Guid, NtStatus, ffi};

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

/// `EtwActivityIdControl` failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActivityError(pub NtStatus);

impl fmt::Display for ActivityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EtwActivityIdControl returned {}", self.0)
    }
}

impl core::error::Error for ActivityError {}

/// Calls `EtwActivityIdControl` with an id to read, to replace, or both.
fn control(code: u32, id: Guid) -> Result<ActivityId, ActivityError> {
    let mut id = id;
    // SAFETY: the routine reads and writes the local only.
    let status = NtStatus(unsafe { ffi::EtwActivityIdControl(code, &raw mut id) });
    if status.is_success() {
        Ok(ActivityId(id))
    } else {
        Err(ActivityError(status))
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
