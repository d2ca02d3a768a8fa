//! For trials: a party that dies, hangs or pauses at a message of its choice, to see what the others make of it.

use std::time::Duration;

/// What happens at the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It dies before it sends (or has read) it.
    Before,
    /// It dies when a first piece is sent.
    During,
    /// It dies when it is sent.
    After,
    /// It is stopped.
    Hang,
    /// It sleeps for some seconds.
    Pause,
}

/// When and how.
#[derive(Clone, Debug)]
pub struct Death {
    kind: String,
    count: usize,
    /// How.
    pub way: Way,
}

impl std::str::FromStr for Death {
    type Err = String;

    /// `upload,3,before`.
    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(',').collect();
        let [kind, count, way] = parts[..] else { return Err("give KIND,COUNT,WAY".into()) };
        let way = match way {
            "before" => Way::Before,
            "during" => Way::During,
            "after" => Way::After,
            "hang" => Way::Hang,
            "pause" => Way::Pause,
            _ => return Err(format!("there is no way {way}")),
        };
        let count = count.parse().map_err(|_| "the count is no number".to_string())?;
        Ok(Death { kind: kind.into(), count, way })
    }
}

impl Death {
    /// Whether the time has come, with this message.
    pub fn is_due(&mut self, kind: &str) -> bool {
        if self.kind != kind || self.count == 0 {
            return false;
        }
        self.count -= 1;
        self.count == 0
    }

    /// What happens before the message is sent.
    pub fn strike_before(&self) {
        match self.way {
            Way::Before => signal("-KILL"),
            Way::Hang => signal("-STOP"),
            Way::Pause => {
                eprintln!("trial: pauses");
                std::thread::sleep(Duration::from_secs(4));
            }
            Way::During | Way::After => {}
        }
    }
}

/// Dies as it would by another's hand.
pub fn signal(signal: &str) {
    let id = std::process::id().to_string();
    let _ = std::process::Command::new("kill").args([signal, &id]).status();
    // Until it arrives.
    std::thread::sleep(Duration::from_millis(200));
}
