//! What a path says about the process that wrote the file.
//!
//! In: a path. Out: [`PathHint`]: rank, local rank, attempt, host and stream as far as names of files and folders tell. It
//! leaves weighing the hint against what the lines themselves say to `case`.

use std::path::{Component, Path};

use serde::Serialize;

/// The writer of a file, as its path tells. Every field is optional.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct PathHint {
    /// Global rank (`rank_3.log`, `nccl_trace_rank_3`).
    pub rank: Option<u32>,
    /// Rank on its node (torchrun's `attempt_0/3/stderr.log`).
    pub local_rank: Option<u32>,
    /// How often the launcher had restarted (torchrun's `attempt_1`).
    pub attempt: Option<u32>,
    /// Host or node (`node-17/`, `dgx04.cluster.log`).
    pub host: Option<String>,
    /// Which stream of the process.
    pub stream: Option<OutputStream>,
}

/// A process's standard streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl PathHint {
    /// Reads a path, its last component being the file.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        let names: Vec<&str> = path
            .components()
            .filter_map(|component| match component {
                Component::Normal(name) => name.to_str(),
                _ => None,
            })
            .collect();
        let mut hint = Self::default();
        let Some((file, folders)) = names.split_last() else { return hint };
        hint.read_torchrun(folders);
        for folder in folders {
            hint.read_name(folder, folder);
        }
        hint.read_name(file, file.split('.').next().unwrap_or(file));
        hint
    }

    /// `<run>/attempt_0/<local rank>/stdout.log`. On one node the local rank is the rank; a path can't tell how many there are.
    fn read_torchrun(&mut self, folders: &[&str]) {
        if let [.., attempt, local_rank] = folders
            && let Some(attempt) = attempt.strip_prefix("attempt_").and_then(number)
            && let Some(local_rank) = number(local_rank)
        {
            self.attempt = Some(attempt);
            self.local_rank = Some(local_rank);
        }
    }

    fn read_name(&mut self, name: &str, stem: &str) {
        if let Some(local_rank) = number_after(name, "local_rank").or_else(|| number_after(name, "localrank"))
        {
            self.local_rank = Some(local_rank);
        } else if let Some(rank) = number_after(name, "rank") {
            self.rank = Some(rank);
        }
        if is_host(stem) {
            self.host = Some(stem.to_owned());
        }
        match stem.to_ascii_lowercase().as_str() {
            "stdout" | "out" => self.stream = Some(OutputStream::Stdout),
            "stderr" | "err" => self.stream = Some(OutputStream::Stderr),
            _ => {}
        }
    }
}

fn number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// The number after the last `word` in a name, with at most one of `_`, `-`, `.`, `=` between.
fn number_after(name: &str, word: &str) -> Option<u32> {
    let lower = name.to_ascii_lowercase();
    let at = lower.rfind(word)?;
    let begins_a_word = !lower.get(..at)?.ends_with(|c: char| c.is_ascii_alphabetic());
    let rest = lower.get(at + word.len()..)?;
    let rest = rest.strip_prefix(['_', '-', '.', '=']).unwrap_or(rest);
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    begins_a_word.then(|| rest.get(..digits)?.parse().ok()).flatten()
}

/// Names that clusters give their machines: a telling first word and a number.
fn is_host(stem: &str) -> bool {
    const WORDS: &[&str] =
        &["node", "host", "dgx", "hgx", "gpu", "compute", "ip-", "worker", "trainer", "pod"];
    let lower = stem.to_ascii_lowercase();
    let known = WORDS.iter().find_map(|word| lower.strip_prefix(word));
    known.is_some_and(|rest| {
        rest.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '_')
            && rest.ends_with(|c: char| c.is_ascii_alphanumeric())
            && rest.bytes().any(|byte| byte.is_ascii_digit())
            && !lower.contains("rank")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(path: &str) -> PathHint {
        PathHint::of(Path::new(path))
    }

    #[test]
    fn torchrun_folders_give_the_local_rank() {
        assert_eq!(
            hint("ddplog/none_celmxw3m/attempt_0/1/stderr.log"),
            PathHint {
                local_rank: Some(1),
                attempt: Some(0),
                stream: Some(OutputStream::Stderr),
                ..PathHint::default()
            }
        );
    }

    #[test]
    fn file_names_give_the_rank() {
        assert_eq!(hint("logs/rank_12.log").rank, Some(12));
        assert_eq!(hint("logs/rank3.out").rank, Some(3));
        assert_eq!(hint("dumps/nccl_trace_rank_7").rank, Some(7));
        assert_eq!(hint("train-Rank-0004.txt").rank, Some(4));
        assert_eq!(hint("x_local_rank_2.log"), PathHint { local_rank: Some(2), ..PathHint::default() });
    }

    #[test]
    fn folders_give_the_host() {
        assert_eq!(hint("logs/node-17/rank_3.log").host.as_deref(), Some("node-17"));
        assert_eq!(hint("dgx04.log").host.as_deref(), Some("dgx04"));
    }

    #[test]
    fn other_names_say_nothing() {
        for path in
            ["crank3.log", "ranking.log", "run.log", "gpu.log", "attempt_0/x/run.log", "rank_99999999999.log"]
        {
            assert_eq!(hint(path), PathHint::default(), "{path}");
        }
    }
}
