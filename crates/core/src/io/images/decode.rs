//! From the bytes of a JPEG or PNG file to 8-bit grey or RGB pixels.

use std::fmt;
use std::io::Cursor;

use image::{ColorType, DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits};

/// A byte of a file stands for no more bytes of pixels than this: DEFLATE's ratio, times eight pixels a byte at
/// one bit each, times three for a palette's colours. A JPEG's byte covers at most eight blocks of 64 pixels.
const EXPANSION: u64 = 1032 * 24;

/// Size and channels of an image, as they come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Picture {
    pub width: u32,
    pub height: u32,
    pub channels: u8,
}

impl Picture {
    /// Bytes of its pixels.
    pub fn bytes(self) -> usize {
        // A width and a height of 32 bits overflow only with sizes that no file can hold.
        (self.width as usize).saturating_mul(self.height as usize).saturating_mul(self.channels.into())
    }
}

impl fmt::Display for Picture {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let kind = if self.channels == 1 { "grey" } else { "RGB" };
        write!(formatter, "{} x {} pixels, {kind}", self.width, self.height)
    }
}

/// What was changed to make 8-bit grey or RGB of it; displayed as further words of a format.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Converted {
    depth: bool,
    alpha: bool,
    palette: bool,
}

impl Converted {
    /// What was changed in either.
    pub fn add(&mut self, other: Converted) {
        self.depth |= other.depth;
        self.alpha |= other.alpha;
        self.palette |= other.palette;
    }
}

impl fmt::Display for Converted {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        for (changed, words) in [
            (self.palette, ", palettes expanded"),
            (self.depth, ", 16 bits rounded to 8"),
            (self.alpha, ", transparency dropped"),
        ] {
            formatter.write_str(if changed { words } else { "" })?;
        }
        Ok(())
    }
}

/// Reads the header; an error is a sentence.
pub(super) fn open(file: &[u8], memory: u64) -> Result<(Picture, impl ImageDecoder), String> {
    let mut reader = ImageReader::new(Cursor::new(file)).with_guessed_format().map_err(|e| e.to_string())?;
    let whole = match reader.format() {
        Some(ImageFormat::Png) => png_ends(file),
        Some(ImageFormat::Jpeg) => jpeg_ends(file),
        _ => return Err("this is neither a JPEG nor a PNG image; convert it, or remove it".to_string()),
    };
    if !whole {
        return Err("the file is truncated; create or download it again".to_string());
    }
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(memory);
    reader.limits(limits);
    let decoder = reader.into_decoder().map_err(damaged)?;
    let (width, height) = decoder.dimensions();
    let channels = if decoder.color_type().has_color() { 3 } else { 1 };
    let picture = Picture { width, height, channels };
    if picture.bytes() == 0 || picture.bytes() as u64 > (file.len() as u64).saturating_mul(EXPANSION) {
        return Err(format!("the file is too short for {picture}; create or download it again"));
    }
    Ok((picture, decoder))
}

/// Decodes into `out`, which has the picture's size.
pub(super) fn pixels(decoder: impl ImageDecoder, file: &[u8], out: &mut [u8]) -> Result<Converted, String> {
    let color = decoder.color_type();
    if matches!(color, ColorType::L8 | ColorType::Rgb8) {
        decoder.read_image(out).map_err(damaged)?;
    } else {
        let image = DynamicImage::from_decoder(decoder).map_err(damaged)?;
        if color.has_color() {
            out.copy_from_slice(&image.into_rgb8());
        } else {
            out.copy_from_slice(&image.into_luma8());
        }
    }
    Ok(Converted {
        depth: color.bytes_per_pixel() > color.channel_count(),
        alpha: color.has_alpha(),
        palette: file.starts_with(PNG) && file.get(25) == Some(&3),
    })
}

fn damaged(error: ImageError) -> String {
    match error {
        ImageError::Limits(_) => {
            "decoding it needs more memory than is available; make it smaller".to_string()
        }
        ImageError::Unsupported(error) => {
            format!("not supported ({error}); save it as an 8-bit grey or RGB PNG")
        }
        error => format!("truncated or damaged ({error}); create or download it again"),
    }
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Whether the chunks of a PNG file lead to its end. A decoder would be content without the last ones.
fn png_ends(file: &[u8]) -> bool {
    let mut rest = file.get(PNG.len()..).unwrap_or_default();
    while let Some((head, _)) = rest.split_first_chunk::<8>() {
        let [a, b, c, d, kind @ ..] = *head;
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        // Length, kind and checksum stand around a chunk's data.
        let Some(next) = length.checked_add(12).and_then(|length| rest.get(length..)) else { return false };
        if &kind == b"IEND" {
            return true;
        }
        rest = next;
    }
    false
}

/// Whether the markers of a JPEG file lead to its end. A decoder would fill in what is missing.
fn jpeg_ends(file: &[u8]) -> bool {
    let mut rest = file.get(2..).unwrap_or_default();
    loop {
        // Compressed data have a 0 behind each FF; restart markers stand alone.
        let marker =
            rest.windows(2).position(|pair| pair[0] == 0xff && !matches!(pair[1], 0 | 0xd0..=0xd7 | 0xff));
        let Some(place) = marker else { return false };
        match rest[place + 1] {
            0xd9 => return true,
            0x01 | 0xd8 => rest = &rest[place + 2..],
            _ => {
                let Some(&[high, low]) = rest.get(place + 2..place + 4) else { return false };
                let Some(next) = rest.get(place + 2 + usize::from(u16::from_be_bytes([high, low]))..) else {
                    return false;
                };
                rest = next;
            }
        }
    }
}
