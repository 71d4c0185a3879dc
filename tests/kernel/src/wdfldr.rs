//! What WDFLDR.SYS exports to drivers.

use crate::{gateway::Export, irql::Irql, kmdf};

/// The module's name.
pub const MODULE: &str = "WDFLDR.SYS";

/// The exports.
pub fn exports() -> Vec<Export> {
    vec![
        (
            "WdfVersionBind",
            Irql::PASSIVE_LEVEL,
            kmdf::bind as *const () as u64,
        ),
        (
            "WdfVersionUnbind",
            Irql::PASSIVE_LEVEL,
            kmdf::unbind as *const () as u64,
        ),
    ]
}
