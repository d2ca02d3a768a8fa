//! A custom sketch: sparse signs, with several per row of S (Nelson and Nguyễn 2013, "OSNAP").

use partwise::options::{Method, SketchKind};
use partwise::{Nmf, Sketch};

/// Each row of S has `count` entries ±1/√count in different columns: E[S Sᵀ] = I, with less variance than a
/// single entry.
fn sparse_signs(count: usize) -> Sketch {
    Sketch::new(format!("sparse-signs-{count}"), move |size, random, row| {
        let count = count.min(size.cols);
        while row.len() < count {
            let word = random();
            let col = (word >> 1) as usize % size.cols;
            if row.iter().all(|&(taken, _)| taken != col) {
                let value = 1.0 / (count as f64).sqrt();
                row.push((col, if word & 1 == 0 { value } else { -value }));
            }
        }
    })
}

pub(crate) fn main() -> partwise::Result<()> {
    let m = partwise::read("data/digits.npy")?;
    let sketched = Nmf::new(8).method(Method::Dsanls).sketch_rows(100).iterations(200).tolerance(0.0).seed(1);
    for (name, nmf) in [
        ("columns", sketched.clone().sketch(SketchKind::Subsample)),
        ("count sketch", sketched.clone().sketch(SketchKind::Count)),
        ("sparse signs", sketched.clone().sketch(sparse_signs(4))),
    ] {
        println!("{name}: relative error {:.4}", nmf.fit(&m)?.relative_error());
    }
    let exact = Nmf::new(8).fit(&m)?;
    println!("exact: relative error {:.4}", exact.relative_error());
    Ok(())
}
