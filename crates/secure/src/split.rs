//! Dealing the records of one matrix out to parties, to try on one machine what they would do on theirs.

use std::collections::BTreeMap;

use partwise::Real;
use partwise::cancel::Cancel;
use partwise::comm::owned;
use partwise::matrix::{Csr, Dense, Matrix, Order, Values};

use partwise::random::{Purpose, stream};
use rand::Rng;

use crate::error::{Error, Result};
use crate::protocol::party_seed;

/// Which party has which records.
#[derive(Clone, Debug, PartialEq)]
pub enum Split {
    /// Equal shares, in the order of the file.
    Uniform,
    /// This share for the first party and the rest equally for the others: the paper's imbalanced case.
    First(f64),
}

impl std::str::FromStr for Split {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let share = |text: &str| match text.parse::<f64>() {
            Ok(share) if share > 0.0 && share < 1.0 => Ok(Split::First(share)),
            _ => Err(format!("{text} is not a share above 0 and below 1")),
        };
        match text.strip_prefix("first=") {
            Some(text) => share(text),
            None if text == "uniform" => Ok(Split::Uniform),
            None => Err("give uniform, first=0.5 or a file with one party per record".into()),
        }
    }
}

impl Split {
    /// The records of each party.
    pub fn deal(&self, records: usize, parties: usize) -> Vec<Vec<usize>> {
        let first = match self {
            Split::Uniform => None,
            Split::First(_) if parties < 2 => None,
            Split::First(share) => Some(((records as f64 * share).round() as usize).min(records)),
        };
        let range = |party: usize| match first {
            None => owned(records, party, parties),
            Some(first) if party == 0 => 0..first,
            Some(first) => {
                let rest = owned(records - first, party - 1, parties - 1);
                first + rest.start..first + rest.end
            }
        };
        (0..parties).map(|party| range(party).collect()).collect()
    }
}

/// Holds out `count` random records: the remaining ones, and the held-out ones; both ascending.
pub fn hold_out(records: usize, count: usize, seed: u64) -> (Vec<usize>, Vec<usize>) {
    let mut held = in_random_order(records, seed);
    let mut kept = held.split_off(count.min(records));
    held.sort_unstable();
    kept.sort_unstable();
    (kept, held)
}

/// The numbers below `count` in random order.
fn in_random_order(count: usize, seed: u64) -> Vec<usize> {
    let mut rng = stream(party_seed(seed, "partwise holdout", 0), Purpose::Sample, 0, 0);
    let mut order: Vec<(u64, usize)> = (0..count).map(|number| (rng.next_u64(), number)).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, number)| number).collect()
}

/// Holds out whole random people until at least `count` records are held out; returns the records that stay,
/// and the held-out ones. `people` has the number of the person of each record.
pub fn hold_out_people(people: &[usize], count: usize, seed: u64) -> (Vec<usize>, Vec<usize>) {
    let number = people.iter().max().map_or(0, |last| last + 1);
    let mut sizes = vec![0; number];
    people.iter().for_each(|&person| sizes[person] += 1);
    let (mut held, mut records) = (vec![false; number], 0);
    for person in in_random_order(number, seed) {
        if records >= count {
            break;
        }
        held[person] = true;
        records += sizes[person];
    }
    (0..people.len()).partition(|&record| !held[people[record]])
}

/// Groups records by person, in order of first occurrence; without numbers each record is a person.
pub fn by_person(records: &[usize], people: Option<&[usize]>) -> Vec<Vec<usize>> {
    let Some(people) = people else { return records.iter().map(|&record| vec![record]).collect() };
    let (mut places, mut grouped) = (BTreeMap::new(), Vec::<Vec<usize>>::new());
    for &record in records {
        let place = *places.entry(people[record]).or_insert(grouped.len());
        if place == grouped.len() {
            grouped.push(Vec::new());
        }
        grouped[place].push(record);
    }
    grouped
}

/// Held-out records, each with the party of its kind: the one that has the record before it in the file.
///
/// Parties differ. A party's records can be distinguished from those of another without having been in its data,
/// which would be mistaken for membership.
pub fn by_nearest_party(dealt: &[Vec<usize>], held_out: &[usize]) -> Vec<Vec<usize>> {
    let own = |(party, records): (usize, &'_ Vec<usize>)| -> Vec<(usize, usize)> {
        records.iter().map(|&record| (record, party)).collect()
    };
    let owners: BTreeMap<usize, usize> = dealt.iter().enumerate().flat_map(own).collect();
    let mut assigned = vec![Vec::new(); dealt.len()];
    for &record in held_out {
        if let Some((_, &party)) = owners.range(..record).next_back().or(owners.first_key_value()) {
            assigned[party].push(record);
        }
    }
    assigned
}

/// The records of each party, given a name for each record; parties in the order in which they first occur.
pub fn by_name(names: &[String]) -> (Vec<String>, Vec<Vec<usize>>) {
    let (mut parties, mut records): (Vec<String>, Vec<Vec<usize>>) = (Vec::new(), Vec::new());
    let mut numbers = std::collections::HashMap::new();
    for (record, name) in names.iter().enumerate() {
        let number = *numbers.entry(name.as_str()).or_insert_with(|| {
            parties.push(name.clone());
            records.push(Vec::new());
            parties.len() - 1
        });
        records[number].push(record);
    }
    (parties, records)
}

/// Each party's part of a matrix with a row a record, turned so that it has a column a record.
pub fn parts<T: Real>(matrix: &Matrix<T>, dealt: &[Vec<usize>]) -> Result<Vec<Matrix<T>>> {
    parts_until(matrix, dealt, &Cancel::default())
}

/// What [`parts`] returns, unless it is cancelled ([`Cancel::scope`]).
pub fn parts_until<T: Real>(
    matrix: &Matrix<T>,
    dealt: &[Vec<usize>],
    cancel: &Cancel,
) -> Result<Vec<Matrix<T>>> {
    if let Some(party) = dealt.iter().position(Vec::is_empty) {
        let problem = format!(
            "{} parties, but party {} would have no records; give fewer parties, or split otherwise",
            dealt.len(),
            party + 1
        );
        return Err(Error::parameter("parties", problem));
    }
    let part = |records: &Vec<usize>| {
        cancel.check();
        match rows(matrix, records) {
            Matrix::Sparse(csr) => Matrix::Sparse(csr.transpose_until(cancel)),
            dense => dense.into_transpose(),
        }
    };
    Ok(dealt.iter().map(part).collect())
}

/// The given rows.
pub(crate) fn rows<T: Real>(matrix: &Matrix<T>, rows: &[usize]) -> Matrix<T> {
    match matrix {
        Matrix::Dense(dense) => {
            let values = match dense.values() {
                Values::Bytes(bytes) => Values::Bytes(pick(dense, bytes, rows).into()),
                Values::Real(reals) => Values::Real(pick(dense, reals, rows).into()),
            };
            Matrix::Dense(Dense::new(rows.len(), dense.cols(), Order::RowMajor, values))
        }
        Matrix::Sparse(csr) => {
            let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
            for &row in rows {
                let (cols, entries) = csr.row(row);
                indices.extend_from_slice(cols);
                values.extend_from_slice(entries);
                offsets.push(indices.len());
            }
            Matrix::Sparse(Csr::new(rows.len(), csr.cols(), offsets, indices, values))
        }
    }
}

fn pick<T: Real, E: Copy>(dense: &Dense<T>, values: &[E], rows: &[usize]) -> Vec<E> {
    rows.iter().flat_map(|&row| (0..dense.cols()).map(move |col| values[dense.position(row, col)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits() {
        assert_eq!("uniform".parse(), Ok(Split::Uniform));
        assert_eq!("first=0.5".parse(), Ok(Split::First(0.5)));
        for bad in ["first=0", "first=1", "first=x", "half", ""] {
            assert!(bad.parse::<Split>().is_err(), "{bad}");
        }
        let sizes = |split: Split, parties| -> Vec<usize> {
            let dealt = split.deal(10, parties);
            assert_eq!(dealt.concat(), (0..10).collect::<Vec<_>>());
            dealt.iter().map(Vec::len).collect()
        };
        assert_eq!(sizes(Split::Uniform, 3), [3, 3, 4]);
        assert_eq!(sizes(Split::First(0.5), 3), [5, 2, 3]);
        assert_eq!(sizes(Split::Uniform, 12).iter().filter(|size| **size == 0).count(), 2);
    }

    #[test]
    fn records_are_held_out_by_chance_and_the_same_for_the_same_seed() {
        let (kept, held) = hold_out(1000, 300, 1);
        assert_eq!((kept.len(), held.len()), (700, 300));
        let mut all = [kept.clone(), held.clone()].concat();
        all.sort_unstable();
        assert_eq!(all, (0..1000).collect::<Vec<_>>());
        assert_eq!(hold_out(1000, 300, 1), (kept, held.clone()));
        assert_ne!(hold_out(1000, 300, 2).1, held);
        let mean = held.iter().sum::<usize>() as f64 / 300.0;
        assert!((mean - 500.0).abs() < 60.0, "{mean}");
    }

    /// The records of a person stay together, and no more people than necessary are held out.
    #[test]
    fn whole_people_are_held_out() {
        let people: Vec<usize> = (0..1000).map(|record| record * 7 % 130).collect();
        let (kept, held) = hold_out_people(&people, 250, 3);
        assert_eq!(hold_out_people(&people, 250, 3), (kept.clone(), held.clone()));
        assert_ne!(hold_out_people(&people, 250, 4).1, held);
        assert!((250..258).contains(&held.len()) && kept.len() + held.len() == 1000);
        assert!(held.iter().all(|&out| kept.iter().all(|&stays| people[out] != people[stays])));
        assert_eq!(by_person(&[4, 2, 0, 9], Some(&[1, 0, 1, 0, 0, 5, 5, 5, 5, 1])), [vec![4], vec![2, 0, 9]]);
        assert_eq!(by_person(&[4, 2], None), [[4], [2]]);
    }

    #[test]
    fn held_out_records_are_of_the_kind_of_their_neighbours() {
        let dealt = [vec![1, 2, 4], vec![5, 7], vec![10]];
        assert_eq!(by_nearest_party(&dealt, &[0, 3, 6, 8, 9, 11]), [vec![0, 3], vec![6, 8, 9], vec![11]]);
        assert_eq!(by_nearest_party(&[], &[1]), Vec::<Vec<usize>>::new());
    }

    #[test]
    fn dealing_out_can_be_cancelled() {
        let csr = Csr::new(2, 2, vec![0, 1, 2], vec![0, 1], vec![1.0f64, 2.0]);
        let cancel = Cancel::default();
        cancel.cancel();
        let dealt = cancel.scope(|| parts_until(&Matrix::Sparse(csr), &[vec![0], vec![1]], &cancel));
        assert!(matches!(dealt, Err(Error::Core(partwise::Error::Interrupted))));
    }

    #[test]
    fn parties_get_their_records_and_no_others() {
        let names: Vec<String> = ["b", "a", "b", "c"].map(String::from).to_vec();
        let (parties, dealt) = by_name(&names);
        assert_eq!((parties.join(""), &dealt), ("bac".into(), &vec![vec![0, 2], vec![1], vec![3]]));
        let dense: Matrix<f64> =
            Matrix::Dense(Dense::new(4, 2, Order::ColMajor, Values::Bytes((0..8).collect())));
        let offsets = vec![0, 2, 4, 6, 8];
        let values = vec![0., 4., 1., 5., 2., 6., 3., 7.];
        let sparse = Matrix::Sparse(Csr::new(4, 2, offsets, vec![0, 1, 0, 1, 0, 1, 0, 1], values));
        for matrix in [dense, sparse] {
            let parts = parts(&matrix, &dealt).unwrap();
            assert_eq!((parts[0].rows(), parts[0].cols()), (2, 2));
            let mut entries = Vec::new();
            parts[0].for_each_stored(|feature, record, value| entries.push((feature, record, value)));
            entries.sort_by(|a, b| a.partial_cmp(b).unwrap());
            assert_eq!(entries, [(0, 0, 0.0), (0, 1, 2.0), (1, 0, 4.0), (1, 1, 6.0)]);
        }
        let matrix: Matrix<f64> =
            Matrix::Dense(Dense::new(2, 1, Order::RowMajor, Values::Bytes(vec![1, 2].into())));
        let error = super::parts(&matrix, &Split::Uniform.deal(2, 3)).unwrap_err().to_string();
        assert!(error.contains("parties") && error.contains("would have no records"), "{error}");
    }
}
