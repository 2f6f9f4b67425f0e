//! Every name that a condition or a sentence may ask for, with its meaning.
//!
//! In: nothing. Out: [`NAMES`], which `playbook show --names` prints, `check` knows, and a sample tree in which every
//! name has a value, so that `check` can try each condition. Values come from `facts`.

use super::known::Known;

/// The names that everything else hangs under.
pub const ROOTS: [&str; 10] =
    ["verdict", "facts", "shapes", "ranks", "launch", "environment", "answers", "outcomes", "this", "limits"];

/// A name.
#[derive(Debug, Clone, Copy)]
pub struct Name {
    /// Dotted; a last part `*` stands for any name.
    pub path: &'static str,
    /// What it is, with its unit.
    pub meaning: &'static str,
    /// A value such as it may have.
    pub sample: Sample,
}

/// A value such as a name may have.
#[derive(Debug, Clone, Copy)]
pub enum Sample {
    /// Yes or no.
    Yes,
    /// A whole number.
    Number(i64),
    /// A number with a fraction.
    Fraction(f64),
    /// Text.
    Text(&'static str),
    /// Texts.
    Texts(&'static [&'static str]),
    /// Whole numbers.
    Numbers(&'static [i64]),
    /// Sizes to verify a fix at: `value`, `numel`, `wraps`.
    Verify,
}

impl Sample {
    /// What kind of value it is, in a word.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::Yes => "yes/no",
            Self::Number(_) | Self::Fraction(_) => "number",
            Self::Text(_) => "text",
            Self::Texts(_) | Self::Numbers(_) | Self::Verify => "list",
        }
    }

    fn known(self) -> Known {
        match self {
            Self::Yes => Known::from(true),
            Self::Number(number) => Known::from(number),
            Self::Fraction(number) => Known::from(number),
            Self::Text(text) => Known::from(text),
            Self::Texts(texts) => Known::from(texts.to_vec()),
            Self::Numbers(numbers) => Known::from(numbers.to_vec()),
            Self::Verify => {
                let mut row = Known::default();
                row.put("value", 234_624);
                row.put("numel", 2_162_294_784_i64);
                row.put("wraps", true);
                Known::List(vec![row])
            }
        }
    }
}

/// Whether a dotted name is one of [`NAMES`], stands above one, or is one of the open ones.
#[must_use]
pub fn is_known(path: &str) -> bool {
    NAMES.iter().any(|name| match name.path.strip_suffix('*') {
        Some(head) => {
            path.strip_prefix(head).is_some_and(|rest| !rest.is_empty()) || head.trim_end_matches('.') == path
        }
        None => name.path == path || name.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')),
    })
}

/// The known name that looks most like `path`, for a hint.
#[must_use]
pub fn nearest(path: &str) -> Option<&'static str> {
    let last = |path: &str| path.rsplit('.').next().unwrap_or("").to_owned();
    let wanted = last(path);
    NAMES
        .iter()
        .map(|name| name.path)
        .filter(|name| !name.ends_with('*'))
        .map(|name| (distance(path, name).min(distance(&wanted, &last(name)) + 1), name))
        .filter(|(distance, _)| *distance <= 2)
        .min()
        .map(|(_, name)| name)
}

/// Edits between two short texts.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().enumerate() {
        let mut before = row.first().copied().unwrap_or(0);
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
        for (j, right) in b.iter().enumerate() {
            let above = row.get(j + 1).copied().unwrap_or(0);
            let beside = row.get(j).copied().unwrap_or(0);
            let cost = before + usize::from(left != *right);
            if let Some(cell) = row.get_mut(j + 1) {
                *cell = cost.min(above + 1).min(beside + 1);
            }
            before = above;
        }
    }
    row.last().copied().unwrap_or(0)
}

/// A tree in which every name has a value.
#[must_use]
pub fn sample() -> Known {
    let mut known = Known::default();
    for root in ROOTS {
        known.put(root, Known::default());
    }
    for name in NAMES.iter().filter(|name| !name.path.ends_with('*')) {
        known.put(name.path, name.sample.known());
    }
    known
}

const fn name(path: &'static str, sample: Sample, meaning: &'static str) -> Name {
    Name { path, meaning, sample }
}

use Sample::{Fraction, Number, Numbers, Text, Texts, Verify, Yes};

/// Every name.
pub static NAMES: &[Name] = &[
    name("verdict.class", Text("illegal_address"), "failure class of the first failure"),
    name(
        "verdict.family",
        Text("illegal_address"),
        "illegal_address, illegal_instruction, nccl, segfault or other",
    ),
    name("verdict.certainty", Text("supported"), "proven, supported, suspected or undecided"),
    name("verdict.failed", Yes, "whether anything failed"),
    name("verdict.summary", Text("An illegal address."), "the verdict in one sentence"),
    name("verdict.cause", Text("int32_overflow"), "cause; missing where the evidence names none"),
    name("verdict.cause_certainty", Text("suspected"), "how sure the cause is"),
    name("verdict.cause_summary", Text("an index wrapped"), "the cause in one sentence"),
    name("verdict.domain", Text("cuda"), "cuda, nccl, signal, xid, cublas, cudnn or exit"),
    name("verdict.code", Number(700), "number of the status, as today's tables have it"),
    name("verdict.code_name", Text("cudaErrorIllegalAddress"), "name of the status"),
    name("verdict.masked_by", Text("nccl_watchdog"), "whose message hides the failure"),
    name("verdict.asynchronous", Yes, "whether it was reported later than it happened"),
    name("verdict.root_rank", Number(1), "rank that failed first"),
    name("verdict.restart", Text("pointless"), "pointless, worth_trying, after_drain or unknown"),
    name("verdict.restart_why", Text("the same input fails"), "why"),
    name("verdict.noticed.file", Text("/home/user/train.py"), "file where the failure was noticed"),
    name("verdict.noticed.line", Number(60), "its line"),
    name("verdict.noticed.function", Text("forward"), "its function"),
    name("verdict.noticed.call", Text("to"), "the call that noticed it"),
    name("verdict.noticed.is_sync_point", Yes, "whether that call waits for the GPU"),
    name("verdict.noticed.why", Text("copies to the host"), "why it notices earlier errors"),
    name("verdict.noticed.place", Text("train.py:60"), "file name and line together"),
    name("verdict.fault.kernel", Text("fused_lora_xw_kernel"), "kernel at fault"),
    name("verdict.fault.file", Text("/home/user/kernel.py"), "file of the fault"),
    name("verdict.fault.line", Number(18), "its line"),
    name("verdict.fault.block", Text("(1827,0,0)"), "block"),
    name("verdict.fault.thread", Text("(64,0,0)"), "thread"),
    name("verdict.fault.address", Number(0x7f74_f8ed_2000), "address; print it with | hex"),
    name("verdict.fault.access", Text("write 16"), "kind of access and its size in bytes"),
    name("verdict.fault.library", Text("libc.so.6"), "library of a host fault"),
    name("verdict.fault.offset", Number(0x21f0), "offset in the kernel or library"),
    name("verdict.fault.place", Text("kernel.py:18"), "file name and line together"),
    name("verdict.collective.op", Text("ALLREDUCE"), "collective that never finished"),
    name("verdict.collective.seq", Number(7), "its sequence number"),
    name("verdict.collective.group", Text("default_pg"), "its process group"),
    name("facts.inputs", Number(2), "number of inputs"),
    name("facts.kernel_log", Yes, "whether a kernel log (dmesg) is among the inputs; never missing"),
    name("facts.sanitizer_report", Yes, "whether a compute-sanitizer report is among them; never missing"),
    name("facts.core_dump", Yes, "whether a CUDA core dump is among them; never missing"),
    name("facts.triton_cache", Yes, "whether compiled kernels are among them; never missing"),
    name("facts.flight_recorder", Yes, "whether a flight-recorder dump is among them; never missing"),
    name("facts.ras", Yes, "whether an answer of NCCL RAS is among them; never missing"),
    name(
        "facts.sanitizer.finding",
        Text("out_of_bounds"),
        "out_of_bounds, misaligned, freed_memory, race, uninitialized_read, barrier, leak, …",
    ),
    name(
        "facts.sanitizer.head",
        Text("Invalid __global__ write of size 16 bytes"),
        "first line of the record",
    ),
    name("facts.sanitizer.space", Text("global"), "global, shared or local"),
    name("facts.sanitizer.kernel", Text("k"), "kernel of the record"),
    name(
        "facts.distance.kind",
        Text("wrapped"),
        "what the distance to the nearest allocation says: wrapped, too_large_to_tell, other",
    ),
    name("facts.distance.recovered_index", Number(2_155_253_760), "the index that wrapped, in elements"),
    name("facts.distance.row", Number(233_860), "its row"),
    name("facts.distance.column", Number(0), "its column"),
    name("facts.distance.element_bytes", Number(2), "element size that fits, in bytes"),
    name("facts.distance.agrees", Yes, "whether an independent fact agrees"),
    name(
        "facts.kernel.answer",
        Text("wraps"),
        "what the suspected compiled kernels say about the log's numbers: wraps, fits or unknown",
    ),
    name("facts.kernel.entry", Text("fused_lora_xw_kernel"), "the kernel that says so"),
    name("facts.kernel.why", Text("the index is loaded"), "what keeps it unknown"),
    name("facts.kernel.tried", Number(2), "in how many ways the log's numbers fit its arguments"),
    name("facts.kernel.wrapping", Number(2), "under how many of them an index wraps"),
    name("facts.kernel.always", Yes, "whether it wraps under all of them"),
    name("facts.kernel.values", Text("M=234624, N=9216"), "the arguments of one such way"),
    name(
        "facts.kernel.expression",
        Text("offs_m * stride_ym"),
        "the index that wraps, in the author's names",
    ),
    name("facts.kernel.reaches", Text("store to y_ptr"), "the access that it reaches"),
    name("facts.kernel.file", Text("/home/user/kernel.py"), "file of that index"),
    name("facts.kernel.line", Number(18), "its line"),
    name("facts.kernel.place", Text("kernel.py:18"), "file name and line together"),
    name("facts.kernel.max_value", Number(2_162_285_568), "its largest exact value"),
    name("facts.kernel.argument", Text("M"), "the argument that was swept"),
    name("facts.kernel.safe", Number(233_017), "largest value of it that is safe"),
    name("facts.kernel.first_unsafe", Number(233_018), "first value of it that wraps"),
    name("facts.kernel.lattice", Number(16), "what that argument is a multiple of"),
    name("facts.kernel.safe_on_lattice", Number(233_008), "largest safe multiple of that"),
    name("facts.kernel.with", Text("stride_ym 9,216"), "the other arguments of the index"),
    name("facts.source.checked", Yes, "whether a Triton source is among the inputs; never missing"),
    name(
        "facts.source.path",
        Text("/home/user/kernel.py"),
        "Python file that the failure names, quoted for a shell",
    ),
    name("facts.source.kernels", Number(2), "kernels in the sources among the inputs"),
    name("facts.source.findings", Number(1), "what the source check found in them"),
    name("facts.source.list", Text("kernel.py:18 int32_overflow: row * stride"), "the first of them"),
    name("facts.blocking.place", Text("kernel.py:49"), "where a run with launch blocking stopped"),
    name("facts.blocking.same_place", Yes, "whether that is the place of the first run"),
    name("facts.blocking.chain", Text("a.py:1 → b.py:2"), "own frames of the blocking run"),
    name("facts.blocking.other_chain", Text("a.py:1"), "own frames of the first run"),
    name(
        "facts.xids_apart",
        Number(1),
        "Xids of another time, process or GPU, which nothing ties to the failure",
    ),
    name(
        "facts.xids",
        Numbers(&[31]),
        "Xids; empty where a kernel log has none, missing where there is no kernel log",
    ),
    name("facts.xid.number", Number(31), "first Xid"),
    name("facts.xid.meaning", Text("GPU memory page fault"), "what it means"),
    name("facts.xid.origin", Text("program"), "program, driver, firmware, hardware, link, software, …"),
    name("facts.xid.action", Text("find the access"), "what to do"),
    name(
        "facts.driver_fault",
        Text("gpu_lost"),
        "gpu_lost, gsp, init, version_mismatch, ecc, pcie, nvlink, needs_reset, diagnostic, no_device",
    ),
    name("facts.assertion.expression", Text("index < size"), "condition that failed on the GPU"),
    name("facts.assertion.place", Text("Indexing.cu:16"), "where it stands"),
    name("facts.assertion.kernel", Text("gather"), "kernel of the assertion"),
    name("facts.assertion.int32_overflow", Yes, "whether Triton's debug check named a 32-bit overflow"),
    name("facts.graph", Text("replay"), "replay or capture, where the stack shows a CUDA graph"),
    name("facts.gpu_memory.requested_bytes", Number(1 << 42), "bytes that an allocation asked for"),
    name("facts.gpu_memory.free_bytes", Number(1 << 30), "bytes free then"),
    name("facts.gpu_memory.total_bytes", Number(1 << 37), "bytes of the GPU"),
    name("facts.gpu_memory.never_fits", Yes, "whether the request is larger than the GPU"),
    name("facts.refused.resource", Text("shared memory"), "what a refused launch asked too much of"),
    name("facts.refused.required", Number(2_097_152), "how much it asked for"),
    name("facts.refused.limit", Number(232_448), "how much there is"),
    name("facts.oom_kill.process", Text("python3"), "process that the kernel killed for memory"),
    name("facts.oom_kill.cgroup", Yes, "whether a container's limit did it"),
    name("facts.oom_kill.rss_bytes", Number(1 << 36), "memory that it held"),
    name("facts.segfault.library", Text("libc.so.6"), "library that crashed, from the kernel log"),
    name("facts.segfault.offset", Number(0x19_bc5c), "offset in it"),
    name("facts.segfault.address", Number(0), "address that was touched"),
    name("facts.segfault.process", Text("python3"), "thread that crashed"),
    name("facts.signal", Number(11), "signal that a handler reported"),
    name("facts.python_frame", Text("a.py:3"), "innermost Python frame of a host crash"),
    name("facts.native_frame", Text("memcpy"), "innermost native frame of a host crash"),
    name("facts.exit.code", Number(139), "exit code that a launcher or shell reported"),
    name("facts.exit.signal", Number(11), "signal that it reported"),
    name(
        "facts.nccl.topics",
        Texts(&["ib", "socket"]),
        "what NCCL lines are about: cuda, ib, ib_flushed, socket, peer_closed, ofi, shm, nvls, mismatch, duplicate_gpu, registration, out_of_memory, version, …",
    ),
    name("facts.nccl.result", Text("ncclSystemError"), "NCCL result that a caller printed"),
    name("facts.nccl.timed_out", Yes, "true where a watchdog printed a time-out"),
    name("facts.nccl.limit_ms", Number(600_000), "its limit in milliseconds"),
    name(
        "facts.nccl.mismatch",
        Text("size"),
        "what ranks disagree about: op, size, dtype, sequence, missing, buffer_size",
    ),
    name("facts.nccl.mismatch_text", Text("1024 against 2048"), "the disagreement as printed"),
    name("facts.nccl.missing", Numbers(&[1]), "ranks that never joined"),
    name("facts.nccl.peer_lost", Text("store"), "heartbeat, store, peer or rendezvous"),
    name("facts.messages", Text("RuntimeError: …"), "exceptions and statuses as printed, one a line"),
    name(
        "facts.triton",
        Yes,
        "whether a stack, a status, a kernel's place or an input shows that Triton ran; never missing",
    ),
    name("facts.stack", Text("/home/user/train.py"), "files of the stack, innermost first, one a line"),
    name("facts.signatures.*", Text("value"), "captures of a site's signature: facts.signatures.ID.NAME"),
    name("facts.probe.reports", Number(1), "reports of the probe that the inputs hold; never missing"),
    name("facts.probe.proven", Yes, "whether a probe proves that an index wraps; never missing"),
    name(
        "facts.probe.standing",
        Text("proves"),
        "what the most telling one does to the overflow as the cause: proves, contradicts, or open; disagree where one proves and another contradicts",
    ),
    name("facts.probe.why", Text("a probe reran the kernel"), "why, in a sentence without its full stop"),
    name("facts.probe.conclusion", Text("confirmed"), "what it concluded: confirmed, refuted, inconclusive"),
    name("facts.probe.kernel", Text("fused_lora_xw_kernel"), "kernel that it reran"),
    name("facts.probe.device", Text("NVIDIA H200"), "GPU that it ran on"),
    name("facts.probe.sweep", Text("M"), "argument whose size it varied"),
    name("facts.probe.last_pass", Number(233_008), "largest size that passed"),
    name("facts.probe.first_fail", Number(233_024), "smallest size that failed"),
    name("shapes.count", Number(1), "shapes that the evidence holds; never missing"),
    name("shapes.overflowing", Number(1), "of them, those whose last index passes 2^31-1; never missing"),
    name("shapes.all", Texts(&["234,624 × 9,216"]), "the shapes as text"),
    name(
        "shapes.first.text",
        Text("234,624 × 9,216"),
        "the likeliest shape, or the one that an ask step got",
    ),
    name("shapes.first.from", Text("log"), "log or answer"),
    name("shapes.first.near", Yes, "whether the failing process printed it near the failure"),
    name(
        "shapes.first.against",
        Text("300,001 × 9,216 is past 2,147,483,647, but the same shape passed once before"),
        "what speaks against it as the cause, where something does",
    ),
    name("shapes.first.label", Text("hidden"), "what the log calls it"),
    name("shapes.first.sweep", Text("M"), "name of the dimension that varies"),
    name("shapes.first.dims", Numbers(&[234_624, 9_216]), "sizes in elements"),
    name("shapes.first.reported", Number(234_624), "size of the dimension that varies"),
    name("shapes.first.columns", Number(9_216), "elements of one step of it"),
    name("shapes.first.numel", Number(2_162_294_784), "number of elements"),
    name("shapes.first.max_index", Number(2_162_294_783), "largest flat index"),
    name("shapes.first.dtype", Text("bfloat16"), "element type"),
    name("shapes.first.overflows", Yes, "whether the largest index passes 2^31-1"),
    name("shapes.first.excess", Number(14_811_137), "elements past 2^31-1"),
    name("shapes.first.percent", Fraction(0.69), "the same in per cent"),
    name("shapes.first.margin", Number(5), "elements to spare below 2^31-1"),
    name("shapes.first.safe", Number(233_016), "largest safe size by last index"),
    name("shapes.first.safe_by_count", Number(233_016), "largest safe size by element count"),
    name("shapes.first.granularity", Number(128), "block that the reported size comes in"),
    name("shapes.first.safe_multiple", Number(232_960), "largest safe multiple of it"),
    name("shapes.first.first_unsafe", Number(233_017), "first size that wraps"),
    name("shapes.first.first_unsafe_multiple", Number(233_088), "first multiple of the block that wraps"),
    name("shapes.first.well_past", Number(333_312), "a size well past the limit"),
    name("shapes.first.verify", Verify, "sizes to verify a fix at, each with value, numel and wraps"),
    name("ranks.count", Number(2), "ranks that the evidence names"),
    name("ranks.failed", Numbers(&[1]), "ranks that failed by themselves"),
    name("ranks.waiting", Numbers(&[0]), "ranks that waited"),
    name("ranks.silent", Numbers(&[1]), "ranks that left nothing"),
    name("ranks.terminated", Numbers(&[0]), "ranks that the launcher ended"),
    name("ranks.finished", Numbers(&[0]), "ranks that ended well"),
    name("ranks.behind", Numbers(&[1]), "ranks whose last completed collective is lowest, where they differ"),
    name("ranks.all_at_one_point", Yes, "whether all ranks completed the same collective last"),
    name("ranks.lowest_completed", Number(6), "lowest last completed sequence number"),
    name("ranks.highest_completed", Number(7), "highest"),
    name("launch.kernel", Text("fused_lora_xw_kernel"), "suspected kernel"),
    name(
        "launch.kernel_word",
        Text("fused_lora_xw_kernel"),
        "the same, where its name is one plain word that a tool can filter by",
    ),
    name("launch.mentioned", Text("k"), "kernel that a program mentions, not known to be at fault"),
    name("launch.grid", Numbers(&[1833, 72, 1]), "grid"),
    name("launch.block", Numbers(&[128, 1, 1]), "threads of a block"),
    name("launch.arguments.*", Text("234624"), "argument of the launch, by name"),
    name(
        "launch.probe",
        Text("fused_lora_xw_kernel with M = 234624 (the log's M)"),
        "the kernel that a probe step would rerun, its arguments and where each is from, and what is wanted",
    ),
    name("launch.command_known", Yes, "whether the inputs hold the command that was run; never missing"),
    name("launch.command", Texts(&["python3", "train.py"]), "its words"),
    name("launch.python", Yes, "whether it is Python"),
    name(
        "environment.*",
        Text("1"),
        "variable, setting or version that the inputs print: environment.CUDA_LAUNCH_BLOCKING, environment.torch",
    ),
    name("answers.*", Text("sharded"), "answer to the ask step of that id, hyphens as underscores"),
    name("outcomes.*", Text("faults"), "outcome taken at the step of that id, hyphens as underscores"),
    name("this.ran", Yes, "in outcomes of a run step: its command ran"),
    name("this.started", Yes, "it could be started"),
    name("this.why", Text("no such file"), "why it could not"),
    name("this.failed", Yes, "it failed, by exit status or by what it printed"),
    name("this.timed_out", Yes, "its deadline ended it"),
    name("this.stopped", Yes, "the engineer ended it"),
    name("this.exit_code", Number(1), "its exit status"),
    name("this.signal", Number(11), "the signal that ended it"),
    name("this.seconds", Number(12), "how long it took"),
    name("this.class", Text("illegal_address"), "failure class of its output alone"),
    name("this.classed", Yes, "its output alone has a failure class"),
    name("this.same_class", Yes, "that class is the incident's"),
    name("this.conclusion", Text("confirmed"), "in outcomes of a probe step: what the probe concluded"),
    name(
        "this.said",
        Text("the driver shows no GPU"),
        "in outcomes of a probe or repro step: why it could not run",
    ),
    name("this.place", Text("kernel.py:49"), "where its output says that it stopped"),
    name("this.moved", Yes, "that place differs from the incident's"),
    name("this.kernel", Text("k"), "kernel that its output names"),
    name("this.fault_place", Text("kernel.py:18"), "source line that its output names as the fault"),
    name("limits.int32", Number(2_147_483_647), "2^31-1"),
    name("limits.uint32", Number(4_294_967_295), "2^32-1"),
    name("limits.elements_2_30", Number(1_073_741_823), "2^30-1"),
    name("limits.grid_x", Number(2_147_483_647), "most blocks along x"),
    name("limits.grid_y", Number(65_535), "most blocks along y"),
    name("limits.grid_z", Number(65_535), "most blocks along z"),
    name("limits.block_threads", Number(1_024), "most threads of a block"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_hang_under_a_root() {
        let mut seen = std::collections::BTreeSet::new();
        for name in NAMES {
            assert!(seen.insert(name.path), "{} stands twice", name.path);
            assert!(ROOTS.contains(&name.path.split('.').next().unwrap()), "{}", name.path);
            assert!(!name.meaning.is_empty());
        }
    }

    #[test]
    fn known_names_and_hints() {
        assert!(is_known("verdict.class") && is_known("shapes.first") && is_known("environment.NCCL_DEBUG"));
        assert!(!is_known("verdict.clas") && !is_known("verdict.class.x") && !is_known("facts.nothing"));
        assert_eq!(nearest("verdict.clas"), Some("verdict.class"));
        assert_eq!(nearest("shapes.first.saf"), Some("shapes.first.safe"));
        assert_eq!(nearest("a.completely.different.name"), None);
    }
}
