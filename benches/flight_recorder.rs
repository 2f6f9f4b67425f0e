//! Time and memory of matching a large job's dumps: `cargo bench --bench flight_recorder [-- RANKS ENTRIES [FOLDER]]`.
//!
//! In: the size of a job (2,048 ranks of 2,000 entries unless given). Out: dumps written as PyTorch writes them, into FOLDER
//! (kept) or a temporary one, and one line with the time and the peak memory of reading and matching them. The culprit left
//! no dump, or with `--all-dump` one that lacks the last calls; the bench fails where it is not named. Without `--bench` among its arguments it runs a small job.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use warpfault::case::collectives::Matcher;
use warpfault::error::{Error, ErrorKind};
use warpfault::read::flight_recorder::{ranks_from_names, read_each};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let full = words.iter().any(|word| word == "--bench");
    let mut own = words.iter().filter(|word| !word.starts_with('-'));
    let mut number = |default: u32| own.next().map_or(Ok(default), |word| word.parse());
    let (ranks, entries) = (number(if full { 2048 } else { 16 })?, number(if full { 2000 } else { 40 })?);
    let temporary = tempfile::tempdir()?;
    let folder = own.next().map_or_else(|| temporary.path().to_path_buf(), PathBuf::from);
    std::fs::create_dir_all(&folder)?;
    let culprit = ranks * 2 / 3;
    let mut bytes = 0;
    let all_dump = words.iter().any(|word| word == "--all-dump");
    for rank in (0..ranks).filter(|rank| *rank != culprit || all_dump) {
        let dump = generate::dump(rank, culprit, ranks, entries);
        bytes += dump.len();
        std::fs::write(folder.join(format!("nccl_trace_rank_{rank}")), dump)?;
    }
    let before_kib = peak_kib();
    let before_cpu = cpu_seconds();
    let begin = Instant::now();
    let found = analyse(&folder, ranks)?;
    let seconds = begin.elapsed().as_secs_f64();
    let cpu = cpu_seconds() - before_cpu;
    let mib = bytes >> 20;
    writeln!(
        std::io::stdout(),
        "{ranks} ranks of {entries} entries, {mib} MiB, {} threads: {seconds:.2} s, {cpu:.2} s of CPU, peak {} MiB ({} MiB before)\n{found}",
        rayon::current_num_threads(),
        peak_kib() >> 10,
        before_kib >> 10,
    )?;
    let named = [format!("rank {culprit} "), format!("rank {culprit},")];
    if named.iter().any(|name| found.contains(name)) {
        Ok(())
    } else {
        Err("the culprit was not named".into())
    }
}

fn analyse(folder: &Path, ranks: u32) -> Result<String, Failure> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        paths.push(entry?.path());
    }
    let names: Vec<String> = paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let known = ranks_from_names(&names, Some(ranks));
    let load = |index: usize| {
        let path = paths.get(index).ok_or_else(|| Error::new(ErrorKind::Input, "no such dump"))?;
        std::fs::read(path)
            .map_err(|cause| Error::new(ErrorKind::Input, "can't be read").at(path, None).because(cause))
    };
    let mut matcher = Matcher::default();
    let mut failed = None;
    read_each(paths.len(), load, |index, dump| match (known.get(index).copied().flatten(), dump) {
        (Some(rank), Ok(dump)) => matcher.add_dump(rank, &dump),
        (_, Err(error)) => failed = Some(error),
        (None, Ok(_)) => {}
    });
    if let Some(error) = failed {
        return Err(error.into());
    }
    let found = matcher.finish();
    Ok(found
        .findings
        .first()
        .map_or_else(|| "nothing".to_owned(), warpfault::case::collectives::Finding::summary))
}

/// Processor time of all threads of this process so far, at the usual 100 ticks a second; 0 where the system doesn't say.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    fields.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>()
        / 100.0
}

/// Peak resident memory of this process in KiB; 0 where the system doesn't say.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Dumps as PyTorch's own pickler writes them: protocol 2, texts and shared frames remembered, the ring buffer wrapped.
mod generate {
    use std::collections::HashMap;

    /// Ranks of a tensor-parallel group.
    const GROUP: u32 = 8;

    pub fn dump(rank: u32, culprit: u32, world: u32, entries: u32) -> Vec<u8> {
        let mut out =
            Pickler { bytes: vec![0x80, 2], texts: HashMap::new(), frames: HashMap::new(), memo: 0 };
        let tp = 1 + rank / GROUP;
        let (first, last) = (rank / GROUP * GROUP, (rank / GROUP * GROUP + GROUP).min(world));
        let last_seq = u64::from(entries) + 5_000;
        out.raw(b"}(");
        out.text("version");
        out.text("2.10");
        out.text("pg_config");
        out.raw(b"}(");
        out.group("0", "default_pg", 0..world);
        out.group(&tp.to_string(), "mesh_tp", first..last);
        out.raw(b"u");
        out.text("comm_lib_version");
        out.text("2.28.9");
        out.text("pg_status");
        out.raw(b"}(");
        for id in ["0", "1"] {
            out.text(id);
            out.raw(b"}(");
            out.pair("last_enqueued_collective", last_seq - u64::from(rank == culprit));
            out.pair("last_started_collective", last_seq - 1);
            out.pair("last_completed_collective", last_seq - 1);
            out.raw(b"u");
        }
        out.raw(b"u");
        out.text("entries");
        out.raw(b"](");
        let half = u64::from(entries / 2);
        for index in 0..u64::from(entries) {
            let in_tp = index % 2 == 1;
            let seq = last_seq - half + 1 + index / 2;
            if rank == culprit && seq == last_seq {
                continue;
            }
            let waits = seq == last_seq && (!in_tp || (first..last).contains(&culprit));
            out.entry((rank, world), index, seq, in_tp.then_some(tp), !waits);
        }
        out.raw(b"eu.");
        out.bytes
    }

    struct Pickler {
        bytes: Vec<u8>,
        texts: HashMap<String, u32>,
        frames: HashMap<u64, u32>,
        memo: u32,
    }

    impl Pickler {
        fn raw(&mut self, bytes: &[u8]) {
            self.bytes.extend_from_slice(bytes);
        }

        fn put(&mut self) -> u32 {
            let id = self.memo;
            self.memo += 1;
            match u8::try_from(id) {
                Ok(id) => self.raw(&[b'q', id]),
                Err(_) => {
                    self.raw(b"r");
                    self.raw(&id.to_le_bytes());
                }
            }
            id
        }

        fn get(&mut self, id: u32) {
            match u8::try_from(id) {
                Ok(id) => self.raw(&[b'h', id]),
                Err(_) => {
                    self.raw(b"j");
                    self.raw(&id.to_le_bytes());
                }
            }
        }

        fn text(&mut self, text: &str) {
            if let Some(&id) = self.texts.get(text) {
                return self.get(id);
            }
            self.raw(b"X");
            self.raw(&u32::try_from(text.len()).unwrap_or(0).to_le_bytes());
            self.raw(text.as_bytes());
            let id = self.put();
            self.texts.insert(text.to_owned(), id);
        }

        fn int(&mut self, number: u64) {
            if let Ok(byte) = u8::try_from(number) {
                self.raw(&[b'K', byte]);
            } else if let Ok(short) = u16::try_from(number) {
                self.raw(b"M");
                self.raw(&short.to_le_bytes());
            } else if let Ok(int) = i32::try_from(number) {
                self.raw(b"J");
                self.raw(&int.to_le_bytes());
            } else {
                self.raw(&[0x8a, 8]);
                self.raw(&number.to_le_bytes());
            }
        }

        fn pair(&mut self, key: &str, number: u64) {
            self.text(key);
            self.int(number);
        }

        fn flag(&mut self, key: &str, flag: bool) {
            self.text(key);
            self.raw(if flag { b"\x88" } else { b"\x89" });
        }

        fn group(&mut self, name: &str, desc: &str, ranks: std::ops::Range<u32>) {
            self.text(name);
            self.raw(b"}(");
            self.text("name");
            self.text(name);
            self.text("desc");
            self.text(desc);
            self.text("ranks");
            let ranks: Vec<String> = ranks.map(|rank| rank.to_string()).collect();
            self.text(&format!("[{}]", ranks.join(", ")));
            self.raw(b"u");
        }

        fn frame(&mut self, id: u64) {
            if let Some(&memo) = self.frames.get(&id) {
                return self.get(memo);
            }
            self.raw(b"}(");
            self.text("name");
            self.text(&format!("layer_{}", id % 50));
            self.text("filename");
            let file = match id % 50 {
                0..20 => {
                    format!("/opt/env/lib/python3.12/site-packages/torch/distributed/part_{}.py", id % 7)
                }
                _ => format!("/work/job/model/part_{}.py", id % 11),
            };
            self.text(&file);
            self.pair("line", id);
            self.raw(b"u");
            let memo = self.put();
            self.frames.insert(id, memo);
        }

        fn sizes(&mut self, key: &str, numel: u64) {
            self.text(key);
            self.raw(b"](](");
            self.int(numel);
            self.int(1024);
            self.raw(b"ee");
        }

        fn dtypes(&mut self, key: &str) {
            self.text(key);
            self.raw(b"](");
            self.text("BFloat16");
            self.raw(b"e");
        }

        fn entry(
            &mut self,
            (rank, world): (u32, u32),
            index: u64,
            seq: u64,
            tp: Option<u32>,
            completed: bool,
        ) {
            self.raw(b"}(");
            self.text("frames");
            self.raw(b"](");
            for depth in 0..12 {
                self.frame(depth * 7 + index % 40 * u64::from(depth > 2));
            }
            self.raw(b"e");
            self.pair("record_id", 7_000 + index);
            self.pair("pg_id", u64::from(tp.is_some()));
            self.text("process_group");
            self.text(&tp.unwrap_or(0).to_string());
            self.text(if tp.is_some() { "mesh_tp" } else { "default_pg" });
            self.raw(b"\x86");
            self.text("thread_name");
            self.text("python");
            self.text("thread_id");
            self.text(&format!("1397153{rank}"));
            self.pair("collective_seq_id", seq);
            self.pair("p2p_seq_id", 0);
            self.pair("op_id", 9_000 + index);
            self.text("profiling_name");
            self.text(if tp.is_some() { "nccl:all_reduce" } else { "nccl:_reduce_scatter_base" });
            self.pair("time_created_ns", 1_795_981_496_239_774_069 + index * 1_000_003 + u64::from(rank));
            let numel = 1024 * (1 + seq % 40);
            self.sizes("input_sizes", if tp.is_some() { numel } else { numel * u64::from(world) });
            self.dtypes("input_dtypes");
            self.sizes("output_sizes", numel);
            self.dtypes("output_dtypes");
            self.text("state");
            self.text(if completed { "completed" } else { "scheduled" });
            self.text("time_discovered_started_ns");
            self.raw(b"N");
            self.text("time_discovered_completed_ns");
            self.int(1_795_981_497_410_127_744 + index);
            self.flag("retired", completed);
            self.pair("timeout_ms", 600_000);
            self.flag("is_p2p", false);
            self.raw(b"u");
        }
    }
}
