//! The exports of WDFLDR.SYS.

use super::kmdf::{
    driver::{bind, unbind},
    state::framework::Context,
};
use crate::execution::routine::{Routine, routine};

/// The module's name.
pub const MODULE: &str = "WDFLDR.SYS";

/// The exports.
pub const ENTRIES: &[Routine<Context>] =
    &[routine("WdfVersionBind", bind), routine("WdfVersionUnbind", unbind)];
