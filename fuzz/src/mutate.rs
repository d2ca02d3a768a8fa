//! Mutations without coverage feedback: the fallback without libFuzzer.

/// A small generator of pseudorandom numbers (SplitMix64).
pub struct Dice(pub u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, or 0.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// Numbers at the borders of what types hold.
const INTERESTING: [u64; 12] = [
    0,
    1,
    0x7f,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    0x1_0000_0000,
    0x7ff0_0000_0000_0000,
    0x7fff_ffff_ffff_ffff,
    u64::MAX,
];

/// Words that text formats treat in their own way.
const WORDS: [&[u8]; 14] = [
    b"\n",
    b"\r\n",
    b",",
    b"\t",
    b"\"",
    b" ",
    b"-1",
    b"nan",
    b"inf",
    b"1e999",
    b"0",
    b"18446744073709551616",
    b"4294967296",
    b"99999999999",
];

/// One of the seeds after a few changes.
pub fn mutant(seeds: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = seeds[dice.below(seeds.len())].clone();
    for _ in 0..=dice.below(6) {
        change(&mut bytes, seeds, dice);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], dice: &mut Dice) {
    let place = dice.below(bytes.len());
    let run = |dice: &mut Dice, length: usize| {
        let begin = dice.below(length);
        begin..begin + dice.below((length - begin).min(64) + 1)
    };
    match dice.below(8) {
        0 if !bytes.is_empty() => bytes[place] ^= 1 << dice.below(8),
        1 if !bytes.is_empty() => bytes[place] = dice.next() as u8,
        2 => {
            let number = INTERESTING[dice.below(INTERESTING.len())].to_le_bytes();
            let width = 1 << dice.below(4);
            bytes.iter_mut().skip(place).zip(&number[..width]).for_each(|(byte, new)| *byte = *new);
        }
        3 => bytes.truncate(place),
        4 => {
            let gone = run(dice, bytes.len());
            bytes.drain(gone);
        }
        5 => {
            let again = run(dice, bytes.len());
            let copy = bytes[again].to_vec();
            bytes.splice(place..place, copy);
        }
        6 => {
            let other = &seeds[dice.below(seeds.len())];
            let part = other[run(dice, other.len())].to_vec();
            let end = (place + part.len() * dice.below(2)).min(bytes.len());
            bytes.splice(place..end, part);
        }
        _ => {
            let word = WORDS[dice.below(WORDS.len())];
            bytes.splice(place..place, word.iter().copied());
        }
    }
}
