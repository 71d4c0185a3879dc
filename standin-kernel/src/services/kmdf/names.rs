//! The entries of the KMDF 1.33 function table in order: each function's name, and the highest IRQL
//! that its declaration in the KMDF headers allows.
//!
//! If the limit depends on an argument, the table contains the highest limit and the function
//! performs the exact check. If the declaration has no limit, the table contains `HIGH_LEVEL`.
//! `DIRQL` represents the headers' `DISPATCH_LEVEL+1`.

use std::sync::LazyLock;

use crate::ground::irql::Irql;

/// The table, with one function and its limit per line.
const TEXT: &str = include_str!("functions.txt");

/// The name and highest IRQL of every entry, in the order of the table's indices.
pub static FUNCTIONS: LazyLock<Vec<(&str, Irql)>> =
    LazyLock::new(|| TEXT.lines().filter_map(entry).collect());

/// Parses a line. A test checks that every line can be parsed.
fn entry(line: &'static str) -> Option<(&'static str, Irql)> {
    let (name, limit) = line.split_once(' ')?;
    let limit = match limit {
        "PASSIVE" => Irql::PASSIVE_LEVEL,
        "APC" => Irql::APC_LEVEL,
        "DISPATCH" => Irql::DISPATCH_LEVEL,
        "DIRQL" => Irql::DIRQL,
        "HIGH" => Irql::HIGH_LEVEL,
        _ => return None,
    };
    Some((name, limit))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::FUNCTIONS;

    #[test]
    fn table_indices_are_those_of_the_headers() {
        let text = etw_test_support::read_headers("functions.json");
        let functions: Value = serde_json::from_str(&text).expect("functions.json is JSON");
        assert_eq!(FUNCTIONS.len(), super::TEXT.lines().count(), "every line is an entry");
        for (index, (name, _)) in FUNCTIONS.iter().enumerate() {
            assert_eq!(functions["kmdf"][name]["index"], index, "{name}");
        }
    }
}
