//! The figures, goals and marks in the benchmark's tables.

/// Returns a figure in table format.
pub fn number(figure: Option<f64>) -> String {
    figure.map_or_else(
        || "–".to_owned(),
        |figure| {
            let figure = rounded(figure);
            if figure.fract() == 0.0 { format!("{figure:.0}") } else { format!("{figure:.2}") }
        },
    )
}

/// Rounds a figure as in the tables: to two decimal places, or to none from 100 up.
fn rounded(figure: f64) -> f64 {
    if figure >= 100.0 { figure.round() } else { (figure * 100.0).round() / 100.0 }
}

/// Returns a goal in table format.
pub fn goal(most: Option<f64>) -> String {
    most.map_or_else(String::new, |most| format!("≤ {}", number(Some(most))))
}

/// Returns whether all of this project's figures meet a goal, or `None` if there is no goal. A
/// missing figure does not meet a goal.
pub fn is_met(ours: impl IntoIterator<Item = Option<f64>>, most: Option<f64>) -> Option<bool> {
    let most = most?;
    let mut ours = ours.into_iter().flatten().peekable();
    Some(ours.peek().is_some() && ours.all(|figure| rounded(figure) <= most))
}

/// Returns the text of a row's last cell: the verdict for the goal, and a mark with this project's
/// columns in which the peer is ahead. Compares figures as shown; lower is always better.
pub fn verdict(is_met: Option<bool>, ours: &[(&str, Option<f64>)], peer: Option<f64>) -> String {
    let peer = peer.map_or(f64::INFINITY, rounded);
    let is_behind = |figure: Option<f64>| figure.is_some_and(|figure| peer < rounded(figure));
    let behind = ours.iter().filter(|(_, figure)| is_behind(*figure));
    let behind: Vec<String> = behind.map(|(title, _)| format!("{title} (peer)")).collect();
    let met = is_met.map(|met| if met { "met" } else { "**not met**" }.to_owned());
    let mark = (!behind.is_empty()).then(|| format!("**behind**: {}", behind.join(", ")));
    met.into_iter().chain(mark).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_in_which_the_peer_is_ahead_names_the_columns_after_the_goal() {
        let ours = [("TraceLogging", Some(45.0)), ("manifest", Some(38.0)), ("other", None)];
        for (is_met, peer, expected) in [
            (None, Some(39.0), "**behind**: TraceLogging (peer)"),
            (None, Some(37.0), "**behind**: TraceLogging (peer), manifest (peer)"),
            (None, Some(45.0), ""),
            (None, None, ""),
            // Figures that are shown alike are alike.
            (None, Some(37.996), "**behind**: TraceLogging (peer)"),
            (None, Some(37.994), "**behind**: TraceLogging (peer), manifest (peer)"),
            (Some(true), Some(39.0), "met; **behind**: TraceLogging (peer)"),
            (Some(false), Some(39.0), "**not met**; **behind**: TraceLogging (peer)"),
            (Some(true), None, "met"),
        ] {
            assert_eq!(verdict(is_met, &ours, peer), expected, "{peer:?}");
        }
    }

    #[test]
    fn a_goal_is_met_by_all_figures_or_not_at_all() {
        assert_eq!(is_met([Some(3.0), Some(4.0)], None), None);
        assert_eq!(is_met([Some(3.0), Some(4.0)], Some(4.0)), Some(true));
        assert_eq!(is_met([Some(3.0), Some(4.01)], Some(4.0)), Some(false));
        assert_eq!(is_met([None, Some(4.0)], Some(4.0)), Some(true));
        assert_eq!(is_met([None, None], Some(4.0)), Some(false));
    }

    #[test]
    fn numbers_have_two_digits_or_none() {
        assert_eq!(number(Some(3.0)), "3");
        assert_eq!(number(Some(2.999)), "3");
        assert_eq!(number(Some(0.5)), "0.50");
        assert_eq!(number(Some(99.5)), "99.50");
        assert_eq!(number(Some(1104.4)), "1104");
        assert_eq!(number(None), "–");
        assert_eq!(goal(Some(1.15)), "≤ 1.15");
        assert_eq!(goal(None), "");
    }
}
