//! Names, addresses and keys replaced, so that a report can leave the house.
//!
//! In: texts, one after the other. Out: the same texts with hosts, users, addresses and keys replaced by placeholders
//! such as `HOST-1`, the same value always by the same one, and a list of what was replaced. It leaves file names,
//! kernel names, process ids and memory addresses: those are what the report is about. Folders go only where
//! [`Redactor::for_reports`] is asked.

mod paths;
mod patterns;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use patterns::RULES;

/// What kind of thing a placeholder stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SecretKind {
    /// A token, key or password.
    Key,
    /// An e-mail address.
    Email,
    /// A user name, most often from a home folder.
    User,
    /// A host, node or pod name.
    Host,
    /// An IP address; loopback and "any" addresses stay.
    Ip,
    /// A network card's address.
    Mac,
    /// A GPU's or MIG slice's UUID.
    GpuUuid,
    /// A serial number.
    Serial,
    /// A folder, a path that names no source or log, or an internal web address.
    Path,
}

impl SecretKind {
    /// First part of the placeholder (`HOST` of `HOST-1`).
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Key => "KEY",
            Self::Email => "EMAIL",
            Self::User => "USER",
            Self::Host => "HOST",
            Self::Ip => "IP",
            Self::Mac => "MAC",
            Self::GpuUuid => "GPU-UUID",
            Self::Serial => "SERIAL",
            Self::Path => "PATH",
        }
    }
}

/// How much of one kind was replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Replaced {
    /// The kind.
    pub kind: SecretKind,
    /// Different values.
    pub values: usize,
    /// Places where one of them stood.
    pub places: usize,
}

/// Replaces names, addresses and keys, the same value always by the same placeholder.
///
/// A host or user found in one text (`/home/ann/`, `ann@node17`) is replaced as a bare word in that text and in every later
/// one. To catch words that stand before the place that gives them away, [`learn`](Self::learn) from all texts first.
#[derive(Debug, Default)]
pub struct Redactor {
    known: HashMap<(SecretKind, String), usize>,
    values: BTreeMap<SecretKind, usize>,
    places: BTreeMap<SecretKind, usize>,
    words: HashMap<String, SecretKind>,
    keys: BTreeMap<String, SecretKind>,
    inputs: Vec<String>,
    for_reports: bool,
}

impl Redactor {
    /// A redactor that knows nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A redactor for texts of a report: it hides folders as well, and takes `\\n` for the line end that it was before
    /// escaping.
    #[must_use]
    pub fn for_reports() -> Self {
        Self { for_reports: true, ..Self::default() }
    }

    /// Names the path of an input, so that its folders are hidden wherever it stands.
    pub fn input(&mut self, path: &str) {
        if paths::known(path).is_some() && !self.inputs.iter().any(|known| known == path) {
            self.inputs.push(path.to_owned());
            // A path that begins with another one goes first.
            self.inputs.sort_by_key(|path| std::cmp::Reverse(path.len()));
        }
    }

    /// The placeholder of a value that is known to be a key, whatever it looks like.
    pub fn key(&mut self, value: &str) -> String {
        if value.is_empty() || is_placeholder(value) {
            return value.to_owned();
        }
        self.placeholder(SecretKind::Key, value)
    }

    /// Names a host, so that it is replaced wherever it stands as a word.
    pub fn host(&mut self, name: &str) {
        self.learn_word(SecretKind::Host, name);
    }

    /// Names a user, so that it is replaced wherever it stands as a word.
    pub fn user(&mut self, name: &str) {
        self.learn_word(SecretKind::User, name);
    }

    /// Notes the hosts, users and keys that `text` gives away, without replacing anything.
    pub fn learn(&mut self, text: &str) {
        let text = self.lines_of(text);
        for rule in RULES.iter() {
            for found in rule.regex.captures_iter(&text) {
                let Some(value) = found.name("v").filter(|value| (rule.accept)(value.as_str())) else {
                    continue;
                };
                match rule.kind {
                    SecretKind::Host | SecretKind::User => self.learn_word(rule.kind, value.as_str()),
                    SecretKind::Key | SecretKind::Serial if stands_out(value.as_str()) => {
                        self.keys.insert(value.as_str().to_owned(), rule.kind);
                    }
                    _ => {}
                }
            }
        }
    }

    /// `text` with everything replaced that the rules find or that was learned before.
    pub fn apply(&mut self, text: &str) -> String {
        self.learn(text);
        let without_paths = if self.for_reports { self.hide_paths(text) } else { text.to_owned() };
        let mut out = self.lines_of(&without_paths).into_owned();
        for rule in RULES.iter() {
            let mut next = String::new();
            let mut copied_to = 0;
            for found in rule.regex.captures_iter(&out) {
                let Some(value) = found.name("v").filter(|value| (rule.accept)(value.as_str())) else {
                    continue;
                };
                if is_placeholder(value.as_str()) {
                    continue;
                }
                next.push_str(out.get(copied_to..value.start()).unwrap_or(""));
                next.push_str(&self.placeholder(rule.kind, value.as_str()));
                copied_to = value.end();
            }
            if copied_to > 0 {
                next.push_str(out.get(copied_to..).unwrap_or(""));
                out = next;
            }
        }
        let out = self.replace_keys(out);
        let out = self.replace_words(&out);
        if self.for_reports { out.replace('\n', "\\n") } else { out }
    }

    /// A report's texts stand on one line each; the rules want the lines that they were.
    fn lines_of<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.for_reports && text.contains("\\n") {
            Cow::Owned(text.replace("\\n", "\n"))
        } else {
            Cow::Borrowed(text)
        }
    }

    fn hide_paths(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for input in self.inputs.clone() {
            if text.contains(&input)
                && let Some(split) = paths::known(&input).filter(|split| !is_placeholder(split.hidden))
            {
                let shown = format!("{}{}", self.placeholder(SecretKind::Path, split.hidden), split.kept);
                text = text.replace(&input, &shown);
            }
        }
        let mut out = String::with_capacity(text.len());
        let mut copied_to = 0;
        for (range, split) in
            paths::find(&text).into_iter().filter(|(_, split)| !is_placeholder(split.hidden))
        {
            out.push_str(text.get(copied_to..range.start).unwrap_or(""));
            out.push_str(&self.placeholder(SecretKind::Path, split.hidden));
            out.push_str(split.kept);
            copied_to = range.end;
        }
        out.push_str(text.get(copied_to..).unwrap_or(""));
        out
    }

    /// A key that one text gave away by its name stands bare in others.
    fn replace_keys(&mut self, mut text: String) -> String {
        for (value, kind) in self.keys.clone() {
            let times = text.matches(&value).count();
            if times > 0 {
                let placeholder = self.placeholder(kind, &value);
                *self.places.entry(kind).or_default() += times - 1;
                text = text.replace(&value, &placeholder);
            }
        }
        text
    }

    /// What was replaced so far, by kind.
    #[must_use]
    pub fn replaced(&self) -> Vec<Replaced> {
        let places = |kind| self.places.get(&kind).copied().unwrap_or(0);
        self.values
            .iter()
            .map(|(&kind, &values)| Replaced { kind, values, places: places(kind) })
            .filter(|replaced| replaced.places > 0)
            .collect()
    }

    fn learn_word(&mut self, kind: SecretKind, word: &str) {
        let telling = word.chars().count() >= 3 && !is_placeholder(word) && !patterns::is_common(word);
        if telling {
            self.words.entry(word.to_owned()).or_insert(kind);
            // `node17.cluster.local` is called `node17` elsewhere.
            if let Some((short, _)) = word.split_once('.').filter(|_| kind == SecretKind::Host)
                && short.len() >= 3
                && short.bytes().any(|byte| byte.is_ascii_digit())
            {
                self.words.entry(short.to_owned()).or_insert(kind);
            }
        }
    }

    fn placeholder(&mut self, kind: SecretKind, value: &str) -> String {
        let fresh = self.values.get(&kind).copied().unwrap_or(0) + 1;
        let number = *self.known.entry((kind, value.to_owned())).or_insert(fresh);
        if number == fresh {
            self.values.insert(kind, fresh);
        }
        *self.places.entry(kind).or_default() += 1;
        format!("{}-{number}", kind.label())
    }

    /// Replaces learned words where they stand between characters that can't belong to a name.
    fn replace_words(&mut self, text: &str) -> String {
        if self.words.is_empty() {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find(in_word) {
            let tail = rest.get(start..).unwrap_or("");
            let len = tail.find(|c| !in_word(c)).unwrap_or(tail.len());
            let word = tail.get(..len).unwrap_or("");
            out.push_str(rest.get(..start).unwrap_or(""));
            let trimmed = word.trim_end_matches(['.', '-', '_']);
            let (name, end) = word.split_at(trimmed.len());
            out.push_str(&self.word(name));
            out.push_str(end);
            rest = tail.get(len..).unwrap_or("");
        }
        out.push_str(rest);
        out
    }

    /// A word, or its placeholder; of dotted words, the first part alone may be a host (`node17.py` is a file).
    fn word(&mut self, word: &str) -> String {
        match self.words.get(word) {
            Some(&kind) => self.placeholder(kind, word),
            None => word.to_owned(),
        }
    }
}

fn in_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// A key that is replaced wherever it stands must not be a word that other sentences use.
fn stands_out(value: &str) -> bool {
    let digit = value.bytes().any(|byte| byte.is_ascii_digit());
    let mixed = value.bytes().any(|byte| byte.is_ascii_uppercase())
        && value.bytes().any(|byte| byte.is_ascii_lowercase());
    value.len() >= 6 && (digit || mixed) && !is_placeholder(value)
}

/// Whether `text` is what a redactor writes, so that a second pass leaves it.
fn is_placeholder(text: &str) -> bool {
    use SecretKind::{Email, GpuUuid, Host, Ip, Key, Mac, Path, Serial, User};
    let Some((label, number)) = text.rsplit_once('-') else { return false };
    [Key, Email, User, Host, Ip, Mac, GpuUuid, Serial, Path].iter().any(|kind| kind.label() == label)
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(text: &str) -> String {
        Redactor::new().apply(text)
    }

    #[test]
    fn home_folders_hide_their_user_everywhere() {
        assert_eq!(
            redacted("File \"/home/mallory/py/train.py\", mallory owns /scratch/mallory/x and mallory.py"),
            "File \"/home/USER-1/py/train.py\", USER-1 owns /scratch/USER-1/x and mallory.py"
        );
        assert_eq!(redacted("/root/x and /home/user/y"), "/root/x and /home/user/y");
    }

    #[test]
    fn hosts_come_from_nccl_elastic_syslog_and_prompts() {
        assert_eq!(
            redacted("gpu-node17:591:612 [1] NCCL WARN x\n[0] NCCL INFO connect to gpu-node17 failed"),
            "HOST-1:591:612 [1] NCCL WARN x\n[0] NCCL INFO connect to HOST-1 failed"
        );
        assert_eq!(redacted("  host      : trainer-0.pool.svc"), "  host      : HOST-1");
        assert_eq!(
            redacted("Nov 29 19:40:00 dgx04 kernel: NVRM: Xid (PCI:0000:00:06): 31"),
            "Nov 29 19:40:00 HOST-1 kernel: NVRM: Xid (PCI:0000:00:06): 31"
        );
        assert_eq!(
            redacted("(base) mallory@dgx04:~/x$ python3 t.py"),
            "(base) USER-1@HOST-1:~/x$ python3 t.py"
        );
    }

    #[test]
    fn addresses_go_and_loopback_stays() {
        assert_eq!(
            redacted("10.12.0.7<54321> 10.12.0.8:29500 10.12.0.7 127.0.0.1 0.0.0.0"),
            "IP-1<54321> IP-2:29500 IP-1 127.0.0.1 0.0.0.0"
        );
        assert_eq!(
            redacted("[fe80::1c2:3ff:fe4d:5e6f%eth0]:80 via b8:3f:d2:aa:00:01"),
            "[IP-1%eth0]:80 via MAC-1"
        );
    }

    #[test]
    fn what_only_looks_like_an_address_stays() {
        for text in [
            "driver 580.159.04, cuda 12.4.127.0.1, at::native::gather(a::b)",
            "faulted @ 0x7fb1_44000000 PCI:0000:00:06.0 at 19:40:00.123",
            "cudnn 9.1.0.70 loaded libcudnn.so.9.1.0.70",
            "https://pytorch.org/docs and user@example is short",
        ] {
            assert_eq!(redacted(text), text);
        }
    }

    #[test]
    fn keys_of_every_house_go() {
        for (text, want) in [
            ("token=hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345", "token=KEY-1"),
            ("using hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345 now", "using KEY-1 now"),
            ("sk-proj-AbCdEfGhIjKlMnOpQrSt", "KEY-1"),
            ("AKIAIOSFODNN7EXAMPLE", "KEY-1"),
            ("Authorization: Bearer abc.def-ghi_jkl", "Authorization: Bearer KEY-1"),
            ("export WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567", "export WANDB_API_KEY=KEY-1"),
            ("git clone https://bob:s3cr3tpw@git.corp/x", "git clone https://bob:KEY-1@HOST-1/x"),
            ("\"password\": \"hunter2!\"", "\"password\": \"KEY-1\""),
            ("ghp_0123456789abcdefghijABCDEFGHIJ012345", "KEY-1"),
        ] {
            assert_eq!(redacted(text), want);
        }
    }

    #[test]
    fn words_that_name_no_key_stay() {
        for text in ["max_tokens=4096 num_tokens: 234624", "pad_token_id=0", "key: value cache_key = (1, 2)"]
        {
            assert_eq!(redacted(text), text);
        }
    }

    #[test]
    fn uuids_serials_and_mail_are_counted() {
        let mut redactor = Redactor::new();
        let out = redactor.apply(
            "GPU at PCI:0000:00:06: GPU-00000000-1111-2222-3333-444444444444\n\
             NVRM: GPU Board Serial Number: 1654922000123\nmail ann@lab.org and ann@lab.org",
        );
        assert_eq!(
            out,
            "GPU at PCI:0000:00:06: GPU-UUID-1\nNVRM: GPU Board Serial Number: SERIAL-1\nmail EMAIL-1 and EMAIL-1"
        );
        let list: Vec<(SecretKind, usize, usize)> =
            redactor.replaced().iter().map(|r| (r.kind, r.values, r.places)).collect();
        assert_eq!(
            list,
            [(SecretKind::Email, 1, 2), (SecretKind::GpuUuid, 1, 1), (SecretKind::Serial, 1, 1)]
        );
    }

    #[test]
    fn a_report_hides_folders_and_keys_that_stand_bare() {
        let mut redactor = Redactor::for_reports();
        redactor.input("acme/logs/rank_0");
        redactor.learn("HF_TOKEN=Ab3dEf6h");
        let text =
            r"acme/logs/rank_0: File /home/mallory/py/train.py\ndgx04:5:6 [0] NCCL WARN Ab3dEf6h of mallory";
        let want = r"PATH-1/rank_0: File PATH-2/train.py\nHOST-1:5:6 [0] NCCL WARN KEY-1 of USER-1";
        assert_eq!(redactor.apply(text), want);
        assert_eq!(redactor.apply(want), want);
        assert_eq!(redactor.apply("--token of /home/mallory/py"), "--token of PATH-2");
        assert_eq!((redactor.key("plain"), redactor.key("KEY-2")), ("KEY-2".to_owned(), "KEY-2".to_owned()));
    }

    #[test]
    fn one_value_has_one_placeholder_across_texts_and_a_second_pass_changes_nothing() {
        let mut redactor = Redactor::new();
        redactor.learn("/home/mallory/x");
        assert_eq!(redactor.apply("mallory on 10.0.0.9"), "USER-1 on IP-1");
        assert_eq!(redactor.apply("10.0.0.8 and 10.0.0.9"), "IP-2 and IP-1");
        let once = redactor.apply("/home/mallory/a ann@lab.org dgx04:5:6 [0] NCCL INFO Bearer abcdefgh");
        assert_eq!(redactor.apply(&once), once);
    }
}
