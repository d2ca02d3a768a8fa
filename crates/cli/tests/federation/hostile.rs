//! Unauthenticated connections to the coordinator's port during a run.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

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
            // The head of a handshake whose announced content never follows.
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
    coordinator.wait_for("closed to make room for another");
    drop((silent, flood));
    pausing.succeed();
    others.iter_mut().for_each(Process::succeed);
    coordinator.succeed();
    assert_eq!(trial.record("result")["epochs"], 1, "{}", coordinator.text());
    // Hundreds of rejections are a few lines.
    let said = coordinator.count("rejected");
    assert!((1..40).contains(&said), "{}", coordinator.text());
}

/// How unauthenticated clients occupy the coordinator.
#[derive(Clone, Copy, Debug)]
enum Flood {
    /// They send nothing.
    Silent,
    /// They send the first bytes of a handshake one by one.
    Slow,
}

/// Keeps opening connections from an address, and holds as many as possible.
fn flood(kind: Flood, address: String, stop: Arc<AtomicBool>) -> usize {
    let mut held: VecDeque<TcpStream> = VecDeque::new();
    let mut opened = 0;
    while !stop.load(Ordering::Relaxed) {
        if let Ok(mut stream) = connect(&address) {
            if let Flood::Slow = kind {
                let _ = stream.write_all(&[0x16, 3, 1]);
            }
            opened += 1;
            held.push_back(stream);
        }
        // Otherwise both sides would run out of files; the oldest connections were evicted first anyway.
        while held.len() > 100 {
            held.pop_front();
        }
        std::thread::sleep(match kind {
            Flood::Silent => Duration::from_millis(2),
            Flood::Slow => Duration::from_millis(10),
        });
    }
    opened
}

/// Hundreds of connections without certificates from the parties' own address, before and while all parties
/// connect.
#[test]
fn unauthenticated_connections_cannot_lock_parties_out() {
    for kind in [Flood::Silent, Flood::Slow] {
        let trial = Trial::new(3, &["--rounds", "4"]);
        let mut coordinator = trial.coordinator(&[]);
        let address = format!("127.0.0.1:{}", trial.port);
        let held: Vec<TcpStream> = (0..150).map(|_| connect(&address).unwrap()).collect();
        let stop = Arc::new(AtomicBool::new(false));
        let flooding = {
            let (address, stop) = (address.clone(), stop.clone());
            std::thread::spawn(move || flood(kind, address, stop))
        };
        coordinator.wait_for("closed to make room for another");
        trial.all_parties().iter_mut().for_each(Process::succeed);
        coordinator.succeed();
        stop.store(true, Ordering::Relaxed);
        let opened = flooding.join().unwrap();
        drop(held);
        assert!(opened > 0, "{kind:?}");
        assert_eq!(trial.record("result")["epochs"], 1, "{}", coordinator.text());
        assert!(coordinator.count("rejected") < 40, "{}", coordinator.text());
    }
}

/// Silent connections without certificates are closed when their time is up, and not before.
#[test]
fn a_handshake_takes_three_seconds_at_most() {
    let trial = Trial::new(3, &["--rounds", "4"]);
    let coordinator = trial.coordinator(&[]);
    let begin = Instant::now();
    let mut silent: Vec<TcpStream> =
        (0..20).map(|_| connect(&format!("127.0.0.1:{}", trial.port)).unwrap()).collect();
    for stream in &mut silent {
        assert_eq!(stream.read(&mut [0; 9]).unwrap(), 0);
    }
    assert!(begin.elapsed() >= Duration::from_secs_f64(2.9), "{:?}", begin.elapsed());
    coordinator.wait_for("rejected a handshake that takes too long");
}
