//! Numbers as people read them.
//!
//! In: integers. Out: text: thousands grouped, bytes and times with a unit. Exact where exactness decides.

use std::time::Duration;

/// `2162294784` as `2,162,294,784`.
pub fn grouped(value: i128) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3 + 1);
    if value < 0 {
        out.push('-');
    }
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Bytes with a binary unit and one decimal (`99.9 MiB`).
pub fn bytes(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut tenths = u128::from(bytes) * 10;
    let mut unit = 0;
    while tenths >= 10_240 && unit + 1 < units.len() {
        tenths /= 1024;
        unit += 1;
    }
    let name = units.get(unit).copied().unwrap_or("B");
    match unit {
        0 => format!("{bytes} {name}"),
        _ => format!("{}.{} {name}", tenths / 10, tenths % 10),
    }
}

/// A time with a fitting unit.
pub fn duration(duration: Duration) -> String {
    match duration.as_millis() {
        ms @ 0..1000 => format!("{ms} ms"),
        ms @ 1000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        ms if ms / 1000 % 60 == 0 => format!("{} min", ms / 60_000),
        ms => format!("{} min {} s", ms / 60_000, ms / 1000 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(grouped(2_162_294_784), "2,162,294,784");
        assert_eq!((grouped(-1000).as_str(), grouped(999).as_str()), ("-1,000", "999"));
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1 << 30), "1.0 GiB");
        assert_eq!(bytes(u64::MAX), "15.9 EiB");
        assert_eq!(duration(Duration::from_millis(1250)), "1.2 s");
        assert_eq!(duration(Duration::from_secs(61)), "1 min 1 s");
        assert_eq!(duration(Duration::from_secs(3600)), "60 min");
    }
}
