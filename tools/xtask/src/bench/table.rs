//! The figures, goals and marks in the benchmark's tables.

/// A column of one row in a table: the title and the figure.
pub type Column<'a> = (&'a str, Option<f64>);

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

/// Returns a row's mark: each of this project's columns that is behind, with the other columns that
/// are ahead of it. Compares figures as shown; lower is always better. Returns nothing if no column
/// is behind.
fn behind(ours: &[Column<'_>], others: &[Column<'_>]) -> Option<String> {
    let behind: Vec<String> = ours
        .iter()
        .filter_map(|(title, figure)| {
            let figure = rounded((*figure)?);
            let ahead: Vec<&str> = others
                .iter()
                .filter(|(_, other)| other.is_some_and(|other| rounded(other) < figure))
                .map(|(other, _)| *other)
                .collect();
            (!ahead.is_empty()).then(|| format!("{title} ({})", ahead.join(", ")))
        })
        .collect();
    (!behind.is_empty()).then(|| format!("**behind**: {}", behind.join(", ")))
}

/// Returns the text of a row's last cell: the verdict for the goal, and the mark.
pub fn verdict(is_met: Option<bool>, ours: &[Column<'_>], others: &[Column<'_>]) -> String {
    let met = is_met.map(|met| if met { "met" } else { "**not met**" }.to_owned());
    let parts: Vec<String> = met.into_iter().chain(behind(ours, others)).collect();
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_in_which_another_is_ahead_names_the_columns() {
        let ours = [("TraceLogging", Some(45.0)), ("manifest", Some(38.0))];
        let mark = |others: &[Column<'_>]| verdict(None, &ours, others);
        assert_eq!(mark(&[("peer", Some(39.0))]), "**behind**: TraceLogging (peer)");
        assert_eq!(
            mark(&[("peer", Some(37.0)), ("C", Some(44.0))]),
            "**behind**: TraceLogging (peer, C), manifest (peer)"
        );
        assert_eq!(mark(&[("peer", Some(45.0))]), "");
        assert_eq!(mark(&[("peer", None)]), "");
    }

    #[test]
    fn figures_that_are_shown_alike_are_alike() {
        let verdict = |ours, other| verdict(None, &[("ours", Some(ours))], &[("peer", other)]);
        assert_eq!(verdict(1.004, Some(0.996)), "");
        assert_eq!(verdict(1.006, Some(0.996)), "**behind**: ours (peer)");
    }

    #[test]
    fn a_mark_follows_the_goal() {
        let ours = [("TraceLogging", Some(3.0))];
        let peer = [("peer", Some(2.0))];
        let cell = |met| verdict(met, &ours, &peer);
        assert_eq!(cell(Some(true)), "met; **behind**: TraceLogging (peer)");
        assert_eq!(cell(Some(false)), "**not met**; **behind**: TraceLogging (peer)");
        assert_eq!(verdict(Some(true), &ours, &[]), "met");
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
