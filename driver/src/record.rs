//! A record of ETW's notifications to the provider, for the device's clients.
//!
//! Notifications and requests run concurrently on any processor, so all fields are atomic: the
//! record never locks, waits or allocates.

use core::{
    array,
    sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering},
};

use etw_sample_interface::{MAX_RECORDED, NotificationRecord, Registration, outcome};
use wdk_etw::{Notification, NtStatus, Refusals, RegisterError, Registered};

/// A slot of the record, for one notification.
struct Slot {
    /// 1 once the other fields are stored.
    recorded: AtomicU32,
    during_registration: AtomicU32,
    control_code: AtomicU32,
    level: AtomicU32,
    match_any: AtomicU64,
    match_all: AtomicU64,
    /// The two halves of the source id.
    source: [AtomicU64; 2],
    filter_kind: AtomicU32,
    filter_size: AtomicU32,
}

impl Slot {
    /// Returns a slot without a notification.
    const fn new() -> Self {
        Self {
            recorded: AtomicU32::new(0),
            during_registration: AtomicU32::new(0),
            control_code: AtomicU32::new(0),
            level: AtomicU32::new(0),
            match_any: AtomicU64::new(0),
            match_all: AtomicU64::new(0),
            source: [const { AtomicU64::new(0) }; 2],
            filter_kind: AtomicU32::new(0),
            filter_size: AtomicU32::new(0),
        }
    }

    /// Stores a notification. The caller has claimed the slot.
    fn store(&self, notification: &Notification<'_>, during_registration: bool) {
        let raw = &notification.raw;
        let set = |field: &AtomicU32, value| field.store(value, Ordering::Relaxed);
        set(&self.during_registration, u32::from(during_registration));
        set(&self.control_code, raw.control_code);
        set(&self.level, u32::from(raw.level));
        self.match_any.store(raw.match_any, Ordering::Relaxed);
        self.match_all.store(raw.match_all, Ordering::Relaxed);
        let source = u128::from_le_bytes(notification.source.to_bytes());
        let [low, high] = &self.source;
        low.store(source as u64, Ordering::Relaxed);
        high.store((source >> 64) as u64, Ordering::Relaxed);
        set(&self.filter_kind, raw.filter_kind);
        set(&self.filter_size, raw.filter_size);
        // Publishes the other fields.
        self.recorded.store(1, Ordering::Release);
    }

    /// Returns the record, or an empty one if the slot is empty or being stored.
    fn load(&self) -> NotificationRecord {
        if self.recorded.load(Ordering::Acquire) == 0 {
            return NotificationRecord::default();
        }
        let get = |field: &AtomicU32| field.load(Ordering::Relaxed);
        let [low, high] = &self.source;
        let low = u128::from(low.load(Ordering::Relaxed));
        let high = u128::from(high.load(Ordering::Relaxed));
        NotificationRecord {
            recorded: 1,
            during_registration: get(&self.during_registration),
            control_code: get(&self.control_code),
            level: get(&self.level),
            match_any: self.match_any.load(Ordering::Relaxed),
            match_all: self.match_all.load(Ordering::Relaxed),
            source: (low | (high << 64)).to_le_bytes(),
            filter_kind: get(&self.filter_kind),
            filter_size: get(&self.filter_size),
        }
    }
}

static SLOTS: [Slot; MAX_RECORDED] = [const { Slot::new() }; MAX_RECORDED];

/// The number of notifications that the provider has received. It assigns slots to the first ones.
static NOTIFICATIONS: AtomicUsize = AtomicUsize::new(0);

/// The fields of [`Registration`].
static OUTCOME: AtomicU32 = AtomicU32::new(outcome::NONE);
static STATUS: AtomicU32 = AtomicU32::new(0);
static TRAITS: AtomicU32 = AtomicU32::new(0);
static DESCRIPTOR_TYPES: AtomicU32 = AtomicU32::new(0);
static BINARY_TRACKING: AtomicU32 = AtomicU32::new(0);
static TRAITS_LEFT_OUT: AtomicU32 = AtomicU32::new(0);

/// Counts a notification, and records it if it is one of the first. IRQL: any.
pub fn notification(notification: &Notification<'_>) {
    let number = NOTIFICATIONS.fetch_add(1, Ordering::Relaxed);
    if let Some(slot) = SLOTS.get(number) {
        slot.store(notification, OUTCOME.load(Ordering::Relaxed) == outcome::NONE);
    }
}

/// Records the number of traits that could not be added to the declared ones. IRQL: any.
pub fn traits_left_out(number: u32) {
    TRAITS_LEFT_OUT.fetch_add(number, Ordering::Relaxed);
}

/// Records the outcome of the registration. IRQL: any.
pub fn registration(result: Result<Registered, RegisterError>) {
    let set = |field: &AtomicU32, refusal: Option<NtStatus>| {
        let status = refusal.map_or(0, |status| status.0.cast_unsigned());
        field.store(status, Ordering::Relaxed);
    };
    let (outcome, status, refusals) = match result {
        Ok(Registered::Complete) => (outcome::COMPLETE, None, Refusals::default()),
        Ok(Registered::Incomplete(refusals)) => (outcome::INCOMPLETE, None, refusals),
        Err(RegisterError::Refused(status)) => {
            (outcome::REFUSED, Some(status), Refusals::default())
        }
        Err(_) => (outcome::NOT_CALLED, None, Refusals::default()),
    };
    set(&STATUS, status);
    set(&TRAITS, refusals.traits);
    set(&DESCRIPTOR_TYPES, refusals.descriptor_types);
    set(&BINARY_TRACKING, refusals.binary_tracking);
    OUTCOME.store(outcome, Ordering::Relaxed);
}

/// Returns the number of notifications that the provider has received. IRQL: any.
pub fn notifications() -> u64 {
    NOTIFICATIONS.load(Ordering::Relaxed) as u64
}

/// Returns the first notifications. IRQL: any.
pub fn first_notifications() -> [NotificationRecord; MAX_RECORDED] {
    let mut slots = SLOTS.iter();
    array::from_fn(|_| slots.next().map_or_else(NotificationRecord::default, Slot::load))
}

/// Returns the outcome of the registration. IRQL: any.
pub fn outcome_of_registration() -> Registration {
    let get = |field: &AtomicU32| field.load(Ordering::Relaxed);
    Registration {
        outcome: get(&OUTCOME),
        status: get(&STATUS),
        traits: get(&TRAITS),
        descriptor_types: get(&DESCRIPTOR_TYPES),
        binary_tracking: get(&BINARY_TRACKING),
        traits_left_out: get(&TRAITS_LEFT_OUT),
    }
}
