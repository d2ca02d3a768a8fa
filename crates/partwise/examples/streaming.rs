//! A matrix that stays in its file: 32 MiB are factorized within 16 MiB, with the same result as in memory.

use std::io::Write;

use partwise::{Nmf, Reader};

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("large.npy");
    write(&path, 8192, 1024)?;

    let nmf = Nmf::new(4).iterations(10).tolerance(0.0).threads(1);
    let streamed = nmf.clone().memory(16 << 20).fit(&Reader::new(&path))?;
    let whole = nmf.fit(&Reader::new(&path))?;
    println!("{} x {}, 32 MiB", streamed.u().rows(), streamed.v().rows());
    println!("streamed: {}", streamed.plan());
    println!(
        "relative error {:.6} streamed, {:.6} in memory",
        streamed.relative_error(),
        whole.relative_error()
    );
    Ok(())
}

/// Writes a matrix of rank 4 with some noise as an .npy file.
fn write(path: &std::path::Path, rows: usize, cols: usize) -> std::io::Result<()> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {cols}), }}");
    file.write_all(b"\x93NUMPY\x01\x00")?;
    let length = (10 + header.len() + 1).next_multiple_of(64) - 10;
    file.write_all(&(length as u16).to_le_bytes())?;
    writeln!(file, "{header:<width$}", width = length - 1)?;
    for row in 0..rows {
        for col in 0..cols {
            let parts = (0..4).map(|j| ((row * (j + 3)) % 17) as f32 * ((col * (j + 5)) % 13) as f32);
            let noise = ((row * 31 + col * 17) % 29) as f32;
            file.write_all(&(parts.sum::<f32>() + noise).to_le_bytes())?;
        }
    }
    file.flush()
}
