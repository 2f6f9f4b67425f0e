//! Broken inputs, made from good ones, through every reader, for as long as asked.
//!
//! In: seconds, a seed, targets, and files or folders to start from. A target is a reader by the name of its kind of input
//! (`core_dump`, `tritonparse`, …), fed with mutations of that kind's samples past the sniffing, or `all`: mutations of
//! everything through the whole program. Out: one line a target, and exit status 0 where nothing panicked and no input took
//! too long; else the input that did is written beside the message, and so is the slowest one where it was slow. Stable Rust, no sanitizer: `cargo run --release
//! --example fuzz_readers -- --seconds 600 --target all samples`.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant};

use warpfault::read::{Progress, literals, read_input};
use warpfault::session::{Input, Session};
use warpfault::source::{InputId, InputKind, InputSpec, Limits, Loaded, load, sniff};
use warpfault::{image, kernel, probe, read};

/// Largest input that is made: enough to cross every buffer that a reader has but the largest.
const LIMIT_BYTES: usize = 1 << 20;
/// An input of this size that takes longer is a failure too.
const PATIENCE: Duration = Duration::from_secs(10);
/// From here on an input is slow: it is read again by the processor's clock, because a busy machine makes any input slow, and kept.
const SLOW: Duration = Duration::from_millis(250);

struct Options {
    seconds: u64,
    seed: u64,
    targets: Vec<String>,
    paths: Vec<PathBuf>,
}

/// A reader and where its seeds come from.
struct Target {
    name: &'static str,
    /// The kind whose samples are its seeds; none for all of them.
    kind: Option<InputKind>,
    run: fn(&[u8]),
}

const fn of_kind(name: &'static str, kind: InputKind, run: fn(&[u8])) -> Target {
    Target { name, kind: Some(kind), run }
}

/// Every reader. Those that take lines differ in their seeds only.
const TARGETS: &[Target] = &[
    Target { name: "all", kind: None, run: analyse },
    of_kind("core_dump", InputKind::CoreDump, |bytes| read_as(InputKind::CoreDump, bytes)),
    of_kind("cubin", InputKind::Cubin, |bytes| drop(image::cubin::parse(bytes))),
    of_kind("flight_recorder", InputKind::FlightRecorder, |bytes| read_as(InputKind::FlightRecorder, bytes)),
    of_kind("pickle", InputKind::FlightRecorder, |bytes| drop(read::pickle::decode(bytes))),
    of_kind("nccl_ras", InputKind::NcclRas, |bytes| read_as(InputKind::NcclRas, bytes)),
    of_kind("sanitizer_text", InputKind::SanitizerText, |bytes| read_as(InputKind::SanitizerText, bytes)),
    of_kind("sanitizer_xml", InputKind::SanitizerXml, |bytes| read_as(InputKind::SanitizerXml, bytes)),
    of_kind("cuda_gdb", InputKind::CudaGdb, |bytes| read_as(InputKind::CudaGdb, bytes)),
    of_kind("kernel_log", InputKind::KernelLog, |bytes| read_as(InputKind::KernelLog, bytes)),
    of_kind("log", InputKind::Log, |bytes| read_as(InputKind::Log, bytes)),
    of_kind("model_config", InputKind::ModelConfig, |bytes| read_as(InputKind::ModelConfig, bytes)),
    of_kind("tritonparse", InputKind::Tritonparse, |bytes| read_as(InputKind::Tritonparse, bytes)),
    of_kind("dcgm", InputKind::Dcgm, |bytes| read_as(InputKind::Dcgm, bytes)),
    of_kind("nvidia_smi", InputKind::NvidiaSmi, |bytes| read_as(InputKind::NvidiaSmi, bytes)),
    of_kind("ttir", InputKind::Ttir, |bytes| drop(kernel::cache::from_ttir(&String::from_utf8_lossy(bytes)))),
    of_kind("ptx", InputKind::Ptx, |bytes| drop(kernel::cache::from_ptx(&String::from_utf8_lossy(bytes)))),
    of_kind("source", InputKind::SourceCode, |bytes| {
        drop(kernel::lint::lint("k.py", &String::from_utf8_lossy(bytes)))
    }),
    of_kind("probe_reply", InputKind::Log, |bytes| {
        for line in String::from_utf8_lossy(bytes).lines() {
            std::hint::black_box(probe::protocol::reply_in(line));
        }
    }),
];

fn read_as(kind: InputKind, bytes: &[u8]) {
    std::hint::black_box(read_input(InputId(0), kind, bytes, &Progress::default()));
}

/// Inputs that no sample shows, by target.
const MORE_SEEDS: &[(&str, &str)] = &[
    (
        "source",
        "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x_ptr, y_ptr, n, stride, BLOCK: tl.constexpr = 128):\n    row = tl.program_id(0)  # warpfault: ignore[int32_overflow]\n    offs = row * BLOCK + tl.arange(0, BLOCK)\n    x = tl.load(x_ptr + row * stride + offs[:, None], mask=(offs < n)[:, None])\n    for i in range(0, n, BLOCK):\n        x += tl.where(x > 0, x, 0.0)\n    if row == 0:\n        tl.store(y_ptr + row, tl.sum(x.to(tl.float32), axis=0))\n\ndef run(x, y, n):\n    assert n % 128 == 0\n    k[(triton.cdiv(n, 128),)](x, y, n, x.stride(0), BLOCK=128, num_warps=8)\n",
    ),
    (
        "model_config",
        r#"{"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "vocab_size": 151936, "num_attention_heads": 28, "num_key_value_heads": 4, "num_hidden_layers": 28, "torch_dtype": "bfloat16", "text_config": {"hidden_size": 4096, "n_inner": null}}"#,
    ),
    (
        "probe_reply",
        "row 3 {\"warpfault_probe\":1,\"reply\":\"trial\",\"code\":700,\"call\":\"cuCtxSynchronize\",\"ms\":1.5}\n",
    ),
];

impl Options {
    fn from_arguments() -> Self {
        let mut options = Self { seconds: 10, seed: 1, targets: Vec::new(), paths: Vec::new() };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut number = || arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1);
            match argument.as_str() {
                "--seconds" => options.seconds = number(),
                "--seed" => options.seed = number().max(1),
                "--target" => options.targets.extend(arguments.next()),
                path => options.paths.push(path.into()),
            }
        }
        if options.paths.is_empty() {
            options.paths.push("samples".into());
        }
        options
    }
}

fn main() -> io::Result<()> {
    let options = Options::from_arguments();
    let seeds = seeds(&options.paths);
    let wanted = |target: &&Target| {
        if options.targets.is_empty() {
            target.name == "all"
        } else {
            options.targets.iter().any(|name| name == target.name)
        }
    };
    for target in TARGETS.iter().filter(wanted) {
        fuzz(target, &seeds, &options)?;
    }
    Ok(())
}

fn fuzz(target: &Target, all: &[(InputKind, Vec<u8>)], options: &Options) -> io::Result<()> {
    let own = |kind: InputKind| target.kind.is_none_or(|wanted| wanted == kind);
    let mut seeds: Vec<Vec<u8>> =
        all.iter().filter(|(kind, _)| own(*kind)).map(|(_, bytes)| bytes.clone()).collect();
    let more = MORE_SEEDS.iter().filter(|(name, _)| *name == target.name);
    seeds.extend(more.map(|(_, text)| text.as_bytes().to_vec()));
    if seeds.is_empty() {
        return Err(io::Error::other(format!("{}: no sample to start from", target.name)));
    }
    let mut random = Random(options.seed);
    let end = Instant::now() + Duration::from_secs(options.seconds);
    let mut rounds = 0_u64;
    let mut slowest = (Duration::ZERO, Vec::new());
    while Instant::now() < end {
        let bytes = mutated(&seeds, &mut random);
        let taken = timed(target, &bytes, slowest.0);
        let fault = match taken {
            None => Some("panicked"),
            Some(taken) if taken > PATIENCE => Some("took too long"),
            Some(_) => None,
        };
        if let Some(fault) = fault {
            let path = kept(&format!("{}-{}-{rounds}", target.name, options.seed), &bytes)?;
            return Err(io::Error::other(format!("{}: round {rounds} {fault}: {path}", target.name)));
        }
        if let Some(taken) = taken
            && taken > slowest.0
        {
            slowest = (taken, bytes);
        }
        rounds += 1;
    }
    let (slowest, bytes) = slowest;
    let kept = if slowest > SLOW {
        format!(" ({})", kept(&format!("{}-{}-slowest", target.name, options.seed), &bytes)?)
    } else {
        String::new()
    };
    writeln!(
        io::stdout(),
        "{}: {rounds} inputs from {} files in {} s, seed {}, the slowest {} ms{kept}: no panic",
        target.name,
        seeds.len(),
        options.seconds,
        options.seed,
        slowest.as_millis()
    )
}

/// How long an input takes, none where it panics. One slower than SLOW and than the slowest so far is read twice.
fn timed(target: &Target, bytes: &[u8], slowest: Duration) -> Option<Duration> {
    watch(target.name, bytes);
    let start = Instant::now();
    let once = || catch_unwind(AssertUnwindSafe(|| (target.run)(bytes))).ok();
    once()?;
    let first = start.elapsed();
    if first <= SLOW.max(slowest) {
        return Some(first);
    }
    let before = processor_time();
    once()?;
    let second = processor_time().zip(before).map(|(after, before)| after.saturating_sub(before));
    Some(second.map_or(first, |second| first.min(second)))
}

/// What this process used of the processors so far, where the system tells, in steps of ten milliseconds.
fn processor_time() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks: u64 =
        fields.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Some(Duration::from_millis(ticks * 10))
}

/// Writes an input down; where.
fn kept(name: &str, bytes: &[u8]) -> io::Result<String> {
    let path = std::env::temp_dir().join(format!("fuzz-{name}.bin"));
    std::fs::write(&path, bytes)?;
    Ok(path.display().to_string())
}

/// The input being read, since when, and for which target.
static CURRENT: Mutex<Option<(Instant, &'static str, Vec<u8>)>> = Mutex::new(None);

/// Notes an input; one that never ends is written down by a thread of its own, which then ends the program.
fn watch(target: &'static str, bytes: &[u8]) {
    static WATCHDOG: Once = Once::new();
    if let Ok(mut current) = CURRENT.lock() {
        *current = Some((Instant::now(), target, bytes.to_vec()));
    }
    WATCHDOG.call_once(|| {
        std::thread::spawn(|| {
            loop {
                std::thread::sleep(Duration::from_secs(1));
                let Ok(current) = CURRENT.lock() else { return };
                if let Some((since, target, bytes)) = current.as_ref()
                    && since.elapsed() > PATIENCE * 6
                {
                    let path = std::env::temp_dir().join(format!("fuzz-{target}-endless.bin"));
                    let _ = std::fs::write(&path, bytes);
                    let _ = writeln!(io::stderr(), "{target}: no end in sight: {}", path.display());
                    std::process::exit(1);
                }
            }
        });
    });
}

fn analyse(bytes: &[u8]) {
    let limits = Limits { expanded_bytes: 64 << 20, ..Limits::default() };
    let spec = InputSpec::Text { name: "fuzz".to_owned(), bytes: bytes.to_vec() };
    let mut session = Session::new();
    session.apply(Input::Loaded(load(&[spec], limits)));
    std::hint::black_box(session.report());
}

/// The decoded inputs and their parts with their kinds, and two that no sample shows.
fn seeds(paths: &[PathBuf]) -> Vec<(InputKind, Vec<u8>)> {
    let specs: Vec<InputSpec> = paths.iter().cloned().map(InputSpec::Path).collect();
    let Loaded { inputs, .. } = load(&specs, Limits::default());
    let mut seeds =
        vec![(InputKind::Empty, b"\n".to_vec()), (InputKind::Log, literals().join("\n").into_bytes())];
    for input in inputs {
        seeds.push((input.kind, input.bytes.to_vec()));
        seeds.extend(input.parts.iter().map(|part| (sniff(&part.bytes, None), part.bytes.to_vec())));
    }
    seeds.retain(|(_, seed)| !seed.is_empty() && seed.len() <= 2 * LIMIT_BYTES);
    seeds
}

fn mutated(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = random.pick(seeds).cloned().unwrap_or_default();
    for _ in 0..=random.below(6) {
        mutate(&mut bytes, seeds, random);
    }
    bytes.truncate(LIMIT_BYTES);
    bytes
}

fn mutate(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    let at = random.below(bytes.len() + 1);
    let len = random.below(200).min(bytes.len() - at);
    let interesting: &[&[u8]] = &[
        b"\0",
        b"\n",
        b"\r",
        b"\r\n",
        b"\x1b[31m",
        b"\xff",
        b"\xff\xff\xff\xff",
        b"-1",
        b"0",
        b"18446744073709551616",
        b"(",
        b")",
        b"[",
        b"]",
        b"{",
        b"}",
        b"\"",
        b"<",
        b">",
        b":",
        b"%",
        b"0x",
        b"\xe2\x80\xae",
        b"\x80",
        b"```\n",
    ];
    match random.below(10) {
        0 => {
            for _ in 0..=random.below(8) {
                let spot = random.below(bytes.len().max(1));
                if let Some(byte) = bytes.get_mut(spot) {
                    *byte = random.byte();
                }
            }
        }
        1 => bytes.truncate(at),
        2 => drop(bytes.drain(..at)),
        3 => drop(bytes.drain(at..at + len)),
        4 => {
            let piece = bytes.get(at..at + len).unwrap_or_default().repeat(1 + random.below(50));
            bytes.splice(at..at, piece);
        }
        5 | 6 => {
            let piece = random.pick(interesting).map(|piece| piece.repeat(1 + random.below(4)));
            bytes.splice(at..at, piece.unwrap_or_default());
        }
        7 => {
            let literal = random.pick(literals()).map_or("", |literal| literal);
            bytes.splice(at..at, literal.bytes());
        }
        8 => {
            let other = random.pick(seeds).cloned().unwrap_or_default();
            let from = random.below(other.len() + 1);
            let piece = other.get(from..).unwrap_or_default().iter().copied().take(random.below(4096));
            bytes.splice(at..at + len, piece.collect::<Vec<u8>>());
        }
        _ => {
            // Numbers are where sizes and offsets stand.
            let digit = bytes.iter().skip(at).position(u8::is_ascii_digit).map(|found| at + found);
            if let Some(digit) = digit {
                bytes.splice(digit..digit, b"9".repeat(1 + random.below(30)));
            }
        }
    }
}

/// Marsaglia's xorshift: a seed gives the same inputs everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap_or(0)
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[3]
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.below(of.len()))
    }
}
