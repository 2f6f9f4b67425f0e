//! Any mixture of an incident's pieces: the log alone, the dump alone, both, everything.
//!
//! In: samples that hold several pieces. Out: no subset contradicts the whole, no piece more loses the cause, and the report
//! names the evidence that decided.

use warpfault::report::Report;
use warpfault::verdict::Certainty;

use super::samples::report;

/// A sample and its pieces, each one or more files or folders.
const INCIDENTS: &[(&str, &[&[&str]])] = &[
    ("coredump-gather", &[&["core.nvcudmp.gz"], &["cuda-gdb.log"], &["dmesg.log"], &["run.log"]]),
    (
        "triton-coredump",
        &[
            &["core.nvcudmp.gz"],
            &["cuda-gdb.log"],
            &["dmesg.log"],
            &["run.log"],
            &["scatter_rows.ttir", "scatter_rows.json", "scatter_rows.ptx", "__grp__scatter_rows.json"],
        ],
    ),
    ("triton-int32-wrap", &[&["run.log"], &["dmesg.log"], &["../triton-cache"]]),
    ("tritonparse-int32-wrap", &[&["run.log"], &["dmesg.log"], &["../triton-cache"]]),
    ("cuda-gather", &[&["run.log"], &["dmesg.log"]]),
    ("cuda-unguarded-memcheck", &[&["run.log"], &["dmesg.log"]]),
];

fn of(sample: &str, pieces: &[&[&str]], chosen: usize) -> Report {
    let paths: Vec<String> = pieces
        .iter()
        .enumerate()
        .filter(|(at, _)| chosen >> at & 1 == 1)
        .flat_map(|(_, files)| files.iter().map(|file| format!("samples/{sample}/{file}")))
        .collect();
    report(&paths.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The class, and the cause with its certainty.
fn verdict(report: &Report) -> (String, Option<(String, Certainty)>) {
    let value = serde_json::to_value(report).unwrap();
    let verdict = &value["verdict"];
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    let certainty = match verdict["cause"]["certainty"].as_str() {
        Some("proven") => Certainty::Proven,
        Some("supported") => Certainty::Supported,
        Some("suspected") => Certainty::Suspected,
        _ => Certainty::Undecided,
    };
    let cause = text(&verdict["cause"]["kind"]).map(|kind| (kind, certainty));
    (text(&verdict["class"]).unwrap_or_default(), cause)
}

fn is_suspected(report: Option<&Report>) -> bool {
    report.is_some_and(|report| report.verdict.certainty == Certainty::Suspected)
}

#[test]
fn every_mixture_of_pieces_says_what_its_evidence_allows() {
    for (sample, pieces) in INCIDENTS {
        let all = (1 << pieces.len()) - 1;
        let found: Vec<_> =
            (0..=all).map(|chosen| (chosen > 0).then(|| of(sample, pieces, chosen))).collect();
        let verdicts: Vec<_> = found.iter().map(|report| report.as_ref().map(verdict)).collect();
        let (class, whole) = verdicts[all].clone().unwrap();
        assert_eq!(class, "illegal_address", "{sample}");
        for chosen in 1..=all {
            let (own, cause) = verdicts[chosen].clone().unwrap();
            // A kernel log alone may hold only the aftermath, which is no more than suspected.
            let aftermath = own == "launch_failure" && is_suspected(found[chosen].as_ref());
            assert!(own == class || own == "none" || aftermath, "{sample} {chosen:b}: {own}");
            let fits = |(kind, certainty): &(String, Certainty)| {
                whole.as_ref().is_some_and(|(known, most)| kind == known && certainty <= most)
            };
            assert!(cause.as_ref().is_none_or(fits), "{sample} {chosen:b}: {cause:?}, whole: {whole:?}");
            for piece in (0..pieces.len()).filter(|piece| chosen >> piece & 1 == 0) {
                let (_, more) = verdicts[chosen | 1 << piece].clone().unwrap();
                let keeps = |(kind, certainty): &(String, Certainty)| {
                    more.as_ref().is_some_and(|(known, now)| kind == known && certainty <= now)
                };
                assert!(
                    cause.as_ref().is_none_or(keeps),
                    "{sample} {chosen:b} + {piece}: {cause:?} → {more:?}"
                );
            }
            let value = serde_json::to_value(found[chosen].as_ref().unwrap()).unwrap();
            if cause.is_some() {
                let decided = value["hypotheses"][0]["for"].as_array().map_or(0, Vec::len);
                assert!(decided > 0, "{sample} {chosen:b}: no evidence is named");
            }
        }
    }
}
