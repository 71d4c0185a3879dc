//! The state of a service's modules.

use std::{
    any::{Any, TypeId},
    collections::HashMap,
};

/// The state of a service's modules, by type. Each module declares its own type.
#[derive(Default)]
pub struct ModuleStates(HashMap<TypeId, Box<dyn Any + Send>>);

impl ModuleStates {
    /// Returns a module's state.
    pub fn get<T: Default + Send + 'static>(&mut self) -> &mut T {
        self.0
            .entry(TypeId::of::<T>())
            .or_insert_with(|| Box::new(T::default()))
            .downcast_mut()
            .unwrap_or_else(|| unreachable!("each state is stored under its own TypeId"))
    }
}
