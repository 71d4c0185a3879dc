//! Collections of objects.

use super::{
    driver::driver_of,
    object::{create_from, give, hold, release},
    state::framework::{Context, Data, Entries, ObjectRoutine},
};
use crate::{
    execution::routine::{Handle, Routine},
    ground::{NtResult, NtStatus},
};

/// A collection. It holds a reference to each of its items.
#[derive(Default)]
pub struct CollectionData {
    items: Vec<u64>,
}

impl Data for CollectionData {
    const NAME: &'static str = "WDFCOLLECTION";
    const AFTER_DESTROY: Option<ObjectRoutine> = Some(release_items);
}

pub const ENTRIES: Entries = &[
    ("WdfCollectionCreate", Routine::after_globals(collection_create)),
    ("WdfCollectionGetCount", Routine::after_globals(get_count)),
    ("WdfCollectionAdd", Routine::after_globals(add)),
    ("WdfCollectionRemove", Routine::after_globals(remove)),
    ("WdfCollectionRemoveItem", Routine::after_globals(remove_item)),
    ("WdfCollectionGetItem", Routine::after_globals(get_item)),
    ("WdfCollectionGetFirstItem", Routine::after_globals(get_first)),
    ("WdfCollectionGetLastItem", Routine::after_globals(get_last)),
];

fn collection_create(context: &Context, attributes: u64, collection: u64) -> NtResult {
    let created = create_from(context, CollectionData::default(), attributes, driver_of(context));
    give(context, created, collection)
}

/// Returns the items of a collection.
pub fn items(context: &Context, collection: u64) -> Vec<u64> {
    context.with::<CollectionData, _>(collection, |data| data.items.clone())
}

/// Adds an object to a collection.
pub fn push(context: &Context, collection: u64, object: u64) {
    hold(context, object);
    context.with::<CollectionData, _>(collection, |data| data.items.push(object));
}

fn get_count(context: &Context, collection: u64) -> u32 {
    u32::try_from(items(context, collection).len()).unwrap_or(u32::MAX)
}

/// Adds an object. The same object can be in a collection several times.
fn add(context: &Context, collection: Handle<CollectionData>, object: u64) -> NtStatus {
    collection.check(context);
    push(context, collection.0, object);
    NtStatus::SUCCESS
}

/// Removes the item at this index, if there is one.
fn take(context: &Context, collection: u64, place: Option<usize>, what: impl FnOnce() -> String) {
    let taken = context.with::<CollectionData, _>(collection, |data| {
        let place = place.filter(|place| *place < data.items.len())?;
        Some(data.items.remove(place))
    });
    match taken {
        Some(item) => release(context, item),
        None => context
            .warn_of_misuse(|| format!("with {}, which the collection does not contain", what())),
    }
}

fn remove(context: &Context, collection: Handle<CollectionData>, object: u64) {
    context.with_object(object, |_| ());
    let place = collection.with(context, |data| data.items.iter().position(|item| *item == object));
    take(context, collection.0, place, || format!("0x{object:016X}"));
}

fn remove_item(context: &Context, collection: u64, index: u32) {
    take(context, collection, Some(index as usize), || format!("index {index}"));
}

fn get_item(context: &Context, collection: u64, index: u32) -> u64 {
    let items = items(context, collection);
    items.get(index as usize).copied().unwrap_or(0)
}

fn get_first(context: &Context, collection: u64) -> u64 {
    items(context, collection).first().copied().unwrap_or(0)
}

fn get_last(context: &Context, collection: u64) -> u64 {
    items(context, collection).last().copied().unwrap_or(0)
}

fn release_items(context: &Context, collection: u64) {
    let items =
        context.with::<CollectionData, _>(collection, |data| core::mem::take(&mut data.items));
    for item in items {
        release(context, item);
    }
}
