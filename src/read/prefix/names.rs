//! Heads that name a process or host without square brackets: Ray and vLLM, journald, pdsh, kubectl, NCCL.
//!
//! In: text at a head. Out: fields of [`Origin`] and the head's length. A word that could be an error's own name
//! (`RuntimeError:`, `python3:`) is left alone.

use super::super::event::Origin;
use super::super::scan::{small, small_after};
use super::{bracket, stamp};

/// Longest head that is read.
const HEAD_LIMIT_BYTES: usize = 160;

/// `(RayWorkerWrapper pid=123, ip=10.0.0.1) `, `(EngineCore_DP0 pid=1) `, `(VllmWorker TP1 pid=5) `, `(raylet) `.
pub fn parenthesis(text: &str, origin: &mut Origin) -> Option<usize> {
    let close = text.bytes().take(HEAD_LIMIT_BYTES).position(|byte| byte == b')')?;
    let inner = text.get(1..close)?;
    let named_pid = inner.find("pid=");
    let named_ip = inner.find("ip=").filter(|&at| at == 0 || inner.as_bytes().get(at - 1) == Some(&b' '));
    if named_pid.is_none() && named_ip.is_none() && !inner.starts_with("raylet") {
        return None;
    }
    if inner.contains(['\'', '"', '{', ';']) {
        return None;
    }
    let name_end =
        [named_pid, named_ip, inner.find("rank=")].into_iter().flatten().min().unwrap_or(inner.len());
    let name = inner.get(..name_end)?.trim_matches([' ', ',']);
    if !name.is_empty() {
        origin.process = Some(name.to_owned());
        worker_rank(name, origin);
    }
    origin.pid = small_after(inner, "pid=").or(origin.pid);
    origin.rank = small_after(inner, "rank=").or(origin.rank);
    if let Some(at) = named_ip {
        let host = inner.get(at + 3..)?.split([',', ' ']).next()?;
        origin.host = Some(host.to_owned());
    }
    let end = close + 1;
    Some(end + usize::from(text.as_bytes().get(end) == Some(&b' ')))
}

/// The tensor-parallel rank in a worker's name (`VllmWorker TP1`, `Worker_DP0_TP1`).
fn worker_rank(name: &str, origin: &mut Origin) {
    let process = origin.process.take();
    if let Some(at) = name.find([' ', '_']) {
        bracket::parallel(name.get(at + 1..).unwrap_or(""), origin);
    }
    origin.process = process;
}

/// `host:pid:tid [device] ` before NCCL's own words; the date before it was taken already.
pub fn nccl(text: &str, origin: &mut Origin) -> Option<usize> {
    let token = text.get(..text.bytes().take(HEAD_LIMIT_BYTES).position(|byte| byte == b' ')?)?;
    let mut parts = token.rsplitn(3, ':');
    let (tid, pid, host) = (parts.next()?, parts.next()?, parts.next()?);
    let (tid, pid) = (small(tid)?, small(pid)?);
    if !tid.1.is_empty() || !pid.1.is_empty() || host.is_empty() || host.contains(['/', '[', '(']) {
        return None;
    }
    let rest = text.get(token.len()..)?.trim_start_matches(' ');
    let (device, after) = match rest.strip_prefix('[') {
        Some(inner) => {
            let (device, tail) = small(inner.trim_start())?;
            (Some(device), tail.strip_prefix(']')?.trim_start_matches(' '))
        }
        None if rest.starts_with("NCCL ") => (None, rest),
        None => return None,
    };
    origin.device = device.or(origin.device);
    origin.host = Some(host.to_owned());
    origin.pid = Some(pid.0);
    origin.tid = Some(tid.0);
    Some(text.len() - after.len())
}

/// A journal or syslog head in any language: `Jan  2 15:04:05 host proc[12]: `, `6月 10 16:45:05 host kernel: `.
pub fn journal(text: &str, origin: &mut Origin) -> Option<usize> {
    let (time, len) = stamp::month_name(text)?;
    let rest = text.get(len..)?;
    origin.time = Some(time);
    if rest.starts_with('[') {
        return Some(len);
    }
    let rest = rest.strip_prefix(' ')?;
    let sender = sender(rest, origin).unwrap_or(0);
    Some(len + 1 + sender)
}

/// `host proc[12]: ` or `host kernel: ` after a stamp.
pub fn sender(text: &str, origin: &mut Origin) -> Option<usize> {
    let host = text.split(' ').next()?;
    if !is_host(host) {
        return None;
    }
    let rest = text.get(host.len() + 1..)?;
    let name = rest.split(' ').next()?;
    let process = name.strip_suffix(':')?;
    if process.is_empty() || process.len() > 64 {
        return None;
    }
    let (process, pid) = match process.split_once('[') {
        Some((process, pid)) => (process, small(pid.strip_suffix(']')?).map(|(pid, _)| pid)),
        None => (process, None),
    };
    if pid.is_none() && process != "kernel" && !is_host(process) {
        return None;
    }
    origin.host = Some(host.to_owned());
    origin.process = Some(process.to_owned());
    origin.pid = pid.or(origin.pid);
    let end = host.len() + 1 + name.len();
    Some(end + usize::from(text.as_bytes().get(end) == Some(&b' ')))
}

/// Host heads: `node1: node1: ` (pdsh), `worker-0: `, `trainer-0  | ` (compose), `pod container ` before a strong head.
pub fn host(text: &str, origin: &mut Origin) -> Option<usize> {
    let token = text.get(..text.bytes().take(HEAD_LIMIT_BYTES).position(|byte| byte == b' ')?)?;
    let rest = text.get(token.len()..)?;
    if let Some(name) = token.strip_suffix(':') {
        if !is_host(name) {
            return None;
        }
        let rest = rest.get(1..)?;
        if let Some(second) = rest.strip_prefix(token) {
            origin.host = Some(name.to_owned());
            return Some(text.len() - second.strip_prefix(' ').unwrap_or(second).len());
        }
        if !is_surely_host(name) && !is_strong(rest) {
            return None;
        }
        origin.host = Some(name.to_owned());
        return Some(token.len() + 1);
    }
    if !is_host(token) {
        return None;
    }
    let after = rest.trim_start_matches(' ');
    if let Some(message) =
        after.strip_prefix("| ").filter(|_| token.bytes().any(|byte| byte.is_ascii_digit()))
    {
        origin.host = Some(token.to_owned());
        return Some(text.len() - message.len());
    }
    if after.starts_with("[stderr] ") || after.starts_with("[stdout] ") {
        origin.process = Some(token.to_owned());
        return Some(text.len() - after.get(9..)?.len());
    }
    if is_surely_host(token) && rest.len() - after.len() == 1 {
        let strong = is_strong(after) || after.split_once(' ').is_some_and(|(_, tail)| is_strong(tail));
        if strong {
            origin.host = Some(token.to_owned());
            let container = if is_strong(after) { 0 } else { after.split(' ').next()?.len() + 1 };
            return Some(token.len() + 1 + container);
        }
    }
    None
}

/// Text that no program prints but at the head of a message.
pub fn is_strong(text: &str) -> bool {
    const HEADS: [&str; 5] =
        ["[rank", "[Rank ", "Traceback (most recent call last)", "  File \"", "terminate called"];
    HEADS.iter().any(|head| text.starts_with(head))
        || is_glog_letter(text)
        || stamp::leading(text).is_some()
        || nccl(text, &mut Origin::default()).is_some()
}

/// `[E1129 …` or `[W CUDAGuardImpl…`, and not `[Errno 122]`.
fn is_glog_letter(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next() == Some(b'[')
        && bytes.next().is_some_and(|letter| matches!(letter, b'E' | b'W' | b'I' | b'F'))
        && bytes.next().is_some_and(|next| next.is_ascii_digit() || next == b' ')
}

/// A word that may be a host or pod: letters, digits, dots, dashes.
fn is_host(word: &str) -> bool {
    (1..=80).contains(&word.len())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
        && word.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric)
        && !is_source_file(word)
        && !is_program(word)
        && !["Error", "Exception", "Warning", "Interrupt"].iter().any(|end| word.ends_with(end))
}

/// A host-like word that is no program and no error's name: digits with a dash or after a node's usual name.
fn is_surely_host(word: &str) -> bool {
    const STARTS: [&str; 17] = [
        "node", "gpu", "worker", "host", "compute", "ip-", "pod", "trainer", "master", "launcher", "dgx",
        "hgx", "gn", "cn", "nid", "slurm", "rank",
    ];
    if word.bytes().any(|byte| byte.is_ascii_uppercase()) || !is_host(word) {
        return false;
    }
    let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
    let address =
        word.split('.').count() == 4 && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    address
        || (has_digit
            && !word.contains('_')
            && (word.contains('-') || STARTS.iter().any(|start| word.starts_with(start))))
}

/// Programs whose names open their own messages.
fn is_program(word: &str) -> bool {
    const PROGRAMS: [&str; 22] = [
        "python",
        "gcc",
        "g++",
        "ld",
        "lib",
        "cuda-",
        "nvidia-",
        "nvcc",
        "ptxas",
        "collect",
        "cc1",
        "bash",
        "sh",
        "srun",
        "slurm_script",
        "slurmstepd",
        "clang",
        "x86_64-",
        "aarch64-",
        "sm_",
        "eth",
        "mlx",
    ];
    PROGRAMS.iter().any(|program| {
        let (Some(head), Some(tail)) = (word.get(..program.len()), word.get(program.len()..)) else {
            return false;
        };
        head.eq_ignore_ascii_case(program)
            && (program.ends_with('-') || !tail.starts_with(|next: char| next.is_ascii_lowercase()))
    })
}

/// Whether a word ends like a source file.
pub fn is_source_file(word: &str) -> bool {
    const ENDINGS: [&str; 14] =
        [".py", ".cpp", ".cc", ".cu", ".cuh", ".h", ".hpp", ".c", ".rs", ".go", ".cxx", ".sh", ".so", ".jl"];
    ENDINGS.iter().any(|ending| word.ends_with(ending))
}
