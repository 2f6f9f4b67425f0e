//! Whether an input is still the one that was saved.
//!
//! In: bytes. Out: a short text. FNV-1a over the length, the first and the last mebibyte: it tells a changed log from an
//! unchanged one in a millisecond however long it is. It protects from nobody's intent.

/// Bytes at each end that count.
const END_BYTES: usize = 1 << 20;

/// The digest of an input.
#[must_use]
pub fn digest(bytes: &[u8]) -> String {
    let mut hash = Fnv::default();
    hash.add(&(bytes.len() as u64).to_le_bytes());
    hash.add(bytes.get(..END_BYTES.min(bytes.len())).unwrap_or_default());
    let tail = bytes.len().saturating_sub(END_BYTES).max(END_BYTES);
    hash.add(bytes.get(tail..).unwrap_or_default());
    hash.text()
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo; draft-eastlake-fnv).
pub(super) struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    pub(super) fn text(&self) -> String {
        format!("{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_test_values() {
        let of = |text: &str| {
            let mut hash = Fnv::default();
            hash.add(text.as_bytes());
            hash.text()
        };
        assert_eq!(of(""), "cbf29ce484222325");
        assert_eq!(of("a"), "af63dc4c8601ec8c");
        assert_eq!(of("foobar"), "85944171f73967e8");
    }

    #[test]
    fn length_head_and_tail_count() {
        let long = vec![7_u8; 3 << 20];
        let mut tail = long.clone();
        *tail.last_mut().unwrap() = 8;
        let mut head = long.clone();
        head[0] = 8;
        let all =
            [digest(&long), digest(&tail), digest(&head), digest(&long[1..]), digest(b""), digest(b"x")];
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
        assert_eq!(digest(&long), digest(&vec![7_u8; 3 << 20]));
    }
}
