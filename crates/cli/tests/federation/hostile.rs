//! Connections of strangers to the coordinator's port during a run.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use crate::disturbed;
use crate::trial::*;

/// Invalid TLS, silent connections, and hundreds of connections at once: counted, rarely logged, and without
/// effect.
#[test]
fn strangers_do_not_disturb_a_run() {
    let trial = Trial::new(3, &["--rounds", "8"]);
    let mut coordinator = trial.coordinator(&[]);
    let mut others = [trial.party(1), trial.party(3)];
    let mut pausing = Process::start(&mut disturbed::command(&trial, 2, None, Some("upload,4,pause")));
    pausing.wait_for("trial: pauses");
    let address = format!("127.0.0.1:{}", trial.port);
    let silent: Vec<TcpStream> = (0..20).map(|_| connect(&address).unwrap()).collect();
    for round in 0..200u32 {
        let mut stream = connect(&address).unwrap();
        let bytes: Vec<u8> = match round % 4 {
            0 => b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
            1 => b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
            // The head of a handshake with a length that nothing follows.
            2 => vec![0x16, 3, 1, 0xff, 0xff, 1, 0, 0xff, 0xff],
            _ => (0..5000)
                .map(|place: u32| (place.wrapping_mul(2_654_435_761) >> 13) as u8 ^ round as u8)
                .collect(),
        };
        // The other side may close the connection at any time.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read(&mut [0; 100]);
    }
    let flood: Vec<TcpStream> = (0..300).filter_map(|_| connect(&address).ok()).collect();
    coordinator.wait_for("rejected too many connections");
    drop((silent, flood));
    pausing.succeed();
    others.iter_mut().for_each(Process::succeed);
    coordinator.succeed();
    assert_eq!(trial.record("result")["epochs"], 1, "{}", coordinator.text());
    // Hundreds of rejections are a few lines.
    let said = coordinator.count("rejected");
    assert!((1..40).contains(&said), "{}", coordinator.text());
}
