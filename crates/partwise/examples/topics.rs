//! Topics from a sparse matrix of texts and words, built from a few sentences.

use std::collections::BTreeMap;

use partwise::options::Init;
use partwise::{Matrix, Nmf};

const TEXTS: [&str; 9] = [
    "the cat chased the mouse and the mouse hid from the cat",
    "a cat sleeps while a mouse eats cheese",
    "cheese attracts every mouse and every cat knows it",
    "the telescope showed a planet and its moon",
    "a moon orbits a planet and a planet orbits a star",
    "every star in the telescope was a distant planet or moon",
    "bake the bread with flour water and salt",
    "flour and water make dough and dough makes bread",
    "salt the dough before you bake bread",
];
const IGNORED: [&str; 17] = [
    "the", "a", "and", "it", "its", "or", "in", "was", "with", "from", "while", "every", "you", "before",
    "hid", "make", "makes",
];

pub(crate) fn main() -> partwise::Result<()> {
    let mut words: BTreeMap<&str, usize> = BTreeMap::new();
    for word in TEXTS.iter().flat_map(|text| text.split(' ')).filter(|word| !IGNORED.contains(word)) {
        let number = words.len();
        words.entry(word).or_insert(number);
    }
    let counts = TEXTS.iter().enumerate().flat_map(|(row, text)| {
        text.split(' ').filter_map(|word| words.get(word)).map(move |&col| (row, col, 1.0_f32))
    });
    // Words that come twice in a text are added up.
    let m = Matrix::from_triplets(TEXTS.len(), words.len(), counts)?;
    println!("{} texts, {} words, {} entries that are not 0", m.rows(), m.cols(), m.stored());

    let model = Nmf::new(3).init(Init::Nndsvdar).exact_rows(true).fit(&m)?;
    for topic in 0..model.components() {
        let weight = |col: usize| model.v().get(col, topic);
        let mut ranked: Vec<(&str, usize)> = words.iter().map(|(&word, &col)| (word, col)).collect();
        ranked.sort_by(|a, b| weight(b.1).total_cmp(&weight(a.1)));
        let top: Vec<&str> = ranked.iter().take(3).map(|(word, _)| *word).collect();
        let texts: Vec<usize> = (0..m.rows()).filter(|&row| strongest(&model, row) == topic).collect();
        println!("topic {topic}: {}; texts {texts:?}", top.join(", "));
    }
    Ok(())
}

/// The main topic of a text.
fn strongest(model: &partwise::Model, row: usize) -> usize {
    let u = model.u();
    (0..u.cols()).max_by(|&a, &b| u.get(row, a).total_cmp(&u.get(row, b))).unwrap_or(0)
}
