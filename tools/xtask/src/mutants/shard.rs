//! Shares of the mutants.

use std::{fmt, str::FromStr};

/// One of several equal shares of the mutants: the share `index` of `count`, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: u32,
    count: u32,
}

impl fmt::Display for Shard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.index, self.count)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/');
        let numbers = parts.and_then(|(index, count)| {
            Some(Self { index: index.parse().ok()?, count: count.parse().ok()? })
        });
        numbers.filter(|shard| shard.index < shard.count).ok_or_else(|| {
            format!("`{text}` is not a shard; write K/N with K from 0 to N - 1, as in `0/8`")
        })
    }
}

/// Returns the group and the shard for a number of commits, given the number of shards of each group.
/// Successive numbers go through all shards of all groups.
pub fn of_commit(commits: u32, shards: &[u32]) -> Option<(usize, Shard)> {
    let mut index = commits.checked_rem(shards.iter().sum())?;
    for (group, count) in shards.iter().copied().enumerate() {
        if index < count {
            return Some((group, Shard { index, count }));
        }
        index -= count;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_an_index_and_a_larger_count() {
        let shard: Shard = "3/8".parse().unwrap();
        assert_eq!((shard.index, shard.count), (3, 8));
        assert_eq!(shard.to_string(), "3/8");
        for wrong in ["8/8", "1", "a/2", "-1/2", "0/0", "1/2/3", ""] {
            let error = wrong.parse::<Shard>().unwrap_err();
            assert!(error.contains("K/N"), "{wrong}: {error}");
        }
    }

    #[test]
    fn successive_commits_go_through_all_shards() {
        let of = |commits| {
            let (group, shard) = of_commit(commits, &[2, 1, 3]).unwrap();
            (group, shard.index, shard.count)
        };
        let all: Vec<_> = (6..12).map(of).collect();
        assert_eq!(all, [(0, 0, 2), (0, 1, 2), (1, 0, 1), (2, 0, 3), (2, 1, 3), (2, 2, 3)]);
        assert_eq!(of(12), of(6));
        assert_eq!(of_commit(7, &[]), None);
    }
}
