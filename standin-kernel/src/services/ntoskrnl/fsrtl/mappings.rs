//! The map control blocks of file systems (`BASE_MCB` and `LARGE_MCB`): which blocks of a volume (LBN)
//! hold the blocks of a file (VBN).

use std::collections::BTreeMap;

use crate::{
    execution::routine::{At, routine},
    ground::{
        NtResult, NtStatus,
        opaque::{BaseMcb, LargeMcb},
    },
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[
    routine("FsRtlInitializeBaseMcb", initialize_base),
    routine("FsRtlInitializeBaseMcbEx", initialize_base_checked),
    routine("FsRtlUninitializeBaseMcb", uninitialize::<BaseMcb>),
    routine("FsRtlResetBaseMcb", reset_base),
    routine("FsRtlAddBaseMcbEntry", add::<BaseMcb>),
    routine("FsRtlAddBaseMcbEntryEx", add_checked),
    routine("FsRtlRemoveBaseMcbEntry", remove_base),
    routine("FsRtlTruncateBaseMcb", truncate::<BaseMcb>),
    routine("FsRtlSplitBaseMcb", split::<BaseMcb>),
    routine("FsRtlLookupBaseMcbEntry", look_up::<BaseMcb>),
    routine("FsRtlLookupLastBaseMcbEntry", look_up_last::<BaseMcb>),
    routine("FsRtlLookupLastBaseMcbEntryAndIndex", look_up_last_with_index::<BaseMcb>),
    routine("FsRtlNumberOfRunsInBaseMcb", number_of_runs::<BaseMcb>),
    routine("FsRtlGetNextBaseMcbEntry", run_at::<BaseMcb>),
    routine("FsRtlInitializeLargeMcb", initialize_large),
    routine("FsRtlUninitializeLargeMcb", uninitialize::<LargeMcb>),
    routine("FsRtlResetLargeMcb", reset_large),
    routine("FsRtlAddLargeMcbEntry", add::<LargeMcb>),
    routine("FsRtlRemoveLargeMcbEntry", remove_large),
    routine("FsRtlTruncateLargeMcb", truncate::<LargeMcb>),
    routine("FsRtlSplitLargeMcb", split::<LargeMcb>),
    routine("FsRtlLookupLargeMcbEntry", look_up::<LargeMcb>),
    routine("FsRtlLookupLastLargeMcbEntry", look_up_last::<LargeMcb>),
    routine("FsRtlLookupLastLargeMcbEntryAndIndex", look_up_last_with_index::<LargeMcb>),
    routine("FsRtlNumberOfRunsInLargeMcb", number_of_runs::<LargeMcb>),
    routine("FsRtlGetNextLargeMcbEntry", run_at::<LargeMcb>),
];

/// The LBN of blocks that the volume does not hold.
const HOLE: i64 = -1;

/// Consecutive blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    vbn: i64,
    lbn: i64,
    count: i64,
}

impl Run {
    const fn end(self) -> i64 {
        self.vbn.saturating_add(self.count)
    }

    /// Returns the part of the run from one block to before another, if there is one.
    fn part(self, from: i64, to: i64) -> Option<Self> {
        let (start, end) = (self.vbn.max(from), self.end().min(to));
        let lbn = self.lbn.saturating_add(start.saturating_sub(self.vbn));
        (start < end).then(|| Self { vbn: start, lbn, count: end - start })
    }
}

/// The runs of a file that the volume holds, in order.
#[derive(Default)]
struct Mappings(Vec<Run>);

impl Mappings {
    /// Keeps the parts of all runs before a block and from another on, which `shift` moves.
    fn keep(&mut self, before: i64, from: i64, shift: i64) {
        let first = self.0.iter().filter_map(|run| run.part(i64::MIN, before));
        let rest = self.0.iter().filter_map(|run| run.part(from, i64::MAX));
        let rest = rest.map(|run| Run { vbn: run.vbn.saturating_add(shift), ..run });
        self.0 = first.chain(rest).collect();
    }

    /// Adds a run. Returns `false` if the volume holds one of its blocks elsewhere.
    fn add(&mut self, new: Run) -> bool {
        let fits = new.vbn.checked_add(new.count).is_some();
        if new.vbn < 0 || new.count <= 0 || !fits {
            return false;
        }
        let conflicts = |run: &Run| {
            let same = run.part(new.vbn, new.end());
            same.is_some_and(|part| Some(part) != new.part(part.vbn, part.end()))
        };
        if self.0.iter().any(conflicts) {
            return false;
        }
        self.keep(new.vbn, new.end(), 0);
        let place = self.0.partition_point(|run| run.vbn < new.vbn);
        self.0.insert(place, new);
        self.0.dedup_by(|next, run| {
            let joins = run.end() == next.vbn && run.lbn.checked_add(run.count) == Some(next.lbn);
            if joins {
                run.count += next.count;
            }
            joins
        });
        true
    }

    /// Returns all runs, with those of the holes before and between them.
    fn with_holes(&self) -> Vec<Run> {
        let mut all = Vec::new();
        let mut end = 0;
        for run in &self.0 {
            if run.vbn > end {
                all.push(Run { vbn: end, lbn: HOLE, count: run.vbn - end });
            }
            all.push(*run);
            end = run.end();
        }
        all
    }
}

/// The map control blocks, by the address of their `BASE_MCB`.
#[derive(Default)]
struct State(BTreeMap<u64, Mappings>);

/// A structure that is a `BASE_MCB` or contains one.
trait Mcb {
    /// The offset of the `BASE_MCB`.
    const OFFSET: u64;
}

impl Mcb for BaseMcb {
    const OFFSET: u64 = 0;
}

impl Mcb for LargeMcb {
    const OFFSET: u64 = 8;
}

const fn place<T: Mcb>(mcb: At<T>) -> u64 {
    mcb.0.wrapping_add(T::OFFSET)
}

/// Uses the mappings of a block. Bugchecks if it is not initialized.
fn with<T: Mcb, R>(context: &Context, mcb: At<T>, body: impl FnOnce(&mut Mappings) -> R) -> R {
    let found = context.with_state(|state: &mut State| state.0.get_mut(&place(mcb)).map(body));
    found.unwrap_or_else(|| context.stop_for_wrong(mcb.0, "an initialized map control block"))
}

/// Stores the fields of a `BASE_MCB`, and forgets earlier mappings.
fn initialize(context: &Context, base: u64, pool: u32, flags: u16) {
    context.write(base, &[0_u64; 3]);
    context.write(base + 8, &u16::try_from(pool).unwrap_or_default());
    context.write(base + 10, &flags);
    context.with_state(|state: &mut State| state.0.insert(base, Mappings::default()));
}

fn initialize_base(context: &Context, mcb: At<BaseMcb>, pool: u32) {
    initialize(context, mcb.0, pool, 0);
}

fn initialize_base_checked(context: &Context, mcb: At<BaseMcb>, pool: u32, flags: u16) -> bool {
    initialize(context, mcb.0, pool, flags);
    true
}

fn initialize_large(context: &Context, mcb: At<LargeMcb>, pool: u32) {
    context.write(mcb.0, &0_u64);
    initialize(context, place(mcb), pool, 0);
}

fn uninitialize<T: Mcb>(context: &Context, mcb: At<T>) {
    with(context, mcb, |_| ());
    context.with_state(|state: &mut State| state.0.remove(&place(mcb)));
}

fn reset_base(context: &Context, mcb: At<BaseMcb>) {
    with(context, mcb, |mappings| mappings.0.clear());
}

fn reset_large(context: &Context, mcb: At<LargeMcb>, _synchronized: bool) {
    with(context, mcb, |mappings| mappings.0.clear());
}

fn add<T: Mcb>(context: &Context, mcb: At<T>, vbn: i64, lbn: i64, count: i64) -> bool {
    with(context, mcb, |mappings| mappings.add(Run { vbn, lbn, count }))
}

fn add_checked(context: &Context, mcb: At<BaseMcb>, vbn: i64, lbn: i64, count: i64) -> NtResult {
    if add(context, mcb, vbn, lbn, count) { Ok(()) } else { Err(NtStatus::INVALID_PARAMETER) }
}

fn remove<T: Mcb>(context: &Context, mcb: At<T>, vbn: i64, count: i64) {
    with(context, mcb, |mappings| mappings.keep(vbn, vbn.saturating_add(count.max(0)), 0));
}

fn remove_base(context: &Context, mcb: At<BaseMcb>, vbn: i64, count: i64) -> bool {
    remove(context, mcb, vbn, count);
    true
}

fn remove_large(context: &Context, mcb: At<LargeMcb>, vbn: i64, count: i64) {
    remove(context, mcb, vbn, count);
}

fn truncate<T: Mcb>(context: &Context, mcb: At<T>, vbn: i64) {
    with(context, mcb, |mappings| mappings.keep(vbn, i64::MAX, 0));
}

/// Inserts a hole.
fn split<T: Mcb>(context: &Context, mcb: At<T>, vbn: i64, amount: i64) -> bool {
    with(context, mcb, |mappings| mappings.keep(vbn, vbn, amount.max(0)));
    true
}

fn number_of_runs<T: Mcb>(context: &Context, mcb: At<T>) -> u32 {
    let count = with(context, mcb, |mappings| mappings.with_holes().len());
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn run_at<T: Mcb>(
    context: &Context,
    mcb: At<T>,
    index: u32,
    vbn: At<i64>,
    lbn: At<i64>,
    count: At<i64>,
) -> bool {
    let runs = with(context, mcb, |mappings| mappings.with_holes());
    let Some(run) = runs.get(index as usize) else { return false };
    vbn.write_optional(context, run.vbn);
    lbn.write_optional(context, run.lbn);
    count.write_optional(context, run.count);
    true
}

/// Finds the run of a block, which can be a hole's.
fn look_up<T: Mcb>(
    context: &Context,
    mcb: At<T>,
    vbn: i64,
    lbn: At<i64>,
    rest: At<i64>,
    start: At<i64>,
    count: At<i64>,
    index: At<u32>,
) -> bool {
    let runs = with(context, mcb, |mappings| mappings.with_holes());
    let found = runs.iter().enumerate().find_map(|(number, run)| {
        let part = run.part(vbn, i64::MAX).filter(|part| part.vbn == vbn)?;
        Some((number, run, part))
    });
    let Some((number, run, part)) = found else { return false };
    let is_hole = run.lbn == HOLE;
    lbn.write_optional(context, if is_hole { HOLE } else { part.lbn });
    rest.write_optional(context, part.count);
    start.write_optional(context, run.lbn);
    count.write_optional(context, run.count);
    index.write_optional(context, u32::try_from(number).unwrap_or(u32::MAX));
    true
}

fn look_up_last<T: Mcb>(context: &Context, mcb: At<T>, vbn: At<i64>, lbn: At<i64>) -> bool {
    look_up_last_with_index(context, mcb, vbn, lbn, At::NULL)
}

fn look_up_last_with_index<T: Mcb>(
    context: &Context,
    mcb: At<T>,
    vbn: At<i64>,
    lbn: At<i64>,
    index: At<u32>,
) -> bool {
    let runs = with(context, mcb, |mappings| mappings.with_holes());
    let Some(last) = runs.last() else { return false };
    vbn.write_optional(context, last.end() - 1);
    lbn.write_optional(context, last.lbn.saturating_add(last.count - 1));
    index.write_optional(context, u32::try_from(runs.len() - 1).unwrap_or(u32::MAX));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mappings(runs: &[(i64, i64, i64)]) -> Mappings {
        let mut all = Mappings::default();
        for &(vbn, lbn, count) in runs {
            assert!(all.add(Run { vbn, lbn, count }));
        }
        all
    }

    fn listed(mappings: &Mappings) -> Vec<(i64, i64, i64)> {
        mappings.with_holes().iter().map(|run| (run.vbn, run.lbn, run.count)).collect()
    }

    #[test]
    fn runs_join_and_leave_holes() {
        let mut all = mappings(&[(4, 104, 2), (0, 100, 2), (2, 102, 2), (10, 50, 1)]);
        assert_eq!(listed(&all), [(0, 100, 6), (6, HOLE, 4), (10, 50, 1)]);
        // The same place again is no conflict, and another place is.
        assert!(all.add(Run { vbn: 5, lbn: 105, count: 2 }));
        assert!(!all.add(Run { vbn: 5, lbn: 7, count: 1 }));
        assert!(!all.add(Run { vbn: -1, lbn: 7, count: 1 }));
        assert!(!all.add(Run { vbn: 11, lbn: 51, count: i64::MAX }));
        assert_eq!(listed(&all), [(0, 100, 7), (7, HOLE, 3), (10, 50, 1)]);
        all.keep(2, 4, 0);
        assert_eq!(listed(&all)[..2], [(0, 100, 2), (2, HOLE, 2)]);
        all.keep(1, 1, 5);
        assert_eq!(listed(&all)[..3], [(0, 100, 1), (1, HOLE, 5), (6, 101, 1)]);
        all.keep(6, i64::MAX, 0);
        assert_eq!(listed(&all), [(0, 100, 1)]);
    }
}
