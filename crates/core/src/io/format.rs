//! File formats: one file implements [`Format`], and one line in [`formats!`] registers it.

use std::io::{self, Write};
use std::path::Path;

use super::memory::Budget;
use super::part::{self, Parts, Wanted};
use super::source::Source;
use super::stream::Layout;
use super::{Input, ReadOptions, WriteOptions};
use crate::error::Result;
use crate::matrix::Matrix;
use crate::real::Real;
use crate::wording::Wording;

/// The properties of a format.
pub(super) struct FormatInfo {
    /// Its name, with its article.
    pub name: &'static str,
    /// Endings of file names, without the dot.
    pub endings: &'static [&'static str],
    /// The first bytes of all its files, if they are the same.
    pub signature: Option<Signature>,
    /// Whether [`Format::read_parts`] works.
    pub in_parts: bool,
    /// Whether, and how, [`Format::write`] works.
    pub writes: Writes,
}

/// The output of a format.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Writes {
    /// The format is read only.
    Nothing,
    /// The zeros of a sparse matrix too.
    Dense,
    /// A sparse matrix as such.
    Sparse,
}

/// The first bytes that identify a format.
pub(super) struct Signature {
    pub bytes: &'static [u8],
    /// The format of a file with these first bytes, with its article.
    pub what: &'static str,
    /// The advice if the name suggests another format.
    pub cure: &'static str,
}

/// An opened file that does not contradict its name.
pub(super) struct Opened<'a> {
    pub source: Source<'a>,
    pub budget: Budget<'a>,
}

/// A file format.
pub(super) trait Format {
    /// The properties of the format.
    const INFO: FormatInfo;

    /// Reads a matrix.
    fn read<T: Real>(file: Opened<'_>, options: &ReadOptions) -> Result<Input<T>>;

    /// Reads the wanted parts of a matrix.
    fn read_parts<T: Real>(file: Opened<'_>, _wanted: Wanted<'_>) -> Result<Parts<T>> {
        Err(part::not_in_parts(file.budget.path))
    }

    /// The layout of a matrix in the file; `None` if it cannot be streamed.
    fn layout(_file: Opened<'_>) -> Result<Option<Layout>> {
        Ok(None)
    }

    /// Refuses a matrix that the format cannot hold.
    fn check_write<T: Real>(_path: &Path, _matrix: &Matrix<T>) -> Result<()> {
        Ok(())
    }

    /// What is lost or unexpected in the written file, as a sentence.
    fn write_note<T: Real>(input: &Input<T>) -> Option<Wording> {
        let labelled = input.row_labels.is_some() || input.col_labels.is_some();
        labelled.then(|| "the format cannot store row and column names, so they are dropped".into())
    }

    /// Writes a matrix.
    fn write<T: Real>(_writer: &mut dyn Write, _input: &Input<T>, _options: WriteOptions) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "a format that cannot be written"))
    }
}

/// Declares the formats. A line has a description, the variant, which is also the name of the type that implements
/// [`Format`], and the module with that type. If several formats start with the same bytes, the first one
/// identifies them.
macro_rules! formats {
    ($(#[doc = $what:literal] $(#[cfg($cfg:meta)])? $format:ident in $module:ident;)*) => {
        /// The formats that [`read`] knows.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum FileFormat {
            $(#[doc = $what] $(#[cfg($cfg)])? $format,)*
        }

        impl FileFormat {
            /// All formats.
            pub const ALL: [FileFormat; [$($(#[cfg($cfg)])? stringify!($format)),*].len()] = [$($(#[cfg($cfg)])? FileFormat::$format),*];

            fn info(self) -> &'static FormatInfo {
                match self {
                    $($(#[cfg($cfg)])? FileFormat::$format => const { &<$module::$format as Format>::INFO },)*
                }
            }

            fn read<T: Real>(self, file: Opened<'_>, options: &ReadOptions) -> Result<Input<T>> {
                match self {
                    $($(#[cfg($cfg)])? FileFormat::$format => $module::$format::read(file, options),)*
                }
            }

            fn read_parts<T: Real>(self, file: Opened<'_>, wanted: Wanted<'_>) -> Result<Parts<T>> {
                match self {
                    $($(#[cfg($cfg)])? FileFormat::$format => $module::$format::read_parts(file, wanted),)*
                }
            }

            fn layout(self, file: Opened<'_>) -> Result<Option<stream::Layout>> {
                match self {
                    $($(#[cfg($cfg)])? FileFormat::$format => $module::$format::layout(file),)*
                }
            }

            fn check_write<T: Real>(self, path: &Path, matrix: &Matrix<T>) -> Result<()> {
                match self {
                    $($(#[cfg($cfg)])? FileFormat::$format => $module::$format::check_write(path, matrix),)*
                }
            }

            fn write_note<T: Real>(self, input: &Input<T>) -> Option<$crate::wording::Wording> {
                match self {
                    $($(#[cfg($cfg)])? FileFormat::$format => $module::$format::write_note(input),)*
                }
            }

            fn write<T: Real>(
                self,
                writer: &mut dyn io::Write,
                input: &Input<T>,
                options: WriteOptions,
            ) -> io::Result<()> {
                match self {
                    $($(#[cfg($cfg)])? FileFormat::$format => $module::$format::write(writer, input, options),)*
                }
            }
        }
    };
}
pub(super) use formats;
