//! The exports of WDFLDR.SYS.

use crate::{
    execution::routine::{Routine, routine},
    services::kmdf::{
        binding::{bind, unbind},
        state::framework::Context,
    },
};

/// The module's name.
pub const MODULE: &str = "WDFLDR.SYS";

/// The exports.
pub const ENTRIES: &[Routine<Context>] =
    &[routine("WdfVersionBind", bind), routine("WdfVersionUnbind", unbind)];
