//! Finds the known name that is nearest to an unknown one.

/// Returns the candidate that is the fewest edits away from `name`, ignoring case, if the edits are
/// few enough for a misspelling.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    let most = wanted.chars().count() / 3 + 1;
    candidates
        .into_iter()
        .map(|candidate| (edits(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|(edits, _)| *edits <= most)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Returns the number of characters to insert, remove or replace to turn one string into the other.
fn edits(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (count, character) in one.chars().enumerate() {
        let mut diagonal = count;
        let mut left = count + 1;
        for (at, slot) in row.iter_mut().enumerate() {
            let above = *slot;
            if at > 0 {
                let replaced = diagonal + usize::from(other.get(at - 1) != Some(&character));
                left = replaced.min(above + 1).min(left + 1);
            }
            *slot = left;
            diagonal = above;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelling_is_recognized_and_another_word_is_not() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!((edits("", "abc"), edits("abc", "")), (3, 3));
        let names = ["WdfTimerCreate", "WdfSpinLockCreate", "EtwRegister"];
        assert_eq!(nearest("wdfTimerCrate", names), Some("WdfTimerCreate"));
        assert_eq!(nearest("EtwRegster", names), Some("EtwRegister"));
        assert_eq!(nearest("IoCallDriver", names), None);
        assert_eq!(nearest("", names), None);
    }
}
