//! Sentences that name fields, such as `rank`, without knowing what users call them.
//!
//! The program has options (`--rank`), the Python package parameters (`n_components`). A [`Wording`] keeps the names of
//! fields apart from its text, so that each front end puts its own names in their places ([`Wording::named`]) and leaves
//! the text, in which paths and labels are quoted, as it is.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A count with its noun: `1 iteration`, `2 iterations`.
pub fn many(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// A sentence, or a part of one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wording(Vec<Segment>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Segment {
    Text(Cow<'static, str>),
    Field(Field),
}

/// A field that is named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// The name of the field, as in the settings (`sketch_cols`).
    pub name: Cow<'static, str>,
    /// The recommended value, if there is one.
    pub value: Option<Cow<'static, str>>,
}

/// A front end's name for a field.
pub type Naming = fn(&Field) -> String;

impl Wording {
    /// A sentence that begins with this text.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Wording::default().text(text)
    }

    /// Appends text.
    pub fn text(mut self, text: impl Into<Cow<'static, str>>) -> Self {
        self.0.push(Segment::Text(text.into()));
        self
    }

    /// Appends the name of a field.
    pub fn field(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.0.push(Segment::Field(Field { name: name.into(), value: None }));
        self
    }

    /// Appends the name of a field and a recommended value.
    pub fn choice(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        self.0.push(Segment::Field(Field { name: name.into(), value: Some(value.into()) }));
        self
    }

    /// Appends another wording.
    pub fn then(mut self, more: Wording) -> Self {
        self.0.extend(more.0);
        self
    }

    /// The sentence with a front end's names of fields.
    pub fn named(&self, naming: Naming) -> String {
        let words = |segment: &Segment| match segment {
            Segment::Text(text) => text.to_string(),
            Segment::Field(field) => naming(field),
        };
        self.0.iter().map(words).collect()
    }
}

impl From<&'static str> for Wording {
    fn from(text: &'static str) -> Self {
        Wording::new(text)
    }
}

impl From<String> for Wording {
    fn from(text: String) -> Self {
        Wording::new(text)
    }
}

/// With the library's own names.
impl fmt::Display for Wording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.named(|field| match &field.value {
            Some(value) => format!("{} {value}", field.name),
            None => field.name.to_string(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_names_of_the_front_end_and_text_stays() {
        let message =
            Wording::new("/a rank/b: lower ").field("rank").text(", or use ").choice("precision", "f32");
        assert_eq!(message.to_string(), "/a rank/b: lower rank, or use precision f32");
        let shouted = message.named(|field| field.name.to_uppercase());
        assert_eq!(shouted, "/a rank/b: lower RANK, or use PRECISION");
        let read: Wording = serde_json::from_str(&serde_json::to_string(&message).unwrap()).unwrap();
        assert_eq!(read, message);
    }
}
