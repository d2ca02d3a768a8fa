//! Keys and certificates: who is admitted and who is not.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::trial::*;

fn good(command: &mut Command) -> String {
    let (code, text) = output(command);
    assert_eq!(code, Some(0), "{text}");
    text
}

/// Every step of a real setup, up to a run.
#[test]
fn parties_make_their_own_keys_and_the_coordinator_signs() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let port = free_port();
    good(
        program().args(["coordinator", "init", "study", "--host", "fed.example.org", "--out"]).arg(path("c")),
    );
    let mut identities = Vec::new();
    for name in ["alpha", "beta", "gamma"] {
        let address = format!("127.0.0.1:{port}");
        let made = good(
            program()
                .args(["party", "init", name, "--federation", "study", "--coordinator", &address, "--out"])
                .arg(path(name)),
        );
        identities.push(made.split("sha256:").nth(1).unwrap().trim().to_string());
        let signed = good(
            program()
                .args(["coordinator", "sign"])
                .arg(path("c"))
                .arg(path(name).join(format!("{name}.request"))),
        );
        assert!(signed.contains(identities.last().unwrap()), "{signed}");
        fs::copy(path("c/issued").join(format!("{name}.crt")), path(name).join(format!("{name}.crt")))
            .unwrap();
        fs::copy(path("c/ca.crt"), path(name).join("ca.crt")).unwrap();
    }
    for (place, name) in ["alpha", "beta", "gamma"].iter().enumerate() {
        let file = path(name).join("party.toml");
        let text = fs::read_to_string(&file).unwrap();
        let mut text = text.replace("\n[policy]", "\nledgers = \"ledgers\"\n[policy]");
        for (other, identity) in
            ["alpha", "beta", "gamma"].iter().zip(&identities).filter(|(other, _)| *other != name)
        {
            text += &format!("{other} = \"sha256:{identity}\"\n");
        }
        fs::write(&file, text).unwrap();
        fs::write(path(name).join("data.csv"), records(place * 300, 300, 12)).unwrap();
    }
    let file = path("c/federation.toml");
    let text = fs::read_to_string(&file).unwrap();
    let text = text.replace("0.0.0.0:7400", &format!("127.0.0.1:{port}")).replace("rank = 8", "rank = 3");
    fs::write(&file, text.replace("rounds = 100", "rounds = 5")).unwrap();
    good(program().args(["coordinator", "run", "--check"]).arg(&file));
    // Secrets are readable by their owner only.
    #[cfg(unix)]
    for secret in ["c/ca.key", "c/coordinator.key", "alpha/alpha.key", "alpha/identity.key"] {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(path(secret)).unwrap().permissions().mode() & 0o77, 0, "{secret}");
    }
    let mut coordinator = Process::start(
        program()
            .args(["coordinator", "run", "--status-address", "none"])
            .arg(&file)
            .arg("--out")
            .arg(path("r")),
    );
    coordinator.wait_for("listening on");
    let join = |name: &str| {
        let mut command = program();
        command.args(["party", "join"]).arg(path(name).join("party.toml"));
        command.arg("--data").arg(path(name).join("data.csv"));
        command
    };
    let checked = good(join("alpha").arg("--check"));
    for word in ["configuration", "certificates", "clock", "connection", "policy", "data: 300 records of 12"]
    {
        assert!(checked.contains(word), "{checked}");
    }
    assert!(!checked.contains("lost"), "{checked}");
    // A check shares nothing and creates no ledger.
    assert!(!exists(&path("alpha/state")));
    let mut parties: Vec<Process> = ["alpha", "beta", "gamma"]
        .map(|name| Process::start(join(name).arg("--out").arg(path(&format!("r-{name}")))))
        .into();
    parties.iter_mut().for_each(Process::succeed);
    coordinator.succeed();

    // Nothing is overwritten, and requests are those of this federation.
    let (code, text) = output(program().args(["coordinator", "init", "study", "--out"]).arg(path("c")));
    assert_eq!(code, Some(2), "{text}");
    good(
        program()
            .args(["party", "init", "delta", "--federation", "other", "--coordinator", "x:1", "--out"])
            .arg(path("delta")),
    );
    let (code, text) =
        output(program().args(["coordinator", "sign"]).arg(path("c")).arg(path("delta/delta.request")));
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("is not a party of study"), "{text}");

    // A request with another party's identity, which is public; and one with the own identity under another party's
    // name.
    good(
        program()
            .args(["party", "init", "alpha", "--federation", "study", "--coordinator", "x:1", "--out"])
            .arg(path("thief")),
    );
    let read = |name: &str| fs::read_to_string(path(name)).unwrap();
    let (before, members) = (read("c/issued/alpha.crt"), read("c/federation.toml"));
    let (stolen, request) = (read("alpha/alpha.request"), read("thief/alpha.request"));
    let identity = stolen.find("partwise identity").unwrap();
    let end = request.find("partwise identity").unwrap();
    fs::write(path("forged.request"), format!("{}{}", &request[..end], &stolen[identity..])).unwrap();
    for (name, words) in [
        ("forged.request", "is not signed by its own identity key"),
        ("thief/alpha.request", "with another identity"),
    ] {
        let (code, text) = output(program().args(["coordinator", "sign"]).arg(path("c")).arg(path(name)));
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains(words), "{text}");
    }
    assert_eq!((read("c/issued/alpha.crt"), read("c/federation.toml")), (before, members));
}

/// Errors are found before anything is shared, on either side.
#[test]
fn a_check_finds_what_is_wrong() {
    let trial = Trial::new(3, &["--rounds", "4"]);
    let file = trial.path("trial/coordinator/federation.toml");
    let check = |party: usize| {
        let mut command = program();
        command.args(["party", "join", "--check"]).arg(trial.party_folder(party).join("party.toml"));
        command.arg("--data").arg(trial.path(&format!("data-{party}.csv")));
        output(&mut command)
    };
    let refused = |(code, text): (Option<i32>, String), words: &str| {
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains(words), "{words}: {text}");
    };
    refused(check(1), "start the coordinator");
    let coordinator = trial.coordinator(&[]);
    // An address that is in use.
    refused(output(program().args(["coordinator", "run", "--check"]).arg(&file)), "cannot listen");
    // A policy, data, and a certificate of another party.
    trial.edit("trial/party-1/party.toml", "maximum_rounds = 500", "maximum_rounds = 3");
    refused(check(1), "4 rounds");
    fs::write(trial.path("data-2.csv"), "a,b\n1,-2\n").unwrap();
    refused(check(2), "data-2.csv");
    for end in ["crt", "key"] {
        let from = trial.party_folder(2).join(format!("party-2.{end}"));
        fs::copy(from, trial.party_folder(3).join(format!("party-3.{end}"))).unwrap();
    }
    refused(check(3), "a certificate of one party and the name of another");
    coordinator.wait_for("rejected a certificate of one party and the name of another");
    fs::remove_file(trial.party_folder(3).join("party-3.key")).unwrap();
    refused(check(3), "party-3.key");
    assert!((1..=3).all(|party| !exists(&trial.party_folder(party).join("state"))));
    drop(coordinator);
    fs::copy(trial.party_folder(2).join("party-2.crt"), trial.path("trial/coordinator/coordinator.crt"))
        .unwrap();
    refused(output(program().args(["coordinator", "run", "--check"]).arg(&file)), "coordinator.crt");
}

/// Creates a certificate for party 1 with openssl, signed by the trial's authority.
fn reissue(trial: &Trial, name: &str, arguments: &[&str]) {
    let folder = trial.party_folder(1);
    let extension = folder.join("san.cnf");
    fs::write(&extension, format!("subjectAltName=DNS:{name}\nextendedKeyUsage=clientAuth\n")).unwrap();
    let key = folder.join("party-1.key");
    let request = folder.join("again.csr");
    let run = |command: &mut Command| {
        let (code, text) = output(command);
        assert_eq!(code, Some(0), "{text}");
    };
    run(Command::new("openssl")
        .args(["req", "-new", "-subj", "/CN=x", "-key"])
        .arg(&key)
        .arg("-out")
        .arg(&request));
    let centre = trial.path("trial/coordinator");
    run(Command::new("openssl")
        .args(["x509", "-req", "-in"])
        .arg(&request)
        .arg("-CA")
        .arg(centre.join("ca.crt"))
        .arg("-CAkey")
        .arg(centre.join("ca.key"))
        .arg("-extfile")
        .arg(&extension)
        .args(arguments)
        .arg("-out")
        .arg(folder.join("party-1.crt")));
}

fn has_openssl() -> bool {
    let there = Command::new("openssl").arg("version").output().is_ok();
    if !there {
        eprintln!("skipped: openssl is not installed");
    }
    there
}

fn fingerprint(certificate: &Path) -> String {
    let (_, text) = output(
        Command::new("openssl").args(["x509", "-noout", "-fingerprint", "-sha256", "-in"]).arg(certificate),
    );
    format!("sha256:{}", text.trim().split('=').nth(1).unwrap().replace(':', "").to_lowercase())
}

/// Unknown, expired, revoked, wrong-federation and duplicate certificates during a run.
#[test]
fn bad_certificates_are_refused_and_change_nothing() {
    if !has_openssl() {
        return;
    }
    let trial = Trial::new(3, &["--rounds", "4"]);
    let folder = trial.party_folder(1);
    let own = fs::read(folder.join("party-1.crt")).unwrap();
    reissue(&trial, "party-1.demo.partwise", &["-days", "30"]);
    let revoked = fingerprint(&folder.join("party-1.crt"));
    let revoked_certificate = fs::read(folder.join("party-1.crt")).unwrap();
    trial.edit(
        "trial/coordinator/federation.toml",
        "accept = []",
        &format!("accept = []\nrevoked = [\"{revoked}\"]"),
    );
    let mut coordinator = trial.coordinator(&[]);
    fs::write(folder.join("party-1.crt"), &own).unwrap();
    trial.party(1).wait_for_and_kill("waiting for all parties");

    // Revoked.
    fs::write(folder.join("party-1.crt"), revoked_certificate).unwrap();
    trial.party(1).fail("a revoked certificate");
    coordinator.wait_for("rejected a revoked certificate");
    // Of another federation of the same authority.
    reissue(&trial, "party-1.other.partwise", &["-days", "30"]);
    trial.party(1).fail("for no party of this federation");
    // The certificate has expired: the party detects this itself, but a foreign program would not check.
    reissue(&trial, "party-1.demo.partwise", &["-days", "0"]);
    std::thread::sleep(std::time::Duration::from_secs(2));
    trial.party(1).fail("an expired certificate");
    let client = |folder: &Path, certificate: &str, key: &str| {
        let mut command = Command::new("openssl");
        command.args(["s_client", "-alpn", "h2", "-connect", &format!("127.0.0.1:{}", trial.port)]);
        command.arg("-cert").arg(folder.join(certificate)).arg("-key").arg(folder.join(key));
        command.arg("-CAfile").arg(folder.join("ca.crt")).stdin(std::process::Stdio::null());
        output(&mut command)
    };
    client(&folder, "party-1.crt", "party-1.key");
    coordinator.wait_for("rejected an expired certificate");
    // Of an unknown authority.
    let other = Trial::new(3, &[]);
    fs::copy(folder.join("ca.crt"), other.party_folder(1).join("ca.crt")).unwrap();
    client(&other.party_folder(1), "party-1.crt", "party-1.key");
    coordinator.wait_for("rejected a certificate of an unknown authority");
    // None at all, and an older TLS.
    output(
        Command::new("openssl")
            .args(["s_client", "-connect", &format!("127.0.0.1:{}", trial.port)])
            .stdin(std::process::Stdio::null()),
    );
    coordinator.wait_for("rejected no certificate");
    output(
        Command::new("openssl")
            .args(["s_client", "-tls1_2", "-connect", &format!("127.0.0.1:{}", trial.port)])
            .stdin(std::process::Stdio::null()),
    );
    coordinator.wait_for("rejected a client without TLS 1.3");

    // A second connection of a connected party is rejected, and the first one stays.
    fs::write(folder.join("party-1.crt"), own).unwrap();
    let mut first = trial.party(1);
    first.wait_for("waiting for all parties");
    let copy = trial.path("trial/twin");
    fs::create_dir(&copy).unwrap();
    for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file()) {
        fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    let mut twin = program();
    twin.args(["party", "join"]).arg(copy.join("party.toml")).arg("--data").arg(trial.path("data-1.csv"));
    let mut twin = Process::start(twin.arg("--out").arg(trial.path("result-twin")));
    twin.wait_for("this party is already connected");
    twin.kill();
    coordinator.wait_for("rejected a second connection of one party");

    let mut others = [trial.party(2), trial.party(3)];
    first.succeed();
    others.iter_mut().for_each(Process::succeed);
    coordinator.succeed();
}

/// A certificate is revoked while parties are connected: by its fingerprint, and by a list of the authority.
#[test]
fn a_certificate_is_revoked_without_a_restart() {
    if !has_openssl() {
        return;
    }
    for by_list in [false, true] {
        let trial = Trial::new(3, &["--rounds", "4"]);
        let centre = trial.path("trial/coordinator");
        let folder = trial.party_folder(1);
        let own = fs::read(folder.join("party-1.crt")).unwrap();
        reissue(&trial, "party-1.demo.partwise", &["-days", "30", "-set_serial", "7"]);
        let list = |serials: &[&str]| {
            let (key, authority) = (centre.join("ca.key"), centre.join("ca.crt"));
            let revoked =
                |serial: &&str| format!("R\t491231235959Z\t240101000000Z\t{serial}\tunknown\t/CN=x\n");
            let (index, number) = (trial.path("index"), trial.path("number"));
            fs::write(&index, serials.iter().map(revoked).collect::<String>()).unwrap();
            fs::write(&number, "01\n").unwrap();
            let lines = "[ca]\ndefault_ca = own\n[extensions]\nauthorityKeyIdentifier = keyid:always\n[own]\n\
                         default_md = sha256\ncrl_extensions = extensions\n";
            let files = format!("database = {}\ncrlnumber = {}\n", index.display(), number.display());
            fs::write(trial.path("crl.cnf"), format!("{lines}{files}")).unwrap();
            let mut command = Command::new("openssl");
            command.args(["ca", "-gencrl", "-crldays", "30", "-config"]).arg(trial.path("crl.cnf"));
            command.arg("-keyfile").arg(key).arg("-cert").arg(authority);
            let staged = trial.path("staged.crl");
            good(command.arg("-out").arg(&staged));
            fs::rename(staged, centre.join("ca.crl")).unwrap();
        };
        let file = "trial/coordinator/federation.toml";
        if by_list {
            list(&[]);
            trial.edit(
                file,
                "\n[[party]]\nname = \"party-1\"",
                "\n[certificates]\nrevocations = \"ca.crl\"\n\n[[party]]\nname = \"party-1\"",
            );
        }
        let mut coordinator = trial.coordinator(&[]);
        let mut party = trial.party(1);
        coordinator.wait_for("party-1 has connected");
        if by_list {
            list(&["07"]);
        } else {
            // A half-written file changes nothing.
            trial.edit(file, "accept = []", "accept = [] revoked");
            coordinator.wait_for("remain in effect");
            let revoked = fingerprint(&folder.join("party-1.crt"));
            trial.edit(file, "accept = [] revoked", &format!("accept = []\nrevoked = [\"{revoked}\"]"));
        }
        coordinator.wait_for("reloaded certificates");
        coordinator.wait_for("rejected a revoked certificate");
        party.fail("the coordinator refused this party");
        // With another certificate the party is admitted again, and the run completes.
        fs::write(folder.join("party-1.crt"), own).unwrap();
        let mut parties = trial.all_parties();
        parties.iter_mut().for_each(Process::succeed);
        coordinator.succeed();
    }
}

/// Certificates of another authority, bound by name or by fingerprint.
#[test]
fn certificates_can_be_brought_along() {
    if !has_openssl() {
        return;
    }
    let trial = Trial::new(3, &["--rounds", "3"]);
    reissue(&trial, "partwise.hospital.example", &["-days", "9"]);
    let pinned = fingerprint(&trial.party_folder(1).join("party-1.crt"));
    trial.edit(
        "trial/coordinator/federation.toml",
        "name = \"party-1\"\n",
        &format!("name = \"party-1\"\ncertificate = \"{pinned}\"\n"),
    );
    trial.edit(
        "trial/coordinator/federation.toml",
        "name = \"party-2\"\n",
        "name = \"party-2\"\ndns = \"party-2.demo.partwise\"\n",
    );
    let mut coordinator = trial.coordinator(&[]);
    trial.all_parties().iter_mut().for_each(Process::succeed);
    coordinator.succeed();
}

/// An authority that Partwise does not know, with an intermediate certificate and other names.
#[test]
fn an_authority_can_be_brought_along() {
    if !has_openssl() {
        return;
    }
    let trial = Trial::new(3, &["--rounds", "3"]);
    let folder = trial.path("pki");
    fs::create_dir(&folder).unwrap();
    let openssl = |arguments: &str| {
        let (code, text) = output(Command::new("openssl").args(arguments.split(' ')).current_dir(&folder));
        assert_eq!(code, Some(0), "{arguments}: {text}");
    };
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
    openssl(&format!("req -x509 {key} -subj /CN=root -days 9 -keyout root.key -out root.crt"));
    fs::write(folder.join("ca.ext"), "basicConstraints=critical,CA:true\n").unwrap();
    let issue = |name: &str, by: &str, extension: &str| {
        openssl(&format!("req -new {key} -subj /CN={name} -keyout {name}.key -out {name}.csr"));
        openssl(&format!(
            "x509 -req -in {name}.csr -CA {by}.crt -CAkey {by}.key -days 9 -extfile {extension} -out {name}.crt"
        ));
    };
    issue("middle", "root", "ca.ext");
    let middle = fs::read_to_string(folder.join("middle.crt")).unwrap();
    let place = |name: &str, usage: &str, to: std::path::PathBuf, file: &str| {
        let extension = format!("subjectAltName=DNS:{name}\nextendedKeyUsage={usage}\n");
        fs::write(folder.join("leaf.ext"), extension).unwrap();
        issue(name, "middle", "leaf.ext");
        let own = fs::read_to_string(folder.join(format!("{name}.crt"))).unwrap();
        fs::write(to.join(format!("{file}.crt")), own + &middle).unwrap();
        fs::copy(folder.join(format!("{name}.key")), to.join(format!("{file}.key"))).unwrap();
        fs::copy(folder.join("root.crt"), to.join("ca.crt")).unwrap();
    };
    place("fed.hospital.example", "serverAuth", trial.path("trial/coordinator"), "coordinator");
    for party in 1..=3 {
        let (name, own) = (format!("party-{party}"), format!("partwise.clinic{party}.example"));
        place(&own, "clientAuth", trial.party_folder(party), &name);
        trial.edit(
            "trial/coordinator/federation.toml",
            &format!("name = \"{name}\"\n"),
            &format!("name = \"{name}\"\ndns = \"{own}\"\n"),
        );
        trial.edit(
            &format!("trial/party-{party}/party.toml"),
            "\ncoordinator = ",
            "\nserver_name = \"fed.hospital.example\"\ncoordinator = ",
        );
    }
    let mut coordinator = trial.coordinator(&[]);
    trial.all_parties().iter_mut().for_each(Process::succeed);
    coordinator.succeed();
}

/// A party replaces its identity key between two runs; until the others accept this, they refuse it.
#[test]
fn an_identity_is_handed_over_between_runs() {
    let trial = Trial::new(3, &["--rounds", "3"]);
    let run = |again: bool| {
        let mut coordinator = Process::start(trial.coordinator_command(&[]).args(again.then_some("--force")));
        coordinator.wait_for("listening on");
        let join = |party| Process::start(trial.party_command(party).args(again.then_some("--force")));
        let mut parties: Vec<Process> = (1..=3).map(join).collect();
        parties.iter_mut().for_each(Process::succeed);
        coordinator.succeed();
    };
    run(false);
    let file = |party: usize| trial.party_folder(party).join("party.toml");
    let centre = trial.path("trial/coordinator/federation.toml");
    let before = fs::read_to_string(trial.party_folder(1).join("identity.key")).unwrap();
    let said = good(program().args(["party", "rotate-key"]).arg(file(1)));
    assert_ne!(fs::read_to_string(trial.party_folder(1).join("identity.key")).unwrap(), before);
    let handover = fs::read_dir(trial.party_folder(1)).unwrap().map(|entry| entry.unwrap().path());
    let handover = handover.into_iter().find(|path| path.extension().is_some_and(|end| end == "handover"));
    let handover = handover.expect(&said);
    let accept = |end: &str, file: &Path, handover: &Path| {
        output(program().args([end, "accept-key"]).arg(file).arg(handover))
    };
    // No other party can hand over in its name.
    let forged = trial.path("forged.handover");
    let text = fs::read_to_string(&handover).unwrap();
    fs::write(&forged, text.replace("party: party-1", "party: party-3")).unwrap();
    let (code, said) = accept("party", &file(2), &forged);
    assert!(code == Some(2) && said.contains("is not signed by both keys"), "{said}");
    // The coordinator alone cannot replace an identity.
    good(program().args(["coordinator", "accept-key"]).arg(&centre).arg(&handover));
    let coordinator = Process::start(trial.coordinator_command(&[]).arg("--force"));
    coordinator.wait_for("listening on");
    Process::start(trial.party_command(2).arg("--force")).fail("party-1 with the identity");
    drop(coordinator);
    for party in [2, 3] {
        for _ in 0..2 {
            let (code, said) = accept("party", &file(party), &handover);
            assert!(code == Some(0) && said.contains("party-1 now has the identity sha256:"), "{said}");
        }
    }
    let (code, said) = accept("party", &file(1), &handover);
    assert!(code == Some(2) && said.contains("belongs to party-1, which is not in"), "{said}");
    run(true);
    // A second hand-over is only accepted after the first, and the request is signed by the new key.
    good(program().args(["party", "rotate-key"]).arg(file(1)));
    good(program().args(["party", "rotate-key"]).arg(file(1)));
    let newest = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
    let handovers = fs::read_dir(trial.party_folder(1)).unwrap().map(|entry| entry.unwrap().path());
    let mut handovers: Vec<_> =
        handovers.filter(|path| path.extension().is_some_and(|end| end == "handover")).collect();
    handovers.sort_by_key(|path| newest(path));
    let (code, said) = accept("party", &file(2), &handovers[2]);
    assert!(code == Some(2) && said.contains("accept an earlier hand-over first"), "{said}");
    for at in [&centre, &file(2), &file(3)] {
        let end = if at == &centre { "coordinator" } else { "party" };
        good(program().args([end, "accept-key"]).arg(at).args(&handovers[1..]));
    }
    run(true);
    let request = trial.party_folder(1).join("party-1.request");
    good(program().args(["coordinator", "sign"]).arg(trial.path("trial/coordinator")).arg(request));
}

#[test]
fn insecure_is_for_loopback_only() {
    let trial = Trial::new(3, &[]);
    let file = trial.path("trial/coordinator/federation.toml");
    trial.edit("trial/coordinator/federation.toml", "127.0.0.1:", "0.0.0.0:");
    let (code, text) = output(program().args(["coordinator", "run", "--insecure", "--check"]).arg(&file));
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("--insecure with the address 0.0.0.0") && text.contains("is refused"), "{text}");
    trial.edit("trial/party-1/party.toml", "127.0.0.1:", "192.0.2.1:");
    let mut party = Process::start(trial.party_command(1).arg("--insecure"));
    party.fail("--insecure with the coordinator 192.0.2.1");
}
