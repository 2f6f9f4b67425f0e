//! Memory around a bad access: the allocation, the access, and where a wrapped index should have gone.
//!
//! In: a report. Out: one map, of the record that the fault is read from, else of the first that names an allocation.

use serde_json::Value;

use super::super::Report;
use super::super::model::{Evidence, EvidenceKind};
use super::address;
use crate::text::number::grouped;

/// What is drawn. Addresses and sizes in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryMap {
    /// Evidence that it is read from.
    pub evidence: String,
    /// First address of the allocation.
    pub base: u64,
    /// Its length.
    pub bytes: u64,
    /// Address of the access.
    pub address: u64,
    /// What it was: `write of 16 bytes`.
    pub access: String,
    /// The index that wrapped, where one did.
    pub wrapped: Option<Wrapped>,
}

/// A wrapped index and where it should have gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wrapped {
    /// The index as meant, in elements from the base.
    pub index: u64,
    /// Bytes of an element.
    pub element_bytes: u64,
    /// Multiples of 2³² elements that were lost.
    pub multiples: u64,
    /// The address as meant.
    pub intended: u64,
}

impl MemoryMap {
    /// The map that the report has numbers for.
    #[must_use]
    pub fn of(report: &Report) -> Option<Self> {
        let fault =
            report.verdict.fault_at.as_ref().map(|fault| fault.evidence.as_slice()).unwrap_or_default();
        let maps =
            || report.evidence.iter().filter(|one| one.kind == EvidenceKind::Sanitizer).filter_map(read);
        maps().find(|map| fault.contains(&map.evidence)).or_else(|| maps().next())
    }

    /// First address behind the allocation.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.base.saturating_add(self.bytes)
    }

    /// Where the access lies: `8,543,272,832 bytes before the allocation`.
    #[must_use]
    pub fn side(&self) -> String {
        let bytes = |count: u64| {
            format!("{} {}", grouped(u128::from(count)), if count == 1 { "byte" } else { "bytes" })
        };
        if self.address < self.base {
            format!("{} before the allocation", bytes(self.base - self.address))
        } else if self.address >= self.end() {
            format!(
                "{} past the last byte of the allocation",
                bytes((self.address - self.end()).saturating_add(1))
            )
        } else {
            format!("{} inside the allocation", bytes(self.address - self.base))
        }
    }
}

fn read(evidence: &Evidence) -> Option<MemoryMap> {
    let fields = &evidence.fields;
    let nearest = fields.get("nearest")?;
    let access = fields.get("access").and_then(Value::as_str).unwrap_or("access");
    let size = fields.get("size_bytes").and_then(Value::as_u64);
    Some(MemoryMap {
        evidence: evidence.id.clone(),
        base: address(nearest.get("base")?)?,
        bytes: nearest.get("size_bytes")?.as_u64()?,
        address: address(fields.get("address")?)?,
        access: size.map_or_else(|| access.to_owned(), |size| format!("{access} of {size} bytes")),
        wrapped: fields.get("wrapped").and_then(wrapped),
    })
}

fn wrapped(value: &Value) -> Option<Wrapped> {
    let number = |key: &str| value.get(key).and_then(Value::as_u64);
    Some(Wrapped {
        index: number("index")?,
        element_bytes: number("element_bytes")?,
        multiples: number("multiples")?,
        intended: address(value.get("intended")?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::model::From;
    use serde_json::{Map, json};

    fn record(fields: &Value) -> Evidence {
        Evidence {
            id: "e3".to_owned(),
            kind: EvidenceKind::Sanitizer,
            rank: None,
            time: None,
            from: From::Probe,
            text: String::new(),
            fields: fields.as_object().cloned().unwrap_or_else(Map::new),
        }
    }

    #[test]
    fn a_record_with_its_allocation_becomes_a_map() {
        let map = read(&record(&json!({
            "access": "write", "size_bytes": 16, "address": "0x7f74f8ed2000",
            "nearest": {"base": "0x7f75f8000000", "size_bytes": 4_326_424_576_u64},
            "wrapped": {"index": 2_155_253_760_u64, "element_bytes": 2, "multiples": 1, "intended": "0x7f76f8ed2000"},
        })))
        .unwrap();
        assert_eq!(map.access, "write of 16 bytes");
        assert_eq!(map.side(), "4,279,427,072 bytes before the allocation");
        assert_eq!(map.wrapped.unwrap().intended, 0x7f76_f8ed_2000);
    }

    #[test]
    fn the_byte_behind_the_end_is_one_past() {
        let map = |address: &str| {
            read(&record(&json!({"address": address, "nearest": {"base": "0x1000", "size_bytes": 16}})))
                .unwrap()
                .side()
        };
        assert_eq!(map("0x1010"), "1 byte past the last byte of the allocation");
        assert_eq!(map("0x1004"), "4 bytes inside the allocation");
    }

    #[test]
    fn what_is_missing_makes_no_map() {
        assert_eq!(read(&record(&json!({"address": "0x1"}))), None);
        assert_eq!(
            read(&record(&json!({"nearest": {"base": "zz", "size_bytes": 1}, "address": "0x1"}))),
            None
        );
    }
}
