//! A line chart: one or several series over a common axis.

use std::fmt::Write;

use super::scale::{Places, Scale, Tick};
use crate::text::{escape, number, shortened};

/// The scale and label of an axis.
pub struct Axis {
    /// The label of the axis.
    pub label: String,
    /// Whether it is logarithmic, if all values are positive.
    pub log: bool,
    /// Whether it starts at 0.
    pub zero: bool,
}

impl Axis {
    /// A linear axis over the range of its values.
    pub fn new(label: impl Into<String>) -> Self {
        Axis { label: label.into(), log: false, zero: false }
    }
}

/// One line.
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its colour, 0 to 7; a name has the same colour in every chart.
    pub colour: usize,
    /// Whether the line is dashed.
    pub dashed: bool,
    /// From left to right.
    pub points: Vec<(f64, f64)>,
    /// The tooltip at each point; if empty, its values.
    pub tips: Vec<String>,
}

/// The chart.
pub struct Lines<'a> {
    /// A description of the chart for screen readers.
    pub title: &'a str,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines.
    pub series: &'a [Series],
    /// Whether every point has a marker.
    pub marks: bool,
}

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 284.0;
const RIGHT: f64 = 14.0;
const BOTTOM: f64 = 50.0;
/// Space for a line of text, a digit and a letter, in the largest font that a style sheet gives to charts, 16px.
const LINE: f64 = 20.0;
const DIGIT: f64 = 10.2;
const LETTER: f64 = 10.5;
/// The maximum length of a name in the legend.
const NAME: usize = 38;
/// The maximum number of points of a line with a tooltip.
const MOST_POINTS: usize = 150;

/// The position of the plot within the chart.
struct Frame {
    left: f64,
    top: f64,
    height: f64,
}

impl Lines<'_> {
    /// The chart as an SVG element; `style` is the style sheet of a chart that stands alone, without tooltips.
    pub fn svg(&self, style: Option<&str>) -> String {
        let legend = self.legend();
        let top = 12.0 + LINE * legend.len() as f64;
        let height = HEIGHT + top - 12.0;
        let values = |pick: fn(&(f64, f64)) -> f64| {
            self.series.iter().flat_map(|series| series.points.iter()).map(pick)
        };
        let y = Scale::new(
            values(|point| point.1),
            self.y.log,
            self.y.zero,
            Places { from: height - BOTTOM, to: top },
        )
        .padded();
        let up = y.ticks(|_| LINE);
        let longest = up.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(0);
        let left = 34.0 + DIGIT * longest as f64;
        let x = Scale::new(
            values(|point| point.0),
            self.x.log,
            self.x.zero,
            Places { from: left, to: WIDTH - RIGHT },
        )
        .padded();
        let across = x.ticks(|label| DIGIT * (label.chars().count() + 1) as f64);
        let mut svg = format!(
            "<svg class=\"chart lines\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
             aria-label=\"{}\">",
            escape(&self.spoken())
        );
        if let Some(style) = style {
            let _ = write!(
                svg,
                "<style>{style}</style><rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\"/>"
            );
        }
        self.axes(&mut svg, Frame { left, top, height }, &across, &up);
        self.entries(&mut svg, &legend);
        for series in self.series {
            self.line(&mut svg, series, &x, &y);
            if style.is_none() || self.marks {
                self.points(&mut svg, series, &x, &y);
            }
        }
        svg.push_str("</svg>");
        svg
    }

    /// The legend's entries at their places.
    fn entries(&self, svg: &mut String, legend: &[Vec<(f64, &Series)>]) {
        for (line, entries) in legend.iter().enumerate() {
            for &(place, series) in entries {
                let at = 13.0 + LINE * line as f64;
                let Series { name, colour, dashed, .. } = series;
                let dashed = if *dashed { " dashed" } else { "" };
                let _ = write!(
                    svg,
                    "<path class=\"line c{colour}{dashed}\" d=\"M{place:.0} {at}h22\"/><text class=\"legend\" x=\"{:.0}\" \
                     y=\"{}\">{}</text>",
                    place + 28.0,
                    at + 4.5,
                    escape(&shortened(name, NAME))
                );
            }
        }
    }

    /// The legend's lines, each with its entries and their positions; empty for a single series.
    fn legend(&self) -> Vec<Vec<(f64, &Series)>> {
        if self.series.len() < 2 {
            return Vec::new();
        }
        const LEFT: f64 = 14.0;
        let mut lines: Vec<Vec<(f64, &Series)>> = vec![Vec::new()];
        let mut place = LEFT;
        for series in self.series {
            let width = 28.0 + LETTER * series.name.chars().count().min(NAME) as f64 + 14.0;
            if place + width > WIDTH && place > LEFT {
                lines.push(Vec::new());
                place = LEFT;
            }
            if let Some(line) = lines.last_mut() {
                line.push((place, series));
            }
            place += width;
        }
        lines
    }

    fn axes(&self, svg: &mut String, frame: Frame, across: &[Tick], up: &[Tick]) {
        let Frame { left, top, height } = frame;
        let floor = height - BOTTOM;
        for (at, label) in up {
            let _ = write!(
                svg,
                "<path class=\"grid\" d=\"M{left} {at:.1}H{}\"/><text class=\"tick end\" x=\"{}\" y=\"{:.1}\">{label}</text>",
                WIDTH - RIGHT,
                left - 7.0,
                at + 4.5
            );
        }
        for (at, label) in across {
            let _ = write!(
                svg,
                "<path class=\"grid\" d=\"M{at:.1} {floor}v5\"/><text class=\"tick middle\" x=\"{at:.1}\" y=\"{}\">{label}</text>",
                floor + 24.0
            );
        }
        let _ = write!(
            svg,
            "<path class=\"axis\" d=\"M{left} {floor}H{}\"/><text class=\"name middle\" x=\"{}\" y=\"{}\">{}</text>\
             <text class=\"name middle\" transform=\"translate(16 {}) rotate(-90)\">{}</text>",
            WIDTH - RIGHT,
            (left + WIDTH - RIGHT) / 2.0,
            height - 6.0,
            escape(&self.x.label),
            (top + floor) / 2.0,
            escape(&self.y.label)
        );
    }

    fn line(&self, svg: &mut String, series: &Series, x: &Scale, y: &Scale) {
        let Series { colour, dashed, points, .. } = series;
        let places: Vec<(f64, f64)> = points
            .iter()
            .filter(|point| point.0.is_finite() && point.1.is_finite())
            .map(|&(across, up)| (x.place(across), y.place(up)))
            .collect();
        let mut path = String::new();
        let mut last = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        for (index, &(across, up)) in places.iter().enumerate() {
            // Points on the same pixel are skipped.
            let near = (across - last.0).abs() < 0.4 && (up - last.1).abs() < 0.4;
            if index == 0 || !near || index + 1 == places.len() {
                let _ = write!(path, "{}{across:.1} {up:.1}", if index == 0 { 'M' } else { 'L' });
                last = (across, up);
            }
        }
        let dashed = if *dashed { " dashed" } else { "" };
        let _ = write!(svg, "<path class=\"line c{colour}{dashed}\" d=\"{path}\"/>");
    }

    /// The points with their values.
    fn points(&self, svg: &mut String, series: &Series, x: &Scale, y: &Scale) {
        let Series { name, colour, points, tips, .. } = series;
        let _ = write!(svg, "<g class=\"points c{colour}\">");
        let step = points.len().div_ceil(MOST_POINTS).max(1);
        let shown =
            points.iter().enumerate().filter(|(index, _)| index % step == 0 || index + 1 == points.len());
        for (index, &(across, up)) in shown.filter(|(_, point)| point.0.is_finite() && point.1.is_finite()) {
            let values = || format!("{} at {} {}", number(up), self.x.label, number(across));
            let tip = tips.get(index).cloned().unwrap_or_else(values);
            let _ = write!(
                svg,
                "<circle class=\"{}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"><title>{}{}</title></circle>",
                if self.marks { "mark" } else { "point" },
                x.place(across),
                y.place(up),
                if name.is_empty() { String::new() } else { format!("{}: ", escape(name)) },
                escape(&tip)
            );
        }
        svg.push_str("</g>");
    }

    /// The chart as a sentence.
    fn spoken(&self) -> String {
        let mut text = format!("{}.", self.title);
        for Series { name, points, .. } in self.series {
            if let (Some(first), Some(last)) = (points.first(), points.last()) {
                let name = if name.is_empty() { "It goes" } else { name };
                let _ = write!(
                    text,
                    " {name} from {} at {} {} to {} at {}.",
                    number(first.1),
                    self.x.label,
                    number(first.0),
                    number(last.1),
                    number(last.0)
                );
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_has_its_value_and_the_whole_a_sentence() {
        let series = [("<a>", 0.5), ("b", 0.3)].map(|(name, last)| Series {
            name: name.into(),
            colour: 0,
            dashed: false,
            points: vec![(0.0, 1.0), (1.0, 0.7), (2.0, last)],
            tips: Vec::new(),
        });
        let chart =
            Lines { title: "Errors", x: Axis::new("s"), y: Axis::new("e"), series: &series, marks: true };
        let svg = chart.svg(Some(super::super::STANDALONE));
        assert_eq!(svg.matches("<circle").count(), 6);
        assert!(svg.contains("<title>&lt;a&gt;: 0.5000 at s 2.000</title>"), "{svg}");
        assert!(
            svg.contains("aria-label=\"Errors. &lt;a&gt; from 1.000 at s 0 to 0.5000 at 2.000."),
            "{svg}"
        );
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn long_series_stay_small() {
        let points = (0..100_000).map(|i| (f64::from(i), 1.0 / f64::from(i + 1))).collect();
        let series = [Series { name: String::new(), colour: 0, dashed: false, points, tips: Vec::new() }];
        let chart = Lines { title: "t", x: Axis::new("x"), y: Axis::new("y"), series: &series, marks: false };
        assert!(chart.svg(None).len() < 60_000);
    }
}
