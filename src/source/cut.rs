//! What becomes of a mapped file that another process cuts while it is read.
//!
//! In: the address ranges of mappings. Out: pages behind the new end read as zeros instead of ending the process by SIGBUS,
//! and the mapping is marked as cut. Any other SIGBUS ends the process as it would have. It leaves saying so to whoever reads.
//!
//! Touching a page of a mapped file behind its end raises SIGBUS (mmap(2)). Logs are cut in daily life: `> run.log`, or a
//! rotation that copies and truncates. The handler lays an anonymous page range over the rest of the mapping, which the
//! faulting instruction then reads. It uses atomics and the system call mmap alone.

#[cfg(target_os = "linux")]
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Mappings that can be guarded at once; a file that finds no slot is copied instead of mapped.
const SLOTS: usize = 8192;

struct Slot {
    /// Whether somebody owns it.
    taken: AtomicBool,
    /// First byte; 0 while there is no mapping.
    start: AtomicUsize,
    /// Byte behind the last.
    end: AtomicUsize,
    /// Whether pages of it were missing.
    cut: AtomicBool,
}

static GUARDED: [Slot; SLOTS] = [const {
    Slot {
        taken: AtomicBool::new(false),
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        cut: AtomicBool::new(false),
    }
}; SLOTS];

/// The mask of the bytes inside a page; 0 until the handler is installed.
static PAGE_MASK: AtomicUsize = AtomicUsize::new(0);

/// A mapping whose missing pages read as zeros. Dropped before the mapping goes.
pub(super) struct Guard(&'static Slot);

impl Guard {
    /// Whether a mapping must have one. Other systems than Linux go on without: there the signal ends the process.
    pub(super) const NEEDED: bool = cfg!(target_os = "linux");

    /// Guards `bytes`, the bytes of a mapping. None where no slot is left or the handler can't be installed.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        if !install() {
            return None;
        }
        let free = |slot: &&Slot| {
            slot.taken.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        // Thousands of dumps are mapped one after the other: each search begins behind the last one's slot.
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let from = NEXT.fetch_add(1, Ordering::Relaxed) % SLOTS;
        let slot = GUARDED.iter().skip(from).chain(&GUARDED).find(free)?;
        let start = bytes.as_ptr() as usize;
        slot.cut.store(false, Ordering::Relaxed);
        slot.end.store(start.saturating_add(bytes.len()), Ordering::Relaxed);
        slot.start.store(start, Ordering::Release);
        Some(Self(slot))
    }

    /// Whether pages of it were missing when they were read.
    pub(super) fn was_cut(&self) -> bool {
        self.0.cut.load(Ordering::Acquire)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.start.store(0, Ordering::Release);
        self.0.taken.store(false, Ordering::Release);
    }
}

/// There is no handler on other systems.
#[cfg(not(target_os = "linux"))]
fn install() -> bool {
    false
}

/// Installs the handler, once.
#[cfg(target_os = "linux")]
fn install() -> bool {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        #[expect(
            unsafe_code,
            reason = "asks the page size and sets the handler of one signal, with a zeroed sigaction whose every field is \
                      then valid; SA_ONSTACK because the standard library gives its threads such a stack"
        )]
        // SAFETY: see the reason.
        unsafe {
            let page = libc::sysconf(libc::_SC_PAGESIZE);
            let Some(mask) = usize::try_from(page).ok().and_then(|page| page.checked_sub(1)) else { return };
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_bus_error as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
            if libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut()) == 0 {
                PAGE_MASK.store(mask, Ordering::Release);
            }
        }
    });
    PAGE_MASK.load(Ordering::Acquire) != 0
}

/// The handler. Returning runs the faulting instruction once more.
#[cfg(target_os = "linux")]
extern "C" fn on_bus_error(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    #[expect(
        unsafe_code,
        reason = "the kernel hands a valid siginfo; mmap is a system call that replaces pages of a mapping that this process owns \
                  and nobody unmaps meanwhile, since the faulting thread reads it; errno is put back; sigaction and the \
                  default action end the process where the fault is not ours"
    )]
    // SAFETY: see the reason.
    unsafe {
        let address = (*info).si_addr() as usize;
        let page = address & !PAGE_MASK.load(Ordering::Acquire);
        for slot in &GUARDED {
            let start = slot.start.load(Ordering::Acquire);
            let end = slot.end.load(Ordering::Relaxed);
            if start == 0 || !(start..end).contains(&address) {
                continue;
            }
            let errno = libc::__errno_location();
            let before = *errno;
            let laid = libc::mmap(
                page as *mut libc::c_void,
                end - page,
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            );
            *errno = before;
            if laid == libc::MAP_FAILED {
                break;
            }
            slot.cut.store(true, Ordering::Release);
            return;
        }
        let mut default: libc::sigaction = std::mem::zeroed();
        default.sa_sigaction = libc::SIG_DFL;
        libc::sigaction(signal, &raw const default, std::ptr::null_mut());
    }
}
