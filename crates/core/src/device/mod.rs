//! Where blocks of M and factors live, and where half steps run. Communication stays on the host.
//!
//! A device is one file. [`Cpu`] works in the host's memory with its threads; another device keeps its own copies
//! in [`Loaded`] blocks and [`Resident`] factors, and [`Device::pull`] copies rows to the host when they are needed
//! there.

mod cpu;

use std::any::Any;

use crate::Real;
use crate::error::Result;
use crate::kernels::{Columns, Product};
use crate::objective::{HalfStep, Objective};
use crate::partition::Block;

pub use cpu::{Cpu, MovingRows, Updated, update_tiles};

/// Rows of a factor: on the host, and where the device keeps them. Writing to one side makes the other stale, as in
/// the dual views of Kokkos.
pub struct Resident<T> {
    host: Vec<T>,
    remote: Option<Box<dyn Any + Send>>,
    /// Whether only the device has the present rows.
    stale: bool,
}

impl<T: Real> Resident<T> {
    /// Creates rows that are on the host.
    pub fn new(host: Vec<T>) -> Self {
        Resident { host, remote: None, stale: false }
    }

    /// The rows. If the device has moved them, the caller pulls them first.
    pub fn host(&self) -> &[T] {
        assert!(!self.stale, "rows are pulled before they are read");
        &self.host
    }

    /// The rows for changes, which make the device's copy stale.
    pub fn host_mut(&mut self) -> &mut [T] {
        assert!(!self.stale, "rows are pulled before they are changed");
        self.remote = None;
        &mut self.host
    }

    /// Takes the rows out.
    pub fn into_host(self) -> Vec<T> {
        assert!(!self.stale, "rows are pulled before they are taken");
        self.host
    }

    /// Numbers in it.
    pub fn len(&self) -> usize {
        self.host.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.host.is_empty()
    }

    /// The device's copy, created by `upload` if there is none.
    pub fn remote_or(
        &mut self,
        upload: impl FnOnce(&[T]) -> Result<Box<dyn Any + Send>>,
    ) -> Result<&mut dyn Any> {
        let remote = match self.remote.take() {
            Some(remote) => remote,
            None => upload(&self.host)?,
        };
        Ok(&mut **self.remote.insert(remote))
    }

    /// Marks the device's copy as the current one.
    pub fn moved_remotely(&mut self) {
        self.stale = true;
    }

    /// Copies the current rows from the device by `download`, if only the device has them.
    pub fn refresh(&mut self, download: impl FnOnce(&dyn Any, &mut [T]) -> Result<()>) -> Result<()> {
        if let (true, Some(remote)) = (self.stale, &self.remote) {
            download(&**remote, &mut self.host)?;
            self.stale = false;
        }
        Ok(())
    }
}

impl<T: Clone> Clone for Resident<T> {
    fn clone(&self) -> Self {
        assert!(!self.stale, "rows are pulled before they are copied");
        Resident { host: self.host.clone(), remote: None, stale: false }
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Resident<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resident").field("rows", &self.host).field("stale", &self.stale).finish()
    }
}

/// A block of M that a device can work on.
pub struct Loaded<'a, T> {
    /// The block on the host.
    pub host: &'a Block<T>,
    /// The device's copy of the block, if it keeps one.
    pub remote: Option<Box<dyn Any + Send + Sync>>,
}

/// The input of a half step.
pub enum Entries<'a, T: Real> {
    /// A block of M and the fixed factor.
    Block(BlockEntries<'a, T>),
    /// Products that were summed over processes, stored by row.
    Products(Vec<T>),
}

/// Some columns of a block of M.
pub struct BlockEntries<'a, T> {
    /// The block.
    pub block: &'a Loaded<'a, T>,
    /// The selected columns.
    pub columns: Columns<'a>,
    /// The rows of the fixed factor for these columns.
    pub fixed: &'a mut Resident<T>,
}

/// A factor during an update.
pub struct Moving<'a, T> {
    /// X: the start of the solver, and of the next one afterwards.
    pub rows: &'a mut Resident<T>,
    /// The momentum and the solver's last result, if momentum is used.
    pub momentum: Option<MovingMomentum<'a, T>>,
}

/// The momentum of a half step: the new result X' replaces `last`, X, and the factor becomes max{X' + weight (X' −
/// X), 0}.
pub struct MovingMomentum<'a, T> {
    /// β.
    pub weight: f64,
    /// X.
    pub last: &'a mut Resident<T>,
}

impl<'a, T> Moving<'a, T> {
    /// A factor without momentum.
    pub fn plain(rows: &'a mut Resident<T>) -> Self {
        Moving { rows, momentum: None }
    }
}

/// A part of the loss of every row of X.
pub enum LossPart<'a, T: Real> {
    /// [`Objective::entry_losses`].
    Entries(LossAt<'a, T>),
    /// [`Objective::model_losses`] of X and the summary of the fixed factor.
    Model(&'a mut Resident<T>, &'a [f64]),
    /// [`Objective::losses_where_cancelled`] at this relative error.
    Cancelled(f64, LossAt<'a, T>),
}

/// The two sides that a loss compares.
pub struct LossAt<'a, T> {
    /// The entries of M.
    pub block: &'a Loaded<'a, T>,
    /// The rows of the factor for the block's rows.
    pub x: &'a mut Resident<T>,
    /// The rows of the other factor for its columns.
    pub fixed: &'a mut Resident<T>,
}

/// A device, on which blocks and factors are stored and half steps run.
pub trait Device<T: Real>: Send + Sync {
    /// Makes a block ready for half steps.
    fn load<'a>(&self, block: &'a Block<T>) -> Result<Loaded<'a, T>>;

    /// Copies rows to the host, if only the device has them.
    fn pull(&self, rows: &mut Resident<T>) -> Result<()>;

    /// [`Objective::summarize`].
    fn summarize(&self, objective: &dyn Objective<T>, rows: &mut Resident<T>, k: usize) -> Result<Vec<f64>>;

    /// [`Objective::summarize_exactly`].
    fn summarize_exactly(
        &self,
        objective: &dyn Objective<T>,
        rows: &mut Resident<T>,
        k: usize,
    ) -> Result<Vec<f64>>;

    /// A block times the fixed factor, for processes that have parts of the columns each; on the host.
    fn multiply(&self, block: &Loaded<'_, T>, fixed: &mut Resident<T>, k: usize) -> Result<Vec<T>>;

    /// Moves a factor.
    fn half_step(
        &self,
        objective: &dyn Objective<T>,
        step: &HalfStep<'_, T>,
        entries: Entries<'_, T>,
        moving: Moving<'_, T>,
    ) -> Result<Updated>;

    /// A part of the losses of all rows; `None` if the objective has no such part.
    fn losses(
        &self,
        objective: &dyn Objective<T>,
        part: LossPart<'_, T>,
        k: usize,
    ) -> Result<Option<Vec<f64>>>;
}

/// The input of a half step on the host.
fn product_of<'a, T: Real>(
    threads: &crate::threads::Threads,
    entries: Entries<'a, T>,
    k: usize,
) -> Product<'a, T> {
    match entries {
        Entries::Block(BlockEntries { block, columns, fixed }) => {
            Product::new(threads, block.host, columns, fixed.host(), k)
        }
        Entries::Products(products) => Product::ready(products, k),
    }
}
