//! Defines the list of all protocols, which gives the names in files and on the command line, and the lists in
//! tests.

use super::Protocol;

/// Each line is a protocol: its help text, its variant, its name, and its `Definition`.
macro_rules! protocols {
    ($($(#[$doc:meta])* $variant:ident, $name:literal, $definition:expr;)+) => {
        /// The methods.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum Protocol {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)+
        }

        impl Protocol {
            /// All of them.
            pub const ALL: [Protocol; [$($name),+].len()] = [$(Protocol::$variant),+];

            /// Their names, in the same order.
            pub const NAMES: [&'static str; [$($name),+].len()] = [$($name),+];

            pub(crate) fn definition(self) -> &'static dyn Definition {
                match self {
                    $(Protocol::$variant => &$definition,)+
                }
            }

            /// The implementation of the protocol.
            fn run<T: Real>(self, run: &mut PartyRun<'_, '_, T>) -> Result<Finish> {
                match self {
                    $(Protocol::$variant => $definition.run(run),)+
                }
            }
        }
    };
}

impl Protocol {
    /// Its name.
    pub fn name(self) -> &'static str {
        Protocol::NAMES[self as usize]
    }

    /// Whether parties do not wait for each other.
    pub fn is_asynchronous(self) -> bool {
        self.definition().is_asynchronous()
    }

    /// Whether the U-subproblem is sketched over the party's records.
    pub fn sketches_records(self) -> bool {
        self.definition().sketches_records()
    }

    /// Whether the V-subproblem is sketched over features.
    pub fn sketches_features(self) -> bool {
        self.definition().sketches_features()
    }

    /// Whether the method uses a parameter of [`Settings`](super::Settings).
    pub fn uses(self, parameter: &str) -> bool {
        self.definition().uses(parameter)
    }
}
