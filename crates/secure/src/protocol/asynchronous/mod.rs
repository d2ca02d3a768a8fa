//! Asyn-SD and Asyn-SSD-V (Alg. `asyn_server`, `asyn_client_SD`). Clients are groups of parties, whose copies of U are
//! summed before the server sees them; with plain aggregation every party is a client of its own.

mod answer;
mod server;
#[cfg(test)]
mod tests;

use partwise::Real;
use partwise::run::Damping;
use partwise::sketch::Distribution;

use super::{
    Definition, Diagonals, Finish, Local, OpenedDiagonal, PartyRun, Settings, Stop, first_diagonal,
    first_diagonal_sum, matrix,
};
use crate::error::Result;
use crate::fixed::{Part, PartShape};
use crate::session::{ALL, Session, Total};
use crate::sum::{SumKind, SumShape};
use answer::ServerAnswer;
pub use server::Server;

/// `asyn-sd` and `asyn-ssd-v`.
pub(super) struct Asynchronous {
    pub sketches_records: bool,
}

impl Definition for Asynchronous {
    fn is_asynchronous(&self) -> bool {
        true
    }

    fn sketches_records(&self) -> bool {
        self.sketches_records
    }

    fn sums(&self, settings: &Settings, features: usize) -> Vec<SumShape> {
        let parts = vec![PartShape::matrix(features, settings.rank), PartShape::scalars(2)];
        let end = SumShape::scalars(SumKind::End, 1);
        vec![first_diagonal_sum(), SumShape::new(SumKind::U, parts), end]
    }

    /// A party: T iterations, then its U goes out; while the group completes it computes on. Steps on U are proximal, as
    /// in the synchronous methods, and with the same weight at all parties.
    fn run<T: Real>(&self, run: &mut PartyRun<'_, '_, T>) -> Result<Finish> {
        let Diagonals { sum, parties } = first_diagonal(run)?;
        let PartyRun { settings, local, session, group, gate, norm, .. } = run;
        let mut diagonal = sum / parties as f64;
        let mut steps = Steps {
            records: local.records_sketch(settings, session.me()),
            damping: settings.damping(diagonal),
            iteration: 0,
        };
        let mut rounds = 0;
        let mut server = OwnServer { server: Server::new(settings, &session.groups()), group: *group };
        loop {
            let mut own_error = 0.0;
            for inner in 0..settings.inner {
                let cross = steps.take(local, session, diagonal);
                if inner == 0 {
                    own_error = cross;
                }
            }
            gate.before_upload(local, session);
            let scalars = [own_error, local.diagonal()];
            session.start(*group, SumKind::U, parts(local, settings.rank, scalars))?;
            // Not for ever: the longer a party computes by itself, the less its V fits the U that it will be sent.
            let mut total = session.poll()?;
            for _ in 0..settings.inner {
                if total.is_none() {
                    steps.take(local, session, diagonal);
                    total = session.poll()?;
                }
            }
            let total = match total {
                Some(total) => total,
                None => session.wait()?,
            };
            rounds += 1;
            let answer = server.after(&total, session);
            answer.give(local, session)?;
            diagonal = answer.diagonal;
            gate.check_u(local, SumKind::U, session)?;
            let sum = diagonal * session.members(ALL) as f64;
            gate.check_diagonal(local, OpenedDiagonal { sum, norm: *norm }, session)?;
            let scalars = [total.parts[1][0], total.parts[1][1]];
            session.expect(*group, SumKind::U, &parts(local, settings.rank, scalars));
            if answer.stop {
                break;
            }
            if session.most_rounds().is_some_and(|most| rounds >= most) {
                return Err(
                    session.dishonest("no end to the rounds, though all that were agreed on are done")
                );
            }
        }
        take_last_u(local, session, &mut server)?;
        Ok(Finish { rounds, stopped_by: Stop::Rounds })
    }
}

/// The server as a party computes it: from all sums of all groups, in the order in which they are applied.
struct OwnServer {
    server: Server,
    group: u8,
}

impl OwnServer {
    /// What follows from the sums up to this one. Without masks it is what the coordinator says.
    fn after(&mut self, total: &Total, session: &mut Session<'_>) -> ServerAnswer {
        match &total.answer {
            Some(words) => ServerAnswer::read(words),
            None => {
                session.applied().iter().for_each(|sum| self.server.apply(sum, 0.0));
                self.server.state_of(self.group)
            }
        }
    }
}

/// All take the server's last U, which a party that is missing only now has influenced. (With a known range there
/// is nothing to agree on first.)
fn take_last_u<T: Real>(
    local: &mut Local<T>,
    session: &mut Session<'_>,
    server: &mut OwnServer,
) -> Result<()> {
    let incomplete = session.incomplete;
    let one = vec![Part::scalars(&[1.0])];
    session.expect(ALL, SumKind::End, &one);
    let total = session.sum(ALL, SumKind::End, one)?;
    session.incomplete = incomplete;
    let answer = server.after(&total, session);
    if total.answer.is_none() && !server.server.is_done() {
        return Err(session.dishonest("an end before all groups are done"));
    }
    answer.give(local, session)
}

/// What a party sends: its U, the error that it had with the U that it was sent, and the diagonal of its V_rᵀV_r.
fn parts<T: Real>(local: &Local<T>, k: usize, scalars: [f64; 2]) -> Vec<Part> {
    vec![matrix(&local.u, k), Part::scalars(&scalars)]
}

struct Steps {
    records: Option<Distribution>,
    damping: Damping,
    iteration: usize,
}

impl Steps {
    /// V, then U; returns the error between the two.
    fn take<T: Real>(&mut self, local: &mut Local<T>, session: &mut Session<'_>, diagonal: f64) -> f64 {
        let cross = local.sweep_v();
        let error = local.error_from(cross);
        let solver = self.damping.next::<T>(self.iteration, diagonal, 0.0);
        match &self.records {
            Some(sketch) => local.sketched_u(&*solver, sketch, self.iteration),
            None => local.own_step_u(&*solver),
        }
        self.iteration += 1;
        session.work(local.take_work());
        error
    }
}
