//! Collections of objects.

use crate::{
    execution::{
        kinds::AnyObject,
        routine::{At, Handle, Out, routine},
    },
    ground::{NtResult, NtStatus, abi::ObjectAttributes},
    services::kmdf::{
        binding::driver_of,
        lifetime::{create_from, give, hold, release},
        state::framework::{Context, Data, Entries, ObjectRoutine},
    },
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
    routine("WdfCollectionCreate", collection_create),
    routine("WdfCollectionGetCount", get_count),
    routine("WdfCollectionAdd", add),
    routine("WdfCollectionRemove", remove),
    routine("WdfCollectionRemoveItem", remove_item),
    routine("WdfCollectionGetItem", get_item),
    routine("WdfCollectionGetFirstItem", get_first),
    routine("WdfCollectionGetLastItem", get_last),
];

fn collection_create(
    context: &Context,
    attributes: At<ObjectAttributes>,
    collection: Out<CollectionData>,
) -> NtResult {
    let created = create_from(context, CollectionData::default(), attributes.0, driver_of(context));
    give(context, created, collection.0)
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

fn get_count(context: &Context, collection: Handle<CollectionData>) -> u32 {
    u32::try_from(items(context, collection.0).len()).unwrap_or(u32::MAX)
}

/// Adds an object. The same object can be in a collection several times.
fn add(
    context: &Context,
    collection: Handle<CollectionData>,
    object: Handle<AnyObject>,
) -> NtStatus {
    collection.check(context);
    push(context, collection.0, object.0);
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

fn remove(context: &Context, collection: Handle<CollectionData>, object: Handle<AnyObject>) {
    context.with_object(object.0, |_| ());
    let place =
        collection.with(context, |data| data.items.iter().position(|item| *item == object.0));
    take(context, collection.0, place, || format!("0x{object:016X}"));
}

fn remove_item(context: &Context, collection: Handle<CollectionData>, index: u32) {
    take(context, collection.0, Some(index as usize), || format!("index {index}"));
}

fn get_item(
    context: &Context,
    collection: Handle<CollectionData>,
    index: u32,
) -> Handle<AnyObject> {
    let items = items(context, collection.0);
    Handle::new(items.get(index as usize).copied().unwrap_or(0))
}

fn get_first(context: &Context, collection: Handle<CollectionData>) -> Handle<AnyObject> {
    Handle::new(items(context, collection.0).first().copied().unwrap_or(0))
}

fn get_last(context: &Context, collection: Handle<CollectionData>) -> Handle<AnyObject> {
    Handle::new(items(context, collection.0).last().copied().unwrap_or(0))
}

fn release_items(context: &Context, collection: u64) {
    let items =
        context.with::<CollectionData, _>(collection, |data| core::mem::take(&mut data.items));
    for item in items {
        release(context, item);
    }
}
