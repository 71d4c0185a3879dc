//! The exports of WDFLDR.SYS.

use super::kmdf::{
    driver::{bind, unbind},
    state::framework::Context,
};
use crate::{
    execution::routine::{Export, Routine},
    ground::irql::Irql,
};

/// The module's name.
pub const MODULE: &str = "WDFLDR.SYS";

/// Returns the exports.
pub fn exports() -> Vec<Export<Context>> {
    vec![
        ("WdfVersionBind", Irql::PASSIVE_LEVEL, Routine::of(bind)),
        ("WdfVersionUnbind", Irql::PASSIVE_LEVEL, Routine::of(unbind)),
    ]
}
