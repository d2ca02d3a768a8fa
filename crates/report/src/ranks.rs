//! The page of `partwise ranks`: curves over the number of components, and the components of each number.

use std::fmt::Write;

use partwise::selection::{Survey, SurveyRow};

use crate::chart::{Axis, Lines, Series, ranking};
use crate::components::strongest;
use crate::page::{Document, document};
use crate::text::{details, escape, number, table};

/// The number of names on a card.
const TERMS: usize = 8;

/// The content of the page.
pub struct SurveyPage<'a> {
    /// The name of the file.
    pub name: &'a str,
    /// Rows and columns of the matrix.
    pub size: (usize, usize),
    /// The result of the survey.
    pub survey: &'a Survey,
    /// For each row of the survey, V of the best restart, by row.
    pub factors: &'a [Vec<f32>],
    /// Names of the columns.
    pub names: Option<&'a [String]>,
    /// The version of the program.
    pub version: &'a str,
}

/// Creates the page of a survey.
pub fn survey_page(page: &SurveyPage<'_>) -> String {
    let SurveyPage { name, size: (rows, cols), survey, version, .. } = *page;
    let suggestion = &survey.suggestion;
    let verdict = match suggestion.suggested {
        Some(components) => {
            format!("Suggested number of components: {components}. It is {}.", suggestion.reason)
        }
        None => format!("No number of components is suggested: {}.", suggestion.reason),
    };
    let mut main = String::new();
    let _ = write!(main, "<section><h2>Curves</h2>{}</section>", curves(&survey.rows));
    let _ = write!(main, "<section><h2>Components</h2>{}</section>", components(page));
    document(&Document {
        title: &format!("{name}, number of components"),
        heading: name,
        lead: &format!("{rows} × {cols}. {verdict}"),
        main: &main,
        footer: &format!("Made by Partwise {}.", escape(version)),
    })
}

fn curves(rows: &[SurveyRow]) -> String {
    let over = |value: &dyn Fn(&SurveyRow) -> Option<f64>| -> Vec<(f64, f64)> {
        rows.iter().filter_map(|row| Some((row.components as f64, value(row)?))).collect()
    };
    let restarts = rows.iter().flat_map(|row| row.losses.iter().map(|&loss| (row.components as f64, loss)));
    let losses = [
        Series {
            name: "held-out loss".into(),
            colour: 1,
            points: over(&|row| Some(row.heldout_loss)),
            bars: rows.iter().map(|row| row.heldout_se).collect(),
            ..Series::default()
        },
        Series {
            name: "loss".into(),
            points: over(&|row| Some(row.loss)),
            bars: rows.iter().map(|row| row.loss_se).collect(),
            ..Series::default()
        },
        Series { name: "restarts".into(), points: restarts.collect(), scattered: true, ..Series::default() },
    ];
    let scores = [
        ("stability", 2, over(&|row| row.stability)),
        ("lowest cosine", 4, over(&|row| row.worst_stability)),
        ("silhouette", 3, over(&|row| row.silhouette)),
        ("cophenetic", 5, over(&|row| row.cophenetic)),
    ]
    .map(|(name, colour, points)| Series { name: name.into(), colour, points, ..Series::default() });
    let chart = |title: &str, label: &str, series: &[Series], caption: &str| {
        let (x, y) = (Axis::new("components"), Axis::new(label));
        let svg = Lines { title, x, y, series, marks: true }.svg(None);
        format!("<figure class=\"curve\">{svg}<figcaption>{caption}</figcaption></figure>")
    };
    let first = chart(
        "Loss and held-out loss",
        "loss / loss of the zero model",
        &losses,
        "The loss always falls as components are added; the held-out loss rises again once they describe noise. \
         Bars show one standard error, dots single restarts.",
    );
    let second = if rows.iter().any(|row| row.stability.is_some()) {
        chart(
            "Stability",
            "agreement between restarts",
            &scores,
            "Stability is the mean cosine of components matched between restarts; 1 means that every start \
             finds the same components.",
        )
    } else {
        "<p class=\"note\">A single restart says nothing about stability.</p>".into()
    };
    format!("<div class=\"frames\">{first}{second}</div>{}", details("Curves as a table", &listing(rows)))
}

fn listing(rows: &[SurveyRow]) -> String {
    let optional = |value: Option<f64>| value.map_or("–".to_string(), number);
    let header = [
        "components",
        "loss",
        "± ",
        "held-out loss",
        "±",
        "stability",
        "lowest cosine",
        "cophenetic",
        "silhouette",
    ];
    table(
        &header,
        rows.iter().map(|row| {
            vec![
                row.components.to_string(),
                number(row.loss),
                number(row.loss_se),
                number(row.heldout_loss),
                number(row.heldout_se),
                optional(row.stability),
                optional(row.worst_stability),
                optional(row.cophenetic),
                optional(row.silhouette),
            ]
        }),
    )
}

/// The strongest columns of each component, for each number of components.
fn components(page: &SurveyPage<'_>) -> String {
    let SurveyPage { survey, factors, names, .. } = *page;
    let mut html = String::from(
        "<p>The components of the best restart for each number of components, with their strongest columns. The \
         percentage is the component's stability.</p>",
    );
    for (row, factor) in survey.rows.iter().zip(factors) {
        let k = row.components;
        let mut cards = String::from("<div class=\"cards terms\">");
        for component in 0..k {
            let column = factor.iter().skip(component).step_by(k).copied();
            let entries: Vec<(String, f64)> = strongest(column, TERMS)
                .into_iter()
                .map(|(index, weight)| {
                    let name = names.map_or(format!("column {}", index + 1), |names| names[index].clone());
                    (name, f64::from(weight))
                })
                .collect();
            let stability = row.component_stability.get(component);
            let stability = stability.map_or(String::new(), |value| format!("{:.0}%", 100.0 * value));
            let title = format!("Strongest columns of component {} of {k}", component + 1);
            let _ = write!(
                cards,
                "<article><h3>{} <small title=\"stability\">{stability}</small></h3>{}</article>",
                component + 1,
                ranking(&title, &entries, 0)
            );
        }
        cards.push_str("</div>");
        if survey.suggestion.suggested == Some(k) {
            let _ = write!(html, "<h3>{k} components (suggested)</h3>{cards}");
        } else {
            let plural = if k == 1 { "" } else { "s" };
            html.push_str(&details(&format!("{k} component{plural}"), &cards));
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;
    use partwise::selection::Suggestion;

    #[test]
    fn every_number_has_its_components_and_nothing_is_unescaped() {
        let row = |components: usize, stability| SurveyRow {
            components,
            loss: 0.2,
            loss_se: 0.01,
            losses: vec![0.19, 0.21],
            heldout_loss: 0.3,
            heldout_se: 0.02,
            heldout_of_folds: vec![0.3],
            stability,
            worst_stability: stability,
            cophenetic: None,
            silhouette: stability,
            component_stability: vec![0.95; components],
        };
        let suggestion = Suggestion { suggested: Some(2), reason: "the best".into() };
        let survey = Survey { suggestion, rows: vec![row(1, Some(1.0)), row(2, Some(0.95))] };
        let names = ["<b>".to_string(), "gene".to_string()];
        let html = survey_page(&SurveyPage {
            name: "a<b.csv",
            size: (9, 2),
            survey: &survey,
            factors: &[vec![1.0, 0.5], vec![1.0, 0.0, 0.0, 2.0]],
            names: Some(&names),
            version: "0.1",
        });
        assert!(html.contains("<h1>a&lt;b.csv</h1>") && !html.contains("<b>"), "{html}");
        assert!(html.contains("2 components (suggested)") && html.contains("1 component<"), "{html}");
        assert!(html.contains("Suggested number of components: 2."), "{html}");
        assert_eq!(html.matches("<article>").count(), 3);
        assert!(!html.contains("NaN"), "{html}");
    }
}
