//! What `factorize` writes.

use std::process::Command;

use crate::common::*;

/// A good start gains nothing from samples, which is known only after the first iteration.
#[test]
fn the_printed_plan_is_that_of_the_record() {
    let desk = Desk::with_digits();
    desk.run("factorize digits.npy --rank 8 --iterations 300 --tolerance 0 --quiet --out good");
    for (options, sampled) in [("--out random", true), ("--init-from good --out given", false)] {
        let said = desk.run(&format!("factorize digits.npy --rank 8 --iterations 3 --tolerance 0 {options}"));
        let folder = options.rsplit(' ').next().unwrap();
        let plan = desk.json(&format!("{folder}/run.json"))["plan"].as_str().unwrap().to_string();
        let headline = plan.split(';').next().unwrap();
        assert!(said.contains(&format!("{headline}, 8 components")), "{said}\n{plan}");
        assert_eq!(said.contains("warm-started"), sampled, "{said}");
    }
}

#[test]
fn the_command_of_the_readme() {
    let desk = Desk::with_digits();
    let stdout = desk.run("factorize digits.npy --rank 16 --out digits");
    assert!(stdout.contains("digits.npy: 1797 x 64"), "{stdout}");
    assert!(stdout.ends_with("written to digits; digits/report.html shows it\n"), "{stdout}");
    let mut names: Vec<_> = std::fs::read_dir(desk.path("digits"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["U.npy", "V.npy", "report.html", "run.json", "trace.csv"]);
    let (u, v) = (desk.factor("digits/U.npy"), desk.factor("digits/V.npy"));
    assert_eq!((u.0, u.1, v.0, v.1), (1797, 16, 64, 16));
    for name in ["digits/U.npy", "digits/V.npy"] {
        assert!(String::from_utf8_lossy(&desk.bytes(name)[..128]).contains("'<f4'"), "{name}");
    }
    let energies = energies(&u, &v);
    assert!(energies.is_sorted_by(|a, b| a >= b), "{energies:?}");
    assert!(energies[15] > 0.0);
    // Pixels that are always blank have zero rows in V.
    assert_eq!(v.2[..16], [0.0; 16]);
    assert!(desk.json("digits/run.json")["relative_error"].as_f64().unwrap() < 0.27);
}

#[test]
fn the_record_holds_every_parameter() {
    let desk = Desk::with_digits();
    desk.run(
        "factorize digits.npy --rank 5 --algorithm dsanls --sketch-cols 20 --sketch-rows 0.5 --alpha 0.3 \
         --beta 0.02 --step absolute --seed 7 --iterations 12 --tolerance 0 --target-error 0.001 --time-limit 1h \
         --restarts 2 --nodes 2 --threads 1 --trace-every 3 --precision f64 --normalize u --out r --quiet",
    );
    let record = desk.json("r/run.json");
    for (key, value) in [
        ("version", r#""0.1.0""#),
        ("algorithm", r#""dsanls""#),
        ("rank", "5"),
        ("iterations", "12"),
        ("stopped_by", r#""iterations""#),
        ("first_seed", "7"),
        ("restarts", "2"),
        ("redrawn", "[]"),
        ("max_iterations", "12"),
        ("tolerance", "0.0"),
        ("target_error", "0.001"),
        ("time_limit", "3600.0"),
        ("sketch", r#""subsample""#),
        ("sketch_cols", "20"),
        ("sketch_rows", "899"),
        ("alpha", "0.3"),
        ("beta", "0.02"),
        ("step", r#""absolute""#),
        ("init_from", "null"),
        ("normalize", "\"u\""),
        ("transpose", "false"),
        ("precision", r#""f64""#),
        ("nodes", "2"),
        ("threads", "1"),
        ("trace_every", "3"),
    ] {
        assert_eq!(record[key].to_string(), value, "{key}");
    }
    for key in ["relative_error", "seconds", "bytes_sent", "bytes_evaluate"] {
        assert!(record[key].as_f64().unwrap() > 0.0, "{key}");
    }
    assert!([7, 8].contains(&record["seed"].as_u64().unwrap()));
    for phase in ["start", "sketch", "product", "solve", "reduce", "evaluate"] {
        assert!(record["phases"][phase].as_f64().unwrap() > 0.0, "{phase}");
    }
}

#[test]
fn the_record_names_the_input() {
    let desk = Desk::with_digits();
    desk.run("factorize digits.npy --rank 2 --iterations 3 --out r --quiet");
    let input = &desk.json("r/run.json")["input"];
    assert_eq!(input["name"], "digits.npy");
    assert_eq!(input["bytes"], desk.bytes("digits.npy").len());
    assert_eq!((&input["rows"], &input["cols"]), (&1797.into(), &64.into()));
    match Command::new("sha256sum").arg(desk.path("digits.npy")).output() {
        Ok(output) => {
            let expected = String::from_utf8(output.stdout).unwrap();
            assert_eq!(input["sha256"].as_str(), expected.split(' ').next());
        }
        Err(_) => eprintln!("skipped: no sha256sum here"),
    }
}

#[test]
fn the_trace_is_a_curve() {
    let desk = Desk::with_digits();
    for (options, expected) in [
        ("--algorithm hals --trace-every 7", vec![0, 7, 14, 20]),
        ("--algorithm hals", (0..=20).collect()),
        ("--algorithm dsanls --trace-every 5 --nodes 3", vec![0, 5, 10, 15, 20]),
    ] {
        desk.run(&format!(
            "factorize digits.npy --rank 6 --iterations 20 --tolerance 0 {options} --out r --force"
        ));
        let trace = desk.read("r/trace.csv");
        let mut lines = trace.lines();
        assert_eq!(lines.next(), Some("iteration,seconds,relative_error,bytes_sent,loss"));
        let numbers: Vec<Vec<f64>> =
            lines.map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect()).collect();
        assert_eq!(numbers.iter().map(|line| line[0] as usize).collect::<Vec<_>>(), expected, "{options}");
        assert!(numbers.is_sorted_by(|a, b| a[1] <= b[1] && a[3] <= b[3]), "{trace}");
        assert_eq!((numbers[0][1], numbers[0][3]), (0.0, 0.0));
        let (first, last) = (&numbers[0], &numbers[numbers.len() - 1]);
        assert!(last[2] < first[2], "{trace}");
        let record = desk.json("r/run.json");
        assert!((last[2] - record["relative_error"].as_f64().unwrap()).abs() < 1e-8);
        assert!((last[1] - record["seconds"].as_f64().unwrap()).abs() < 1e-5);
        assert_eq!(last[3] as u64, record["bytes_sent"].as_u64().unwrap());
        assert_eq!(options.contains("--nodes"), last[3] > 0.0, "{options}");
    }
}

#[test]
fn precision_and_normalization() {
    let desk = Desk::with_digits();
    let common = "factorize digits.npy --rank 6 --iterations 15 --precision f64 --quiet";
    desk.run(&format!("{common} --out plain"));
    desk.run(&format!("{common} --normalize u --out normal"));
    assert_eq!(desk.json("plain/run.json")["normalize"], "balanced");
    assert_eq!(desk.json("normal/run.json")["normalize"], "u");
    assert!(String::from_utf8_lossy(&desk.bytes("plain/U.npy")[..128]).contains("'<f8'"));
    let read = |name: &str| (desk.factor(&format!("{name}/U.npy")), desk.factor(&format!("{name}/V.npy")));
    let ((u, v), (normal_u, normal_v)) = (read("plain"), read("normal"));
    for norm in norms(&normal_u) {
        assert!((norm - 1.0).abs() < 1e-12, "{norm}");
    }
    for (u, v) in norms(&u).into_iter().zip(norms(&v)) {
        assert!((u - v).abs() < 1e-12 * u, "{u} {v}");
    }
    let pairs = product(&u, &v).into_iter().zip(product(&normal_u, &normal_v));
    pairs.for_each(|(plain, normal)| assert!((plain - normal).abs() < 1e-12 * plain.abs().max(1.0)));
}

#[test]
fn a_given_start_continues_and_keeps_its_order() {
    let desk = Desk::with_digits();
    let common = "factorize digits.npy --rank 4 --quiet --tolerance 0";
    desk.run(&format!("{common} --iterations 10 --out first"));
    desk.run(&format!("{common} --iterations 1 --init-from first --out second"));
    let trace = desk.read("second/trace.csv");
    let begin: f64 = trace.lines().nth(1).unwrap().split(',').nth(2).unwrap().parse().unwrap();
    let end = desk.json("first/run.json")["relative_error"].as_f64().unwrap();
    assert!((begin - end).abs() < 1e-5, "{begin} {end}");
    assert_eq!(desk.json("second/run.json")["init_from"], "first");

    std::fs::create_dir(desk.path("turned")).unwrap();
    for name in ["U.npy", "V.npy"] {
        let (rows, k, mut values) = desk.factor(&format!("first/{name}"));
        values.chunks_mut(k).for_each(<[f64]>::reverse);
        desk.write_factor(&format!("turned/{name}"), &(rows, k, values));
    }
    desk.run(&format!("{common} --iterations 1 --init-from turned --out third"));
    let energies = energies(&desk.factor("third/U.npy"), &desk.factor("third/V.npy"));
    assert!(energies[0] < energies[3], "{energies:?}");
}

#[test]
fn the_best_of_several_runs_is_kept() {
    let desk = Desk::with_digits();
    let common = "factorize digits.npy --rank 8 --iterations 8 --tolerance 0 --quiet";
    desk.run(&format!("{common} --restarts 4 --seed 3 --out all"));
    let record = desk.json("all/run.json");
    let errors: Vec<f64> = record["errors_of_restarts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error.as_f64().unwrap())
        .collect();
    assert_eq!(errors.len(), 4);
    let best = (0..4).min_by(|&a, &b| errors[a].total_cmp(&errors[b])).unwrap();
    assert_eq!(record["relative_error"], errors[best]);
    assert_eq!(record["seed"], 3 + best);
    desk.run(&format!("{common} --seed {} --out one", 3 + best));
    assert_eq!(desk.bytes("all/U.npy"), desk.bytes("one/U.npy"));
}

#[test]
fn a_dead_component_is_redrawn_and_reported() {
    let desk = Desk::with_digits();
    desk.run("factorize digits.npy --rank 3 --iterations 5 --out r --quiet");
    let (rows, k, mut v) = desk.factor("r/V.npy");
    v.iter_mut().skip(1).step_by(k).for_each(|value| *value = 0.0);
    desk.write_factor("r/V.npy", &(rows, k, v));
    let (rows, k, mut u) = desk.factor("r/U.npy");
    u.iter_mut().skip(1).step_by(k).for_each(|value| *value = 0.0);
    desk.write_factor("r/U.npy", &(rows, k, u));
    let said = desk.run("factorize digits.npy --rank 3 --init-from r --iterations 20 --out s");
    assert!(said.contains("1 dead component was redrawn; run.json lists them"), "{said}");
    assert_eq!(desk.json("s/run.json")["redrawn"][0]["component"], 1);
    assert!(energies(&desk.factor("s/U.npy"), &desk.factor("s/V.npy")).iter().all(|energy| *energy > 0.0));
}

#[test]
fn images_keep_their_bytes_in_memory() {
    let desk = Desk::with_digits();
    let said = desk.run("factorize digits.npy --rank 2 --iterations 1 --out r");
    assert!(said.contains("uint8") && said.contains("112.3 KiB in memory"), "{said}");
}

#[test]
fn a_rank_above_the_sides_is_a_warning() {
    let desk = Desk::new();
    desk.write("m.csv", "1,2,3\n4,5,6\n");
    let output = desk.output("factorize m.csv --rank 5 --iterations 5 --out r");
    assert!(output.status.success(), "{output:?}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.starts_with("warning: 5 components are more than") && stderr.lines().count() == 1,
        "{stderr}"
    );
    assert_eq!(desk.factor("r/U.npy").1, 5);
    assert!(desk.output("factorize m.csv --rank 2 --out s").stderr.is_empty());
}
