//! One launch, from files and rules to a status.
//!
//! In: a [`Trial`]. Out: a [`TrialReply`], whose `code` is the kernel's, or the [`Failure`] of a step before it. A status
//! that comes out while the kernel runs is the answer; one that comes out earlier is not the kernel's doing.

use std::time::Instant;

use super::driver::{Cuda, Function};
use super::fill::{Contents, PIECE_BYTES};
use super::memory::{CallFailed, DeviceMemory, Laid, LayFailed, lay_out};
use super::{Voice, call_failed, open, plain_failure};
use crate::probe::protocol::{Argument, Backing, Buffer, Failure, Fill, Stage, Trial, TrialReply};

/// Dynamic shared memory that needs no permission.
const FREE_SHARED_BYTES: u32 = 48 << 10;

/// Every argument is passed in at least this many bytes, so that a driver that doesn't tell a parameter's size reads
/// no further than what is there.
const ARGUMENT_BYTES: usize = 4_096;

/// Longest file with code.
const IMAGE_LIMIT_BYTES: u64 = 512 << 20;

/// Statuses of a load that mean "no code for this GPU": the next image may have some.
const NO_CODE: [i32; 4] = [200, 209, 218, 222];

/// Carries a launch out.
///
/// # Errors
/// What failed before the kernel ran.
pub(super) fn run(trial: &Trial, voice: &mut Voice<'_>) -> Result<TrialReply, Failure> {
    let start = Instant::now();
    let mut cuda = open(trial.device, voice)?;
    voice.stage(Stage::Context);
    cuda.enter().map_err(|failed| call_failed(Stage::Context, failed))?;
    voice.stage(Stage::Module);
    let (function, image, mut notes) = load(&cuda, trial)?;
    if trial.shared_bytes > FREE_SHARED_BYTES {
        cuda.allow_shared(function, trial.shared_bytes).map_err(|failed| {
            let mut failure = call_failed(Stage::Launch, failed);
            failure.message = format!("{} bytes of shared memory: {}", trial.shared_bytes, failure.message);
            failure
        })?;
    }
    voice.stage(Stage::Memory);
    let mut made = Made::default();
    let mut values = Vec::new();
    for argument in &trial.arguments {
        values.push(made.argument(&mut cuda, argument, trial.memory_limit_bytes)?);
    }
    check_parameters(&cuda, function, &values)?;
    for value in &mut values {
        value.resize(value.len().max(ARGUMENT_BYTES), 0);
    }
    cuda.wait().map_err(|failed| call_failed(Stage::Memory, failed))?;
    notes.append(&mut made.notes);
    let device_bytes = cuda.memory().ok().and_then(|(free, total)| {
        let used = total.saturating_sub(free);
        Some(used.saturating_sub(trial.used_before_bytes?))
    });
    let mut reply = TrialReply {
        image,
        logical_bytes: made.laid.iter().map(|laid| laid.placed.bytes).sum(),
        physical_bytes: made.physical_bytes,
        device_bytes,
        buffers: made.laid.iter().map(|laid| laid.placed.clone()).collect(),
        notes,
        setup_ms: milliseconds(start),
        ..TrialReply::default()
    };
    voice.stage(Stage::Launch);
    let launched = Instant::now();
    let launch = cuda.launch(function, trial.grid, trial.block, trial.shared_bytes, &values);
    launch.map_err(|failed| call_failed(Stage::Launch, failed))?;
    voice.stage(Stage::Run);
    let status = cuda.wait();
    reply.ms = milliseconds(launched);
    "cuCtxSynchronize".clone_into(&mut reply.call);
    reply.code = status.err().map_or(0, |failed| failed.code);
    Ok(reply)
}

fn milliseconds(since: Instant) -> f64 {
    (since.elapsed().as_secs_f64() * 1e6).round() / 1e3
}

/// Loads the first image that has code for this GPU; its number and what is to be said about the others.
fn load(cuda: &Cuda, trial: &Trial) -> Result<(Function, u32, Vec<String>), Failure> {
    let mut notes = Vec::new();
    let mut last = plain_failure(Stage::Module, "there is no code to load");
    for (number, image) in (0..).zip(&trial.images) {
        let code = read_image(&image.path)?;
        match cuda.load(image.kind, &code, &trial.entry) {
            Ok(function) => return Ok((function, number, notes)),
            Err((failed, log)) => {
                last = call_failed(Stage::Module, failed);
                if failed.call == "cuModuleGetFunction" {
                    last.message = format!("{} holds no kernel {}", image.path, trial.entry);
                }
                if !log.trim().is_empty() {
                    last.message = format!("{}: {}", last.message, log.trim());
                }
                if !NO_CODE.contains(&failed.code) {
                    return Err(last);
                }
                notes.push(format!("{}: no code for this GPU ({})", image.path, failed.code));
            }
        }
    }
    Err(last)
}

fn read_image(path: &str) -> Result<Vec<u8>, Failure> {
    let failed = |why: String| plain_failure(Stage::Module, format!("{path}: {why}"));
    let size = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?.len();
    if size > IMAGE_LIMIT_BYTES {
        return Err(failed(format!("{size} bytes are more than the {IMAGE_LIMIT_BYTES} that are loaded")));
    }
    std::fs::read(path).map_err(|error| failed(error.to_string()))
}

/// Holds the arguments against the parameters that the driver tells.
fn check_parameters(cuda: &Cuda, function: Function, values: &[Vec<u8>]) -> Result<(), Failure> {
    if cuda.parameter(function, 0).is_none() {
        return Ok(());
    }
    let wrong = |what: String| {
        Err(Failure {
            code: Some(1),
            ..plain_failure(Stage::Launch, format!("the arguments don't fit the kernel: {what}"))
        })
    };
    for (index, value) in values.iter().enumerate() {
        match cuda.parameter(function, index) {
            None => return wrong(format!("{} are bound, it takes {index}", values.len())),
            Some((_, size)) if size != value.len() => {
                return wrong(format!("argument {index} has {} bytes, it takes {size}", value.len()));
            }
            Some(_) => {}
        }
    }
    if cuda.parameter(function, values.len()).is_some() {
        return wrong(format!("{} are bound, it takes more", values.len()));
    }
    Ok(())
}

/// What was made for the arguments.
#[derive(Default)]
struct Made {
    laid: Vec<Laid>,
    physical_bytes: u64,
    notes: Vec<String>,
    /// Memory of this process that a kernel was given, kept until the end.
    host: Vec<Vec<u8>>,
}

impl Made {
    /// An argument's bytes.
    fn argument(&mut self, cuda: &mut Cuda, argument: &Argument, limit: u64) -> Result<Vec<u8>, Failure> {
        let failed = |failed: CallFailed| call_failed(Stage::Memory, failed);
        let address = match argument {
            Argument::Scalar { bytes } => return Ok(bytes.clone()),
            Argument::Address { address } => *address,
            Argument::Host { bytes } => {
                let size = usize::try_from(*bytes).unwrap_or(0).clamp(1, 1 << 30);
                self.host.push(vec![0; size]);
                self.host.last().map_or(0, |memory| memory.as_ptr().addr() as u64)
            }
            Argument::Freed { bytes, reused } => {
                let address = cuda.allocate(*bytes).map_err(failed)?;
                cuda.free(address).map_err(failed)?;
                if *reused {
                    let again = cuda.allocate(*bytes).map_err(failed)?;
                    if again != address {
                        self.notes.push(format!("the freed block at {address:#x} was not handed out anew"));
                    }
                }
                address
            }
            Argument::Buffer(buffer) => self.buffer(cuda, buffer, limit)?,
        };
        Ok(address.to_le_bytes().to_vec())
    }

    fn buffer(&mut self, cuda: &mut Cuda, buffer: &Buffer, limit: u64) -> Result<u64, Failure> {
        let left = limit.saturating_sub(self.physical_bytes);
        let laid = lay_out(cuda, buffer, left).map_err(|why| match why {
            LayFailed::Call(failed) => {
                let mut failure = call_failed(Stage::Memory, failed);
                failure.message = format!("{}: {}", buffer.name, failure.message);
                failure
            }
            LayFailed::Limit { needed, left } => Failure {
                code: Some(2),
                ..plain_failure(
                    Stage::Memory,
                    format!(
                        "{} needs {needed} bytes of device memory, {left} are left of the limit (--memory-limit)",
                        buffer.name
                    ),
                )
            },
            LayFailed::Size => {
                plain_failure(Stage::Memory, format!("{}: {} bytes can't be laid out", buffer.name, buffer.bytes))
            }
        })?;
        self.physical_bytes += laid.physical_bytes;
        self.notes.extend(laid.note.clone());
        contents(cuda, buffer, &laid)?;
        let address = laid.placed.address;
        self.laid.push(laid);
        Ok(address)
    }
}

/// Writes a buffer's contents: zeros under all of it, then what its rule says.
fn contents(cuda: &mut Cuda, buffer: &Buffer, laid: &Laid) -> Result<(), Failure> {
    let failed = |failed: CallFailed| call_failed(Stage::Memory, failed);
    if laid.mapped_bytes == 0 {
        return Ok(());
    }
    let once = if buffer.backing == Backing::Plain { laid.mapped_bytes } else { laid.piece_bytes };
    cuda.set(laid.mapped, 0, once).map_err(failed)?;
    if buffer.fill == Fill::Zero {
        return Ok(());
    }
    let read = |error: std::io::Error| plain_failure(Stage::Memory, format!("{}: {error}", buffer.name));
    let mut contents = Contents::open(&buffer.fill).map_err(read)?;
    let mut piece = vec![0_u8; PIECE_BYTES.min(usize::try_from(buffer.bytes).unwrap_or(PIECE_BYTES))];
    let mut written = 0_u64;
    while written < buffer.bytes {
        let size = usize::try_from(buffer.bytes - written).unwrap_or(usize::MAX).min(piece.len());
        let Some(part) = piece.get_mut(..size) else { break };
        contents.fill(part).map_err(read)?;
        cuda.copy(laid.placed.address + written, part).map_err(failed)?;
        written += size as u64;
    }
    Ok(())
}
