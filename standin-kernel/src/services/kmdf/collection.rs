//! Collections of objects.

use super::{
    driver::driver_of,
    object::{create, give, hold, read_attributes, release},
    state::framework::{Context, Data, Entries, ObjectRoutine},
};
use crate::{
    execution::routine::{Routine, low_half},
    ground::status::NtStatus,
};

/// A collection. It holds a reference to each of its items.
#[derive(Default)]
pub struct CollectionData {
    items: Vec<u64>,
}

impl Data for CollectionData {
    const NAME: &'static str = "WDFCOLLECTION";
    const BEFORE_DELETE: Option<ObjectRoutine> = Some(release_items);
}

pub const ENTRIES: Entries = &[
    ("WdfCollectionCreate", Routine::Three(collection_create)),
    ("WdfCollectionGetCount", Routine::Two(get_count)),
    ("WdfCollectionAdd", Routine::Three(add)),
    ("WdfCollectionRemove", Routine::Three(remove)),
    ("WdfCollectionRemoveItem", Routine::Three(remove_item)),
    ("WdfCollectionGetItem", Routine::Three(get_item)),
    ("WdfCollectionGetFirstItem", Routine::Two(get_first)),
    ("WdfCollectionGetLastItem", Routine::Two(get_last)),
];

fn collection_create(context: &Context, _globals: u64, attributes: u64, collection: u64) -> u64 {
    let attributes = read_attributes(context, attributes);
    let parent = driver_of(context);
    let created = create(context, CollectionData::default(), attributes.as_ref(), parent);
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

fn get_count(context: &Context, _globals: u64, collection: u64) -> u64 {
    items(context, collection).len() as u64
}

/// Adds an object. One object can be in a collection several times.
fn add(context: &Context, _globals: u64, collection: u64, object: u64) -> u64 {
    context.with::<CollectionData, _>(collection, |_| ());
    push(context, collection, object);
    NtStatus::SUCCESS.to_register()
}

/// Removes the item at a place, if there is one.
fn take(context: &Context, collection: u64, place: Option<usize>, what: impl FnOnce() -> String) {
    let taken = context.with::<CollectionData, _>(collection, |data| {
        let place = place.filter(|place| *place < data.items.len())?;
        Some(data.items.remove(place))
    });
    match taken {
        Some(item) => release(context, item),
        None => context
            .warn_of_misuse(|| format!("with {}, which the collection does not have", what())),
    }
}

fn remove(context: &Context, _globals: u64, collection: u64, object: u64) -> u64 {
    context.with_object(object, |_| ());
    let place = context.with::<CollectionData, _>(collection, |data| {
        data.items.iter().position(|item| *item == object)
    });
    take(context, collection, place, || format!("0x{object:016X}"));
    0
}

fn remove_item(context: &Context, _globals: u64, collection: u64, index: u64) -> u64 {
    let index = low_half(index);
    take(context, collection, Some(index as usize), || format!("index {index}"));
    0
}

fn get_item(context: &Context, _globals: u64, collection: u64, index: u64) -> u64 {
    let items = items(context, collection);
    items.get(low_half(index) as usize).copied().unwrap_or(0)
}

fn get_first(context: &Context, _globals: u64, collection: u64) -> u64 {
    items(context, collection).first().copied().unwrap_or(0)
}

fn get_last(context: &Context, _globals: u64, collection: u64) -> u64 {
    items(context, collection).last().copied().unwrap_or(0)
}

fn release_items(context: &Context, collection: u64) {
    let items =
        context.with::<CollectionData, _>(collection, |data| core::mem::take(&mut data.items));
    for item in items {
        release(context, item);
    }
}
