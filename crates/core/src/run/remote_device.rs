//! A device with its own memory, for tests: it works on copies only, and its factors reach the host only when they
//! are pulled. A run on it shows that the host's rows are not read while the device has newer ones.

use std::any::Any;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::driver::{Begin, Job, Run};
use super::links::Groups;
use super::method::Blocks;
use super::{Algorithm, Directive, Settings};
use crate::comm::Alone;
use crate::device::{
    BlockEntries, Cpu, Device, Entries, Loaded, LossAt, LossPart, Moving, Resident, Updated,
};
use crate::device::{MovingRows, update_tiles};
use crate::error::Result;
use crate::grid::Grid;
use crate::kernels::Product;
use crate::matrix::{Dense, Matrix, Order, Values};
use crate::objective::{HalfStep, Objective};
use crate::partition::{Block, shards};
use crate::threads::Threads;

struct Remote<'t> {
    threads: &'t Threads,
    uploads: AtomicUsize,
    downloads: AtomicUsize,
}

impl Remote<'_> {
    fn copy<'r>(&self, rows: &'r mut Resident<f64>) -> &'r mut Vec<f64> {
        let upload = |host: &[f64]| -> Result<Box<dyn Any + Send>> {
            self.uploads.fetch_add(1, Ordering::Relaxed);
            Ok(Box::new(host.to_vec()))
        };
        rows.remote_or(upload).unwrap().downcast_mut().unwrap()
    }

    fn block<'b>(loaded: &'b Loaded<'_, f64>) -> &'b Block<f64> {
        loaded.remote.as_ref().and_then(|block| block.downcast_ref()).unwrap()
    }
}

impl Device<f64> for Remote<'_> {
    fn load<'a>(&self, block: &'a Block<f64>) -> Result<Loaded<'a, f64>> {
        Ok(Loaded { host: block, remote: Some(Box::new(block.clone())) })
    }

    fn pull(&self, rows: &mut Resident<f64>) -> Result<()> {
        rows.refresh(|remote, host| {
            self.downloads.fetch_add(1, Ordering::Relaxed);
            host.copy_from_slice(remote.downcast_ref::<Vec<f64>>().unwrap());
            Ok(())
        })
    }

    fn summarize(
        &self,
        objective: &dyn Objective<f64>,
        rows: &mut Resident<f64>,
        k: usize,
    ) -> Result<Vec<f64>> {
        Ok(objective.summarize(self.threads, self.copy(rows), k))
    }

    fn summarize_exactly(
        &self,
        objective: &dyn Objective<f64>,
        rows: &mut Resident<f64>,
        k: usize,
    ) -> Result<Vec<f64>> {
        Ok(objective.summarize_exactly(self.threads, self.copy(rows), k))
    }

    fn multiply(&self, _: &Loaded<'_, f64>, _: &mut Resident<f64>, _: usize) -> Result<Vec<f64>> {
        unreachable!("one process has whole rows")
    }

    fn half_step(
        &self,
        objective: &dyn Objective<f64>,
        step: &HalfStep<'_, f64>,
        entries: Entries<'_, f64>,
        moving: Moving<'_, f64>,
    ) -> Result<Updated> {
        let Entries::Block(BlockEntries { block, columns, fixed }) = entries else {
            unreachable!("one process has whole rows")
        };
        let product = Product::new(self.threads, Self::block(block), columns, self.copy(fixed), step.k);
        let Moving { rows, momentum } = moving;
        let mut momentum = momentum.map(|momentum| (momentum.weight, momentum.last));
        let last = momentum.as_mut().map(|(weight, last)| (*weight, &mut self.copy(last)[..]));
        let moved = MovingRows { factor: self.copy(rows), momentum: last };
        let updated = update_tiles(self.threads, objective, step, &product, moved);
        rows.moved_remotely();
        if let Some((_, last)) = momentum {
            last.moved_remotely();
        }
        Ok(updated)
    }

    fn losses(
        &self,
        objective: &dyn Objective<f64>,
        part: LossPart<'_, f64>,
        k: usize,
    ) -> Result<Option<Vec<f64>>> {
        let threads = self.threads;
        Ok(match part {
            LossPart::Entries(LossAt { block, x, fixed }) => {
                Some(objective.entry_losses(threads, Self::block(block), self.copy(x), self.copy(fixed), k))
            }
            LossPart::Model(x, summary) => Some(objective.model_losses(threads, self.copy(x), summary, k)),
            LossPart::Cancelled(error, LossAt { block, x, fixed }) => {
                let (block, x, fixed) = (Self::block(block), self.copy(x), self.copy(fixed));
                objective.losses_where_cancelled(threads, error, block, x, fixed, k)
            }
        })
    }
}

fn run(device: &dyn Device<f64>, threads: &Threads, settings: &Settings) -> (Vec<f64>, Vec<f64>, f64) {
    let numbers: Vec<f64> = (0..120 * 40).map(|place| ((place * 7919) % 101) as f64 / 10.0).collect();
    let matrix = Matrix::Dense(Dense::new(120, 40, Order::RowMajor, Values::Real(numbers.into())));
    let shard = &shards(matrix, Grid::ONE, settings.access()).remove(0);
    let groups = &Groups::new(&Alone, shard.place).unwrap();
    let blocks = &Blocks::load(device, shard).unwrap();
    let job = Job { shard, blocks, streamed: None, groups, threads, device };
    let run = Run::new(job, settings, 1, Begin::Init).unwrap();
    let watch = &mut |_: &super::log::RunLog| Directive { save: true, ..Directive::default() };
    let outcome = run.run_on(watch, &mut |_, _, _| Ok(())).unwrap();
    (outcome.u, outcome.v, outcome.report.relative_error)
}

#[test]
fn a_device_with_its_own_memory_gives_the_same_bits() {
    let threads = &Threads::new(2).unwrap();
    for &algorithm in Algorithm::ALL {
        for l1_u in [0.0, 0.01] {
            let settings = Settings { algorithm, l1_u, iterations: 12, tolerance: 0.0, ..Settings::new(4) };
            let remote = Remote { threads, uploads: AtomicUsize::new(0), downloads: AtomicUsize::new(0) };
            let (here, there) = (run(&Cpu { threads }, threads, &settings), run(&remote, threads, &settings));
            assert!(here == there, "{algorithm}, penalty {l1_u}");
            assert!(remote.uploads.into_inner() > 0 && remote.downloads.into_inner() > 0);
        }
    }
}
