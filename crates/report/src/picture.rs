//! Images within the page: PNG in data URLs.

use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ExtendedColorType, ImageEncoder};

use crate::text::base64;

/// The layout of pixel values: line by line, the channels of a pixel next to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Pixels per line.
    pub width: usize,
    /// Lines.
    pub height: usize,
    /// 1 for grey, 3 for red, green and blue.
    pub channels: usize,
}

impl Shape {
    /// The number of values of an image.
    pub fn size(self) -> usize {
        self.width.saturating_mul(self.height).saturating_mul(self.channels)
    }
}

/// Draws values from 0 (black) to `white` as an image of at most `pixels` pixels.
pub fn of_values(shape: Shape, values: &[f32], white: f32, pixels: usize) -> String {
    let (shape, values) = shrunk(shape, values, pixels);
    let scale = if white > 0.0 { 255.0 / white } else { 0.0 };
    let levels: Vec<u8> =
        values.iter().map(|value| (value * scale).round().clamp(0.0, 255.0) as u8).collect();
    let kind = if shape.channels == 3 { ExtendedColorType::Rgb8 } else { ExtendedColorType::L8 };
    encoded(shape.width, shape.height, &levels, kind)
}

/// The opacity levels of heat maps, which work on light and dark pages.
pub fn coloured(width: usize, height: usize, levels: &[u8]) -> String {
    const COLOUR: [u8; 3] = [0, 102, 204];
    let pixels: Vec<u8> = levels.iter().flat_map(|&level| [COLOUR[0], COLOUR[1], COLOUR[2], level]).collect();
    encoded(width, height, &pixels, ExtendedColorType::Rgba8)
}

/// Means over squares, large enough that at most `pixels` pixels remain.
fn shrunk(shape: Shape, values: &[f32], pixels: usize) -> (Shape, Vec<f32>) {
    let Shape { width, height, channels } = shape;
    let factor = (1..).find(|factor| width.div_ceil(*factor) * height.div_ceil(*factor) <= pixels.max(1));
    let factor = factor.unwrap_or(1);
    if factor == 1 {
        return (shape, values.to_vec());
    }
    let small = Shape { width: width.div_ceil(factor), height: height.div_ceil(factor), channels };
    let mut means = Vec::with_capacity(small.size());
    for line in 0..small.height {
        let lines = line * factor..((line + 1) * factor).min(height);
        for place in 0..small.width {
            let places = place * factor..((place + 1) * factor).min(width);
            let count = (lines.len() * places.len()) as f32;
            for channel in 0..channels {
                let sum: f32 = lines
                    .clone()
                    .flat_map(|y| places.clone().map(move |x| (y * width + x) * channels + channel))
                    .map(|index| values[index])
                    .sum();
                means.push(sum / count);
            }
        }
    }
    (small, means)
}

fn encoded(width: usize, height: usize, bytes: &[u8], kind: ExtendedColorType) -> String {
    let mut file = Vec::new();
    let encoder = PngEncoder::new_with_quality(&mut file, CompressionType::Best, FilterType::Adaptive);
    // Encodes an image in memory; only an empty image fails, and shows nothing.
    let _ = encoder.write_image(bytes, width as u32, height as u32, kind);
    format!("data:image/png;base64,{}", base64(&file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_shrink_to_means() {
        let shape = Shape { width: 4, height: 2, channels: 1 };
        let (small, means) = shrunk(shape, &[0.0, 2.0, 4.0, 4.0, 2.0, 4.0, 8.0, 8.0], 2);
        assert_eq!(small, Shape { width: 2, height: 1, channels: 1 });
        assert_eq!(means, [2.0, 6.0]);
        let odd = Shape { width: 3, height: 3, channels: 3 };
        let (small, means) = shrunk(odd, &[1.0; 27], 4);
        assert_eq!((small.width, small.height, means), (2, 2, vec![1.0; 12]));
    }

    #[test]
    fn pictures_are_png() {
        let address = of_values(Shape { width: 2, height: 2, channels: 3 }, &[1.0; 12], 2.0, 100);
        assert!(address.starts_with("data:image/png;base64,iVBORw0KGgo"), "{address}");
    }
}
