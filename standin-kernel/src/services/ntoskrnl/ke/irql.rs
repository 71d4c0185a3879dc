//! The IRQL of the current processor.

use crate::{
    execution::routine::routine,
    ground::irql::Irql,
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[
    routine("KeGetCurrentIrql", ke_get_current_irql),
    routine("KeLowerIrql", ke_lower_irql),
    routine("KfRaiseIrql", kf_raise_irql),
];

fn ke_get_current_irql(context: &Context) -> u8 {
    context.irql().number()
}

fn kf_raise_irql(context: &Context, new_irql: u8) -> u8 {
    let before = context.raise_irql(Irql::from_number(new_irql & 0xF));
    before.number()
}

fn ke_lower_irql(context: &Context, new_irql: u8) {
    context.lower_irql(Irql::from_number(new_irql & 0xF));
}
