//! The sacrificial process: one request, its replies, the end.
//!
//! In: a request on standard input. Out: lines of JSON on standard output. A CUDA fault poisons the context of its
//! process, a driver may hang or crash; so this process does one thing and ends, and its death is a normal result for
//! [`super::host`]. It alone calls the driver, NVML and NVRTC, and it changes no setting of a GPU.

mod driver;
mod fill;
mod launch;
pub mod memory;
mod nvml;
mod nvrtc;

use std::io::{BufRead, Read, Write};

use super::protocol::{self, Compile, Device, Failure, REQUEST_LIMIT_BYTES, Reply, Request, Stage};
use driver::{Cuda, OpenFailed, attribute};
use memory::CallFailed;

/// Longest source that is compiled, in bytes.
const SOURCE_LIMIT_BYTES: u64 = 16 << 20;

/// Where replies go.
pub(super) struct Voice<'a> {
    out: &'a mut dyn Write,
}

impl Voice<'_> {
    fn say(&mut self, reply: &Reply) {
        // A parent that went away reads nothing; the death signal ends this process.
        let _ = self.out.write_all(protocol::line(reply).as_bytes()).and_then(|()| self.out.flush());
    }

    fn stage(&mut self, stage: Stage) {
        self.say(&Reply::Stage { stage });
    }
}

/// Reads one request, carries it out and returns the exit status: 0 where an answer was given.
pub fn serve(input: impl Read, output: &mut dyn Write) -> u8 {
    // A child must not outlive its parent, whatever ends that.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let mut voice = Voice { out: output };
    let mut line = String::new();
    let read = std::io::BufReader::new(input.take(REQUEST_LIMIT_BYTES)).read_line(&mut line);
    let request = match (read, serde_json::from_str::<Request>(&line)) {
        (Ok(_), Ok(request)) => request,
        (Err(error), _) => return refuse(&mut voice, &error.to_string()),
        (_, Err(error)) => return refuse(&mut voice, &error.to_string()),
    };
    let result = match request {
        Request::Describe { device } => describe(device, &mut voice).map(Reply::Device),
        Request::Compile(compile) => compile_source(&compile, &mut voice),
        Request::Trial(trial) => launch::run(&trial, &mut voice).map(Reply::Trial),
    };
    match result {
        Ok(reply) => {
            voice.say(&reply);
            0
        }
        Err(failure) => {
            voice.say(&Reply::Failed(failure));
            1
        }
    }
}

fn refuse(voice: &mut Voice<'_>, why: &str) -> u8 {
    let message = format!("the request can't be read: {why}");
    voice.say(&Reply::Failed(Failure { stage: Stage::Library, code: None, call: None, message }));
    1
}

/// A failure of a driver call.
fn call_failed(stage: Stage, failed: CallFailed) -> Failure {
    let name = u32::try_from(failed.code).ok().and_then(crate::tables::cuda_status::by_code);
    let text =
        name.map_or_else(|| "a status that this program doesn't know".to_owned(), |s| s.text().to_owned());
    Failure {
        stage,
        code: Some(failed.code),
        call: Some(failed.call.to_owned()),
        message: format!("{} returned {}: {text}", failed.call, failed.code),
    }
}

fn plain_failure(stage: Stage, message: impl Into<String>) -> Failure {
    Failure { stage, code: None, call: None, message: message.into() }
}

/// Opens the driver and chooses a device.
fn open(device: u32, voice: &mut Voice<'_>) -> Result<Cuda, Failure> {
    voice.stage(Stage::Library);
    let mut cuda = Cuda::open().map_err(|failed| {
        let message = match failed {
            OpenFailed::Library(said) => {
                format!("no NVIDIA driver here: libcuda.so.1 can't be opened ({said})")
            }
            OpenFailed::Function(name) => {
                format!("this NVIDIA driver is too old or no driver: libcuda.so.1 has no {name}")
            }
        };
        plain_failure(Stage::Library, message)
    })?;
    voice.stage(Stage::Init);
    cuda.start(device).map_err(|failed| {
        let mut failure = call_failed(Stage::Init, failed);
        match (failed.call, failed.code) {
            ("cuInit", 100) => {
                failure.message = "the NVIDIA driver is there but shows no GPU (cuInit returned 100)".into()
            }
            ("cuInit", 34) => {
                failure.message =
                    "libcuda.so.1 is the toolkit's stub and no driver (cuInit returned 34)".to_owned();
            }
            ("cuDeviceGet", 101) => {
                let count = cuda.count().unwrap_or(0);
                failure.message =
                    format!("there is no GPU {device}: the driver shows {count}, numbered from 0");
            }
            _ => {}
        }
        failure
    })?;
    Ok(cuda)
}

fn describe(device: u32, voice: &mut Voice<'_>) -> Result<Device, Failure> {
    let cuda = open(device, voice)?;
    let failed = |failed| call_failed(Stage::Init, failed);
    let pci = cuda.pci().ok();
    let telemetry = nvml::telemetry(pci.as_deref());
    let number = |which| cuda.attribute(which).map(|value| u32::try_from(value).unwrap_or(0));
    Ok(Device {
        name: cuda.name().map_err(failed)?,
        compute_capability: number(attribute::MAJOR).map_err(failed)? * 10
            + number(attribute::MINOR).map_err(failed)?,
        driver: telemetry.driver,
        cuda_version: cuda.version().map_err(failed)?,
        memory_bytes: cuda.total().map_err(failed)?,
        used_bytes: telemetry.used_bytes,
        devices: cuda.count().map_err(failed)?,
        pci,
        guarded_memory: cuda.can_map().is_ok() && number(attribute::MAPPING).unwrap_or(0) != 0,
        shared_limit_bytes: number(attribute::SHARED_LIMIT).unwrap_or(0),
        processes: telemetry.processes,
    })
}

fn compile_source(compile: &Compile, voice: &mut Voice<'_>) -> Result<Reply, Failure> {
    voice.stage(Stage::Compile);
    let failed = |message: String| plain_failure(Stage::Compile, message);
    let file = std::fs::File::open(&compile.source)
        .map_err(|error| failed(format!("{}: {error}", compile.source)))?;
    let mut source = String::new();
    file.take(SOURCE_LIMIT_BYTES)
        .read_to_string(&mut source)
        .map_err(|error| failed(format!("{}: {error}", compile.source)))?;
    let (ptx, log) =
        nvrtc::compile(&source, &compile.source, compile.architecture).map_err(|why| match why {
            nvrtc::CompileFailed::Missing(what) => failed(format!("NVRTC can't compile here: {what}")),
            nvrtc::CompileFailed::Refused(code, log) => Failure {
                code: Some(code),
                ..failed(format!("NVRTC refused the source (status {code}): {}", log.trim()))
            },
        })?;
    std::fs::write(&compile.output, ptx).map_err(|error| failed(format!("{}: {error}", compile.output)))?;
    Ok(Reply::Compiled { log })
}
