//! Reading blocks at their places in the file, the next one while the last is worked on.

use std::any::Any;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{channel, sync_channel};
use std::time::{Duration, Instant};

use super::{ArrayAt, Body, Stream};
use crate::error::{Error, Result};
use crate::io::memory::Budget;
use crate::io::triplets::{canonical, index_below};
use crate::matrix::{Dense, Matrix, Order, Values};
use crate::real::Real;

/// Bytes that are converted at a time; a multiple of every number's width.
const CHUNK: usize = 1 << 18;

impl Stream {
    /// Passes on the blocks of these lines, one after the other, while the next one is being read. `take` returns a
    /// block to reuse its memory. Two blocks exist at a time. Returns the time spent waiting for blocks.
    pub fn pass<T: Real>(
        &self,
        blocks: &[Range<usize>],
        mut take: impl FnMut(Range<usize>, Matrix<T>) -> Result<Option<Matrix<T>>>,
    ) -> Result<Duration> {
        let mut waited = Duration::ZERO;
        std::thread::scope(|scope| {
            let (full_sender, full) = sync_channel(0);
            let (empty_sender, empty) = channel::<Option<Matrix<T>>>();
            let reader = std::thread::Builder::new().name("reader".to_string());
            let reading = reader.spawn_scoped(scope, move || {
                for lines in blocks {
                    // A receiver that takes no more blocks returns no more.
                    let Ok(used) = empty.recv() else { return };
                    if full_sender.send(self.read(lines.clone(), used)).is_err() {
                        return;
                    }
                }
            });
            reading.map_err(Error::io(&self.path))?;
            let mut spare = self.take_spare();
            for _ in blocks.iter().take(2) {
                let _ = empty_sender.send(spare.pop());
            }
            for (place, lines) in blocks.iter().enumerate() {
                let begin = Instant::now();
                let Ok(block) = full.recv() else { unreachable!("the reader sends every block or an error") };
                waited += begin.elapsed();
                let used = take(lines.clone(), block?)?;
                if place + 2 < blocks.len() {
                    let _ = empty_sender.send(used);
                } else {
                    spare.extend(used);
                }
            }
            self.keep_spare(spare);
            Ok(waited)
        })
    }

    fn take_spare<T: Real>(&self) -> Vec<Matrix<T>> {
        let kept = std::mem::take(&mut *self.spare.lock().unwrap_or_else(PoisonError::into_inner));
        kept.into_iter().filter_map(|block| block.downcast().ok()).map(|block| *block).collect()
    }

    fn keep_spare<T: Real>(&self, blocks: Vec<Matrix<T>>) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        spare.extend(blocks.into_iter().map(|block| Box::new(block) as Box<dyn Any + Send>));
    }

    /// One block, in the memory of another that is no longer needed.
    pub(super) fn read<T: Real>(&self, lines: Range<usize>, used: Option<Matrix<T>>) -> Result<Matrix<T>> {
        let (count, length) = (lines.len(), self.line_length());
        match &self.layout.body {
            Body::Dense(part) => {
                let used = match used {
                    Some(Matrix::Dense(dense)) => Some(dense.into_values()),
                    _ => None,
                };
                let entries = lines.start * length..lines.end * length;
                let values = if part.element.is_byte() {
                    let mut bytes =
                        if let Some(Values::Bytes(bytes)) = used { bytes.into_vec() } else { Vec::new() };
                    resize(&mut bytes, entries.len(), 0);
                    self.fill(part.offset + entries.start as u64, &mut bytes)?;
                    if part.element.is_bool() {
                        bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
                    }
                    Values::Bytes(bytes.into())
                } else {
                    let mut reals =
                        if let Some(Values::Real(reals)) = used { reals.into_vec() } else { Vec::new() };
                    self.reals(*part, entries, &mut reals)?;
                    Values::Real(reals.into())
                };
                Ok(Matrix::Dense(Dense::new(count, length, Order::RowMajor, values)))
            }
            Body::Sparse { offsets, indices, values } => {
                let (mut own, mut places, mut reals) = match used {
                    Some(Matrix::Sparse(csr)) => csr.into_parts(),
                    _ => Default::default(),
                };
                let entries = offsets[lines.start]..offsets[lines.end];
                own.clear();
                own.extend(offsets[lines.start..=lines.end].iter().map(|offset| offset - entries.start));
                self.indices(*indices, entries.clone(), &mut places)?;
                self.reals(*values, entries, &mut reals)?;
                let budget = Budget { path: &self.path, available: u64::MAX };
                canonical(budget, count, length, own, places, reals).map(Matrix::Sparse)
            }
        }
    }

    /// Numbers of a part, in place of those in `reals`.
    fn reals<T: Real>(&self, part: ArrayAt, entries: Range<usize>, reals: &mut Vec<T>) -> Result<()> {
        if part.element.is_native::<T>() {
            resize(reals, entries.len(), T::ZERO);
            let first = part.offset + entries.start as u64 * part.element.width();
            return self.fill(first, bytemuck::cast_slice_mut(reals));
        }
        reals.clear();
        reals.reserve_exact(entries.len());
        self.chunks(part, entries, |bytes| {
            part.element.reals(bytes, reals);
            Ok(())
        })
    }

    /// Places within lines, in place of those in `places`; checked at every pass, since files may change.
    fn indices(&self, part: ArrayAt, entries: Range<usize>, places: &mut Vec<u32>) -> Result<()> {
        let (first, size) = (entries.start, self.line_length() as u64);
        places.clear();
        places.reserve_exact(entries.len());
        let mut integers = Vec::new();
        self.chunks(part, entries, |bytes| {
            integers.clear();
            part.element.integers(bytes, &mut integers);
            for &integer in &integers {
                places.push(index_below(first + places.len(), integer, size)?);
            }
            Ok(())
        })
    }

    /// Hands over the bytes of a part's entries piece by piece; `take` may refuse with a sentence.
    fn chunks(
        &self,
        part: ArrayAt,
        entries: Range<usize>,
        mut take: impl FnMut(&[u8]) -> std::result::Result<(), String>,
    ) -> Result<()> {
        let width = part.element.width();
        let (begin, end) = (entries.start as u64 * width, entries.end as u64 * width);
        let mut buffer = vec![0u8; CHUNK.min((end - begin) as usize)];
        let mut place = begin;
        while place < end {
            let chunk = &mut buffer[..CHUNK.min((end - place) as usize)];
            self.fill(part.offset + place, chunk)?;
            take(chunk).map_err(|problem| Error::format(&self.path, "data", problem))?;
            place += chunk.len() as u64;
        }
        Ok(())
    }

    /// Fills `buffer` from a place in the file.
    fn fill(&self, place: u64, buffer: &mut [u8]) -> Result<()> {
        let mut filled = 0;
        while filled < buffer.len() {
            match read_at(&self.file, &mut buffer[filled..], place + filled as u64) {
                Ok(0) => {
                    let problem = "the file is truncated; create or download it again";
                    return Err(Error::format(&self.path, "data", problem));
                }
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io(&self.path)(error)),
            }
        }
        self.bytes_read.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}

/// Writes no zeros where numbers were before, and takes no more memory than it needs.
fn resize<T: Clone>(numbers: &mut Vec<T>, length: usize, zero: T) {
    numbers.reserve_exact(length.saturating_sub(numbers.len()));
    numbers.resize(length, zero);
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], place: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, place)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], place: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, place)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory of two blocks serves all passes, whichever lines they take, in the type of the last of them.
    #[test]
    fn blocks_are_used_again() {
        let file = tempfile::NamedTempFile::with_suffix(".npy").unwrap();
        let values: Vec<f32> = (0..35).map(|place| place as f32).collect();
        crate::io::npy::write(&file, 7, 5, &values).unwrap();
        let stream = Stream::open(file.path(), false, u64::MAX).unwrap().unwrap();
        // Blocks from each of these lines to the next.
        let pass = |cuts: &[usize]| {
            let blocks: Vec<Range<usize>> = cuts.windows(2).map(|ends| ends[0]..ends[1]).collect();
            let mut read = Vec::new();
            let taken = stream.pass::<f32>(&blocks, |_, block| {
                let Matrix::Dense(dense) = &block else { unreachable!("dense") };
                let Values::Real(reals) = dense.values() else { unreachable!("reals") };
                read.extend_from_slice(reals);
                Ok(Some(block))
            });
            taken.unwrap();
            (read, stream.spare.lock().unwrap().len())
        };
        for (cuts, kept) in [
            (&[0][..], 0),
            (&[0, 7], 1),
            (&[0, 3, 6, 7], 2),
            (&[0, 7], 2),
            (&[6, 7], 2),
            (&[0, 2, 4, 6, 7], 2),
        ] {
            let lines = cuts[0] * 5..cuts[cuts.len() - 1] * 5;
            assert_eq!(pass(cuts), (values[lines].to_vec(), kept), "{cuts:?}");
        }
        assert!(stream.take_spare::<f64>().is_empty());
        assert_eq!(pass(&[0, 4, 7]), (values, 2));
    }
}
