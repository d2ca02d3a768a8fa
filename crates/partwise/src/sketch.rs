//! Custom sketches.

use std::fmt;
use std::sync::Arc;

use partwise_core::sketch::{CustomSketch, DrawRows};

pub use partwise_core::sketch::SketchSize;

/// A custom random matrix S, n x d, with E\[S Sᵀ\] = I, for the method `dsanls`.
///
/// S is given row by row: a function adds the entries of one row, as pairs of a column below `size.cols` and
/// a value. All randomness must come from the generator that it receives, which returns 64 bits per call, so
/// that the same seed gives the same result for any number of workers. E\[S Sᵀ\] = I is not checked: without
/// it, steps are biased.
///
/// ```
/// use partwise::options::Method;
/// use partwise::{Matrix, Nmf, Sketch};
///
/// // Independent signs, scaled by 1 / √d.
/// let signs = Sketch::new("signs", |size, random, row| {
///     let scale = 1.0 / (size.cols as f64).sqrt();
///     row.extend((0..size.cols).map(|col| (col, if random() & 1 == 0 { scale } else { -scale })));
/// });
/// let m = Matrix::from_vec(20, 30, (0..600).map(|i| f64::from(i % 7)).collect())?;
/// let model = Nmf::new(3).method(Method::Dsanls).sketch(signs).fit(&m)?;
/// assert!(model.relative_error() < 0.5);
/// # Ok::<(), partwise::Error>(())
/// ```
#[derive(Clone)]
pub struct Sketch(pub(crate) CustomSketch);

/// A function that draws rows, with the name of the sketch.
struct Rows<F> {
    name: String,
    draw: F,
}

impl<F> DrawRows for Rows<F>
where
    F: Fn(SketchSize, &mut dyn FnMut() -> u64, &mut Vec<(usize, f64)>) + Send + Sync,
{
    fn name(&self) -> String {
        self.name.clone()
    }

    fn row(&self, size: SketchSize, random: &mut dyn FnMut() -> u64, entries: &mut Vec<(usize, f64)>) {
        (self.draw)(size, random, entries);
    }
}

impl Sketch {
    /// Creates a sketch whose rows `draw` draws. Records and checkpoints contain only the name.
    pub fn new<F>(name: impl Into<String>, draw: F) -> Self
    where
        F: Fn(SketchSize, &mut dyn FnMut() -> u64, &mut Vec<(usize, f64)>) + Send + Sync + 'static,
    {
        Sketch(CustomSketch::new(Arc::new(Rows { name: name.into(), draw })))
    }

    /// Returns the name of the sketch.
    pub fn name(&self) -> &str {
        self.0.name()
    }
}

impl fmt::Debug for Sketch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
