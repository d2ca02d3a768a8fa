//! Three parties and a coordinator in one process, connected over the local network without certificates.
//!
//! Each party has its own rows of the digits. All end with the same V, and each with its own rows of U.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::thread;

use partwise::{Coordinator, Matrix, Party};

const NAMES: [&str; 3] = ["amsterdam", "berlin", "cracow"];

type Failure = Box<dyn std::error::Error + Send + Sync>;

pub(crate) fn main() -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let address = free_address().ok_or("no port is free")?;
    configure(folder.path(), &address)?;

    let all = partwise::read("data/digits.npy")?;
    let file = folder.path().join("federation.toml");
    let coordinator =
        thread::spawn(move || Ok::<_, Failure>(Coordinator::from_file(file)?.insecure(true).run()?));
    let parties: Vec<_> = (0..3)
        .map(|party| {
            let records = records(&all, party)?;
            let file = folder.path().join(NAMES[party]).join("party.toml");
            Ok::<_, Failure>(thread::spawn(move || {
                let party = Party::from_file(file)?.insecure(true).threads(1);
                Ok::<_, Failure>(party.join(&records, "the first release of the digits")?)
            }))
        })
        .collect::<Result<_, _>>()?;

    let joined = parties.into_iter().map(|party| party.join().map_err(|_| "a party panicked")?);
    let joined: Vec<_> = joined.collect::<Result<_, Failure>>()?;
    let outcome = coordinator.join().map_err(|_| "the coordinator panicked")??;
    for (name, party) in NAMES.iter().zip(&joined) {
        println!(
            "{name}: U is {} x {}, relative error {:.3}",
            party.u.rows(),
            party.u.cols(),
            party.own_relative_error
        );
        assert_eq!(party.v, joined[0].v);
    }
    println!(
        "all: V is {} x {}, relative error {:.3}",
        outcome.v.rows(),
        outcome.v.cols(),
        outcome.relative_error
    );
    Ok(())
}

/// A port that is currently free, outside the range that the system assigns to connections.
fn free_address() -> Option<String> {
    let first = 10_000 + std::process::id() % 20_000;
    let mut addresses = (first..32_000).map(|port| format!("127.0.0.1:{port}"));
    addresses.find(|address| TcpListener::bind(address).is_ok())
}

/// The records of a party: a third of the rows.
fn records(all: &Matrix<'_>, party: usize) -> partwise::Result<Matrix<'static>> {
    let third = all.rows() / 3;
    let entries = all.to_vec::<f32>()[party * third * all.cols()..][..third * all.cols()].to_vec();
    Matrix::from_vec(third, all.cols(), entries)
}

/// Configuration of each end. In a real federation, `partwise coordinator init` and `partwise party init`
/// create it.
fn configure(folder: &Path, address: &str) -> Result<(), Failure> {
    let identities = NAMES.map(|name| Party::make_identity(folder.join(name), "demo", name));
    let identities: Vec<String> = identities.into_iter().collect::<Result<_, _>>()?;
    let members = NAMES.iter().zip(&identities);
    let roster: String = members
        .clone()
        .map(|(name, identity)| format!("\n[[party]]\nname = \"{name}\"\nidentity = \"{identity}\"\n"))
        .collect();
    let method = "[method]\nprotocol = \"syn-sd\"\nrank = 6\nrounds = 20\n";
    fs::write(
        folder.join("federation.toml"),
        format!("federation = \"demo\"\naddress = \"{address}\"\n{method}{roster}"),
    )?;
    for name in NAMES {
        let peers: String = members
            .clone()
            .filter(|(other, _)| **other != name)
            .map(|(other, identity)| format!("{other} = \"{identity}\"\n"))
            .collect();
        let text = format!(
            "name = \"{name}\"\nfederation = \"demo\"\ncoordinator = \"{address}\"\n[peers]\n{peers}"
        );
        fs::write(folder.join(name).join("party.toml"), text)?;
    }
    Ok(())
}
