//! The number of components that a survey suggests, or why it suggests none.

use serde::{Deserialize, Serialize};

use super::survey::SurveyRow;

/// The minimum mean stability of components that are worth interpreting.
pub const STABLE: f64 = 0.9;

/// The suggestion of a survey.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Suggestion {
    /// The suggested number of components; `None` if the survey is inconclusive.
    pub suggested: Option<usize>,
    /// The reason for the suggestion, or for its absence.
    pub reason: String,
}

/// The smallest number of components whose held-out loss is within one standard error of the lowest and whose stability
/// is at least [`STABLE`].
pub fn suggest(rows: &[SurveyRow]) -> Suggestion {
    let none = |reason: String| Suggestion { suggested: None, reason };
    let [first, .., before, last] = rows else {
        return none("fewer than three numbers of components were tried; try more of them".into());
    };
    let Some(best) = rows.iter().min_by(|a, b| a.heldout_loss.total_cmp(&b.heldout_loss)) else {
        unreachable!("at least three rows")
    };
    if best.components == last.components && still_falls(before, last) {
        return none(format!(
            "the held-out loss still falls at {}, the largest number that was tried; try larger ones",
            last.components
        ));
    }
    if best.components == first.components && first.components > 1 {
        return none(format!(
            "the held-out loss is lowest at {}, the smallest number that was tried; try smaller ones",
            first.components
        ));
    }
    let most = best.heldout_loss + best.heldout_se;
    let mut close = rows.iter().filter(|row| row.heldout_loss <= most);
    match close.find(|row| row.stability.is_some_and(|stability| stability >= STABLE)) {
        Some(row) => Suggestion {
            suggested: Some(row.components),
            reason: format!(
                "the smallest number whose held-out loss is within one standard error of the lowest (at {}) \
                 and whose components are stable",
                best.components
            ),
        },
        None => none(format!(
            "no number with a held-out loss within one standard error of the lowest (at {}) has a stability \
             of {STABLE}; their components depend on the start",
            best.components
        )),
    }
}

/// Whether the held-out loss falls from one number to the next by more than one standard error of the
/// difference. This is smaller than the standard error of each loss, because all numbers share their folds.
fn still_falls(before: &SurveyRow, last: &SurveyRow) -> bool {
    let losses = before.heldout_of_folds.iter().zip(&last.heldout_of_folds);
    let (mean, error) = mean_and_error(&losses.map(|(before, last)| before - last).collect::<Vec<f64>>());
    mean > error
}

/// The mean and its standard error.
pub(super) fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    if values.len() < 2 {
        return (mean, 0.0);
    }
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, (variance / count).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(components: usize, heldout: [f64; 3], stability: f64) -> SurveyRow {
        let (heldout_loss, heldout_se) = mean_and_error(&heldout);
        SurveyRow {
            components,
            losses: vec![0.1],
            loss: 0.1,
            loss_se: 0.0,
            heldout_of_folds: heldout.to_vec(),
            heldout_loss,
            heldout_se,
            stability: Some(stability),
            worst_stability: Some(stability),
            cophenetic: None,
            silhouette: None,
            component_stability: vec![stability; components],
        }
    }

    #[test]
    fn the_smallest_stable_number_near_the_lowest_loss_is_suggested() {
        let rows = [
            row(2, [0.50, 0.52, 0.51], 1.0),
            row(3, [0.30, 0.33, 0.31], 0.5),
            row(4, [0.302, 0.328, 0.312], 0.95),
            row(5, [0.301, 0.33, 0.309], 0.99),
            row(6, [0.40, 0.41, 0.42], 0.99),
        ];
        assert_eq!(suggest(&rows).suggested, Some(4), "3 is unstable, 5 is larger");
    }

    #[test]
    fn a_plateau_up_to_the_edge_is_no_reason_to_try_larger_numbers() {
        let rows = [
            row(2, [0.50, 0.52, 0.51], 1.0),
            row(3, [0.30, 0.33, 0.31], 0.99),
            row(4, [0.31, 0.32, 0.31], 0.7),
            row(5, [0.30, 0.33, 0.30], 0.7),
        ];
        assert_eq!(suggest(&rows).suggested, Some(3), "{}", suggest(&rows).reason);
    }

    #[test]
    fn a_minimum_at_the_edge_or_without_stability_suggests_nothing() {
        let falling = [row(2, [0.5; 3], 1.0), row(3, [0.4; 3], 1.0), row(4, [0.3; 3], 1.0)];
        let suggestion = suggest(&falling);
        assert_eq!(suggestion.suggested, None);
        assert!(suggestion.reason.contains("largest"), "{}", suggestion.reason);
        let rising = [row(2, [0.3; 3], 1.0), row(3, [0.4; 3], 1.0), row(4, [0.5; 3], 1.0)];
        assert!(suggest(&rising).reason.contains("smallest"));
        let unstable = [row(2, [0.5; 3], 1.0), row(3, [0.3; 3], 0.4), row(4, [0.4; 3], 0.3)];
        assert!(suggest(&unstable).reason.contains("stability"));
        assert_eq!(suggest(&[]).suggested, None);
        assert_eq!(suggest(&falling[..2]).suggested, None);
        let one = [row(1, [0.3; 3], 1.0), row(2, [0.4; 3], 1.0), row(3, [0.5; 3], 1.0)];
        assert_eq!(suggest(&one).suggested, Some(1), "there is nothing below 1");
    }
}
