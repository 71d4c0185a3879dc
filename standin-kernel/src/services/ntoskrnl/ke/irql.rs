//! The IRQL of the current processor.

use crate::{
    execution::routine::Routine,
    ground::irql::Irql,
    services::ntoskrnl::context::{Context, Entries},
};

const HIGH: Irql = Irql::HIGH_LEVEL;

pub const ENTRIES: Entries = &[
    ("KeGetCurrentIrql", HIGH, Routine::of(ke_get_current_irql)),
    ("KeLowerIrql", HIGH, Routine::of(ke_lower_irql)),
    ("KfRaiseIrql", HIGH, Routine::of(kf_raise_irql)),
];

fn ke_get_current_irql(context: &Context) -> u8 {
    context.irql().number()
}

fn kf_raise_irql(context: &Context, to: u8) -> u8 {
    let before = context.raise_irql(Irql::from_number(to & 0xF));
    before.number()
}

fn ke_lower_irql(context: &Context, to: u8) {
    context.lower_irql(Irql::from_number(to & 0xF));
}
