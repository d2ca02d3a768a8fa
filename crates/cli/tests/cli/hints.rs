//! Refusals give advice that works.

use crate::common::*;

#[test]
fn refusals_give_advice_that_works() {
    let desk = Desk::with_digits();
    let simulate =
        "simulate digits.npy --rank 3 --parties 4 --rounds 2 --protocol syn-sd --quiet --no-report";
    desk.run(&format!("{simulate} --audit --out audited"));
    desk.run(&format!("{simulate} --out plain"));
    desk.run("split digits.npy --nodes 2 --out M.parts");
    desk.write("x.csv", "1,2,3\n3,,1\n");
    desk.write("good.csv", "1,2\n3,1\n");
    let mut said = String::new();
    for words in [
        "audit audited",
        "audit plain",
        "split good.csv --nodes 2 --out parts",
        "factorize M.parts --rank 3 --out r",
        "inspect M.parts",
        "top plain",
        "evaluate plain digits.npy",
        "transform plain digits.npy --out W.npy",
        "inspect x.csv",
    ] {
        said.push_str(&format!("{words}\n  {}\n", desk.refused(words)));
    }
    insta::assert_snapshot!("hints", said);
    // Following the advice works.
    desk.run("top plain/party-1");
    desk.run("transform plain/party-1 digits.npy --out W.npy");
}
