//! The processors on which the threads run.

use std::{collections::BTreeSet, fs};

use anyhow::{Context, Result};
use nix::{
    sched::{CpuSet, sched_getaffinity, sched_setaffinity},
    unistd::Pid,
};

/// Returns the processors that this process may use. Processors that share a core with an earlier
/// one come last, so that two threads share a core only if there are no other cores.
pub fn usable() -> Result<Vec<usize>> {
    let set = sched_getaffinity(Pid::from_raw(0))
        .context("cannot read the processors that this process may use")?;
    let usable = (0..CpuSet::count()).filter(|number| set.is_set(*number).unwrap_or(false));
    let with_cores: Vec<(usize, String)> = usable.map(|number| (number, core(number))).collect();
    Ok(cores_first(&with_cores))
}

/// Returns a name for a processor's core.
fn core(processor: usize) -> String {
    let path = format!("/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list");
    // If the file does not exist, it is unknown which processors share a core.
    fs::read_to_string(path).unwrap_or_else(|_| processor.to_string())
}

fn cores_first(processors: &[(usize, String)]) -> Vec<usize> {
    let mut cores = BTreeSet::new();
    let (mut first, others): (Vec<_>, Vec<_>) =
        processors.iter().partition(|(_, core)| cores.insert(core.as_str()));
    first.extend(others);
    first.into_iter().map(|(number, _)| *number).collect()
}

/// Restricts the calling thread to one processor.
pub fn stay_on(processor: usize) -> nix::Result<()> {
    let mut set = CpuSet::new();
    set.set(processor)?;
    sched_setaffinity(Pid::from_raw(0), &set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_of_a_core_that_is_used_come_last() {
        let list = |all: &[(usize, &str)]| -> Vec<(usize, String)> {
            all.iter().map(|(number, core)| (*number, (*core).to_owned())).collect()
        };
        let paired = list(&[(0, "0-1"), (1, "0-1"), (2, "2-3"), (3, "2-3")]);
        assert_eq!(cores_first(&paired), [0, 2, 1, 3]);
        let alone = list(&[(3, "3"), (5, "5")]);
        assert_eq!(cores_first(&alone), [3, 5]);
    }

    #[test]
    fn a_thread_stays_on_its_processor() {
        let all = usable().unwrap();
        let last = *all.last().unwrap();
        let after = std::thread::spawn(move || {
            stay_on(last).unwrap();
            usable().unwrap()
        });
        assert_eq!(after.join().unwrap(), [last]);
    }
}
