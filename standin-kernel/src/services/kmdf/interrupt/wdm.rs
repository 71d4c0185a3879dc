//! The routine of ntoskrnl.exe for the interrupt objects that the framework provides to drivers.

use super::{
    lock::{acquire, release},
    state::InterruptData,
};
use crate::{
    execution::routine::{At, Callback, Memory, Routine, routine},
    ground::{arena::Block, opaque::InterruptObject, rule::Rule},
    services::kmdf::state::framework::Context,
};

/// The exports of ntoskrnl.exe.
pub const ENTRIES: &[Routine<Context>] = &[routine("KeSynchronizeExecution", synchronize)];

/// Calls a driver routine with an interrupt's lock held, and returns its `BOOLEAN` result.
fn synchronize(
    context: &Context,
    object: At<InterruptObject>,
    routine: Callback,
    argument: Memory,
) -> bool {
    let mut framework = context.framework();
    let all = framework.all::<InterruptData>();
    let interrupt = all.into_iter().find(|interrupt| {
        let data = framework.get::<InterruptData>(*interrupt);
        data.is_ok_and(|data| data.object.as_ref().map(Block::address) == Some(object.0))
    });
    drop(framework);
    let Some(interrupt) = interrupt else {
        let what = format!("with 0x{object:016X}, which is not an interrupt object");
        context.stop_call(Rule::BadHandle, &what);
    };
    acquire(context, interrupt);
    let result =
        context.call_driver("the routine of KeSynchronizeExecution", routine.0, [argument.0]);
    release(context, interrupt);
    result & 0xFF != 0
}
