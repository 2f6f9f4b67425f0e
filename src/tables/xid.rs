//! What an Xid and the SM's exception register mean: rows of `playbooks/tables/xid.toml`.
//!
//! In: numbers. Out: [`XidRow`] and [`EsrRow`]. It leaves reading kernel lines to `read::kernel_log`, and which Xid
//! decides an incident to `verdict`.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::class::FailureClass;

/// Where an Xid usually comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum XidOrigin {
    /// The program that used the GPU.
    Program,
    /// The kernel driver.
    Driver,
    /// Firmware of the GPU.
    Firmware,
    /// The card, its memory, power or slot.
    Hardware,
    /// NVLink or NVSwitch.
    Link,
    /// Installed software.
    Software,
    /// Another failure came first.
    Consequence,
    /// It tells of another Xid.
    Information,
}

/// What one Xid means.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct XidRow {
    /// The number.
    pub number: u32,
    /// What happened.
    pub meaning: String,
    /// Where it usually comes from.
    pub origin: XidOrigin,
    /// What to do.
    pub action: String,
    /// The class that the number alone names.
    #[serde(default)]
    pub class: Option<FailureClass>,
}

/// What a low byte of the SM's exception register means.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EsrRow {
    /// The byte.
    pub byte: u8,
    /// What happened.
    pub meaning: String,
    /// The class that it names.
    #[serde(default)]
    pub class: Option<FailureClass>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(default)]
    xid: Vec<XidRow>,
    #[serde(default)]
    esr: Vec<EsrRow>,
}

const TEXT: &str = include_str!("../../playbooks/tables/xid.toml");

static TABLE: LazyLock<Table> = LazyLock::new(|| toml::from_str(TEXT).unwrap_or_default());

/// The row of an Xid.
#[must_use]
pub fn by_number(number: u32) -> Option<&'static XidRow> {
    TABLE.xid.iter().find(|row| row.number == number)
}

/// The row of an exception register's low byte.
#[must_use]
pub fn by_esr(byte: u8) -> Option<&'static EsrRow> {
    TABLE.esr.iter().find(|row| row.byte == byte)
}

/// Every row, by number.
#[must_use]
pub fn rows() -> &'static [XidRow] {
    &TABLE.xid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_table_is_read_whole() {
        let table: Table = toml::from_str(TEXT).unwrap();
        assert_eq!((table.xid.len(), table.esr.len()), (45, 22));
        assert!(table.xid.is_sorted_by_key(|row| row.number));
    }

    #[test]
    fn rows_name_origin_and_class() {
        let fault = by_number(31).unwrap();
        assert_eq!((fault.origin, fault.class), (XidOrigin::Program, Some(FailureClass::IllegalAddress)));
        assert_eq!(by_number(149).unwrap().origin, XidOrigin::Link);
        assert_eq!(by_number(641), None);
        assert_eq!(by_esr(0x0f).unwrap().class, Some(FailureClass::MisalignedAddress));
        assert_eq!(by_esr(0x0b).unwrap().class, Some(FailureClass::IllegalInstruction));
        assert_eq!(by_esr(0x10).unwrap().class, Some(FailureClass::IllegalAddress));
    }
}
