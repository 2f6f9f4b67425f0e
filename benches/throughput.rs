//! How fast a large log is read, beside a plain search for the same literals.
//!
//! In: a size in bytes and a folder. Out: a log of many ranks (written once, the same every time), the literals as a file for
//! `rg -c -F -f`, and the seconds, rate and memory of reading the log. It leaves timing the whole command to
//! an outside clock.
//!
//! ```sh
//! cargo bench --bench throughput                                # 1 GiB in target/throughput
//! cargo bench --bench throughput -- --bytes 268435456 --runs 5
//! time rg -c -F -f target/throughput/literals.txt target/throughput/ranks.log
//! ```

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use warpfault::read::{literals, read_text};
use warpfault::source::{InputSpec, Limits, load};

#[path = "throughput/ranks.rs"]
mod ranks;

struct Options {
    bytes: u64,
    folder: PathBuf,
    runs: u32,
    write_only: bool,
}

impl Options {
    fn from_arguments() -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/throughput");
        let mut options = Self { bytes: 1 << 30, folder, runs: 3, write_only: false };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut number = || arguments.next().and_then(|text| text.parse().ok());
            match argument.as_str() {
                "--bytes" => options.bytes = number().unwrap_or(options.bytes),
                "--runs" => options.runs = number().and_then(|runs| runs.try_into().ok()).unwrap_or(1),
                "--folder" => options.folder = arguments.next().map_or(options.folder, PathBuf::from),
                "--write-only" => options.write_only = true,
                _ => {}
            }
        }
        options
    }
}

fn main() -> io::Result<()> {
    let options = Options::from_arguments();
    fs::create_dir_all(&options.folder)?;
    let log = options.folder.join("ranks.log");
    write_literals(&options.folder.join("literals.txt"))?;
    if log.metadata().map_or(0, |metadata| metadata.len()) < options.bytes {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(&log)?);
        ranks::write(&mut file, options.bytes)?;
        file.flush()?;
    }
    if options.write_only {
        return Ok(());
    }
    for _ in 0..options.runs {
        run(&log)?;
    }
    report_memory(&log)
}

fn write_literals(path: &Path) -> io::Result<()> {
    let lines = literals().iter().map(|literal| format!("{}\n", literal.trim_end_matches('\n')));
    fs::write(path, lines.collect::<String>())
}

fn run(log: &Path) -> io::Result<()> {
    let start = Instant::now();
    let loaded = load(&[InputSpec::Path(log.to_path_buf())], Limits::default());
    let Some(input) = loaded.inputs.first() else {
        return Err(io::Error::other(format!("the log can't be read: {:?}", loaded.left_out)));
    };
    let reading = read_text(input.id, &input.bytes);
    let seconds = start.elapsed().as_secs_f64();
    let megabytes = input.bytes.len() as f64 / 1e6;
    writeln!(
        io::stdout(),
        "{seconds:.3} s, {:.0} MB/s: {} lines, {} of them parsed, {} events",
        megabytes / seconds,
        reading.lines,
        reading.candidate_lines,
        reading.events.len()
    )
}

/// The most memory this process ever had, as Linux counts it: pages of the mapped log included.
fn report_memory(log: &Path) -> io::Result<()> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak_kib: Option<u64> = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    let Some(peak) = peak_kib.map(|kib| kib * 1024) else { return Ok(()) };
    let log_bytes = log.metadata()?.len();
    writeln!(
        io::stdout(),
        "peak memory {} MB, {} MB above the log",
        peak / 1_000_000,
        peak.saturating_sub(log_bytes) / 1_000_000
    )
}
