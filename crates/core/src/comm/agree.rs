//! Shares one rank's error with every rank, so that no rank waits for one that has given up.

use super::Comm;
use crate::error::{Error, Result};

/// The result if all ranks have one; otherwise the first rank's error, on every rank.
pub fn agree<R>(comm: &dyn Comm, result: Result<R>) -> Result<R> {
    if comm.size() == 1 {
        return result;
    }
    let own = match &result {
        Ok(_) => Vec::new(),
        Err(error) => serde_json::to_vec(&error.wording()).unwrap_or_else(|_| error.to_string().into()),
    };
    let all = comm.all_gather(&own)?;
    let Some(message) = all.iter().find(|message| !message.is_empty()) else { return result };
    // All ranks run the same program, so they can decode what they encoded.
    let problem = serde_json::from_slice(message)
        .unwrap_or_else(|_| String::from_utf8_lossy(message).into_owned().into());
    Err(Error::Agreed { problem })
}

#[cfg(test)]
mod tests {
    use super::super::run_ranks;
    use super::*;

    #[test]
    fn all_ranks_have_the_first_error_or_none() {
        let said = |failing: &[usize], error: fn(usize) -> Error| -> Vec<Result<usize>> {
            let ranks = run_ranks(vec![(); 3], |comm, ()| {
                let own = comm.rank();
                let result = if failing.contains(&own) { Err(error(own)) } else { Ok(own) };
                Ok(agree(comm, result))
            });
            ranks.unwrap()
        };
        assert!(said(&[], |_| Error::Interrupted).into_iter().map(Result::unwrap).eq(0..3));
        for result in said(&[1, 2], |rank| Error::parameter("rank", format!("{rank} is bad"))) {
            let error = result.unwrap_err();
            assert_eq!(error.to_string(), "rank: 1 is bad");
            // Each front end still has its own name for the field.
            assert_eq!(error.wording().named(|field| format!("--{}", field.name)), "--rank: 1 is bad");
        }
        for result in said(&[2], |_| Error::Interrupted) {
            assert_eq!(result.unwrap_err().to_string(), "interrupted");
        }
    }
}
