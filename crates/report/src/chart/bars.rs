//! Bars: parts of a whole, a ranking with names, and a profile.

use std::fmt::Write;

use crate::text::{escape, number, percent};

/// Parts of wholes: a bar for each whole.
pub struct Stack<'a> {
    /// A description of the chart.
    pub title: &'a str,
    /// The parts' names, in order.
    pub parts: &'a [&'a str],
    /// The wholes: a name and the sizes of the parts.
    pub wholes: &'a [(String, Vec<f64>)],
    /// A size in words.
    pub words: fn(f64) -> String,
}

impl Stack<'_> {
    /// The chart in HTML: bars of the length of their wholes, and a legend.
    pub fn html(&self) -> String {
        let most =
            self.wholes.iter().map(|(_, sizes)| sizes.iter().sum::<f64>()).fold(f64::MIN_POSITIVE, f64::max);
        let present: Vec<usize> = (0..self.parts.len())
            .filter(|&part| self.wholes.iter().any(|(_, sizes)| sizes[part] > 0.0))
            .collect();
        let mut html =
            format!("<div class=\"stacks\" role=\"img\" aria-label=\"{}\">", escape(&self.spoken(&present)));
        for (name, sizes) in self.wholes {
            let total: f64 = sizes.iter().sum();
            let _ = write!(
                html,
                "<div class=\"stack\"><span class=\"whole\">{}</span><span class=\"bar\">",
                escape(name)
            );
            for &part in &present {
                let share = 100.0 * sizes[part] / most;
                if share > 0.0 {
                    let tip = format!(
                        "{}: {} ({})",
                        self.parts[part],
                        (self.words)(sizes[part]),
                        percent(sizes[part] / total)
                    );
                    let _ = write!(
                        html,
                        "<i class=\"f{}\" style=\"width:{share:.3}%\" data-tip=\"{}\"></i>",
                        part % 8,
                        escape(&tip)
                    );
                }
            }
            let _ = write!(html, "</span><span class=\"sum\">{}</span></div>", (self.words)(total));
        }
        html.push_str("<div class=\"keys\">");
        for part in present {
            let _ = write!(html, "<span><i class=\"f{}\"></i>{}</span>", part % 8, escape(self.parts[part]));
        }
        html.push_str("</div></div>");
        html
    }

    fn spoken(&self, present: &[usize]) -> String {
        let mut text = format!("{}.", self.title);
        for (name, sizes) in self.wholes.iter().take(8) {
            let parts: Vec<String> = present
                .iter()
                .map(|&part| format!("{} {}", self.parts[part], (self.words)(sizes[part])))
                .collect();
            let _ = write!(text, " {name}: {}.", parts.join(", "));
        }
        text
    }
}

/// A ranking: names with bars, longest first.
pub fn ranking(title: &str, entries: &[(String, f64)], colour: usize) -> String {
    let most = entries.iter().map(|entry| entry.1).fold(f64::MIN_POSITIVE, f64::max);
    let mut html = format!("<ol class=\"ranking\" aria-label=\"{}\">", escape(title));
    for (name, size) in entries {
        let _ = write!(
            html,
            "<li data-tip=\"{0}: {1}\"><span class=\"term\">{0}</span><span class=\"bar\"><i class=\"f{colour}\" \
             style=\"width:{2:.2}%\"></i></span><span class=\"unseen\"> {1}</span></li>",
            escape(name),
            number(*size),
            100.0 * size / most
        );
    }
    html.push_str("</ol>");
    html
}

/// Consecutive values as a filled curve; `tip` describes a value.
pub fn area(title: &str, values: &[f64], colour: usize, tip: impl Fn(usize) -> String) -> String {
    /// The number of places with a tooltip.
    const PLACES: usize = 40;
    const WIDTH: f64 = 240.0;
    const HEIGHT: f64 = 64.0;
    let most = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let step = WIDTH / values.len().max(1) as f64;
    let mut path = format!("M0 {HEIGHT}");
    for (index, value) in values.iter().enumerate() {
        let top = HEIGHT - (HEIGHT - 2.0) * value / most;
        let _ = write!(path, "L{:.1} {top:.1}", (index as f64 + 0.5) * step);
    }
    let _ = write!(path, "L{WIDTH} {HEIGHT}Z");
    let mut svg = format!(
        "<svg class=\"chart area\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-label=\"{}\"><path class=\"fill c{colour}\" d=\"{path}\"/>",
        escape(title)
    );
    let wide = values.len().div_ceil(PLACES).max(1);
    for first in (0..values.len()).step_by(wide) {
        let last = (first + wide).min(values.len());
        let peak = (first..last).max_by(|&a, &b| values[a].total_cmp(&values[b])).unwrap_or(first);
        let _ = write!(
            svg,
            "<rect class=\"hit\" x=\"{:.1}\" width=\"{:.1}\" height=\"{HEIGHT}\"><title>{}</title></rect>",
            first as f64 * step,
            (last - first) as f64 * step,
            escape(&tip(peak))
        );
    }
    svg.push_str("</svg>");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_as_long_as_they_are_large() {
        let wholes =
            [("rank 0".to_string(), vec![1.0, 0.0, 3.0]), ("rank 1".to_string(), vec![1.0, 0.0, 1.0])];
        let stack = Stack { title: "Time", parts: &["a", "none", "c"], wholes: &wholes, words: number };
        let html = stack.html();
        assert!(html.contains("width:75.000%\" data-tip=\"c: 3.000 (75.0%)\""), "{html}");
        assert!(!html.contains("none"), "{html}");
        assert!(html.contains("aria-label=\"Time. rank 0: a 1.000, c 3.000."), "{html}");
    }

    #[test]
    fn names_in_rankings_are_escaped() {
        let html = ranking("t", &[("<script>".into(), 2.0), ("b".into(), 1.0)], 0);
        assert!(!html.contains("<script>") && html.contains("width:50.00%"), "{html}");
    }

    #[test]
    fn a_profile_of_zeros_is_flat() {
        assert!(!area("t", &[0.0; 500], 0, |_| String::new()).contains("NaN"));
    }
}
