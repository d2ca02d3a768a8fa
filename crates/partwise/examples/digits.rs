//! Parts of handwritten digits: factorizes a file and prints the shapes of the factors and the relative error.
//!
//! `digits [FILE [COMPONENTS]]`

use partwise::Nmf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let file = arguments.first().map_or("data/digits.npy", String::as_str);
    let components = arguments.get(1).map_or(Ok(16), |text| text.parse())?;
    Ok(digits(file, components)?)
}

pub(crate) fn digits(file: &str, components: usize) -> partwise::Result<()> {
    let m = partwise::read(file)?;
    let model = Nmf::new(components).seed(0).fit(&m)?;
    let (u, v) = (model.u(), model.v());
    println!("U: {} x {}, V: {} x {}", u.rows(), u.cols(), v.rows(), v.cols());
    println!("relative error {:.6}", model.relative_error());

    // New rows expressed in the fitted components.
    let first = m.to_vec::<f32>()[..m.cols()].to_vec();
    let w = model.transform(&partwise::Matrix::from_vec(1, m.cols(), first)?)?;
    let strongest = (0..components).max_by(|&a, &b| w.get(0, a).total_cmp(&w.get(0, b))).unwrap_or(0);
    println!("the first digit is mostly component {strongest}, whose strokes are");
    for line in 0..8.min(v.rows() / 8) {
        let largest = (0..v.rows()).map(|row| v.get(row, strongest)).fold(0.0, f64::max);
        let pixel =
            |col: usize| b" .:+#"[(4.0 * v.get(8 * line + col, strongest) / largest).round() as usize];
        println!("{}", String::from_utf8_lossy(&(0..8).map(pixel).collect::<Vec<u8>>()));
    }
    Ok(())
}
