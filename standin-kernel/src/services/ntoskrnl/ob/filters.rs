//! Callbacks for the registry and for handles. They can be registered, but the stand-in kernel
//! never calls them.

use crate::{
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

/// A registration at an altitude.
struct Filter {
    /// The watched operations.
    watched: Watched,
    /// The cookie or handle that the driver received.
    key: u64,
    /// The altitude, which is unique among registrations for the same operations.
    altitude: Option<String>,
    /// The driver's routines.
    routines: Vec<u64>,
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
    routines: Vec<u64>,
) -> Option<u64> {
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
    let filter = Filter { watched, key, altitude, routines, _memory: memory };
    filters.all.push(filter);
    Some(key)
}

/// Removes a registration. Returns whether there was one.
pub fn remove_filter(context: &Context, watched: Watched, key: u64) -> bool {
    let mut state = context.state();
    let filters = &mut state.get::<Filters>().all;
    let before = filters.len();
    filters.retain(|one| (one.watched, one.key) != (watched, key));
    filters.len() < before
}

/// Removes the registrations with a routine that `belongs` selects. Returns their number.
pub fn take_left(context: &Context, belongs: impl Fn(u64) -> bool) -> usize {
    let mut state = context.state();
    let left =
        state.get::<Filters>().all.extract_if(.., |one| one.routines.iter().any(|it| belongs(*it)));
    left.count()
}
