//! Every reader on good, damaged and hostile files.
