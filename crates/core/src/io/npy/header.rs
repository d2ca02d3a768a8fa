//! The header of a `.npy` file: a Python dictionary of three keys, read by one pass without recursion.

/// What the header says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Header {
    /// The element type, such as `<f8`.
    pub descr: String,
    /// Whether the first index runs fastest.
    pub fortran: bool,
    /// The size of each dimension.
    pub shape: Vec<u64>,
}

const NOT_A_HEADER: &str = "not a NumPy header (descr, fortran_order, shape); save the array again";

/// Reads the dictionary; an error is a sentence on what is wrong.
pub(crate) fn parse(text: &[u8]) -> Result<Header, String> {
    let mut cursor = Cursor { rest: text };
    cursor.header()
}

struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn header(&mut self) -> Result<Header, String> {
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        self.expect(b'{')?;
        while !self.accept(b'}') {
            let key = self.string()?;
            self.expect(b':')?;
            match key {
                "descr" if self.peek() == Some(b'[') => {
                    return Err("a record array, not a matrix; save one of its fields".to_string());
                }
                "descr" => descr = Some(self.string()?.to_string()),
                "fortran_order" => fortran = Some(self.boolean()?),
                "shape" => shape = Some(self.tuple()?),
                _ => return Err(NOT_A_HEADER.to_string()),
            }
            if !self.accept(b',') {
                self.expect(b'}')?;
                break;
            }
        }
        match (descr, fortran, shape, self.peek()) {
            (Some(descr), Some(fortran), Some(shape), None) => Ok(Header { descr, fortran, shape }),
            _ => Err(NOT_A_HEADER.to_string()),
        }
    }

    fn peek(&mut self) -> Option<u8> {
        self.rest = self.rest.trim_ascii_start();
        self.rest.first().copied()
    }

    fn accept(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        if self.accept(byte) { Ok(()) } else { Err(NOT_A_HEADER.to_string()) }
    }

    /// The bytes for which `belongs` holds.
    fn take_while(&mut self, belongs: impl Fn(u8) -> bool) -> &'a [u8] {
        let length = self.rest.iter().position(|&byte| !belongs(byte)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    /// A string without escapes: no element type of numbers or text needs one.
    fn string(&mut self) -> Result<&'a str, String> {
        let quote = self.peek().filter(|byte| matches!(byte, b'\'' | b'"')).ok_or(NOT_A_HEADER)?;
        self.expect(quote)?;
        let content = self.take_while(|byte| byte != quote);
        self.expect(quote)?;
        std::str::from_utf8(content).map_err(|_| NOT_A_HEADER.to_string())
    }

    fn boolean(&mut self) -> Result<bool, String> {
        self.peek();
        match self.take_while(|byte| byte.is_ascii_alphabetic()) {
            b"True" => Ok(true),
            b"False" => Ok(false),
            _ => Err(NOT_A_HEADER.to_string()),
        }
    }

    fn tuple(&mut self) -> Result<Vec<u64>, String> {
        let mut sizes = Vec::new();
        self.expect(b'(')?;
        while !self.accept(b')') {
            self.peek();
            let digits = self.take_while(|byte| byte.is_ascii_digit());
            let size = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
            sizes.push(size.ok_or_else(|| {
                format!("{:?} in the shape is not a size; save the array again", self.lossy(digits))
            })?);
            // Python 2 wrote long integers with an L.
            self.accept(b'L');
            if !self.accept(b',') {
                self.expect(b')')?;
                break;
            }
        }
        Ok(sizes)
    }

    /// What stands where digits should, shortened for a message.
    fn lossy(&self, digits: &[u8]) -> String {
        let shown = if digits.is_empty() { self.rest } else { digits };
        String::from_utf8_lossy(&shown[..shown.len().min(24)]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_numpy_writes() {
        let header = parse(b"{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }     \n").unwrap();
        assert_eq!(header, Header { descr: "<f8".to_string(), fortran: false, shape: vec![3, 4] });
        assert_eq!(parse(b"{'shape':(5L,),'fortran_order':True,\"descr\":\"|u1\"}").unwrap().shape, [5]);
        assert_eq!(
            parse(b"{'descr': '|S3', 'fortran_order': False, 'shape': (), }\n").unwrap().shape,
            Vec::<u64>::new()
        );
    }

    #[test]
    fn refuses_the_rest() {
        for text in [
            "",
            "{",
            "{}",
            "{'descr': '<f8'}",
            "{'descr': '<f8', 'fortran_order': 1, 'shape': (3,)}",
            "{'descr': '<f8', 'fortran_order': True, 'shape': (3,)} x",
            "{'descr': '<f8', 'fortran_order': True, 'shape': 3}",
            "{'descr': '<f8', 'fortran_order': True, 'shape': (3,), 'more': 1}",
        ] {
            assert_eq!(parse(text.as_bytes()), Err(NOT_A_HEADER.to_string()), "{text}");
        }
        let negative = parse(b"{'descr': '<f8', 'fortran_order': True, 'shape': (-3, 2)}").unwrap_err();
        assert!(negative.contains("which is no size"), "{negative}");
        let huge =
            parse(b"{'descr': '<f8', 'fortran_order': True, 'shape': (99999999999999999999,)}").unwrap_err();
        assert!(huge.contains("\"99999999999999999999\""), "{huge}");
        assert!(parse(b"{'descr': [('a', '<f8')], 'shape': (3,)}").unwrap_err().contains("record array"));
    }

    #[test]
    fn nesting_does_not_matter() {
        assert!(parse(&b"(".repeat(1 << 20)).is_err());
        assert!(parse(&[&b"{'shape': "[..], &b"(".repeat(1 << 20)].concat()).is_err());
    }
}
