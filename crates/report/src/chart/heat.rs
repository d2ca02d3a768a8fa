//! A heat map: an image of its numbers, with a tooltip from the page's script.

use std::fmt::Write;

use crate::picture;
use crate::text::{base64, escape, number};

/// The maximum number of marks above a map.
const MOST_MARKS: usize = 10;

/// Numbers of 0 or more in lines.
pub struct Heat<'a> {
    /// A description of the chart.
    pub title: &'a str,
    /// The text before a line's name in tooltips.
    pub prefix: &'a str,
    /// The lines' names.
    pub lines: &'a [String],
    /// The columns' names for tooltips, one per column.
    pub columns: &'a [String],
    /// Line by line.
    pub values: &'a [f64],
    /// Marks above columns: the first column of each, and its name.
    pub marks: &'a [(usize, String)],
}

impl Heat<'_> {
    /// The map in HTML.
    pub fn html(&self) -> String {
        let (height, width) = (self.lines.len(), self.columns.len());
        let most = self.values.iter().copied().fold(0.0, f64::max);
        let scale = if most > 0.0 { 255.0 / most } else { 0.0 };
        let levels: Vec<u8> = self.values.iter().map(|value| (value * scale).round() as u8).collect();
        let picture = picture::coloured(width, height, &levels);
        let tall = if height > 40 { 10 } else { 20 };
        let mut html = format!(
            "<div class=\"heat\" style=\"--tall:{tall}px\" data-width=\"{width}\" data-most=\"{}\" data-levels=\"{}\" \
             data-prefix=\"{}\" data-lines=\"{}\" data-columns=\"{}\">",
            number(most),
            base64(&levels),
            escape(self.prefix),
            names(self.lines),
            names(self.columns)
        );
        if !self.marks.is_empty() {
            html.push_str("<div class=\"marks\">");
            // Narrow ones have no room for a name on a phone.
            let groups: Vec<&[(usize, String)]> =
                self.marks.chunks(self.marks.len().div_ceil(MOST_MARKS)).collect();
            for (index, group) in groups.iter().enumerate() {
                let (first, name) = &group[0];
                let last = groups.get(index + 1).map_or(width, |next| next[0].0);
                let _ = write!(
                    html,
                    "<span style=\"width:{:.3}%\" title=\"{1}\">{1}</span>",
                    100.0 * (last - first) as f64 / width.max(1) as f64,
                    escape(name)
                );
            }
            html.push_str("</div>");
        }
        html.push_str("<div class=\"names\">");
        for (index, name) in self.lines.iter().enumerate() {
            let shown = height <= 40 || index % 5 == 0;
            let _ = write!(
                html,
                "<span title=\"{0}\">{1}</span>",
                escape(name),
                if shown { escape(name) } else { String::new() }
            );
        }
        let _ = write!(
            html,
            "</div><img alt=\"{}\" src=\"{picture}\" style=\"height:{}px\"><div class=\"ramp\"><span>0</span><i></i>\
             <span>{}</span></div></div>",
            escape(self.title),
            tall * height,
            number(most)
        );
        html
    }
}

/// Names in one attribute, separated by bars.
fn names(all: &[String]) -> String {
    let all: Vec<String> = all.iter().map(|name| name.replace('|', "/")).collect();
    escape(&all.join("|"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_shares_of_the_largest() {
        let lines = ["1".to_string()];
        let columns = ["a|b".to_string(), "<".to_string()];
        let heat = Heat {
            title: "t",
            prefix: "",
            lines: &lines,
            columns: &columns,
            values: &[1.0, 2.0],
            marks: &[],
        };
        let html = heat.html();
        assert!(html.contains(&format!("data-levels=\"{}\"", base64(&[128, 255]))), "{html}");
        assert!(html.contains("data-columns=\"a/b|&lt;\""), "{html}");
        assert!(html.contains("data-most=\"2.000\"") && html.contains("data:image/png;base64,"), "{html}");
    }
}
