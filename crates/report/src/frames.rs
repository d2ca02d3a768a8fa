//! Some images of the input, their reconstructions and the differences: in a film, background and foreground.

use std::fmt::Write;

use crate::text::{escape, number};
use crate::{Run, picture};

/// Pixels of all pictures together, at most.
const PIXELS: usize = 1_000_000;

pub fn section(run: &Run) -> String {
    let (Some(shape), Some(frames)) = (run.shape, &run.frames) else { return String::new() };
    let [samples] = run.samples.as_slice() else { return String::new() };
    let size = shape.size();
    if size != run.features.rows || frames.values.len() != size * frames.numbers.len() {
        return String::new();
    }
    let pixels = PIXELS / (3 * frames.numbers.len().max(1));
    let white = frames.values.iter().copied().fold(0.0, f32::max);
    // Images may be frames of a film; a table of images is not.
    let film = run.factorization().is_some_and(|record| record.input.format.contains("images"));
    let names = if film {
        ["original", "background", "foreground"]
    } else {
        ["original", "reconstruction", "difference"]
    };
    let mut html = format!(
        "<p>Some pictures of the input, their reconstructions by U Vᵀ, and the absolute differences, brighter where they are \
         larger.{}</p><div class=\"frames\">",
        if film {
            " In a film taken with a fixed camera the reconstruction is the background, and the difference the foreground."
        } else {
            ""
        }
    );
    for (&sample, values) in frames.numbers.iter().zip(frames.values.chunks_exact(size)) {
        if sample >= samples.weights.rows {
            return String::new();
        }
        let weights = samples.weights.row(sample);
        let rebuilt: Vec<f32> = run
            .features
            .values
            .chunks_exact(run.features.k)
            .map(|feature| feature.iter().zip(weights).map(|(a, b)| a * b).sum())
            .collect();
        let left: Vec<f32> =
            values.iter().zip(&rebuilt).map(|(value, rebuilt)| (value - rebuilt).abs()).collect();
        let error = norm(&left) / norm(values).max(f64::MIN_POSITIVE);
        // A few extreme pixels must not darken all others.
        let bright = quantile(&left, 0.998).max(white / 16.0);
        let name = escape(&run.sample_name(samples, sample));
        html.push_str("<figure><div class=\"three\">");
        let pictures = [(values, white), (&rebuilt, white), (&left, bright)];
        for (what, (values, white)) in names.into_iter().zip(pictures) {
            let address = picture::of_values(shape, values, white, pixels);
            let _ = write!(
                html,
                "<div><img class=\"part\" alt=\"{name}, {what}\" src=\"{address}\"><span>{what}</span></div>"
            );
        }
        let _ =
            write!(html, "</div><figcaption>{name}: relative error {}</figcaption></figure>", number(error));
    }
    html.push_str("</div>");
    html
}

fn norm(values: &[f32]) -> f64 {
    values.iter().map(|&value| f64::from(value) * f64::from(value)).sum::<f64>().sqrt()
}

fn quantile(values: &[f32], share: f64) -> f32 {
    let mut values = values.to_vec();
    let place = ((values.len() as f64 * share) as usize).min(values.len().saturating_sub(1));
    if values.is_empty() { 0.0 } else { *values.select_nth_unstable_by(place, f32::total_cmp).1 }
}
