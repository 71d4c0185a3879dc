//! Cycles in a graph.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{edges::Edges, tree::Id};

/// Returns cycles that together contain every module on a cycle. Each of them is the shortest for
/// one of its modules.
pub fn cycles(edges: &Edges) -> Vec<Vec<Id>> {
    let mut found: BTreeSet<Vec<Id>> = BTreeSet::new();
    for start in 0..edges.len() {
        if found.iter().any(|cycle| cycle.contains(&start)) {
            continue;
        }
        if let Some(mut cycle) = shortest(edges, start) {
            // Each cycle starts with its lowest module, so that it is found only once.
            let first = cycle.iter().enumerate().min_by_key(|(_, id)| **id);
            let at = first.map_or(0, |(at, _)| at);
            cycle.rotate_left(at);
            found.insert(cycle);
        }
    }
    found.into_iter().collect()
}

/// Returns the shortest cycle through a module.
fn shortest(edges: &Edges, start: Id) -> Option<Vec<Id>> {
    let mut before: BTreeMap<Id, Id> = BTreeMap::new();
    let mut waiting = VecDeque::from([start]);
    while let Some(at) = waiting.pop_front() {
        for next in edges[at].keys() {
            if *next == start {
                let mut cycle = vec![at];
                let mut back = at;
                while let Some(previous) = before.get(&back) {
                    cycle.push(*previous);
                    back = *previous;
                }
                cycle.reverse();
                return Some(cycle);
            }
            if !before.contains_key(next) {
                before.insert(*next, at);
                waiting.push_back(*next);
            }
        }
    }
    None
}
