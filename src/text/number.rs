//! Numbers as people read them: digits in groups of three, per cents, sizes in binary units.
//!
//! In: integers and ratios. Out: short texts. JSON never passes through here; it carries exact integers.

/// `2162294784` as `2,162,294,784`.
#[must_use]
pub fn grouped(value: u128) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// As [`grouped`], with a minus sign before negative values.
#[must_use]
pub fn grouped_signed(value: i128) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", grouped(value.unsigned_abs()))
}

/// A per cent figure with two decimals; below 0.01 it says so, and from 1,000 on it has none.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rounded figure for people; casts saturate"
)]
pub fn percent(value: f64) -> String {
    if value > 0.0 && value < 0.01 {
        "less than 0.01 %".to_owned()
    } else if value >= 1_000.0 {
        format!("{} %", grouped(value.round() as u128))
    } else {
        format!("{value:.2} %")
    }
}

/// Bytes in the binary unit that leaves one to four digits: `4.03 GiB`; below 1 KiB plain bytes.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "two decimals for people; the exact count stands beside it")]
pub fn binary_size(bytes: u128) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut scaled = bytes as f64 / 1_024.0;
    if scaled < 1.0 {
        return format!("{bytes} bytes");
    }
    let mut unit = 0;
    while scaled >= 1_024.0 && unit + 1 < units.len() {
        scaled /= 1_024.0;
        unit += 1;
    }
    format!("{scaled:.2} {}", units.get(unit).copied().unwrap_or("EiB"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stand_in_groups_of_three() {
        let cases = [(0, "0"), (999, "999"), (1_000, "1,000"), (2_162_294_784, "2,162,294,784")];
        for (value, text) in cases {
            assert_eq!(grouped(value), text);
        }
        assert_eq!(grouped(u128::MAX), "340,282,366,920,938,463,463,374,607,431,768,211,455");
        assert_eq!(grouped_signed(-2_132_672_513), "-2,132,672,513");
        assert_eq!(grouped_signed(i128::MIN), "-170,141,183,460,469,231,731,687,303,715,884,105,728");
    }

    #[test]
    fn per_cents_are_never_rounded_to_nothing() {
        assert_eq!(percent(0.689_697), "0.69 %");
        assert_eq!(percent(0.0), "0.00 %");
        assert_eq!(percent(0.000_4), "less than 0.01 %");
        assert_eq!(percent(123_456.7), "123,457 %");
    }

    #[test]
    fn sizes_take_the_unit_that_fits() {
        assert_eq!(binary_size(512), "512 bytes");
        assert_eq!(binary_size(4_324_589_568), "4.03 GiB");
        assert_eq!(binary_size(1 << 20), "1.00 MiB");
        assert_eq!(binary_size(1 << 80), "1048576.00 EiB");
    }
}
