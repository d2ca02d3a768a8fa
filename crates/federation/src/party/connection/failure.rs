//! Why a connection failed, and whether to retry.

use tonic::{Code, Status};

use crate::deadline::Late;
use crate::error::{Error, Result};
use crate::tls;

/// Why a connection failed.
pub enum DialFailure {
    /// A retry may help.
    Temporary(String),
    /// None will.
    Permanent(Error),
}

/// A retry may help, and may be made sooner.
pub fn late(late: Late) -> DialFailure {
    DialFailure::Temporary(late.to_string())
}

/// The reason why a connection ended, unless a retry cannot help.
pub fn why(status: &Status) -> Result<Option<String>> {
    match of_status(status) {
        DialFailure::Permanent(error) => Err(error),
        DialFailure::Temporary(why) => Ok(Some(why)),
    }
}

/// Classifies an error of a handshake.
pub fn of_handshake(error: std::io::Error) -> DialFailure {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(_)) => DialFailure::Permanent(Error::Network {
            what: "the coordinator".into(),
            problem: format!("shows {}; check authority and server_name", tls::words_of(&error)),
        }),
        Some(rustls::Error::AlertReceived(alert)) => {
            DialFailure::Permanent(refused_by_alert(&format!("{alert:?}")))
        }
        _ => DialFailure::Temporary(error.to_string()),
    }
}

fn refused_by_alert(alert: &str) -> Error {
    let reason = format!(
        "TLS alert {alert}; its log says more, the certificate may be expired or of another authority"
    );
    Error::Refused { reason }
}

/// Classifies a gRPC status.
pub fn of_status(status: &Status) -> DialFailure {
    match status.code() {
        Code::PermissionDenied | Code::InvalidArgument | Code::Unimplemented => {
            DialFailure::Permanent(Error::Refused { reason: status.message().into() })
        }
        _ => {
            let mut cause: Option<&dyn std::error::Error> = Some(status);
            while let Some(error) = cause {
                let inner = error.downcast_ref::<std::io::Error>().and_then(|error| error.get_ref());
                if let Some(rustls::Error::AlertReceived(alert)) =
                    inner.and_then(|inner| inner.downcast_ref::<rustls::Error>())
                {
                    return DialFailure::Permanent(refused_by_alert(&format!("{alert:?}")));
                }
                cause = error.source();
            }
            DialFailure::Temporary(match status.code() {
                Code::AlreadyExists | Code::DeadlineExceeded => status.message().into(),
                _ => "the connection broke".into(),
            })
        }
    }
}
