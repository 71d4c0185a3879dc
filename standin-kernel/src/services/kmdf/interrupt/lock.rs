//! The lock of an interrupt. Its service routine runs with the lock held.

use super::state::InterruptData;
use crate::{
    ground::{irql::Irql, rule::Rule},
    services::kmdf::state::framework::Context,
};

/// Acquires an interrupt's lock: raises the IRQL to the interrupt's IRQL.
pub fn acquire(context: &Context, interrupt: u64) {
    let this = context.id();
    let (irql, is_own) = context.with::<InterruptData, _>(interrupt, |data| {
        let is_own = data.held.is_some_and(|(owner, _)| owner == this);
        (data.irql(), is_own)
    });
    if is_own {
        context.stop_call(
            Rule::Deadlock,
            "for the lock of an interrupt that its caller already holds",
        );
    }
    let before = if irql > Irql::PASSIVE_LEVEL {
        context.raise_irql(irql)
    } else {
        must_be_passive(context);
        context.irql()
    };
    context.wait_for("the lock of an interrupt that is never released", || {
        context.with::<InterruptData, _>(interrupt, |data| {
            let is_free = data.held.is_none();
            if is_free {
                data.held = Some((this, before));
            }
            is_free.then_some(())
        })
    });
}

/// Bugchecks if the lock of a passive-level interrupt is acquired above `PASSIVE_LEVEL`.
fn must_be_passive(context: &Context) {
    let why = "for an interrupt that is handled at PASSIVE_LEVEL";
    context.check_irql(Irql::PASSIVE_LEVEL, why, "it");
}

/// Acquires the lock of a passive-level interrupt if it is free. Returns whether it was acquired.
pub fn try_acquire(context: &Context, interrupt: u64) -> bool {
    let this = context.id();
    let is_passive = context.with::<InterruptData, _>(interrupt, |data| data.is_passive());
    if !is_passive {
        context.stop_call(Rule::BadHandle, "for an interrupt that is not handled at PASSIVE_LEVEL");
    }
    let before = context.irql();
    context.with::<InterruptData, _>(interrupt, |data| {
        let is_free = data.held.is_none();
        if is_free {
            data.held = Some((this, before));
        }
        is_free
    })
}

/// Releases an interrupt's lock, and restores the previous IRQL.
pub fn release(context: &Context, interrupt: u64) {
    let this = context.id();
    let released = context
        .with::<InterruptData, _>(interrupt, |data| data.held.take_if(|(owner, _)| *owner == this));
    let Some((_, before)) = released else {
        context.stop_call(
            Rule::IrqlNotLowered,
            "for the lock of an interrupt that its caller does not hold",
        );
    };
    if before < context.irql() {
        context.lower_irql(before);
    }
}
