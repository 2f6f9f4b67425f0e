//! Broken inputs, made from good ones, through every reader, for as long as asked.
//!
//! In: seconds, a seed, and files or folders to start from. Out: exit status 0 where nothing panicked and no input took too long;
//! else the input that did is written beside the message. Stable Rust, no sanitizer: `cargo run --release --example
//! fuzz_readers -- --seconds 600 samples`.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use warpfault::read::literals;
use warpfault::session::{Input, Session};
use warpfault::source::{InputSpec, Limits, Loaded, load};

/// Largest input that is made: enough to cross every buffer that a reader has but the largest.
const LIMIT_BYTES: usize = 1 << 20;
/// An input of this size that takes longer is a failure too.
const PATIENCE: Duration = Duration::from_secs(10);

struct Options {
    seconds: u64,
    seed: u64,
    paths: Vec<PathBuf>,
}

impl Options {
    fn from_arguments() -> Self {
        let mut options = Self { seconds: 10, seed: 1, paths: Vec::new() };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut number = || arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1);
            match argument.as_str() {
                "--seconds" => options.seconds = number(),
                "--seed" => options.seed = number().max(1),
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
    let mut random = Random(options.seed);
    let end = Instant::now() + Duration::from_secs(options.seconds);
    let mut rounds = 0_u64;
    while Instant::now() < end {
        let bytes = mutated(&seeds, &mut random);
        let start = Instant::now();
        let survived = catch_unwind(AssertUnwindSafe(|| analyse(&bytes))).is_ok();
        if !survived || start.elapsed() > PATIENCE {
            let path = std::env::temp_dir().join(format!("fuzz-{}-{rounds}.bin", options.seed));
            std::fs::write(&path, &bytes)?;
            let fault = if survived { "took too long" } else { "panicked" };
            return Err(io::Error::other(format!("round {rounds} {fault}: {}", path.display())));
        }
        rounds += 1;
    }
    writeln!(io::stdout(), "{rounds} inputs from {} files, seed {}: no panic", seeds.len(), options.seed)
}

fn analyse(bytes: &[u8]) {
    let limits = Limits { expanded_bytes: 64 << 20, ..Limits::default() };
    let spec = InputSpec::Text { name: "fuzz".to_owned(), bytes: bytes.to_vec() };
    let mut session = Session::new();
    session.apply(Input::Loaded(load(&[spec], limits)));
    std::hint::black_box(session.report());
}

/// The decoded inputs and their parts, and two that no sample shows.
fn seeds(paths: &[PathBuf]) -> Vec<Vec<u8>> {
    let specs: Vec<InputSpec> = paths.iter().cloned().map(InputSpec::Path).collect();
    let Loaded { inputs, .. } = load(&specs, Limits::default());
    let mut seeds = vec![b"\n".to_vec(), literals().join("\n").into_bytes()];
    for input in inputs {
        seeds.push(input.bytes.to_vec());
        seeds.extend(input.parts.iter().map(|part| part.bytes.to_vec()));
    }
    seeds.retain(|seed| !seed.is_empty() && seed.len() <= 2 * LIMIT_BYTES);
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
