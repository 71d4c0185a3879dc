//! Framework objects and their routines, and the general objects: collections, memory, strings.

pub mod collection;
pub mod memory;
pub mod routines;
pub mod string;
