//! The components, as pictures, as names with bars, or as curves.

use std::fmt::Write;

use crate::chart::{Heat, area, ranking};
use crate::text::{count, details, number, percent, table};
use crate::{Components, Run, picture};

/// Pixels of all pictures together, at most.
const PIXELS: usize = 1_500_000;
/// Names on a card.
const TERMS: usize = 10;
/// Points of a curve.
const POINTS: usize = 240;
/// Samples in a curve of weights.
const SAMPLE: usize = 20_000;

pub fn section(run: &Run, components: &Components) -> String {
    let shown = &components.shown;
    let kind = ComponentView::of(run);
    let mut html = format!("<p>{}</p>", kind.words(run, shown.len()));
    let _ = write!(html, "<div class=\"cards {}\">", kind.class());
    for &component in shown {
        let _ = write!(
            html,
            "<article><h3>{} <small title=\"share of the energy\">{}</small></h3>{}{}</article>",
            component + 1,
            percent(components.shares[component]),
            kind.body(run, component, shown.len()),
            usage(run, component, components.leads[component])
        );
    }
    html.push_str("</div>");
    if kind == ComponentView::Curves {
        html.push_str(&overview(run, shown));
    }
    html.push_str(&listing(run, components));
    html
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ComponentView {
    Pictures,
    Terms,
    Curves,
}

impl ComponentView {
    fn of(run: &Run) -> Self {
        match (&run.shape, &run.feature_labels) {
            (Some(shape), _) if shape.size() == run.features.rows => ComponentView::Pictures,
            (_, Some(_)) => ComponentView::Terms,
            _ => ComponentView::Curves,
        }
    }

    fn class(self) -> &'static str {
        match self {
            ComponentView::Pictures => "pictures",
            ComponentView::Terms => "terms",
            ComponentView::Curves => "curves",
        }
    }

    fn words(self, run: &Run, shown: usize) -> String {
        let which = match run.features.k {
            1 => "The only component".into(),
            k if shown < k => format!("The {shown} strongest of {k} components"),
            k => format!("All {k} components"),
        };
        let what = match self {
            ComponentView::Pictures => "as pictures, white where their weights are largest",
            ComponentView::Terms => "with the features that have the largest weights in them",
            ComponentView::Curves => "as their weights over the features, in the order of the file",
        };
        if run.samples.is_empty() {
            return format!(
                "{which}, {what}. The percentage is the component's share of the sum of the norms of all components."
            );
        }
        let factor = run.sample_factor.name();
        format!(
            "{which}, {what}. The percentage is the component's share of the energy: ‖U<sub>j</sub>‖ ‖V<sub>j</sub>‖ divided \
             by its sum over all components. The curve below shows the weights of the samples, largest first. A component leads \
             in a sample if it has the sample's largest weight (<code>{factor}.argmax(1)</code>)."
        )
    }

    fn body(self, run: &Run, component: usize, shown: usize) -> String {
        let features = &run.features;
        let column = || features.column(component);
        match (self, run.shape) {
            (ComponentView::Pictures, Some(shape)) => {
                let values: Vec<f32> = column().collect();
                let white = values.iter().copied().fold(0.0, f32::max);
                let address = picture::of_values(shape, &values, white, PIXELS / shown.max(1));
                format!(
                    "<img class=\"part\" alt=\"Component {} as a picture\" src=\"{address}\">",
                    component + 1
                )
            }
            (ComponentView::Terms, _) => {
                let strongest = strongest(column(), TERMS);
                let entries: Vec<(String, f64)> = strongest
                    .iter()
                    .map(|&(index, weight)| (run.feature_name(index), f64::from(weight)))
                    .collect();
                ranking(&format!("Strongest features of component {}", component + 1), &entries, 0)
            }
            _ => {
                let (values, wide) = binned(column(), features.rows);
                let title = format!("Weights of component {} over {} features", component + 1, features.rows);
                area(&title, &values, 0, |bin| {
                    let name = if wide > 1 {
                        format!("features {} to {}", bin * wide + 1, ((bin + 1) * wide).min(features.rows))
                    } else {
                        run.feature_name(bin)
                    };
                    format!("{name}: {}", number(values[bin]))
                })
            }
        }
    }
}

/// The largest positive values with their positions, largest first.
pub fn strongest(values: impl Iterator<Item = f32>, most: usize) -> Vec<(usize, f32)> {
    let mut best: Vec<(usize, f32)> = Vec::with_capacity(most + 1);
    for (index, value) in values.enumerate() {
        let enters = best.len() < most || best.last().is_some_and(|last| value > last.1);
        if value > 0.0 && enters {
            let place = best.partition_point(|entry| entry.1 >= value);
            best.insert(place, (index, value));
            best.truncate(most);
        }
    }
    best
}

/// Means of consecutive values, at most [`POINTS`], and the number of values per mean.
fn binned(values: impl Iterator<Item = f32>, length: usize) -> (Vec<f64>, usize) {
    let wide = length.div_ceil(POINTS).max(1);
    let mut means = vec![0.0; length.div_ceil(wide)];
    for (index, value) in values.enumerate() {
        means[index / wide] += f64::from(value);
    }
    for (bin, mean) in means.iter_mut().enumerate() {
        *mean /= (length - bin * wide).min(wide) as f64;
    }
    (means, wide)
}

/// The samples' weights in a component: a sorted curve.
fn usage(run: &Run, component: usize, leads: usize) -> String {
    let total = run.sample_count();
    if total == 0 {
        return String::new();
    }
    let step = total.div_ceil(SAMPLE).max(1);
    let mut sample: Vec<f32> =
        run.samples.iter().flat_map(|samples| samples.weights.column(component).step_by(step)).collect();
    sample.sort_by(|a, b| b.total_cmp(a));
    let (curve, _) = binned(sample.iter().copied(), sample.len());
    let used = run.samples.iter().flat_map(|samples| samples.weights.column(component));
    let used = used.filter(|&weight| weight > 0.0).count();
    let used = used as f64 / total as f64;
    let title =
        format!("Weights of the samples in component {}, sorted; {} have it", component + 1, percent(used));
    let tip = |bin: usize| {
        let share = (bin as f64 + 0.5) / curve.len() as f64;
        format!("{} of samples have a weight above {}", percent(share), number(curve[bin]))
    };
    format!(
        "<div class=\"usage\">{}<p>in {} of samples, leads in {}</p></div>",
        area(&title, &curve, 2, tip),
        percent(used),
        count(leads as u64)
    )
}

/// All components as lines of one heat map.
fn overview(run: &Run, shown: &[usize]) -> String {
    let features = &run.features;
    let wide = features.rows.div_ceil(POINTS).max(1);
    let mut values = Vec::new();
    for &component in shown {
        let column = features.column(component);
        let (mut means, _) = binned(column, features.rows);
        let most = means.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        means.iter_mut().for_each(|mean| *mean /= most);
        values.extend(means);
    }
    let names: Vec<String> = shown.iter().map(|component| (component + 1).to_string()).collect();
    let columns: Vec<String> =
        (0..features.rows.div_ceil(wide)).map(|bin| run.feature_name(bin * wide)).collect();
    let title = "Weights of the components over the features, each relative to its largest";
    let heat =
        Heat { title, prefix: "component ", lines: &names, columns: &columns, values: &values, marks: &[] };
    format!("<figure class=\"wide\">{}<figcaption>{title}</figcaption></figure>", heat.html())
}

fn listing(run: &Run, components: &Components) -> String {
    /// Components in the table, at most.
    const MOST: usize = 500;
    let rows = (0..run.features.k).take(MOST).map(|component| {
        let column = run.features.column(component);
        let names: Vec<String> =
            strongest(column, 3).iter().map(|&(index, _)| run.feature_name(index)).collect();
        let leads =
            if run.samples.is_empty() { "–".into() } else { count(components.leads[component] as u64) };
        vec![
            (component + 1).to_string(),
            percent(components.shares[component]),
            leads,
            count(components.feature_leads[component] as u64),
            names.join(", "),
        ]
    });
    let header =
        ["component", "share of the energy", "leads in samples", "leads in features", "strongest features"];
    details("Components as a table", &table(&header, rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_come_first_and_zeros_never() {
        let values = [0.0, 3.0, 1.0, 3.0, 2.0, 0.0];
        assert_eq!(strongest(values.into_iter(), 3), [(1, 3.0), (3, 3.0), (4, 2.0)]);
        assert_eq!(strongest([0.0, 1.0].into_iter(), 5), [(1, 1.0)]);
    }

    #[test]
    fn bins_are_means_also_the_last() {
        let values: Vec<f32> = (0..482).map(|index| if index == 481 { 9.0 } else { 1.0 }).collect();
        let (means, wide) = binned(values.iter().copied(), 482);
        assert_eq!((wide, means.len()), (3, 161));
        assert!((means[0] - 1.0).abs() < 1e-12 && (means[160] - 5.0).abs() < 1e-12, "{means:?}");
    }
}
