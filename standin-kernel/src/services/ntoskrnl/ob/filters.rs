//! The registrations of callbacks for the registry and for handles.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use crate::{
    execution::coroutine::wait_until,
    ground::{NtStatus, arena::Block, memory},
    services::ntoskrnl::context::Context,
};

/// `STATUS_FLT_INSTANCE_ALTITUDE_COLLISION`.
pub const ALTITUDE_COLLISION: NtStatus = NtStatus::from_bits(0xC01C_0011);

/// The operations that a [`Filter`] watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// Operations on registry keys.
    Registry,
    /// Operations on handles.
    Handles,
}

/// The routines for operations. A registration for the registry has one routine, `before`.
#[derive(Clone, Copy, Default)]
pub struct Routines {
    /// The object type of the handles.
    pub kind: u64,
    /// The operations on handles: [`CREATE`] and [`DUPLICATE`].
    pub operations: u32,
    pub before: u64,
    pub after: u64,
}

/// `OB_OPERATION_HANDLE_CREATE` and `OB_OPERATION_HANDLE_DUPLICATE`.
pub const CREATE: u32 = 1;
pub const DUPLICATE: u32 = 2;

/// A registration at an altitude.
struct Filter {
    /// The watched operations.
    watched: Watched,
    /// The cookie or handle that the driver received.
    key: u64,
    /// The altitude, which is unique among registrations for the same operations.
    altitude: Option<String>,
    /// The driver's routines.
    routines: Vec<Routines>,
    /// The value that the driver wants to receive.
    argument: u64,
    /// The number of operations whose notifications have begun and not ended.
    pending: u32,
    /// The place of the call that registered the routines.
    place: String,
    /// Set when the driver removes the registration: no more notifications begin.
    is_closing: bool,
    _memory: Block,
}

#[derive(Default)]
struct Filters {
    all: Vec<Filter>,
    /// The total number of registrations.
    issued: u64,
}

/// Returns whether a routine's image was linked with `/INTEGRITYCHECK`. Windows requires this for
/// these routines.
pub fn has_integrity_check(context: &Context, routine: u64) -> bool {
    /// The offset of the image field that contains the headers' offset.
    const HEADERS: u64 = 0x3C;
    /// The offset of `DllCharacteristics` in the headers, which start with the signature and the
    /// file header.
    const CHARACTERISTICS: u64 = 24 + 70;
    /// `IMAGE_DLLCHARACTERISTICS_FORCE_INTEGRITY`.
    const FORCE_INTEGRITY: u16 = 0x80;
    let read = || {
        let base = context.environment().images.base_of(routine)?;
        let headers: u32 = memory::read(base + HEADERS).ok()?;
        let at = base + u64::from(headers) + CHARACTERISTICS;
        memory::read::<u16>(at).ok()
    };
    read().is_some_and(|flags| flags & FORCE_INTEGRITY != 0)
}

/// Registers routines at an altitude. Returns the key, or an error if the altitude is already in use.
pub fn add_filter(
    context: &Context,
    watched: Watched,
    altitude: Option<String>,
    routines: Vec<Routines>,
    argument: u64,
) -> Option<u64> {
    let place = context.caller();
    let mut state = context.state();
    let filters = state.get::<Filters>();
    let has_altitude = |one: &Filter| one.watched == watched && one.altitude == altitude;
    if altitude.is_some() && filters.all.iter().any(has_altitude) {
        return None;
    }
    let memory = Block::zeroed(0x40);
    filters.issued += 1;
    let key = match watched {
        Watched::Registry => filters.issued,
        Watched::Handles => memory.address(),
    };
    filters.all.push(Filter {
        watched,
        key,
        altitude,
        routines,
        argument,
        pending: 0,
        place,
        is_closing: false,
        _memory: memory,
    });
    Some(key)
}

/// A routine, and the registration that it belongs to.
#[derive(Clone, Copy)]
pub struct Registered {
    /// The cookie or handle of the registration.
    pub key: u64,
    /// The value that the driver wants to receive.
    pub argument: u64,
    /// The driver's routines.
    pub routines: Routines,
}

/// Returns the routines in the order in which they are called before an operation: those without an
/// altitude, in the order of their registration, then the others from the highest altitude.
pub fn registered(context: &Context, watched: Watched) -> Vec<Registered> {
    let altitude = |one: &Filter| {
        let text = one.altitude.as_ref();
        text.map_or(f64::INFINITY, |text| text.parse().unwrap_or(0.0))
    };
    let mut state = context.state();
    let all = state.get::<Filters>().all.iter();
    let mut all: Vec<&Filter> = all.filter(|one| one.watched == watched).collect();
    all.sort_by(|one, other| altitude(other).total_cmp(&altitude(one)));
    let of = |one: &Filter| {
        let Filter { key, argument, .. } = *one;
        let of_routines =
            move |routines: &Routines| Registered { key, argument, routines: *routines };
        one.routines.iter().map(of_routines).collect::<Vec<_>>()
    };
    all.into_iter().flat_map(of).collect()
}

/// The current thread's notifications.
#[derive(Default)]
struct Notifications {
    /// The registrations whose notifications have begun and not ended.
    pending: RefCell<Vec<u64>>,
    /// The registration whose routine runs.
    running: Cell<Option<u64>>,
}

fn of_thread(context: &Context) -> Rc<Notifications> {
    context.thread().local()
}

/// Runs `body`, which calls a routine of a registration.
pub fn while_running<R>(context: &Context, key: u64, body: impl FnOnce() -> R) -> R {
    let thread = of_thread(context);
    let outer = thread.running.replace(Some(key));
    let result = body();
    thread.running.set(outer);
    result
}

/// Returns the registration whose routine runs on the current thread.
pub fn running(context: &Context) -> Option<u64> {
    of_thread(context).running.get()
}

/// Begins the notifications of a registration for an operation. Returns `false` if the driver removes
/// the registration. Otherwise [`end`] must follow.
pub fn begin(context: &Context, key: u64) -> bool {
    let is_open = context.with_state(|filters: &mut Filters| {
        let filter = filters.all.iter_mut().find(|one| one.key == key && !one.is_closing)?;
        filter.pending += 1;
        Some(())
    });
    if is_open.is_some() {
        of_thread(context).pending.borrow_mut().push(key);
    }
    is_open.is_some()
}

/// Ends the notifications that [`begin`] began.
pub fn end(context: &Context, key: u64) {
    let thread = of_thread(context);
    let mut pending = thread.pending.borrow_mut();
    if let Some(at) = pending.iter().rposition(|one| *one == key) {
        pending.remove(at);
    }
    drop(pending);
    context.with_state(|filters: &mut Filters| {
        for filter in filters.all.iter_mut().filter(|one| one.key == key) {
            filter.pending = filter.pending.saturating_sub(1);
        }
    });
}

/// Begins the removal of a registration: waits until its notifications have ended. Returns whether there
/// was a registration. Bugchecks if the wait would not end.
pub fn close_filter(context: &Context, watched: Watched, key: u64) -> bool {
    let is_open = context.with_state(|filters: &mut Filters| {
        let mut all = filters.all.iter_mut();
        let filter = all.find(|one| (one.watched, one.key) == (watched, key) && !one.is_closing)?;
        filter.is_closing = true;
        Some(())
    });
    if is_open.is_none() {
        return false;
    }
    let is_idle = || {
        let mut state = context.state();
        let mut all = state.get::<Filters>().all.iter();
        all.all(|one| one.key != key || one.pending == 0)
    };
    if of_thread(context).pending.borrow().contains(&key) {
        context.stop_for_misuse(
            "inside an operation of which the registration's callbacks are notified, and would wait \
             for itself",
        );
    }
    if !wait_until(context, None, is_idle) {
        context.stop_for_misuse("and would wait forever for a callback that does not return");
    }
    true
}

/// Removes a registration.
pub fn remove_filter(context: &Context, watched: Watched, key: u64) {
    let mut state = context.state();
    state.get::<Filters>().all.retain(|one| (one.watched, one.key) != (watched, key));
}

/// Removes the registrations with a routine that `belongs` selects. Returns the watched operations, the
/// first such routine, and the place of each registration.
pub fn take_left(
    context: &Context,
    belongs: impl Fn(u64) -> bool,
) -> Vec<(&'static str, u64, String)> {
    let mut state = context.state();
    let found = |one: &Filter| {
        one.routines.iter().flat_map(|one| [one.before, one.after]).find(|one| belongs(*one))
    };
    let left = state.get::<Filters>().all.extract_if(.., |one| found(one).is_some());
    let describe = |one: Filter| {
        let what = match one.watched {
            Watched::Registry => "the registry",
            Watched::Handles => "handles",
        };
        (what, found(&one).unwrap_or_default(), one.place)
    };
    left.map(describe).collect()
}

/// Copies words to memory that callbacks can read and write.
pub fn block_of(context: &Context, words: &[u64]) -> Block {
    let block = Block::zeroed(size_of_val(words));
    for (at, word) in (block.address()..).step_by(8).zip(words) {
        context.write(at, word);
    }
    block
}
