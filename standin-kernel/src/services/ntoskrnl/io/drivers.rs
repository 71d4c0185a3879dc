//! The driver objects of loaded drivers, which other drivers find by name.

use std::{collections::BTreeSet, mem::offset_of};

use crate::{
    ground::abi::DriverObject,
    services::{
        ntoskrnl::context::{Context, Ntoskrnl},
        strings::read_unicode_string,
    },
};

/// The addresses of the driver objects.
#[derive(Default)]
struct Drivers(BTreeSet<u64>);

/// Adds the object of a driver that is being loaded.
pub fn add(nt: &Ntoskrnl, driver: u64) {
    nt.state().get::<Drivers>().0.insert(driver);
}

/// Removes the object of a driver that is being unloaded.
pub fn remove(context: &Context, driver: u64) {
    context.state().get::<Drivers>().0.remove(&driver);
}

/// Returns the driver objects with their names, such as `\Driver\sample`.
pub fn all(context: &Context) -> Vec<(u64, String)> {
    const NAME: u64 = offset_of!(DriverObject, driver_name) as u64;
    let all = context.state().get::<Drivers>().0.clone();
    let name = |driver: u64| (driver, read_unicode_string(context, driver.wrapping_add(NAME)));
    all.into_iter().map(name).collect()
}
