//! Where a failure was noticed: the innermost frame of the user's own code, and the call it made there.
//!
//! In: the case and the failures, the root first. Out: a place of notice, and whether it lies later than the fault. It
//! claims nothing about where the fault happened.

use crate::case::{Case, EvidenceId, Fact};
use crate::read::event::{Advice, Data, Event, Messenger, Place, PyFrame, Status, Traceback};
use crate::tables::class::FailureClass;
use crate::tables::{SyncCall, SyncPoint, only_enqueues, sync_in_source, sync_point};

use super::super::failure::Failure;
use super::super::summary::base_name;
use super::Notice;

/// The place of notice of the root failure.
pub fn find(case: &Case, root: &Failure, failures: &[Failure]) -> Option<Notice> {
    from_traceback(case, root, failures)
        .or_else(|| from_signal(case, root))
        .or_else(|| from_status(case, root))
        .or_else(|| from_collective_stack(case, root))
        .or_else(|| from_echo(case, root))
}

/// The sanitizer's echo of a failed call, with the innermost place of the host that it prints.
fn from_echo(case: &Case, root: &Failure) -> Option<Notice> {
    let (id, event, record) = case
        .pick(|data| match data {
            Data::Sanitizer(record) if record.api.is_some() => Some(&**record),
            _ => None,
        })
        .find(|(id, _, _)| root.evidence.contains(id))?;
    let api = record.api.as_deref()?;
    let place = record.host.iter().find_map(|frame| frame.place.as_ref());
    let point = noticing(api);
    Some(Notice {
        rank: event.origin.rank,
        file: place.map(|place| place.file.clone()).filter(|file| !file.is_empty()),
        line: place.and_then(|place| place.line),
        call: Some(call_name(api)),
        is_sync_point: point.map(|point| point.waits).or_else(|| is_launch(api).then_some(false)),
        sync_why: point.map(|point| point.why),
        evidence: vec![id],
        ..Notice::default()
    })
}

fn from_traceback(case: &Case, root: &Failure, failures: &[Failure]) -> Option<Notice> {
    let tracebacks: Vec<(EvidenceId, &Event, &Traceback)> = case
        .pick(|data| match data {
            Data::Traceback(traceback) if !traceback.frames.is_empty() => Some(traceback),
            _ => None,
        })
        .collect();
    let carries = |failure: &Failure| {
        tracebacks.iter().find(|(id, event, traceback)| {
            failure.evidence.contains(id)
                || failure.evidence.iter().any(|id| is_inside(case, *id, event, traceback))
        })
    };
    let found = carries(root).or_else(|| {
        failures
            .iter()
            .filter(|failure| {
                failure.class == root.class && (root.rank.is_none() || failure.rank == root.rank)
            })
            .find_map(carries)
    });
    let found = found.or_else(|| later_report(&tracebacks, root))?;
    let (id, event, frame) = user_place(found, &tracebacks)?;
    let inner = innermost(event, frame);
    // A built-in prints or converts what it is given: a frame of the user's own below it means that it had not begun.
    let in_own = called_from(event, frame).is_some_and(|next| distance_from_user(&next.file) < 2);
    let not_yet = in_own && sync_of(frame).is_some_and(|call| is_builtin(&call.call));
    let call = sync_of(frame).filter(|_| !not_yet);
    let inside = inner.filter(|_| call.is_none()).and_then(|inner| Some((inner, sync_of(inner)?)));
    let api = refused_api(case, found.0, found.1, found.2).filter(|_| call.is_none() && inside.is_none());
    let named = call
        .as_ref()
        .map(|call| call.name.clone())
        .or_else(|| if not_yet { first_call(frame) } else { plain_call(frame) })
        .or_else(|| api.map(call_name));
    let api_point = api.and_then(noticing);
    let is_sync_point = if call.is_some() || inside.is_some() {
        Some(true)
    } else if let Some(point) = api_point {
        Some(point.waits)
    } else {
        // Neither table need know the call: then nobody says whether it waits.
        enqueues(inner.unwrap_or(frame)).then_some(false)
    };
    Some(Notice {
        rank: event.origin.rank,
        file: Some(frame.file.clone()),
        line: frame.line,
        function: frame.function.clone(),
        call: named.clone(),
        is_sync_point,
        sync_why: call
            .as_ref()
            .or(inside.as_ref().map(|(_, inside)| inside))
            .map(|call| call.point.why)
            .or(api_point.map(|point| point.why)),
        waits_inside: inside
            .map(|(inner, inside)| {
                let line = inner.line.map(|line| format!(":{line}")).unwrap_or_default();
                format!("{} in {}{line}", inside.call, base_name(&inner.file))
            })
            // The message names the call or the operation; what stands on the user's line only led there.
            .or_else(|| {
                api_point.and(api).filter(|api| named.as_deref() != Some(&*call_name(api))).map(quoted)
            }),
        call_text: call.map(|call| call.call),
        log_line: Some(frame.log_line),
        evidence: vec![id],
    })
}

type Found<'a> = (EvidenceId, &'a Event, &'a Traceback);

/// The user's frame in the block that carries the failure; where that one ends inside libraries, in a block that hangs on
/// it (`direct cause of`, `during handling of`).
fn user_place<'a>(found: &Found<'a>, all: &[Found<'a>]) -> Option<(EvidenceId, &'a Event, &'a PyFrame)> {
    let of = |(id, event, traceback): &Found<'a>| {
        user_frame(traceback.frames.iter().rev()).map(|frame| (*id, *event, frame))
    };
    let own = of(found);
    if own.is_some_and(|(_, _, frame)| distance_from_user(&frame.file) == 0) {
        return own;
    }
    let hanging = all
        .iter()
        .skip_while(|(id, _, _)| *id != found.0)
        .skip(1)
        .take_while(|(_, _, traceback)| traceback.chain.is_some())
        .filter_map(of)
        .find(|(_, _, frame)| distance_from_user(&frame.file) == 0);
    hanging.or(own)
}

/// A GPU fault that something else caught (a sanitizer, a dump, an assertion line, the kernel log) was noticed by the
/// program where its traceback ends in a GPU error, whatever status that one names.
fn later_report<'a>(
    tracebacks: &'a [(EvidenceId, &'a Event, &'a Traceback)],
    root: &Failure,
) -> Option<&'a (EvidenceId, &'a Event, &'a Traceback)> {
    if !root.class.is_device_fault() {
        return None;
    }
    tracebacks.iter().find(|(_, event, traceback)| {
        let text = traceback.exception.as_ref().map_or("", |exception| exception.message.as_str());
        (root.rank.is_none() || event.origin.rank.is_none() || event.origin.rank == root.rank)
            && ["CUDA", "CUBLAS", "CUDNN", "cuda", "Triton Error", "HIP error"]
                .iter()
                .any(|word| text.contains(word))
    })
}

/// Whether the evidence stands on the exception line of the block, or in the message under it.
fn is_inside(case: &Case, id: EvidenceId, block: &Event, traceback: &Traceback) -> bool {
    let Some(crate::case::Fact::Event(event)) = case.get(id).map(|evidence| &evidence.fact) else {
        return false;
    };
    let Some(exception) = &traceback.exception else { return false };
    let lines = exception.message.lines().count().max(1) as u64;
    event.span.input == block.span.input
        && (exception.log_line..exception.log_line + lines).contains(&event.span.line)
}

/// The innermost frame of the user's own code; failing that, of an application above the framework.
fn user_frame<'a>(innermost_first: impl Iterator<Item = &'a PyFrame> + Clone) -> Option<&'a PyFrame> {
    let nearest = |distance: u8| {
        let near = move |frame: &&PyFrame| distance_from_user(&frame.file) <= distance;
        // A wrapper that hands its arguments on is nobody's place, as long as its caller is known.
        innermost_first
            .clone()
            .filter(near)
            .find(|frame| !hands_on(frame))
            .or_else(|| innermost_first.clone().find(near))
    };
    nearest(0).or_else(|| nearest(1))
}

/// `return fun(*args, **kwargs)`, as decorators do.
fn hands_on(frame: &PyFrame) -> bool {
    frame.source.as_deref().is_some_and(|source| source.contains("(*args"))
}

/// Whether a file is the user's own: no package, no library of the language.
#[must_use]
pub fn is_own_file(file: &str) -> bool {
    distance_from_user(file) == 0
}

/// 0 the user's own file, 1 a package on top of the framework, 2 the framework or the language.
fn distance_from_user(file: &str) -> u8 {
    let file = file.replace('\\', "/");
    if file.starts_with('<')
        && !file.starts_with("<ipython")
        && !file.starts_with("<stdin")
        && !file.contains("cell")
    {
        return 2;
    }
    // Code that the compiler of PyTorch wrote into its cache.
    if file.contains("torchinductor") {
        return 2;
    }
    let installed = ["site-packages/", "dist-packages/"]
        .iter()
        .find_map(|mark| file.split_once(mark))
        .map(|(_, rest)| rest);
    let standard = file.contains("/lib/python3")
        || file.contains("/lib/python2")
        || file.contains("/Lib/python")
        || file.starts_with("/usr/lib/python");
    match installed {
        Some(package) => {
            let core = [
                "torch/",
                "triton/",
                "torchvision/",
                "torchaudio/",
                "numpy/",
                "jax/",
                "jaxlib/",
                "tensorflow/",
                "cupy/",
                "cupy_backends/",
                "numba/",
                "pycuda/",
                "paddle/",
                "mxnet/",
                "ray/",
                "multiprocess/",
                "concurrent/",
                "apex/",
                "functorch/",
                "keras/",
                "cuda/",
            ];
            if core.iter().any(|core| package.starts_with(core)) { 2 } else { 1 }
        }
        None if standard => 2,
        None => 0,
    }
}

/// The frame that `frame` called.
fn called_from<'a>(event: &'a Event, frame: &PyFrame) -> Option<&'a PyFrame> {
    let Data::Traceback(traceback) = &event.data else { return None };
    let at = traceback.frames.iter().position(|other| other.log_line == frame.log_line)?;
    traceback.frames.get(at + 1)
}

/// `print(x)`, `float(y)`, not `x.item()`.
fn is_builtin(call: &str) -> bool {
    ["print", "str", "repr", "format", "bool", "int", "float"]
        .iter()
        .any(|name| call.strip_prefix(name).is_some_and(|rest| rest.starts_with('(')))
}

/// The name of the first call on a frame's line in order of evaluation.
fn first_call(frame: &PyFrame) -> Option<String> {
    let text = frame.marked.as_deref().or(frame.source.as_deref())?;
    crate::tables::first_call(text).or_else(|| plain_call(frame))
}

/// An operation in words stands in quotes: `"synchronize CUDA stream"`.
fn quoted(api: &str) -> String {
    let name = call_name(api);
    if name.contains(' ') { format!("\"{name}\"") } else { name }
}

/// The call on a frame's source line that notices earlier errors.
fn sync_of(frame: &PyFrame) -> Option<SyncCall> {
    sync_in_source(frame.source.as_deref()?, frame.marked.as_deref())
}

/// The call of a library or the runtime that the exception says was refused (`when calling cublasCreate(handle)`).
fn refused_api<'a>(
    case: &'a Case,
    block: EvidenceId,
    event: &Event,
    traceback: &Traceback,
) -> Option<&'a str> {
    case.pick(|data| match data {
        Data::Status(status) => status.api.as_deref(),
        Data::Library(status) => status.api.as_deref(),
        _ => None,
    })
    .find(|(id, _, _)| *id != block && is_inside(case, *id, event, traceback))
    .map(|(_, _, api)| api)
}

/// The frame that raised, where it lies deeper than `frame`.
fn innermost<'a>(event: &'a Event, frame: &PyFrame) -> Option<&'a PyFrame> {
    let Data::Traceback(traceback) = &event.data else { return None };
    traceback.frames.last().filter(|last| last.log_line != frame.log_line)
}

/// Whether the frame is known to have only started work.
fn enqueues(frame: &PyFrame) -> bool {
    let Some(source) = frame.source.as_deref() else { return false };
    // Triton's own launcher, down to the driver.
    let is_launcher =
        frame.file.contains("triton/") && (source.contains(".launch(") || source.contains(".run("));
    is_launcher || only_enqueues(source, frame.marked.as_deref())
}

/// The name of the marked call where it is none that waits.
fn plain_call(frame: &PyFrame) -> Option<String> {
    let text = frame.marked.as_deref().or(frame.source.as_deref())?.trim();
    // `raise CudaAPIError(…)` makes an exception and calls nothing.
    let head = text.split_once('(').filter(|(head, _)| !head.starts_with("raise "))?.0;
    let name = head.rsplit(['.', ' ', '=', '(', '[']).next()?.trim();
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    is_name.then(|| name.to_owned())
}

fn from_signal(case: &Case, root: &Failure) -> Option<Notice> {
    if !matches!(root.class, FailureClass::Segfault | FailureClass::Abort) {
        return None;
    }
    let (id, event, frame) = case
        .pick(|data| match data {
            Data::Signal(signal) => user_frame(signal.python.iter()),
            _ => None,
        })
        .next()?;
    Some(Notice {
        rank: event.origin.rank,
        file: Some(frame.file.clone()),
        line: frame.line,
        function: frame.function.clone(),
        evidence: vec![id],
        ..Notice::default()
    })
}

fn from_status(case: &Case, root: &Failure) -> Option<Notice> {
    let (id, event, status) =
        statuses(case, root).find(|(_, _, status)| status.reported_from.is_some() || status.api.is_some())?;
    let place = status.reported_from.clone().unwrap_or_default();
    let Place { file, line, function } = place;
    let sync = status.api.as_deref().and_then(noticing);
    Some(Notice {
        rank: event.origin.rank,
        file: Some(file).filter(|file| !file.is_empty()),
        line,
        function,
        call: status.api.as_deref().map(call_name),
        is_sync_point: match (sync, status.api.as_deref()) {
            (Some(point), _) => Some(point.waits),
            (None, Some(api)) => is_launch(api).then_some(false),
            (None, None) => None,
        },
        sync_why: sync.map(|point| point.why),
        evidence: vec![id],
        ..Notice::default()
    })
}

/// Why a call or an operation notices earlier errors, and whether it waits: by the table, else by the word for waiting,
/// copying, freeing or asking in a phrase such as "polling for event status".
fn noticing(api: &str) -> Option<SyncPoint> {
    if let Some(point) = sync_point(api) {
        return Some(*point);
    }
    let lower = api.to_ascii_lowercase();
    let rows: [(&[&str], &str); 4] = [
        (&["synchron"], "waits for earlier work of the GPU"),
        (&["memcpy", "copy", "to_device"], "copies after earlier work of the GPU, and returns its error"),
        (
            &["free", "alloc", "destroy", "unload"],
            "allocates, frees or unloads, and returns the error of earlier work",
        ),
        (&["event", "query", "polling"], "asks for the state of earlier work, and returns its error"),
    ];
    rows.iter().find(|(words, _)| words.iter().any(|word| lower.contains(word))).map(|(_, why)| SyncPoint {
        name: "",
        why,
        waits: true,
    })
}

/// Whether a call of the runtime or the driver starts a kernel.
fn is_launch(api: &str) -> bool {
    ["cudaLaunch", "cuLaunch", "hipLaunch"].iter().any(|name| api.trim_start_matches(':').starts_with(name))
}

fn call_name(api: &str) -> String {
    api.split('(').next().unwrap_or(api).trim().to_owned()
}

fn statuses<'a>(
    case: &'a Case,
    root: &'a Failure,
) -> impl Iterator<Item = (EvidenceId, &'a Event, &'a Status)> + 'a {
    let same = |id: &EvidenceId| root.evidence.contains(id);
    let all = move |case: &'a Case| {
        case.pick(|data| match data {
            Data::Status(status) => Some(status),
            _ => None,
        })
    };
    // The root's own statuses first; a fault that something else caught was noticed by whichever status came.
    all(case)
        .filter(move |(id, _, _)| same(id))
        .chain(all(case).filter(move |_| root.class.is_device_fault()))
}

/// `Stack trace of the failed collective` names the user's frame; so does a native block that holds Python frames.
fn from_collective_stack(case: &Case, root: &Failure) -> Option<Notice> {
    if root.class != FailureClass::Nccl {
        return None;
    }
    let (id, event, frame) = case
        .pick(|data| match data {
            Data::NativeFrames(frames) => frames
                .frames
                .iter()
                .filter_map(|frame| frame.place.as_ref())
                .find(|place| place.file.ends_with(".py") && distance_from_user(&place.file) == 0),
            _ => None,
        })
        .next()?;
    Some(Notice {
        rank: event.origin.rank,
        file: Some(frame.file.clone()),
        line: frame.line,
        function: frame.function.clone(),
        evidence: vec![id],
        ..Notice::default()
    })
}

/// Whether the failure was reported later than it happened: from positive evidence, none where nothing tells.
#[must_use]
pub fn asynchronous(case: &Case, root: &Failure, notice: Option<&Notice>) -> Option<bool> {
    if !root.class.is_device_fault() {
        return at_once(root.class);
    }
    let advice = |wanted: Advice| {
        case.pick(|data| matches!(data, Data::Advice(a) if *a == wanted).then_some(())).next().is_some()
    };
    if blocking_is_on(case, root) {
        return Some(false);
    }
    if notice.is_none() && stated_by_a_tool(case) {
        return Some(false);
    }
    if notice.is_some_and(|notice| notice.is_sync_point == Some(true)) || advice(Advice::MayBeAsynchronous) {
        return Some(true);
    }
    if matches!(root.relayed_by, Some(Messenger::NcclWatchdog | Messenger::Destructor | Messenger::Nccl))
        || root.is_xid()
    {
        return Some(true);
    }
    // PyTorch leaves the first two lines of advice away where launch blocking is on.
    if advice(Advice::DeviceAssertions) && !advice(Advice::LaunchBlocking) {
        return Some(false);
    }
    // A launch returns before its kernel runs, so that a call of the host can only bring the fault of an earlier one.
    is_status(case, root).then_some(true)
}

/// Whether the host got to know it as the status of a call.
fn is_status(case: &Case, root: &Failure) -> bool {
    let fact = root.evidence.first().and_then(|id| case.get(*id)).map(|evidence| &evidence.fact);
    matches!(fact, Some(Fact::Event(event)) if matches!(event.data, Data::Status(_) | Data::Library(_)))
}

/// Whether a sanitizer, a debugger or a dump caught the fault itself: its place is the place.
fn stated_by_a_tool(case: &Case) -> bool {
    case.pick(|data| match data {
        Data::Sanitizer(record) => record.kernel.is_some().then_some(()),
        Data::FaultingLaunch(launch) => (launch.kernel.is_some() || launch.pc.is_some()).then_some(()),
        _ => None,
    })
    .next()
    .is_some()
}

/// Failures that come out where they happen.
fn at_once(class: FailureClass) -> Option<bool> {
    match class {
        FailureClass::GpuOom
        | FailureClass::LaunchConfig
        | FailureClass::NoKernelImage
        | FailureClass::CompileError
        | FailureClass::PythonError
        | FailureClass::Segfault
        | FailureClass::GraphCapture
        | FailureClass::Race
        | FailureClass::UninitializedRead
        | FailureClass::BarrierError
        | FailureClass::Leak => Some(false),
        _ => None,
    }
}

/// Whether the failing run had launch blocking on: its own input says so, or one that tells of settings only. A rerun
/// with launch blocking says nothing about the run before it.
pub(in crate::verdict) fn blocking_is_on(case: &Case, root: &Failure) -> bool {
    let has_stack = |input| {
        case.events().any(|(_, event)| event.span.input == input && matches!(event.data, Data::Traceback(_)))
    };
    let blocking = case.blocking_inputs();
    blocking.contains(&root.at.input)
        || blocking.into_iter().any(|input| !case.is_rerun(input) && !has_stack(input))
}
