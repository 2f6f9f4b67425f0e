//! Secrets planted everywhere: none is left in any format, and what maintainers need is.

use std::path::PathBuf;

use super::*;
use crate::report::{markdown, text};
use crate::session::{Input, Session};
use crate::source::{self, InputSpec, Limits};

const LOG: &str = "\
$ HF_TOKEN=hf_AbCdEfGhIjKlMnOpQrStUvWx WANDB_API_KEY=0123456789abcdef01234567 torchrun /home/mallory/acme-secret/train.py --auth-token tulipan --data s3://acme-bucket/corpus
NCCL version 2.28.9+cuda13.0
GPU 0: NVIDIA H200 (UUID: GPU-00000000-1111-2222-3333-444444444444)
[rank0]: Traceback (most recent call last):
[rank0]:   File \"/home/mallory/acme-secret/train.py\", line 60, in forward
[rank0]:     x = y.to(device=\"cpu\")
[rank0]:   File \"/home/mallory/venv/lib/python3.12/site-packages/torch/_ops.py\", line 9, in call
[rank0]:     return op(x)
[rank0]: torch.AcceleratorError: CUDA error: an illegal memory access was encountered
gpu-node17:591:612 [0] include/alloc.h:124 NCCL WARN Cuda failure 700 'an illegal memory access was encountered'
gpu-node17:591:612 [0] NCCL INFO NET/Socket : connect to 10.12.0.7<54321> failed for mallory, ask ann@acme.org
saved by mallory on gpu-node17 with 0123456789abcdef01234567 to /scratch/acme-secret/ckpt-9
";

const SECRETS: &[&str] = &[
    "mallory",
    "acme",
    "gpu-node17",
    "10.12.0.7",
    "hf_AbCd",
    "0123456789abcdef01234567",
    "tulipan",
    "GPU-00000000",
    "corpus",
    "ckpt-9",
    "/home",
    "/scratch",
];

fn report() -> Report {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("acme-secret");
    std::fs::create_dir(&below).unwrap();
    let path = below.join("run.log");
    std::fs::write(&path, LOG).unwrap();
    let mut session = Session::new();
    session.apply(Input::Loaded(source::load(&[InputSpec::Path(PathBuf::from(&path))], Limits::default())));
    session.report().clone()
}

#[test]
fn no_planted_secret_is_left_in_any_format() {
    let plain = report();
    let json = serde_json::to_string(&plain).unwrap();
    // Every secret is in the report before, or the test would prove nothing.
    for secret in SECRETS
        .iter()
        .filter(|secret| !matches!(**secret, "10.12.0.7" | "ckpt-9" | "/scratch" | "GPU-00000000"))
    {
        assert!(json.contains(secret), "{secret} never reached the report");
    }
    let redacted = redact(plain);
    let formats = [
        serde_json::to_string(&redacted).unwrap(),
        text::render(&redacted, text::Paint::Plain),
        markdown::render(&redacted),
        crate::report::html::render(&redacted),
    ];
    for shown in &formats {
        for secret in SECRETS {
            assert!(!shown.contains(secret), "{secret} is left in {shown}");
        }
    }
}

#[test]
fn what_the_report_is_about_stays_and_the_list_says_what_went() {
    let redacted = redact(report());
    let notice = redacted.verdict.observed_at.as_ref().unwrap();
    assert!(notice.file.as_deref().unwrap().ends_with("/train.py"), "{notice:?}");
    assert_eq!(notice.line, Some(60));
    assert!(redacted.inputs[0].path.ends_with("/run.log"));
    let messages: Vec<&str> = redacted.diagnostics.iter().map(|one| one.message.as_str()).collect();
    let starts = |start: &str| messages.iter().any(|message| message.starts_with(start));
    assert!(starts("redacted: 1 user in ") && starts("redacted: 1 host in "), "{messages:#?}");
    assert!(
        messages.iter().any(|message| message.contains(" keys in ") && message.contains("KEY-1 to KEY-"))
    );
}

#[test]
fn redacting_twice_changes_no_text() {
    let mut once = redact(report());
    let before: Vec<String> = texts::of(&mut once).into_iter().map(|text| text.clone()).collect();
    let mut twice = redact(once);
    let after: Vec<String> =
        texts::of(&mut twice).into_iter().map(|text| text.clone()).take(before.len()).collect();
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before, after);
    }
}

#[test]
fn names_that_count_something_are_no_secrets() {
    for name in ["--max-tokens", "--pad-token-id", "NUM_TOKENS", "--keys"] {
        assert!(!names_a_secret(name), "{name}");
    }
    for name in ["--token", "--api-key", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "--db-password"] {
        assert!(names_a_secret(name), "{name}");
    }
}
