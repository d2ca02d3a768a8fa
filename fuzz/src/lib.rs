//! Fuzz targets: one function per reader, a few valid files as seeds, and mutations for machines without `cargo
//! fuzz`.

use std::fs;
use std::path::{Path, PathBuf};

pub mod mutate;
pub mod seeds;
pub mod targets;
mod valid;

/// A reader under test.
pub struct Target {
    /// As `cargo fuzz list` names it.
    pub name: &'static str,
    /// Reads the bytes; panics if what comes out is not valid.
    pub run: fn(&[u8]),
    /// Valid files.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All of them; each has its file in `fuzz_targets` and its `[[bin]]` in `Cargo.toml`.
pub const TARGETS: [Target; 14] = [
    Target { name: "npy", run: targets::npy, seeds: seeds::npy },
    Target { name: "npz", run: targets::npz, seeds: seeds::npz },
    Target { name: "npz_members", run: targets::npz_members, seeds: seeds::npz_members },
    Target { name: "mtx", run: targets::mtx, seeds: seeds::mtx },
    Target { name: "csv", run: targets::csv, seeds: seeds::csv },
    Target { name: "tsv", run: targets::tsv, seeds: seeds::tsv },
    Target { name: "bin", run: targets::bin, seeds: seeds::bin },
    Target { name: "h5ad", run: targets::h5ad, seeds: seeds::h5ad },
    Target { name: "images", run: targets::images, seeds: seeds::images },
    Target { name: "image", run: targets::image, seeds: seeds::image },
    Target { name: "labels", run: targets::labels, seeds: seeds::labels },
    Target { name: "checkpoint", run: targets::checkpoint, seeds: seeds::checkpoint },
    Target { name: "gz", run: targets::gz, seeds: seeds::gz },
    Target { name: "frame", run: targets::frame, seeds: seeds::frame },
];

/// A file of this process, in memory where there is such a place, that is gone when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn path(suffix: &str) -> PathBuf {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
        folder.join(format!("partwise-fuzz-{}{suffix}", std::process::id()))
    }

    fn file(suffix: &str, bytes: &[u8]) -> Scratch {
        let scratch = Scratch(Self::path(suffix));
        fs::write(&scratch.0, bytes).expect("the scratch file can be written");
        scratch
    }

    /// A folder with one file.
    fn folder(name: &str, bytes: &[u8]) -> Scratch {
        let scratch = Scratch(Self::path(""));
        fs::create_dir_all(&scratch.0).expect("the scratch folder can be made");
        fs::write(scratch.0.join(name), bytes).expect("the scratch file can be written");
        scratch
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = if self.0.is_dir() { fs::remove_dir_all(&self.0) } else { fs::remove_file(&self.0) };
    }
}
