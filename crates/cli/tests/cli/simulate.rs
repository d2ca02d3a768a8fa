//! `partwise simulate` from its command line.

use crate::common::*;

/// Short runs with few rounds.
const SHORT: &str = "simulate digits.npy --rank 4 --rounds 5 --quiet --out r";

#[test]
fn every_party_has_its_factors_and_the_record_the_outcome() {
    let desk = Desk::with_digits();
    let said = desk.run(
        "simulate digits.npy --parties 5 --protocol pooled --rank 4 --rounds 30 --split first=0.5 --out r",
    );
    assert!(said.contains("5 parties with 224 to 899 records and 64 features"), "{said}");
    assert!(said.contains("relative error 0.") && said.contains("round trips"), "{said}");
    let shared = desk.factor("r/party-1/V.npy");
    assert_eq!((shared.0, shared.1), (64, 4));
    let mut u: Factor = (0, 4, Vec::new());
    for party in 1..=5 {
        assert_eq!(desk.factor(&format!("r/party-{party}/V.npy")), shared);
        let (records, _, values) = desk.factor(&format!("r/party-{party}/U.npy"));
        u.0 += records;
        u.2.extend(values);
    }
    assert_eq!(u.0, 1797);
    // The factors are those of the whole matrix, and the error is that of the factors.
    std::fs::create_dir(desk.path("whole")).unwrap();
    desk.write_factor("whole/U.npy", &u);
    desk.write_factor("whole/V.npy", &shared);
    let record = desk.json("r/run.json");
    let error = record["relative_error"].as_f64().unwrap();
    let again = desk.run("evaluate whole digits.npy");
    let again: f64 = again.trim().rsplit(' ').next().unwrap().parse().unwrap();
    assert!((error - again).abs() < 1e-5, "{error} {again}");
    assert_eq!(record["parties"].as_array().unwrap().len(), 5);
    assert_eq!(record["parties"][0]["records"], 899);
    assert_eq!(record["transcripts"][0]["agreed"], true);
    assert_eq!(record["protocol"], "pooled");
    assert!(record["cost"]["bytes_per_party"].as_u64().unwrap() > 0);
    let trace = desk.read("r/trace.csv");
    assert!(trace.starts_with("round,seconds,relative_error,bytes\n1,"), "{trace}");
    assert!(trace.lines().last().unwrap().starts_with("30,"), "{trace}");
}

#[test]
fn every_protocol_runs_and_repeats_itself() {
    let desk = Desk::with_digits();
    for protocol in [
        "pooled",
        "syn-sd",
        "syn-ssd-u",
        "syn-ssd-v",
        "syn-ssd-uv",
        "asyn-sd",
        "asyn-ssd-v",
        "dsanls-limited",
    ] {
        let command = format!("{SHORT} --force --parties 6 --speeds 1,1,4 --protocol {protocol}");
        desk.run(&command);
        let (v, trace) = (desk.bytes("r/party-2/V.npy"), desk.read("r/trace.csv"));
        desk.run(&command);
        assert!(v == desk.bytes("r/party-2/V.npy"), "{protocol}");
        assert_eq!(trace, desk.read("r/trace.csv"), "{protocol}");
    }
    // With fewer parties than before, results of the additional parties are removed.
    desk.run(&format!("{SHORT} --force --parties 3 --protocol syn-sd"));
    assert!(desk.path("r/party-3").exists() && !desk.path("r/party-4").exists());
}

#[test]
fn records_may_be_columns_and_parties_may_have_names() {
    let desk = Desk::new();
    let values: Vec<f64> = (0..40).map(|i| f64::from((i * 7) % 11 + 1)).collect();
    desk.write("m.csv", table_bytes(10, &values, ","));
    desk.write("who.txt", "north\nsouth\nnorth\neast\nsouth\neast\nnorth\neast\nsouth\nnorth\n");
    let command = "simulate m.csv --records columns --split who.txt --protocol syn-sd --rank 2 --rounds 3 --quiet --out r";
    desk.run(command);
    assert_eq!(desk.factor("r/party-1/U.npy").0, 4);
    assert_eq!(desk.factor("r/party-1/V.npy").0, 4);
    assert_eq!(desk.json("r/run.json")["parties"][1]["name"], "south");
    assert_says(
        &desk.refused(&format!("{command} --force --parties 4")),
        &["--parties", "4 was given", "names 3", "leave one of them out"],
    );
    desk.write("short.txt", "a\nb\n");
    assert_says(
        &desk.refused("simulate m.csv --split short.txt --protocol syn-sd --rank 2 --out x"),
        &["short.txt", "4"],
    );
}

/// The names of a party's records are in its own folder, and in no file that others would receive.
#[test]
fn parties_keep_the_names_of_their_records_and_of_the_features() {
    let desk = Desk::new();
    let values: Vec<f64> = (0..60).map(|i| f64::from((i * 7) % 11 + 1)).collect();
    desk.write("m.csv", table_bytes(6, &values, ","));
    desk.write("turned.csv", table_bytes(10, &values, ","));
    let records: Vec<String> = (1..=10).map(|number| format!("patient {number}")).collect();
    desk.write("records.txt", records.join("\n") + "\n");
    desk.write("features.txt", "a\nb\nc\nd\ne\nf\n");
    desk.write("who.txt", "x\ny\nx\nz\ny\nz\nx\nz\ny\nx\n");
    let common = "--split who.txt --protocol syn-sd --rank 2 --rounds 3 --quiet";
    for (command, own, features) in [
        ("m.csv --row-labels records.txt --col-labels features.txt --out r", "rows.txt", "columns.txt"),
        (
            "turned.csv --records columns --col-labels records.txt --row-labels features.txt --out r --force",
            "columns.txt",
            "rows.txt",
        ),
    ] {
        desk.run(&format!("simulate {command} {common}"));
        assert_eq!(desk.read(&format!("r/party-1/{own}")), "patient 1\npatient 3\npatient 7\npatient 10\n");
        assert_eq!(desk.read(&format!("r/party-3/{own}")), "patient 4\npatient 6\npatient 8\n");
        assert_eq!(desk.read(&format!("r/party-1/{features}")), desk.read("features.txt"));
        assert_eq!(desk.read("r/features.txt"), desk.read("features.txt"));
        for shared in ["r/run.json", "r/report.html"] {
            assert!(!desk.read(shared).contains("patient"), "{shared}");
        }
        assert!(desk.run("top r/party-1").contains("patient "));
    }
}

/// U belongs to the rows of the file and V to its columns, as in `factorize`, whichever side the records are on.
#[test]
fn a_file_gives_u_the_same_meaning_in_simulate_and_factorize() {
    let desk = Desk::new();
    // 60 samples of three kinds and 8 features, and the same transposed.
    let value = |sample: usize, feature: usize| if feature % 3 == sample % 3 { 9 + sample % 4 } else { 1 };
    let table = |rows: usize, cols: usize, turned: bool| {
        let entry = |row: usize, col: usize| if turned { value(col, row) } else { value(row, col) };
        let line = |row| (0..cols).map(|col| entry(row, col).to_string()).collect::<Vec<_>>().join(",");
        (0..rows).map(|row| line(row) + "\n").collect::<String>()
    };
    desk.write("samples.csv", table(60, 8, false));
    desk.write("features.csv", table(8, 60, true));
    for (file, side, shared, own) in [("samples", "rows", "V", "U"), ("features", "columns", "U", "V")] {
        desk.run(&format!("factorize {file}.csv --rank 3 --quiet --out whole-{side}"));
        desk.run(&format!(
            "simulate {file}.csv --records {side} --parties 3 --protocol pooled --rank 3 --rounds 200 --quiet --record --audit \
             --holdout 6 --out {side}"
        ));
        assert_eq!(desk.json(&format!("{side}/run.json"))["shared_factor"], shared);
        let part = desk.factor(&format!("{side}/party-1/{shared}.npy"));
        let whole = desk.factor(&format!("whole-{side}/{shared}.npy"));
        assert_eq!((part.0, whole.0), (8, 8));
        assert_eq!(desk.factor(&format!("{side}/party-1/{own}.npy")).0, 18);
        // Both results group the features of the same factor in the same way.
        let leading = |factor: &Factor| -> Vec<usize> {
            let row = |row: &[f64]| (0..3).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap();
            factor.2.chunks(3).map(row).collect()
        };
        let (part, whole) = (leading(&part), leading(&whole));
        for (a, b) in (0..8).flat_map(|a| (0..8).map(move |b| (a, b))) {
            assert_eq!(part[a] == part[b], whole[a] == whole[b], "{side}: {part:?} {whole:?}");
        }
        let top: serde_json::Value =
            serde_json::from_str(&desk.run(&format!("top {side}/party-1 --json"))).unwrap();
        let listed = if side == "rows" { "columns" } else { "rows" };
        assert!(top[0][listed].as_array().unwrap().iter().all(|entry| entry["index"].as_u64().unwrap() < 8));
    }
    // Both are the same run.
    for number in 1..=3 {
        let of = |name: &str| desk.factor(&format!("{}/party-{number}/{}.npy", &name[2..], &name[..1]));
        assert_eq!((of("V rows"), of("U rows")), (of("U columns"), of("V columns")));
    }
}

/// A folder of a version that always wrote the shared factor as U.
#[test]
fn folders_of_earlier_versions_are_read_as_they_were_written() {
    let desk = Desk::with_digits();
    desk.run(&format!("{SHORT} --parties 3 --protocol syn-sd --record --audit --no-report"));
    // All keys except the settings.
    let page = |desk: &Desk| {
        desk.run("report r --force");
        desk.read("r/report.html").split_once("<h2>Settings").unwrap().0.to_string()
    };
    let (expected, audited) = (page(&desk), desk.json("r/audit.json")["findings"].clone());
    for party in 1..=3 {
        let path = |name: &str| desk.path(format!("r/party-{party}/{name}"));
        std::fs::rename(path("U.npy"), path("own")).unwrap();
        std::fs::rename(path("V.npy"), path("U.npy")).unwrap();
        std::fs::rename(path("own"), path("V.npy")).unwrap();
    }
    let mut record = desk.json("r/run.json");
    record.as_object_mut().unwrap().remove("shared_factor").unwrap();
    desk.write("r/run.json", format!("{record:#}"));
    // The page names the file with the weights of the samples.
    assert!(page(&desk).replace("V.npy", "U.npy").replace("V.argmax", "U.argmax") == expected);
    desk.run("audit r --quiet --force");
    assert_eq!(desk.json("r/audit.json")["findings"], audited);
}

#[test]
fn risks_are_refused_until_they_are_accepted() {
    let desk = Desk::with_digits();
    for (options, expected, flag) in [
        (
            "--parties 2 --protocol syn-sd",
            "each can compute the other's contribution",
            "--accept-that-two-parties-see-each-other",
        ),
        ("--parties 300 --protocol syn-sd --aggregation plain", "give 2 to 255", ""),
        (
            "--parties 250 --protocol syn-sd --aggregation plain",
            "fewer than 64",
            "--accept-that-plain-shares-show-records",
        ),
        ("--parties 30 --protocol pooled", "span its records", "--accept-that-pooled-sums-show-records"),
        (
            "--parties 5 --protocol dsanls-limited --sketch subsample",
            "reveals records directly",
            "--accept-that-subsampling-opens-records",
        ),
        (
            "--parties 5 --protocol syn-sd --holdout 1782",
            "12 records",
            "--accept-that-few-records-show-in-sums",
        ),
        (
            "--parties 5 --protocol syn-sd --lose 2@4",
            "party 2 left",
            "--accept-that-going-on-shows-the-leaver",
        ),
    ] {
        let said = desk.refused(&format!("{SHORT} {options}"));
        assert_says(&said, &[expected, flag]);
        if flag.contains("two-parties")
            || flag.contains("pooled")
            || flag.contains("going-on")
            || flag.contains("few")
        {
            desk.run(&format!("{SHORT} --force {options} {flag}"));
            std::fs::remove_dir_all(desk.path("r")).unwrap();
        }
    }
    assert_says(
        &desk.refused(&format!("{SHORT} --parties 3 --protocol syn-sd --lose 2@4")),
        &["party 2 left", "tolerate no dropout"],
    );
}

#[test]
fn what_is_out_of_range_is_refused() {
    let desk = Desk::with_digits();
    for (options, expected) in [
        ("--protocol syn-sd", ["--parties", "missing", "give it"]),
        ("--protocol syn-sd --parties 1", ["--parties", "1 is out of range", "give 2 to 255"]),
        ("--protocol syn-sd --parties 0", ["--parties", "0 is out of range", "give 2 to 255"]),
        ("--protocol syn-sd --parties 5 --colluders 4", ["--colluders", "5 parties", "collude"]),
        ("--protocol asyn-sd --parties 5 --rho 0", ["--rho", "0 is out of range", "above 0"]),
        ("--protocol syn-sd --parties 5 --rounds 0", ["--rounds", "0 is too few", "give 1 or more"]),
        ("--protocol syn-sd --parties 5 --inner 0", ["--inner", "0 is too few", "give 1 or more"]),
        ("--protocol syn-sd --parties 5 --speeds 1,-1", ["--speeds", "-1 is out of range", "above 0"]),
        ("--protocol syn-sd --parties 5 --speeds 1,x", ["--speeds", "'x'", "give a number"]),
        ("--protocol syn-sd --parties 5 --split half", ["--split", "uniform, first=0.5 or a file", "half"]),
        ("--protocol syn-sd --parties 5 --split first=1", ["--split", "not a share", "first=1"]),
        ("--protocol syn-sd --parties 5 --split first=0.9999", ["--parties", "no records", "fewer parties"]),
        ("--protocol syn-sd --parties 5 --lose 3", ["--lose", "such as 3@20", ""]),
        ("--protocol syn-sd --parties 5 --lose 7@3", ["--lose", "no party 7", "give 1 to 5"]),
        ("--protocol syn-ds --parties 5", ["--protocol", "'syn-ds'", "syn-sd"]),
    ] {
        // A later --rounds replaces an earlier one only if there is one.
        let base = if options.contains("--rounds") { "simulate digits.npy --rank 4 --out r" } else { SHORT };
        assert_says(&desk.refused(&format!("{base} {options}")), &expected);
    }
}

#[test]
fn warnings_say_what_others_can_see() {
    let desk = Desk::with_digits();
    let loud = "simulate digits.npy --rank 4 --rounds 2 --force --out r";
    let warned = |options: &str| {
        let output = desk.output(&format!("{loud} {options}"));
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(
        warned("--parties 4 --protocol syn-sd --aggregation plain")
            .contains("sees what every party contributes")
    );
    assert!(warned("--parties 3 --protocol syn-sd").contains("three parties tolerate no dropout"));
    assert!(warned("--parties 5 --protocol asyn-sd").contains("one group"));
    assert_eq!(warned("--parties 6 --protocol asyn-sd"), "");
    // 40 records at five parties, 32 without those of a colluding one, for 64 features; 155 and 124; 165 and 132.
    assert!(warned("--parties 5 --protocol syn-sd --holdout 1757").contains("which --audit measures"));
    assert!(warned("--parties 5 --protocol syn-sd --holdout 1642").contains("which --audit measures"));
    assert_eq!(warned("--parties 5 --protocol syn-sd --holdout 1632"), "");
}
