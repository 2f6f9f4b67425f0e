//! What a compiled kernel needs of a device, against what devices have.
//!
//! In: architectures and sizes. Out: findings. Source of the limits: CUDA C++ Programming Guide, technical specifications
//! per compute capability, "maximum amount of shared memory per thread block".

/// Most shared memory of one block, in bytes, by compute capability as one number (90 for 9.0).
#[must_use]
pub fn shared_limit_bytes(architecture: u32) -> Option<u64> {
    let kib = match architecture {
        50..=62 => 48,
        70 | 72 => 96,
        75 => 64,
        80 | 87 => 163,
        86 | 89 | 120 | 121 => 99,
        90 | 100 | 101 | 103 | 110 => 227,
        _ => return None,
    };
    Some(kib << 10)
}

/// `sm_90a`, `90`, `9.0`, `compute_90` → 90 and whether the code is for that architecture alone (`a`).
#[must_use]
pub fn architecture(text: &str) -> Option<(u32, bool)> {
    let text = text.trim();
    let digits = text
        .strip_prefix("sm_")
        .or_else(|| text.strip_prefix("sm"))
        .or_else(|| text.strip_prefix("compute_"));
    let digits = digits.unwrap_or(text);
    let (digits, only) = digits.strip_suffix(['a', 'f']).map_or((digits, false), |d| (d, true));
    let number = digits.replace('.', "").parse().ok().filter(|&n: &u32| (20..1000).contains(&n))?;
    Some((number, only))
}

/// Why code for `built` doesn't run on `device`; `None` where it does. Binary code runs on its own major version from its
/// minor one on; PTX runs on any later device, unless it is for one architecture alone.
#[must_use]
pub fn mismatch(built: (u32, bool), device: u32, has_ptx: bool) -> Option<String> {
    let (target, only) = built;
    let (major, minor) = (target / 10, target % 10);
    let binary_runs = major == device / 10 && if only { minor == device % 10 } else { minor <= device % 10 };
    let ptx_runs = has_ptx && !only && target <= device;
    (!binary_runs && !ptx_runs).then(|| {
        format!("it was compiled for sm_{target}, the device is sm_{device}: a launch fails with no kernel image (209)")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures() {
        assert_eq!(architecture("sm_90a"), Some((90, true)));
        assert_eq!(architecture("9.0"), Some((90, false)));
        assert_eq!(architecture("sm90"), Some((90, false)));
        assert_eq!(architecture("x"), None);
    }

    #[test]
    fn what_runs_where() {
        assert_eq!(mismatch((80, false), 86, false), None);
        assert!(mismatch((86, false), 80, false).is_some());
        assert!(mismatch((80, false), 90, false).is_some());
        assert_eq!(mismatch((80, false), 90, true), None);
        assert!(mismatch((90, true), 100, true).is_some());
        assert_eq!(shared_limit_bytes(90), Some(232_448));
    }
}
