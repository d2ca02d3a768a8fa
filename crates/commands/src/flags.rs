//! Maps the fields that library errors name to command-line options.

use partwise::error::Error as CoreError;
use partwise::wording::{Field, Wording};
use partwise_federation::Error as FederationError;
use partwise_secure::Error as SecureError;

/// Fields that are not options.
const NOT_OPTIONS: [(&str, &str); 6] = [
    ("factors", "factors"),
    ("file", "FILE"),
    ("matrix", "matrix"),
    ("party", "party"),
    ("ranks", "ranks"),
    ("start", "start"),
];

/// The prefix of risks, each of which is accepted by an option of its own.
const ACCEPTED: &str = "accepted.";

/// The option for a field, with its value if there is one: `--sketch-cols 5`.
pub fn name(field: &Field) -> String {
    let known = NOT_OPTIONS.iter().find(|(name, _)| *name == field.name);
    let option = match (known, field.name.strip_prefix(ACCEPTED)) {
        (Some((_, name)), _) => name.to_string(),
        (None, Some(risk)) => format!("--accept-that-{}", kebab(risk)),
        (None, None) => format!("--{}", kebab(&field.name)),
    };
    match &field.value {
        Some(value) => format!("{option} {value}"),
        None => option,
    }
}

fn kebab(name: &str) -> String {
    name.replace('_', "-")
}

/// The message of an error, with options in place of fields.
pub fn words(error: &anyhow::Error) -> String {
    let wording: Option<Wording> = None
        .or_else(|| Some(error.downcast_ref::<CoreError>()?.wording()))
        .or_else(|| Some(error.downcast_ref::<SecureError>()?.wording()))
        .or_else(|| Some(error.downcast_ref::<FederationError>()?.wording()));
    wording.map_or_else(|| error.to_string(), |wording| wording.named(name))
}
