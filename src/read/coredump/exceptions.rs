//! Exception numbers of NVIDIA's debugger interface, and their names.
//!
//! In: the number in a dump's row, or a name in a tool's text. Out: the other one. What an exception is a sign of is
//! the verdict's business.

/// Names as cuda-gdb prints them, and the driver's constant without `CUDBG_EXCEPTION_`; index + 1 is the number.
const EXCEPTIONS: [(&str, &str); 22] = [
    ("Lane Illegal Address", "LANE_ILLEGAL_ADDRESS"),
    ("Lane User Stack Overflow", "LANE_USER_STACK_OVERFLOW"),
    ("Device Hardware Stack Overflow", "DEVICE_HARDWARE_STACK_OVERFLOW"),
    ("Warp Illegal Instruction", "WARP_ILLEGAL_INSTRUCTION"),
    ("Warp Out-of-range Address", "WARP_OUT_OF_RANGE_ADDRESS"),
    ("Warp Misaligned Address", "WARP_MISALIGNED_ADDRESS"),
    ("Warp Invalid Address Space", "WARP_INVALID_ADDRESS_SPACE"),
    ("Warp Invalid PC", "WARP_INVALID_PC"),
    ("Warp Hardware Stack Overflow", "WARP_HARDWARE_STACK_OVERFLOW"),
    ("Device Illegal Address", "DEVICE_ILLEGAL_ADDRESS"),
    ("Lane Misaligned Address", "LANE_MISALIGNED_ADDRESS"),
    ("Warp Assert", "WARP_ASSERT"),
    ("Lane Syscall Error", "LANE_SYSCALL_ERROR"),
    ("Warp Illegal Address", "WARP_ILLEGAL_ADDRESS"),
    ("Lane Non-migratable Atomic", "LANE_NONMIGRATABLE_ATOMSYS"),
    ("Lane Invalid Atomic", "LANE_INVALID_ATOMSYS"),
    ("Cluster Out-of-range Address", "CLUSTER_OUT_OF_RANGE_ADDRESS"),
    ("Cluster Block Not Present", "CLUSTER_BLOCK_NOT_PRESENT"),
    ("Warp Stack Canary", "WARP_STACK_CANARY"),
    ("Warp Tensor Memory Access", "WARP_TMEM_ACCESS_CHECK"),
    ("Warp Tensor Memory Leak", "WARP_TMEM_LEAK"),
    ("Warp Call Requires Newer Driver", "WARP_CALL_REQUIRES_NEWER_DRIVER"),
];

/// The name of an exception number; `None` for 0 and for numbers of newer drivers.
#[must_use]
pub fn name(number: u32) -> Option<&'static str> {
    let index = usize::try_from(number).ok()?.checked_sub(1)?;
    EXCEPTIONS.get(index).map(|(name, _)| *name)
}

/// The number of an exception that a tool names in words or by constant, whatever the case (`Warp Illegal Address`,
/// `CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS`).
#[must_use]
pub fn number(text: &str) -> Option<u32> {
    let text = text.trim();
    let constant = text.strip_prefix("CUDBG_EXCEPTION_").unwrap_or(text);
    let same =
        |(name, code): &(&str, &str)| name.eq_ignore_ascii_case(text) || code.eq_ignore_ascii_case(constant);
    let index = EXCEPTIONS.iter().position(same)?;
    u32::try_from(index + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_agree() {
        assert_eq!(name(14), Some("Warp Illegal Address"));
        assert_eq!(number("CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS"), Some(14));
        assert_eq!(name(6), Some("Warp Misaligned Address"));
        assert_eq!(name(4), Some("Warp Illegal Instruction"));
        assert_eq!(name(0), None);
        assert_eq!(name(23), None);
        for number_of in 1..=22 {
            assert_eq!(name(number_of).and_then(number), Some(number_of));
        }
    }
}
