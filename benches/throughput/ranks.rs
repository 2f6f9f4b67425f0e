//! The log of a job of 64 ranks that trains well and then dies.
//!
//! In: a size. Out: text, the same for the same size: training lines, NCCL and engine chatter, warnings, a kernel fault of
//! one rank close to the end, and the other ranks' complaints about it.

use std::io::{self, Write};

const RANKS: u64 = 64;
/// Lines that are written again and again: enough that no cache of the machine holds them.
const BLOCK_LINES: u64 = 150_000;

/// Writes about `bytes` bytes.
pub fn write(out: &mut impl Write, bytes: u64) -> io::Result<()> {
    let mut block = Vec::new();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for step in 0..BLOCK_LINES {
        line(&mut block, step, &mut random)?;
    }
    let crash = crash()?;
    let mut left = bytes.saturating_sub(crash.len() as u64);
    while left > 0 {
        let part =
            block.get(..usize::try_from(left).unwrap_or(usize::MAX).min(block.len())).unwrap_or_default();
        out.write_all(part)?;
        left -= part.len() as u64;
    }
    out.write_all(b"\n")?;
    out.write_all(&crash)
}

/// Marsaglia's xorshift: the same numbers everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

fn line(out: &mut Vec<u8>, count: u64, random: &mut Random) -> io::Result<()> {
    let (rank, step) = (count % RANKS, count / RANKS);
    let (minute, second, ms) = (step / 60 % 60, step % 60, random.below(1000));
    let (a, b, c) = (random.below(10_000), random.below(1000), random.below(90_000));
    match random.below(1000) {
        0..550 => writeln!(
            out,
            "[rank{rank}]: 2026-11-29 19:{minute:02}:{second:02},{ms:03} [INFO] [trainer.py:{b}] step {step} \
             loss 2.{a:04} grad_norm 0.{b:03} lr 3.0e-04 tokens/s {c} mem {}.{} GiB",
            b % 80,
            a % 100
        ),
        550..700 => writeln!(
            out,
            "gpu-node-{}:{}:{} [{}] NCCL INFO Channel {:02}/0 : {rank}[{}] -> {}[{}] via P2P/CUMEM/read",
            rank / 8,
            1000 + rank,
            2000 + rank,
            rank % 8,
            b % 32,
            rank % 8,
            (rank + 1) % RANKS,
            (rank + 1) % 8
        ),
        700..850 => writeln!(
            out,
            "(VllmWorker rank={rank} pid={}) INFO 11-29 19:{minute:02}:{second:02} [metrics.py:481] Avg prompt \
             throughput: {a}.{} tokens/s, Running: {} reqs, GPU KV cache usage: {}.{}%",
            3000 + rank,
            b % 10,
            b % 64,
            c % 100,
            a % 10
        ),
        850..990 => writeln!(
            out,
            "Epoch {step}: {}%|████▌     | {a}/10000 [12:34<15:20,  5.{b:03}it/s, loss=0.{c:05}, v_num=7]",
            a / 100
        ),
        990..999 => writeln!(
            out,
            "[rank{rank}]: /opt/conda/lib/python3.11/site-packages/torch/utils/data/dataloader.py:{b}: UserWarning: \
             This DataLoader will create {} worker processes in total",
            b % 64
        ),
        _ => writeln!(
            out,
            "[rank{rank}]: storage: RuntimeError: request {c} timed out after {a} ms, attempt {} of 5",
            b % 5
        ),
    }
}

fn crash() -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    out.write_all(
        b"[rank5]: Traceback (most recent call last):\n\
          [rank5]:   File \"/work/train.py\", line 67, in <module>\n\
          [rank5]:     main()\n\
          [rank5]:   File \"/work/train.py\", line 60, in main\n\
          [rank5]:     y = model(x).to(device=\"cpu\")\n\
          [rank5]:         ^^^^^^^^^^^^^^^^^^^^^^^^^\n\
          [rank5]: torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n\
          [rank5]: CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\n\
          [rank5]: For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n",
    )?;
    for rank in (0..RANKS).filter(|&rank| rank != 5) {
        writeln!(
            out,
            "[rank{rank}]:[E1129 19:50:00.123456789 ProcessGroupNCCL.cpp:685] [Rank {rank}] Watchdog caught collective \
             operation timeout: WorkNCCL(SeqNum=1207, OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576, \
             Timeout(ms)=600000) ran for 600012 milliseconds before timing out."
        )?;
    }
    Ok(out)
}
