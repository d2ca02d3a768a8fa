//! Registries: one line per variant defines an enum with names, a list, parsing and help texts.

/// Defines an enum of named choices. Every line is `Variant = "name", "help text";`.
macro_rules! registry {
    (
        $(#[$meta:meta])*
        pub enum $name:ident of $what:literal {
            $($(#[cfg($cfg:meta)])? $variant:ident = $label:literal, $help:literal;)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[cfg($cfg)])? #[doc = $help] $variant,)+
        }

        impl $name {
            /// All variants, in the order in which they are offered.
            pub const ALL: &'static [$name] = &[$($(#[cfg($cfg)])? $name::$variant),+];

            /// The name of the variant.
            pub fn name(self) -> &'static str {
                match self {
                    $($(#[cfg($cfg)])? $name::$variant => $label,)+
                }
            }

            /// The help text of the variant.
            pub fn help(self) -> &'static str {
                match self {
                    $($(#[cfg($cfg)])? $name::$variant => $help,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                $name::ALL.iter().copied().find(|choice| choice.name() == text).ok_or_else(|| {
                    let names: Vec<&str> = $name::ALL.iter().map(|choice| choice.name()).collect();
                    format!("{text} is not a {}; choose one of {}", $what, names.join(", "))
                })
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

pub(crate) use registry;
