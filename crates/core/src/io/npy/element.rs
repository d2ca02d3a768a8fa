//! Element types of NumPy arrays and their conversion, chunk by chunk.

use crate::real::{Precision, Real};

/// A type of numbers in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElementKind {
    Bool,
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F32,
    F64,
}

/// How an element is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    pub kind: ElementKind,
    big_endian: bool,
}

/// Runs `$body` with `$decode` bound to a function from `$width` bytes to the stored number.
macro_rules! with_decoder {
    ($element:expr, |$decode:ident| $body:expr) => {{
        macro_rules! number {
            ($type:ident) => {
                if $element.big_endian {
                    let $decode = $type::from_be_bytes;
                    $body
                } else {
                    let $decode = $type::from_le_bytes;
                    $body
                }
            };
        }
        match $element.kind {
            ElementKind::Bool => {
                let $decode = |[byte]: [u8; 1]| u8::from(byte != 0);
                $body
            }
            ElementKind::U8 => number!(u8),
            ElementKind::I8 => number!(i8),
            ElementKind::U16 => number!(u16),
            ElementKind::I16 => number!(i16),
            ElementKind::U32 => number!(u32),
            ElementKind::I32 => number!(i32),
            ElementKind::U64 => number!(u64),
            ElementKind::I64 => number!(i64),
            ElementKind::F32 => number!(f32),
            ElementKind::F64 => number!(f64),
        }
    }};
}

impl Element {
    /// 32-bit integers, little endian.
    pub const I32: Element = Element { kind: ElementKind::I32, big_endian: false };

    /// The type that a header's `descr` names; an error is a sentence on what to do instead.
    pub fn parse(descr: &str) -> Result<Element, String> {
        let order = descr.chars().next().filter(|order| "<>|=".contains(*order));
        let code = if order.is_some() { &descr[1..] } else { descr };
        let kind = match code {
            "b1" | "?" => ElementKind::Bool,
            "u1" => ElementKind::U8,
            "i1" => ElementKind::I8,
            "u2" => ElementKind::U16,
            "i2" => ElementKind::I16,
            "u4" => ElementKind::U32,
            "i4" => ElementKind::I32,
            "u8" => ElementKind::U64,
            "i8" => ElementKind::I64,
            "f4" => ElementKind::F32,
            "f8" => ElementKind::F64,
            _ => return Err(refusal(descr, code)),
        };
        let big_endian = match order {
            Some('>') => true,
            Some('<') => false,
            _ => cfg!(target_endian = "big"),
        };
        Ok(Element { kind, big_endian })
    }

    /// Bytes of one element.
    pub fn width(self) -> u64 {
        match self.kind {
            ElementKind::Bool | ElementKind::U8 | ElementKind::I8 => 1,
            ElementKind::U16 | ElementKind::I16 => 2,
            ElementKind::U32 | ElementKind::I32 | ElementKind::F32 => 4,
            ElementKind::U64 | ElementKind::I64 | ElementKind::F64 => 8,
        }
    }

    /// NumPy's name of the type.
    pub fn name(self) -> &'static str {
        match self.kind {
            ElementKind::Bool => "bool",
            ElementKind::U8 => "uint8",
            ElementKind::I8 => "int8",
            ElementKind::U16 => "uint16",
            ElementKind::I16 => "int16",
            ElementKind::U32 => "uint32",
            ElementKind::I32 => "int32",
            ElementKind::U64 => "uint64",
            ElementKind::I64 => "int64",
            ElementKind::F32 => "float32",
            ElementKind::F64 => "float64",
        }
    }

    /// The narrower real type that holds all of this type's numbers (those of 64-bit integers beyond 2^53 are in
    /// neither).
    pub fn precision(self) -> Precision {
        match self.kind {
            ElementKind::Bool
            | ElementKind::U8
            | ElementKind::I8
            | ElementKind::U16
            | ElementKind::I16
            | ElementKind::F32 => Precision::F32,
            ElementKind::U32 | ElementKind::I32 | ElementKind::U64 | ElementKind::I64 | ElementKind::F64 => {
                Precision::F64
            }
        }
    }

    /// Whether the type can count.
    pub fn is_integer(self) -> bool {
        !matches!(self.kind, ElementKind::Bool | ElementKind::F32 | ElementKind::F64)
    }

    /// Whether the file's bytes are those of a `T` in memory.
    pub fn is_native<T: Real>(self) -> bool {
        let kind = match T::PRECISION {
            Precision::F32 => ElementKind::F32,
            Precision::F64 => ElementKind::F64,
        };
        self.kind == kind && self.big_endian == cfg!(target_endian = "big")
    }

    /// Whether any byte but 0 means 1.
    pub fn is_bool(self) -> bool {
        self.kind == ElementKind::Bool
    }

    /// Whether numbers are kept as bytes.
    pub fn is_byte(self) -> bool {
        matches!(self.kind, ElementKind::U8 | ElementKind::Bool)
    }

    /// Appends numbers that are bytes to `out`.
    pub fn bytes(self, bytes: &[u8], out: &mut Vec<u8>) {
        match self.kind {
            ElementKind::Bool => out.extend(bytes.iter().map(|&byte| u8::from(byte != 0))),
            _ => out.extend_from_slice(bytes),
        }
    }

    /// Appends the numbers in `bytes` to `out`.
    pub fn reals<T: Real>(self, bytes: &[u8], out: &mut Vec<T>) {
        with_decoder!(self, |decode| {
            out.extend(bytes.as_chunks().0.iter().map(|&item| T::from_f64(decode(item) as f64)))
        })
    }

    /// Appends the integers in `bytes` to `out`; those above `i64::MAX`, which no size reaches, become it.
    pub fn integers(self, bytes: &[u8], out: &mut Vec<i64>) {
        with_decoder!(self, |decode| {
            out.extend(
                bytes.as_chunks().0.iter().map(|&item| (decode(item) as i128).min(i64::MAX as i128) as i64),
            )
        })
    }
}

fn refusal(descr: &str, code: &str) -> String {
    let what = match code.bytes().next() {
        Some(b'c') => "complex numbers",
        Some(b'S' | b'U' | b'a' | b'T') => "text",
        Some(b'O') => "Python objects",
        Some(b'M' | b'm') => "dates or times",
        Some(b'V') => "records or raw bytes",
        Some(b'f') => "floating-point numbers of a width other than 32 and 64 bits",
        _ => "elements of an unknown type",
    };
    format!(
        "the array contains {what} (type {:?}), but Partwise reads 8- to 64-bit integers, float32 and float64; \
         convert it, for example with .astype('float32')",
        descr.chars().take(24).collect::<String>()
    )
}
