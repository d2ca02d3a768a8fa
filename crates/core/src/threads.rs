//! The threads of one rank, passed to whatever may use them.

use rayon::prelude::*;

use crate::error::{Error, Result};

/// A rank's own threads. What is computed with them never depends on how many they are: work is cut into
/// pieces by size alone, and pieces are combined in their order.
pub struct Threads {
    pool: Option<rayon::ThreadPool>,
}

impl Threads {
    /// `count` threads; one means the calling thread itself.
    pub fn new(count: usize) -> Result<Self> {
        if count <= 1 {
            return Ok(Threads { pool: None });
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(count).build().map_err(|error| {
            Error::parameter("--threads", format!("cannot start {count} threads ({error}); ask for fewer"))
        })?;
        Ok(Threads { pool: Some(pool) })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.pool.as_ref().map_or(1, |pool| pool.current_num_threads())
    }

    /// Applies `work` to every piece, with scratch memory made by `init` once a thread, and returns the results
    /// in the order of the pieces.
    pub fn map<P: Send, S, R: Send>(
        &self,
        pieces: Vec<P>,
        init: impl Fn() -> S + Sync + Send,
        work: impl Fn(&mut S, P) -> R + Sync + Send,
    ) -> Vec<R> {
        match &self.pool {
            None => {
                let mut scratch = init();
                pieces.into_iter().map(|piece| work(&mut scratch, piece)).collect()
            }
            Some(pool) => pool.install(|| pieces.into_par_iter().map_init(init, work).collect()),
        }
    }
}
