//! The routine of ntoskrnl.exe for the interrupt objects that the framework provides to drivers.

use super::{
    lock::{acquire, release},
    state::InterruptData,
};
use crate::{
    execution::routine::{Export, Routine},
    ground::{arena::Block, irql::Irql, rule::Rule},
    services::kmdf::state::framework::Context,
};

/// Returns the exports of ntoskrnl.exe.
pub fn exports() -> Vec<Export<Context>> {
    vec![("KeSynchronizeExecution", Irql::HIGH_LEVEL, Routine::of(synchronize))]
}

/// Calls a driver routine with an interrupt's lock held, and returns its `BOOLEAN` result.
fn synchronize(context: &Context, object: u64, routine: u64, argument: u64) -> bool {
    let mut framework = context.framework();
    let all = framework.all::<InterruptData>();
    let interrupt = all.into_iter().find(|interrupt| {
        let data = framework.get::<InterruptData>(*interrupt);
        data.is_ok_and(|data| data.object.as_ref().map(Block::address) == Some(object))
    });
    drop(framework);
    let Some(interrupt) = interrupt else {
        let what = format!("with 0x{object:016X}, which is not an interrupt object");
        context.stop_call(Rule::BadHandle, &what);
    };
    acquire(context, interrupt);
    let result = context.call_driver("the routine of KeSynchronizeExecution", routine, [argument]);
    release(context, interrupt);
    result & 0xFF != 0
}
