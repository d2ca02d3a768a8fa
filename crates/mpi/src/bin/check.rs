//! `mpirun -n N partwise-mpi-check` tests whether this MPI installation does everything that Partwise needs. With
//! `--large` it also sends messages of more than 2^31 bytes, which takes about 10 GiB per process.

use std::process::ExitCode;

use partwise::comm::{Comm, Metered, Tag, conformance};
use partwise::error::{Error, Result};
use partwise_mpi::{Session, Sums, abort};

fn main() -> ExitCode {
    let session = match Session::begin() {
        Ok(session) => session,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    match run(&session, std::env::args().any(|word| word == "--large")) {
        Ok(size) => {
            if size.0 == 0 {
                println!("{} ranks conform", size.1);
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            abort(2)
        }
    }
}

/// Rank and number of ranks, if everything conforms.
fn run(session: &Session, large: bool) -> Result<(usize, usize)> {
    for sums in [Sums::Ordered, Sums::Native] {
        let ordered = sums == Sums::Ordered;
        conformance::check(&session.comm(sums)?, ordered)?;
        conformance::check(&Metered::new(&session.comm(sums)?), ordered)?;
        // 64 splits some messages exactly, 1000 none of those in the suite.
        for most in [1000, 64] {
            conformance::check(&session.comm(sums)?.with_most(most), ordered)?;
        }
    }
    let comm = session.comm(Sums::Native)?;
    if large {
        beyond_31_bits(&comm)?;
    }
    Ok((comm.rank(), comm.size()))
}

fn beyond_31_bits(comm: &dyn Comm) -> Result<()> {
    let length = (1usize << 31) + 12_345;
    let byte = |place: usize| (place % 253) as u8;
    let right = |message: &[u8]| {
        message.len() == length && message.iter().enumerate().all(|(place, &got)| got == byte(place))
    };
    let failed = |what: &str| Error::Transport {
        rank: comm.rank(),
        call: "a message of more than 2^31 bytes",
        problem: format!("{what} is not what was sent"),
    };
    let given: Vec<u8> = if comm.rank() == 0 { (0..length).map(byte).collect() } else { Vec::new() };
    let got = comm.broadcast(given)?;
    if !right(&got) {
        return Err(failed("the broadcast"));
    }
    match comm.rank() {
        0 if comm.size() > 1 => comm.send(1, Tag::Gather, got)?,
        1 if !right(&comm.receive(0, Tag::Gather)?) => return Err(failed("the message")),
        _ => {}
    }
    Ok(())
}
