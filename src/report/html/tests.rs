//! The page: self-contained, closed to outside text, and saying in words what its pictures show.

use std::path::PathBuf;

use super::*;
use crate::report::model::Report;
use crate::session::{Input, Session};
use crate::source::{self, InputKind, InputSpec, Limits};

fn report_of(path: &str) -> Report {
    let mut session = Session::new();
    session.apply(Input::Loaded(source::load(&[InputSpec::Path(PathBuf::from(path))], Limits::default())));
    session.report().clone()
}

fn page_of(sample: &str) -> String {
    render(&report_of(&format!("samples/{sample}")))
}

#[test]
fn nothing_is_loaded_and_nothing_runs() {
    let samples = std::fs::read_dir("samples").unwrap().flatten().filter(|entry| entry.path().is_dir());
    let names: Vec<String> = samples.map(|entry| entry.file_name().into_string().unwrap()).collect();
    assert!(names.len() > 40, "{names:?}");
    for sample in &names {
        let page = page_of(sample).to_ascii_lowercase();
        // Of the text only what a browser reads as markup counts: outside text has no `<` of its own.
        let tags: String = page.split('<').skip(1).filter_map(|part| part.split('>').next()).collect();
        for word in
            ["script", "javascript:", "src=", "url(", "link ", "iframe", "http-equiv", "object ", "embed "]
        {
            assert!(!tags.contains(word), "{word} in {sample}");
        }
        for word in ["<script", "@import", "url("] {
            assert!(!page.contains(word), "{word} in {sample}");
        }
        for attribute in ["href=\"", "action=\"", "poster=\"", "data=\"", "srcset=\""] {
            let outside = page.match_indices(attribute);
            let outside = outside.filter(|(at, _)| !page[at + attribute.len()..].starts_with('#'));
            assert_eq!(outside.count(), 0, "{attribute} in {sample}");
        }
    }
}

#[test]
fn every_link_has_its_row() {
    for sample in ["triton-int32-wrap-memcheck", "pair-skipped-collective", "torch-segv-faulthandler"] {
        let page = page_of(sample);
        for (at, _) in page.match_indices("href=\"#") {
            let id: String = page[at + 7..].chars().take_while(|c| *c != '"').collect();
            assert_eq!(page.matches(&format!("<tr id=\"{id}\">")).count(), 1, "{id} in {sample}");
        }
    }
}

#[test]
fn the_last_line_is_the_mark_and_the_page_is_told_from_a_log() {
    let page = page_of("triton-int32-wrap-memcheck");
    let last = page.lines().last().unwrap();
    assert!(last.starts_with("report by warpfault ") && last.ends_with("(warpfault/report/1)"), "{last}");
    assert_eq!(source::sniff(page.as_bytes(), None), InputKind::Report);
}

#[test]
fn hostile_names_stay_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run\"><script>alert(1).log");
    let log = "========= COMPUTE-SANITIZER\n\
        ========= Invalid __global__ write of size 4 bytes\n\
        =========     at k<script>alert(2)</script>(float *)+0xf0 in \"><img src=x onerror=alert(3)>.cu:12\n\
        =========     by thread (32,0,0) in block (65892,0,0)\n\
        =========     Address 0x7fa246c80080 is out of bounds\n\
        =========     and is 8,543,272,832 bytes before the nearest allocation at 0x7fa444000000 of size 9,175,040,000 bytes\n\
        </style></title><svg onload=alert(4)> M\"'><b>x=70000 rows=70000 cols=32768 --> ]]>\n\
        ========= ERROR SUMMARY: 1 error\n";
    std::fs::write(&path, log).unwrap();
    let page = render(&report_of(path.to_str().unwrap()));
    assert!(page.contains("alert(1)") && page.contains("alert(2)"), "the names reach the page");
    let lower = page.to_ascii_lowercase();
    for tag in ["<script", "<img", "<svg onload", "<b>", "onerror=alert(3)>"] {
        assert!(!lower.contains(tag), "{tag}");
    }
    assert_eq!(lower.matches("</style>").count(), 1);
    assert_eq!(lower.matches("</title>").count(), 1 + lower.matches("<title id=").count());
}

#[test]
fn a_wrapped_index_is_drawn_and_said() {
    let page = page_of("triton-int32-wrap-memcheck");
    assert_eq!(page.matches("<svg ").count(), 2);
    for said in [
        "The last index of M 234,624 × intermediate_size 9,216 passes the largest 32-bit index by 14,811,136 (0.69 %).",
        "fits: M 233,016 × intermediate_size 9,216",
        "2³¹−1 = 2,147,483,647",
        "1 × 2³² × 2 bytes = 8,589,934,592 bytes",
        "meant: element 2,155,253,760",
        "The write of 16 bytes lies 4,279,427,072 bytes before the allocation.",
    ] {
        assert!(page.contains(said), "{said}");
    }
}

#[test]
fn ranks_get_lanes_or_a_board() {
    let lanes = page_of("pair-skipped-collective");
    assert!(lanes.contains("ALLREDUCE, number 7"), "the collective in question is marked");
    let board = page_of("ddp-log-folder");
    assert!(board.contains("What each rank did"));
}

#[test]
fn a_thousand_ranks_and_absurd_numbers_still_draw() {
    let mut report = report_of("samples/pair-skipped-collective");
    let rank = report.ranks[0].clone();
    report.ranks = (0..3_000)
        .map(|number| crate::report::model::Rank {
            rank: number,
            last_enqueued: Some(i64::MAX),
            last_completed: Some(i64::MIN),
            ..rank.clone()
        })
        .collect();
    let page = render(&report);
    assert!(page.contains("3000 ranks") && page.contains("… and 2936 more"));
    assert!(!page.contains("NaN") && !page.contains("\"inf") && !page.contains("\"-inf"));
}
