//! The network port that broke, where a line of NCCL names it.
//!
//! In: NCCL's lines. Out: [`BrokenPort`]. The ranks that only lost their peer on it print completions, which name their own port.

use crate::case::Case;
use crate::read::event::Data;

/// A port of a network card that reported an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenPort {
    /// Card (`mlx5_3`).
    pub device: String,
    /// Port number.
    pub port: String,
    /// Host that printed the line.
    pub host: Option<String>,
    /// Rank that printed it.
    pub rank: Option<u32>,
}

impl BrokenPort {
    /// `port 1 of mlx5_3 on gpu-12, rank 99`
    #[must_use]
    pub fn words(&self) -> String {
        let host = self.host.as_ref().map(|host| format!(" on {host}")).unwrap_or_default();
        let rank = self.rank.map(|rank| format!(", rank {rank}")).unwrap_or_default();
        format!("port {} of {}{host}{rank}", self.port, self.device)
    }
}

/// The first port whose error a line reports: `NET/IB : mlx5_3:1 Got async event : port error`.
#[must_use]
pub fn broken(case: &Case) -> Option<BrokenPort> {
    let (_, event, (device, port)) = case
        .pick(|data| match data {
            Data::Nccl(line) => named(&line.message),
            _ => None,
        })
        .next()?;
    Some(BrokenPort { device, port, host: event.origin.host.clone(), rank: event.origin.rank })
}

fn named(message: &str) -> Option<(String, String)> {
    let (head, event) = message.split_once("Got async event")?;
    if !event.contains("error") {
        return None;
    }
    let (device, port) = head.trim().rsplit(' ').next()?.split_once(':')?;
    let is_name =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (is_name(device) && is_name(port)).then(|| (device.to_owned(), port.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_a_port_names_it() {
        let found = named("NET/IB : mlx5_3:1 Got async event : port error");
        assert_eq!(found, Some(("mlx5_3".to_owned(), "1".to_owned())));
        assert_eq!(named("NET/IB : mlx5_3:1 Got async event : GID table change"), None);
        assert_eq!(named("NET/IB : Got completion from peer 10.0.0.1<5> with status=12"), None);
    }
}
