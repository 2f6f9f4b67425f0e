//! Kernel logs by the form of their lines.
//!
//! In: the beginning of a text. Out: whether most of its lines were written by a kernel's log. It leaves the fields to
//! `read`.

/// Lines that are looked at.
const LINES: usize = 40;

/// Whether at least half of the first lines have one of the kernel log's forms.
pub(super) fn is_kernel_log(head: &str) -> bool {
    if head.starts_with('{') && head.get(..64).unwrap_or(head).contains("\"dmesg\"") {
        return true;
    }
    let lines = head.lines().map(str::trim_start).filter(|line| !line.is_empty()).take(LINES);
    let (all, kernel) =
        lines.fold((0, 0), |(all, kernel), line| (all + 1, kernel + usize::from(is_line(line))));
    all > 0 && kernel * 2 >= all
}

fn is_line(line: &str) -> bool {
    boot_stamp(line) || dated(line) || syslog(line) || device_record(line)
}

/// `[  118.078209] `, also after `<4>` or `kern  :warn  : `.
fn boot_stamp(line: &str) -> bool {
    let line = match line.split_once('>') {
        Some((level, rest)) if level.len() <= 4 && level.starts_with('<') => rest,
        _ => line,
    };
    let line = match line.find(": [") {
        Some(at) if at < 20 && line.starts_with(|c: char| c.is_ascii_lowercase()) => {
            line.get(at + 2..).unwrap_or(line)
        }
        _ => line,
    };
    let Some((stamp, _)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) else { return false };
    let Some((seconds, fraction)) = stamp.trim_start().split_once('.') else { return false };
    is_number(seconds) && fraction.len() == 6 && is_number(fraction)
}

/// `[Sun Nov 29 19:40:00 2026] `, as `dmesg -T` prints.
fn dated(line: &str) -> bool {
    let Some((stamp, _)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) else { return false };
    let words: Vec<&str> = stamp.split_ascii_whitespace().collect();
    let [day, month, date, time, year] = words[..] else { return false };
    let word = |text: &str| text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    word(day) && word(month) && is_number(date) && time.split(':').count() == 3 && is_number(year)
}

/// `Nov 29 19:40:00 host kernel: …`, as the journal and syslog print.
fn syslog(line: &str) -> bool {
    line.find(" kernel: ").is_some_and(|at| at < 100)
        && line.starts_with(|c: char| c.is_ascii_alphanumeric())
        && line.bytes().take(40).filter(|&byte| byte == b':').count() >= 2
}

/// `6,1234,5678901,-;…`, as `/dev/kmsg` gives.
fn device_record(line: &str) -> bool {
    let Some((head, _)) = line.split_once(';') else { return false };
    let fields: Vec<&str> = head.split(',').collect();
    matches!(fields[..], [level, number, stamp, _, ..] if is_number(level) && is_number(number) && is_number(stamp))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_kernel_log_is_one() {
        for line in [
            "[  118.078209] NVRM: Xid (PCI:0000:00:06): 13, Graphics SM Warp Exception",
            "<4>[  118.078209] NVRM: Xid",
            "kern  :warn  : [  118.078209] NVRM: Xid",
            "[Sun Nov 29 19:40:00 2026] NVRM: Xid",
            "Nov 29 19:40:00 dgx04 kernel: NVRM: Xid",
            "2026-11-29T19:40:00.123456+00:00 dgx04 kernel: NVRM: Xid",
            "4,1234,118078209,-;NVRM: Xid",
        ] {
            assert!(is_kernel_log(line), "{line}");
        }
    }

    #[test]
    fn logs_that_quote_a_kernel_line_are_not() {
        for text in [
            "[rank0]: Traceback\n[rank0]: x\n[  118.078209] NVRM: Xid\n[rank1]: y",
            "[2026-11-29 19:40:00,123] [INFO] step",
            "[0] NCCL INFO kernel: x",
            "",
        ] {
            assert!(!is_kernel_log(text), "{text}");
        }
    }
}
