//! The memory manager: memory descriptor lists, pages and addresses.

pub mod addresses;
pub mod mdl;
pub mod pages;
pub mod probes;
pub mod reserved_mappings;
pub mod virtual_memory;
