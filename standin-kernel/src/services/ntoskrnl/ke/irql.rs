//! The IRQL of the current processor.

use crate::{
    execution::routine::Routine,
    ground::irql::Irql,
    services::ntoskrnl::context::{Context, Entries},
};

const HIGH: Irql = Irql::HIGH_LEVEL;

pub const ENTRIES: Entries = &[
    ("KeGetCurrentIrql", HIGH, Routine::Zero(ke_get_current_irql)),
    ("KeLowerIrql", HIGH, Routine::One(ke_lower_irql)),
    ("KfRaiseIrql", HIGH, Routine::One(kf_raise_irql)),
];

fn ke_get_current_irql(context: &Context) -> u64 {
    u64::from(context.irql().number())
}

fn kf_raise_irql(context: &Context, to: u64) -> u64 {
    let before = context.raise_irql(Irql::from_number((to & 0xF) as u8));
    u64::from(before.number())
}

fn ke_lower_irql(context: &Context, to: u64) -> u64 {
    context.lower_irql(Irql::from_number((to & 0xF) as u8));
    0
}
