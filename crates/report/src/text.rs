//! Numbers and names for readers, escaped for HTML.

use std::fmt::Write;

/// Escapes text for content and quoted attributes; control characters become blanks.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            letter if letter.is_control() => safe.push(' '),
            letter => safe.push(letter),
        }
    }
    safe
}

/// The start of a long name.
pub fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_string();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// `27,613`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// About four digits: `0.2570`, `12.35`, `1.2e-7`.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        "–".into()
    } else if value == 0.0 {
        "0".into()
    } else if !(1e-4..1e6).contains(&size) {
        format!("{value:.2e}")
    } else if size >= 1000.0 {
        count(value.round() as u64)
    } else {
        let before = if size >= 1.0 { size.log10().floor() as usize + 1 } else { 0 };
        format!("{value:.*}", 4 - before)
    }
}

/// `12.3%`.
pub fn percent(share: f64) -> String {
    match 100.0 * share {
        percent if percent > 0.0 && percent < 0.1 => "<0.1%".into(),
        percent if percent >= 99.95 => format!("{percent:.0}%"),
        percent => format!("{percent:.1}%"),
    }
}

/// `35 ms`, `4.2 s`, `3 min 20 s`.
pub fn seconds(value: f64) -> String {
    match value {
        value if value < 1e-3 => format!("{:.0} µs", value * 1e6),
        value if value < 1.0 => format!("{:.3} s", value),
        value if value < 100.0 => format!("{value:.2} s"),
        value if value < 7200.0 => format!("{:.0} min {:02.0} s", (value / 60.0).floor(), value % 60.0),
        value => format!("{:.0} h {:02.0} min", (value / 3600.0).floor(), (value % 3600.0) / 60.0),
    }
}

/// `1.8 MiB`.
pub fn bytes(value: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut size = value as f64;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < units.len() {
        size /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{value} B") } else { format!("{size:.1} {}", units[unit]) }
}

/// A table with a header line; cells are escaped.
pub fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut html = String::from("<div class=\"scroll\"><table><thead><tr>");
    for cell in header {
        let _ = write!(html, "<th scope=\"col\">{}</th>", escape(cell));
    }
    html.push_str("</tr></thead><tbody>");
    for row in rows {
        html.push_str("<tr>");
        for cell in row {
            // Short cells stay on one line: "18.5 MiB" is one number.
            let class = if cell.chars().count() <= 12 { " class=\"short\"" } else { "" };
            let _ = write!(html, "<td{class}>{}</td>", escape(&cell));
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div>");
    html
}

/// A table in a collapsed section: what a chart shows, as text.
pub fn details(summary: &str, content: &str) -> String {
    format!("<details><summary>{}</summary>{content}</details>", escape(summary))
}

/// Base64 with padding, as data URLs and hashes in policies need it.
pub fn base64(data: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(data.len().div_ceil(3) * 4);
    for chunk in data.chunks(3) {
        let word =
            chunk.iter().enumerate().fold(0u32, |word, (i, &byte)| word | u32::from(byte) << (16 - 8 * i));
        for place in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_be_markup() {
        assert_eq!(escape("<b title='x'>\"&\u{7}"), "&lt;b title=&#39;x&#39;&gt;&quot;&amp; ");
        assert_eq!(shortened("abcdef", 4), "abc…");
    }

    #[test]
    fn numbers_for_readers() {
        assert_eq!(count(1234567), "1,234,567");
        assert_eq!(count(123), "123");
        assert_eq!(
            [0.257024, 12.3456, 1.5e-7, 0.0, 4321.4].map(number),
            ["0.2570", "12.35", "1.50e-7", "0", "4,321"]
        );
        assert_eq!([0.05, 0.0, 0.9999, 0.00001].map(percent), ["5.0%", "0.0%", "100%", "<0.1%"]);
        assert_eq!([0.000035, 0.25, 4.25, 200.0].map(seconds), ["35 µs", "0.250 s", "4.25 s", "3 min 20 s"]);
        assert_eq!([10, 1 << 21].map(bytes), ["10 B", "2.0 MiB"]);
    }

    #[test]
    fn base64_as_in_rfc_4648() {
        let all = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| base64(text.as_bytes()));
        assert_eq!(all, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
    }
}
