//! Warnings about tables whose names could be numbers, and no warnings about ordinary ones.

use super::*;

/// What was assumed of a table, in short.
fn assumed(text: &str, options: &ReadOptions) -> Vec<&'static str> {
    let path = Folder::new();
    let path = (path.write("m.csv", text), path);
    let of = |assumptions: Vec<Assumption>| -> Vec<&'static str> {
        let word = |assumption| match assumption {
            Assumption::FirstColumnIsData { .. } => "column",
            Assumption::FirstLineIsData { .. } => "line",
            Assumption::RecordsAreRows => "rows",
        };
        assumptions.into_iter().map(word).collect()
    };
    let (narrow, wide) = (read::<f32>(&path.0, options).unwrap(), read::<f64>(&path.0, options).unwrap());
    assert_eq!(narrow.assumptions, wide.assumptions, "{text}");
    of(wide.assumptions)
}

/// A table of rows that a function makes from their numbers.
fn table(rows: usize, row: impl Fn(usize) -> String) -> String {
    (0..rows).map(|number| row(number) + "\n").collect()
}

/// Whole numbers without a pattern.
fn noise(seed: usize, below: usize) -> usize {
    (seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23).wrapping_mul(0xd134_2543_de82_ef95)
        as usize
        / 7
        % below
}

#[test]
fn identifiers_in_the_first_column() {
    let data =
        |row: usize| format!("{},{}.5,{}", noise(row, 30), noise(row + 900, 9), noise(row + 5000, 300));
    for text in [
        "id,a,b\n17,1.5,2\n4,3,4\n".to_string(),
        "PatientID,a,b\n17,1.5,2\n4,3,4\n".to_string(),
        "sample_id,a,b\n17,1.5,2\n4,3,4\n".to_string(),
        "Unnamed: 0,a,b\n0,1.5,2\n1,3,4\n".to_string(),
        table(6, |row| format!("{},{}", row + 1, data(row))),
        table(6, |row| format!("{},{}", row, data(row))),
        table(6, |row| format!("{},{}", 123_456_780 + row, data(row))),
        table(9, |row| format!("{},{}", 20_000 + noise(row, 9000), data(row))),
        table(9, |row| format!("{},{}", 1960 + 5 * row, data(row))),
        "patient,a,b,c\n".to_string()
            + &table(9, |row| format!("{},{}", 200_000 + noise(row, 90_000), data(row))),
    ] {
        assert_eq!(assumed(&text, &OPTIONS), ["column"], "{text}");
        for row_names in [Presence::Yes, Presence::No] {
            assert!(assumed(&text, &ReadOptions { row_names, ..OPTIONS }).is_empty(), "{text}");
        }
    }
}

#[test]
fn numbers_in_the_first_line() {
    for text in [
        "1990,1991,1992\n5,6,7\n8,9,1\n",
        "2020,2015,2010\n5,6,7\n8,9,1\n",
        "country,1990,1991\nFrance,5,6\nPeru,8,9\n",
        "0,1,2,3,4\n5,6,0,0,1\n3,3,2,8,1\n",
        "1,2,3,4,5\n5,6,0,0,1\n3,3,2,8,1\n",
        "7,1990,1991,1992\n12,5,6,7\n15,8,9,1\n",
    ] {
        assert_eq!(assumed(text, &OPTIONS), ["line"], "{text}");
        for header in [Presence::Yes, Presence::No] {
            assert!(assumed(text, &ReadOptions { header, ..OPTIONS }).is_empty(), "{text}");
        }
    }
}

#[test]
fn triples() {
    let sorted = |row: usize| format!("{},{},{}", 1 + row / 3, 10 + 7 * (row % 3), noise(row, 5) + 1);
    // Every place of 40 x 50 once, in no order.
    let shuffled = |row: usize| format!("{},{},{}", row * 37 % 40, row * 1009 % 2000 / 40, noise(row, 5) + 1);
    for text in [
        "user,item,rating\n1,10,5\n1,20,3\n2,10,4\n".to_string(),
        "userId,movieId,rating,timestamp\n1,10,5,9999\n1,20,3,9998\n2,10,4,9997\n".to_string(),
        table(12, sorted),
        table(12, |row| format!("{},{},{}.5", 10 + 7 * (row / 3), 1 + row % 3, row)),
        table(2000, shuffled),
        table(300, shuffled),
        table(12, |row| format!("user{}", sorted(row))),
    ] {
        assert_eq!(assumed(&text, &OPTIONS), ["rows"], "{text:.200}");
        let row_names = if text.starts_with("user1") { Presence::Yes } else { Presence::No };
        assert!(assumed(&text, &ReadOptions { row_names, ..OPTIONS }).is_empty());
    }
}

#[test]
fn ordinary_tables_cause_no_warnings() {
    let wide = |row: usize, cols: usize, below: usize| {
        (0..cols).map(|col| noise(1000 * row + col, below).to_string()).collect::<Vec<_>>().join(",")
    };
    for cols in [2, 3, 4, 10] {
        for below in [2, 4, 20, 100, 3000, 1_000_000] {
            for rows in [2, 5, 40, 3000] {
                let text = table(rows, |row| wide(row, cols, below));
                // A table of zeros is refused.
                if text.contains(['1', '2']) {
                    assert!(assumed(&text, &OPTIONS).is_empty(), "{rows} x {cols} below {below}");
                }
            }
        }
    }
    for text in [
        "1,2\n2,4\n3,6\n",
        "1,2,3\n4,5,6\n7,8,9\n",
        "1,2,3,4,5\n6,7,8,9,10\n11,12,13,14,15\n",
        "1,6\n2,7\n3,8\n4,9\n5,10\n",
        "a,b\n1,2\n3,4\n5,6\n",
        "acid,sugar\n5,4\n3,2\n8,1\n7,9\n2,2\n",
        "1,5,0\n1,7,2\n1,3,4\n1,8,1\n1,2,2\n1,9,9\n",
        "calories,fat\n2000,70\n1900,50\n2100,80\n1850,40\n2050,60\n",
        "2000,1990,2010\n1900,1950,2020\n2040,1880,1930\n",
        "total,a,b\n1200,700,500\n1100,900,200\n1900,1000,900\n1500,800,700\n1700,900,800\n",
    ] {
        assert!(assumed(text, &OPTIONS).is_empty(), "{text}");
    }
}
