//! NCCL's own lines, its network plug-ins', and NCCL results that callers report.
//!
//! In: a line of NCCL (`host:pid:tid [d] file:line NCCL WARN …`), of libfabric or UCX, or of a caller that got an NCCL
//! result. Out: [`Data::Nccl`] and [`Data::NcclResult`]. It leaves alone the CUDA status inside a line (the status reader
//! wants it too) and every INFO line but the return chain and the service thread's.

mod nvshmem;
mod result;
mod topic;

pub use topic::topic;

use super::event::{Data, NcclLine, NcclTopic, Place};
use super::lines::{Cx, Line, Taken};
use super::scan::{after, before, between, digits, small, small_after};

/// Strings of which one stands in every line that this reader wants.
pub const LITERALS: &[&str] = &[
    "NCCL WARN",
    "ERROR",
    ".cc:",
    "Service thread]",
    "rror",
    "ailure",
    "<warn>",
    "ompletion from peer",
    "non-zero status: ",
    "failed for transport",
    "initialize any transports",
    "Duplicate GPU",
    "collective",
];

/// Reads a line of NCCL or of one of its callers.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> Taken {
    let body = line.body();
    if let Some(at) = body.find("NCCL WARN").or_else(|| body.find("NCCL ERROR")) {
        return warning(line, at, cx);
    }
    if let Some(message) = after(body, "NCCL INFO ") {
        return information(line, message, cx);
    }
    if let Some(event) = plug_in(body).or_else(|| nvshmem::parse(body)) {
        cx.push(line, Data::Nccl(event));
        return Taken::Part;
    }
    result::read(line, cx)
}

/// A WARN or ERROR line; the quiet form has no head before it.
fn warning(line: &Line<'_>, at: usize, cx: &mut Cx<'_>) -> Taken {
    let body = line.body();
    let level =
        if body.get(at..).is_some_and(|rest| rest.starts_with("NCCL WARN")) { "WARN" } else { "ERROR" };
    let message = body.get(at + 5 + level.len()..).unwrap_or("").trim();
    if message.is_empty() {
        return Taken::No;
    }
    let place = body.get(..at).and_then(place_before);
    let cuda_code = cuda_code(message);
    cx.push(
        line,
        Data::Nccl(NcclLine {
            level: level.to_owned(),
            message: message.to_owned(),
            topic: topic(message, place.as_ref()),
            result: small_after(message, "retcode").or_else(|| small_after(message, ", res")),
            place,
            cuda_code,
            peer: peer(message),
        }),
    );
    Taken::Part
}

/// INFO lines that tell of an error: the return chain (`file:line -> 6`) and the service thread.
fn information(line: &Line<'_>, message: &str, cx: &mut Cx<'_>) -> Taken {
    let event = if let Some((place, result)) = chain(message) {
        NcclLine {
            level: "INFO".to_owned(),
            message: message.trim().to_owned(),
            place: Some(place),
            topic: NcclTopic::Chain,
            result: Some(result),
            ..NcclLine::default()
        }
    } else if message.contains("Service thread]")
        || message.contains("[Proxy Service") && message.contains("ailed")
    {
        NcclLine {
            level: "INFO".to_owned(),
            message: message.trim().to_owned(),
            topic: topic(message, None),
            result: small_after(message, "res="),
            peer: peer(message),
            ..NcclLine::default()
        }
    } else {
        // What is left says nothing of a failure, though it may hold the word: "Failed to initialize NET plugin IB".
        let facts = ["ersion", "set by environment", "uda failure"].iter().any(|word| message.contains(word));
        return if facts { Taken::No } else { Taken::Whole };
    };
    cx.push(line, Data::Nccl(event));
    Taken::Whole
}

/// `init.cc:1234 -> 6 [Async thread]`.
fn chain(message: &str) -> Option<(Place, u32)> {
    let (head, tail) = message.split_once(" -> ")?;
    let place = place_before(head)?;
    let (result, rest) = small(tail.trim_start())?;
    let ends = rest.is_empty() || rest.starts_with([' ', '\r']);
    (ends && result <= 64).then_some((place, result))
}

/// `transport/net.cc:12 (function)` or `register_mr_buffers:465` at the end of what stands before the level.
fn place_before(head: &str) -> Option<Place> {
    let head = head.trim_end();
    let (head, function) = match head.strip_suffix(')').and_then(|inner| inner.rsplit_once('(')) {
        Some((head, function)) => (head.trim_end(), Some(function.to_owned())),
        None => (head, None),
    };
    let token = head.rsplit([' ', '\t', ']']).next()?;
    let (file, line) = token.rsplit_once(':')?;
    let (line, rest) = small(line)?;
    if file.is_empty() || !rest.is_empty() || file.contains([':', '(', '<']) {
        return None;
    }
    if file.contains('.') {
        return Some(Place { file: file.to_owned(), line: Some(line), function });
    }
    Some(Place { file: String::new(), line: Some(line), function: Some(file.to_owned()) })
}

/// The number of `Cuda failure 700 '…'`; old releases print the text alone, of which the common ones are known.
fn cuda_code(message: &str) -> Option<u32> {
    let rest = after(message, "Cuda failure ").or_else(|| after(message, "CUDA failure "))?;
    if let Some((code, _)) = digits(rest.trim_start()) {
        return u32::try_from(code).ok();
    }
    let text = rest.trim_start_matches(['\'', '"', ' ']);
    crate::tables::cuda_status::text_in(text).map(|found| found.status.code)
}

/// Whom a message names: `10.0.0.1<3456>`, `host<3456>`, `localRank 1`, `rank 3`.
fn peer(message: &str) -> Option<String> {
    if let Some(local) = small_after(message, "localRank ") {
        return Some(format!("localRank {local}"));
    }
    let address = message
        .split([' ', ',', '('])
        .find(|word| {
            word.split_once('<').is_some_and(|(host, port)| {
                !host.is_empty() && digits(port).is_some_and(|(_, rest)| rest.starts_with('>'))
            })
        })
        .map(|word| before(word, ">").to_owned() + ">");
    address.or_else(|| small_after(message, "from rank ").map(|rank| format!("rank {rank}")))
}

/// libfabric's and UCX's own lines, and NCCL sentences quoted without their head.
fn plug_in(body: &str) -> Option<NcclLine> {
    let (level, message) = if let Some(message) = after(body, "<warn>") {
        let ofi = body.contains("libfabric") || body.contains("efa") || body.contains("EFA");
        (ofi.then_some("WARN")?, message)
    } else if let Some((_, message)) =
        body.split_once("UCX ").filter(|(_, rest)| rest.trim_start().starts_with("ERROR"))
    {
        ("ERROR", message.trim_start().strip_prefix("ERROR")?)
    } else if let Some(at) = body.find("NET/IB").filter(|_| body.contains("Got completion from peer")) {
        // A paste may begin behind the head.
        ("WARN", body.get(at..)?)
    } else if body.starts_with("Duplicate GPU detected")
        || body.contains("ismatched collective detected")
        || body.starts_with("collective mismatch error")
    {
        ("", body)
    } else {
        return None;
    };
    let message = message.trim();
    let ofi = level == "WARN" && !message.starts_with("NET/IB");
    let named = topic(message, None);
    Some(NcclLine {
        level: level.to_owned(),
        message: message.to_owned(),
        topic: if ofi && named != NcclTopic::Registration { NcclTopic::Ofi } else { named },
        peer: peer(message).or_else(|| between(message, "peer addr ", " ").map(str::to_owned)),
        ..NcclLine::default()
    })
}

#[cfg(test)]
mod tests;
