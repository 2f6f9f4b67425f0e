//! The time and the user, for what is saved.
//!
//! In: the system's clock and the environment. Out: texts. The engine asks for neither.

use crate::playbook::record::Stamp;

/// The time to the second, ISO 8601, UTC.
#[must_use]
pub fn now() -> String {
    let now = jiff::Timestamp::now();
    jiff::Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}

/// The time and the user's name.
#[must_use]
pub fn stamp() -> Stamp {
    let name = ["USER", "LOGNAME"].into_iter().find_map(|variable| std::env::var(variable).ok());
    Stamp { at: Some(now()), by: name.filter(|name| !name.is_empty()) }
}
