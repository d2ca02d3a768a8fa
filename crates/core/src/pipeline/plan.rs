//! The second step: decides what will be done, as a value. Only plans can be run.

use super::choice::{Choice, choose, choose_on};
use super::open::{Data, Facts, Opened};
use super::request::{Finish, Request};
use crate::Real;
use crate::comm::agree;
use crate::error::{Error, Result};
use crate::grid::Grid;
use crate::io::Presence;
use crate::partition::Access;
use crate::run::{
    self, Algorithm, Factors, Footprint, Layout, Machine, MatrixSize, RunSettings, Snapshot, StartFrom,
};

/// The starting point of a run; without either, as the settings say.
#[derive(Clone, Debug)]
pub struct Start<T> {
    /// These factors, whose components keep their places.
    pub factors: Option<Factors<T>>,
    /// This snapshot of a run with the same start.
    pub snapshot: Option<Snapshot<T>>,
}

impl<T> Default for Start<T> {
    fn default() -> Self {
        Start { factors: None, snapshot: None }
    }
}

impl<T> Start<T> {
    pub(super) fn from(&self) -> Option<StartFrom<'_, T>> {
        let factors = self.factors.as_ref().map(StartFrom::Factors);
        self.snapshot.as_ref().map(StartFrom::Snapshot).or(factors)
    }
}

/// The decisions about a run.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// The final settings: with the choice of `auto`, and adapted to a streamed matrix.
    pub settings: RunSettings,
    /// The requested method.
    pub asked: Algorithm,
    /// The choice of `auto` for the network.
    pub choice: Option<Choice>,
    /// The arrangement of workers or ranks.
    pub grid: Grid,
    /// Workers and threads.
    pub machine: Machine,
    /// The memory needed in this process.
    pub memory: Footprint,
    /// The memory limit, if there is one.
    pub memory_limit: Option<u64>,
    pub(super) finish: Finish,
}

impl RunPlan {
    /// The method in words, with the reason if the network decided.
    pub fn describe(&self, plan: &str) -> String {
        self.choice.as_ref().map_or_else(|| plan.into(), |choice| choice.describe(plan))
    }
}

/// A matrix, the decisions and the start: everything that a run needs.
pub struct Planned<'a, T> {
    pub(super) facts: Facts,
    pub(super) plan: RunPlan,
    pub(super) data: Data<'a, T>,
    pub(super) start: Start<T>,
}

impl<T> Planned<'_, T> {
    /// The plan.
    pub fn plan(&self) -> &RunPlan {
        &self.plan
    }

    /// What is known about the matrix.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The iteration from which the run resumes, if it does.
    pub fn resumed_from(&self) -> Option<usize>
    where
        T: Real,
    {
        self.start.snapshot.as_ref().map(Snapshot::iteration)
    }
}

/// Plans a run: chooses method and grid, and checks the start. Every rank calls this.
pub fn plan<'a, T: Real>(opened: Opened<'a, T>, start: Start<T>) -> Result<Planned<'a, T>> {
    let Opened { facts, size, request, mut settings, mut data } = opened;
    let choice = match &data {
        Data::Streamed(_) | Data::Observed(_) => None,
        Data::Whole(_) | Data::Shared(_) => choose::<T>(&request, &settings, size),
        Data::Part(part) => choose_on::<T>(part.comm, &request, &settings, size)?,
    };
    if let Some(choice) = &choice {
        settings = settings.with(|settings| choice.apply(settings))?;
        data = refit(data, &request, &settings, size)?;
    }
    let checked = check(&facts, &request, &settings, &data, &start);
    match &data {
        Data::Part(part) => agree(part.comm, checked)?,
        _ => checked?,
    }
    let machine = request.resources.machine.clone();
    let grid = match &data {
        Data::Part(part) => part.shard.place.grid,
        _ => settings.grid(machine.grid, settings.shape(), machine.nodes)?,
    };
    let memory = match &data {
        Data::Whole(_) | Data::Shared(_) | Data::Observed(_) => {
            request.in_memory::<T>(size, settings.algorithm)
        }
        Data::Streamed(streamed) => streamed.footprint(),
        Data::Part(_) => {
            let layout = Layout::Node { grid, sketch: settings.sketch() };
            request.footprint::<T>(size, settings.algorithm, layout)
        }
    };
    let plan = RunPlan {
        asked: request.settings.algorithm,
        settings,
        choice,
        grid,
        machine,
        memory,
        memory_limit: request.resources.memory,
        finish: request.finish,
    };
    Ok(Planned { facts, plan, data, start })
}

/// The data as the chosen method needs them, if there is enough memory.
fn refit<'a, T: Real>(
    data: Data<'a, T>,
    request: &Request,
    settings: &RunSettings,
    size: MatrixSize,
) -> Result<Data<'a, T>> {
    match data {
        Data::Part(part) => Ok(Data::Part(part.read_again(request, settings)?)),
        Data::Whole(matrix) => {
            let needed = request.in_memory::<T>(size, settings.algorithm).most();
            request.check_available("the factorization", needed.saturating_sub(matrix.bytes()))?;
            Ok(Data::Whole(matrix))
        }
        data => Ok(data),
    }
}

/// Checks that need the method and the start.
fn check<T: Real>(
    facts: &Facts,
    request: &Request,
    settings: &RunSettings,
    data: &Data<'_, T>,
    start: &Start<T>,
) -> Result<()> {
    let streamed = if let Data::Streamed(streamed) = data { Some(streamed) } else { None };
    let auto = run::Plan::of(facts.rows, facts.cols, facts.stored, settings.rank);
    let gram = settings.access() == Access::Whole;
    if request.samples == Presence::Yes && (streamed.is_some() || auto.samples().is_empty() || !gram) {
        let problem = format!(
            "{} is sparse, small, streamed or not fitted by plain least squares, and auto does not start on samples of such \
             matrices; leave it out",
            facts.name
        );
        return Err(Error::parameter("samples", problem));
    }
    settings.check_start(start.from())?;
    if let Some(streamed) = streamed {
        settings.check_streamed(streamed, start.from().is_some())?;
    }
    match (request.finish, data) {
        (Finish::AsIterated, _)
        | (Finish::ExactRows, Data::Whole(_) | Data::Shared(_) | Data::Observed(_)) => Ok(()),
        (Finish::ExactRows, Data::Streamed(_) | Data::Part(_)) => {
            Err(Error::parameter("finish", "exact rows need the matrix in memory; turn them off"))
        }
    }
}
