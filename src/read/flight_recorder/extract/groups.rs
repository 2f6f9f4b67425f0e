//! Process groups and how far this rank came in each.
//!
//! In: `pg_config` and `pg_status`. Out: the groups of the dump. It leaves entries alone.

use std::sync::Arc;

use super::{Extract, KEPT_LIMIT_BYTES, RANK_LIMIT, TEXT_LIMIT_BYTES, index, word};
use crate::read::flight_recorder::DumpGroup;
use crate::read::plain::Value;

impl Extract<'_, '_> {
    /// `pg_config`: `{'0': {'name': '0', 'desc': 'default_pg', 'ranks': '[0, 1]'}}`.
    pub(super) fn groups(&mut self, config: Value) {
        for (id, info) in self.plain.pairs(config) {
            let get = |key| self.plain.get(info, key);
            let Some(name) = get("name").and_then(|name| self.short(name)).or_else(|| self.short(id)) else {
                continue;
            };
            let desc = get("desc").and_then(|desc| self.short(desc));
            let ranks = get("ranks").map(|ranks| self.ranks(ranks));
            if self.kept_bytes > KEPT_LIMIT_BYTES {
                return;
            }
            let group = self.group(name, desc);
            if let (Some(group), Some(ranks)) = (self.groups.get_mut(group as usize), ranks) {
                group.ranks = ranks;
            }
        }
    }

    /// A list of ranks: numbers, or text such as `[0, 1]` or `0-7,9`. Groups that share the value share the list.
    fn ranks(&mut self, ranks: Value) -> Arc<[u32]> {
        if let Some(known) = self.ranks_seen.get(&word(ranks)) {
            return Arc::clone(known);
        }
        let mut out: Vec<u32> = if let Some(text) = self.plain.text(ranks) {
            let mut out = Vec::new();
            for part in text.split([',', '[', ']', '(', ')', '{', '}', ' ']).filter(|part| !part.is_empty()) {
                let (from, to) = part.split_once('-').unwrap_or((part, part));
                if let (Ok(from), Ok(to)) = (from.parse::<u32>(), to.parse::<u32>()) {
                    out.extend((from..=to).take(RANK_LIMIT.saturating_sub(out.len())));
                }
            }
            out
        } else {
            let items = self.plain.items(ranks).iter().take(RANK_LIMIT);
            items.filter_map(|&rank| u32::try_from(self.plain.integer(rank)?).ok()).collect()
        };
        out.sort_unstable();
        out.dedup();
        self.kept_bytes += out.len() * size_of::<u32>();
        let out: Arc<[u32]> = out.into();
        self.ranks_seen.insert(word(ranks), Arc::clone(&out));
        out
    }

    /// A text or number as text, cut at [`TEXT_LIMIT_BYTES`].
    pub(super) fn short(&self, value: Value) -> Option<String> {
        match self.plain.text(value) {
            Some(text) => {
                let end =
                    (0..=TEXT_LIMIT_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end))?;
                text.get(..end).map(str::to_owned)
            }
            None => self.plain.shown(value),
        }
    }

    pub(super) fn group(&mut self, name: String, desc: Option<String>) -> u32 {
        if let Some(&group) = self.group_of.get(&name) {
            return group;
        }
        let group = index(self.groups.len());
        let desc = desc.filter(|desc| desc != "undefined" && !desc.is_empty());
        self.kept_bytes += 2 * name.len() + size_of::<DumpGroup>();
        self.group_of.insert(name.clone(), group);
        self.groups.push(DumpGroup { name, desc, ..DumpGroup::default() });
        group
    }

    /// `pg_status`: `{'0': {'last_enqueued_collective': 7, …}}`, keyed by the rank's own number of the group.
    pub(super) fn statuses(&mut self, status: Value) {
        for (id, numbers) in self.plain.pairs(status) {
            let Some(id) = self.plain.integer(id) else { continue };
            let only = (self.groups.len() == 1).then_some(0);
            let by_name = || self.group_of.get(&id.to_string()).copied().filter(|_| id == 0);
            let Some(group) = self.group_of_pg_id.get(&id).copied().or(only).or_else(by_name) else {
                continue;
            };
            let get = |key| self.plain.get(numbers, key).and_then(|value| self.plain.integer(value));
            let (enqueued, started, completed) = (
                get("last_enqueued_collective"),
                get("last_started_collective"),
                get("last_completed_collective"),
            );
            if let Some(group) = self.groups.get_mut(group as usize) {
                (group.last_enqueued, group.last_started, group.last_completed) =
                    (enqueued, started, completed);
            }
        }
    }
}
