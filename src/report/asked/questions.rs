//! The questions, by what failed.
//!
//! In: a report. Out: rows in the order in which a maintainer asks.

use crate::source::InputKind;
use crate::tables::cause::CauseKind;
use crate::tables::class::FailureClass;
use crate::text::{command_line, fit};

use super::super::Report;
use super::super::figure::NumberLine;
use super::super::model::{EvidenceKind, Family};
use super::super::wording;
use super::{Asked, environment, of_kind, text};

/// Columns of an answer: the evidence has the rest.
const ANSWER_COLUMNS: usize = 110;

/// What maintainers ask for, and what the report answers; empty where nothing failed.
#[must_use]
pub fn asked(report: &Report) -> Vec<Asked> {
    if report.failures.is_empty() {
        return Vec::new();
    }
    let look = Look { report };
    let mut rows = look.always();
    rows.extend(match (report.verdict.class, report.verdict.family) {
        (_, Family::Nccl) => look.collectives(),
        (_, Family::Segfault) => look.host_crash(),
        (_, Family::IllegalAddress | Family::IllegalInstruction)
        | (FailureClass::DeviceAssert | FailureClass::LaunchFailure | FailureClass::LaunchConfig, _) => {
            look.gpu_fault()
        }
        (FailureClass::Hardware | FailureClass::Driver, _) => vec![look.kernel_log()],
        _ => Vec::new(),
    });
    rows
}

struct Look<'r> {
    report: &'r Report,
}

impl Look<'_> {
    fn always(&self) -> Vec<Asked> {
        vec![
            self.whole_log(),
            self.command(),
            self.facts(
                "GPU model",
                &["gpu", "compute_capability"],
                "nvidia-smi --query-gpu=name,compute_cap --format=csv",
            ),
            self.facts(
                "driver and CUDA version",
                &["driver", "driver_cuda", "cuda", "torch_cuda"],
                "python3 -m torch.utils.collect_env",
            ),
            self.facts(
                "framework version",
                &[
                    "torch",
                    "jax",
                    "xla",
                    "vllm",
                    "sglang",
                    "triton",
                    "deepspeed",
                    "transformers",
                    "bitsandbytes",
                    "flash_attn",
                ],
                "python3 -m torch.utils.collect_env",
            ),
        ]
    }

    fn gpu_fault(&self) -> Vec<Asked> {
        vec![
            self.shapes(),
            self.setting(
                "a rerun with CUDA_LAUNCH_BLOCKING=1",
                "CUDA_LAUNCH_BLOCKING",
                "run it once more with CUDA_LAUNCH_BLOCKING=1 and take the whole log",
            ),
            self.evidence(
                "compute-sanitizer, cuda-gdb or GPU core dump",
                &[EvidenceKind::Sanitizer, EvidenceKind::FaultingLaunch],
                "compute-sanitizer --tool memcheck --print-limit 3 COMMAND, built with -lineinfo",
            ),
            self.kernel_log(),
            missing(
                "a repro without the serving stack",
                "one call with random tensors of the reported shape; say on which sizes it fails and passes",
            ),
            missing(
                "the last version that worked",
                "name the first bad version or commit, and whether the newest still fails",
            ),
        ]
    }

    fn collectives(&self) -> Vec<Asked> {
        let mut rows = vec![
            self.facts(
                "NCCL version",
                &["nccl"],
                "python3 -c 'import torch; print(torch.cuda.nccl.version())'",
            ),
            self.every_rank(),
            self.setting(
                "NCCL_DEBUG=INFO",
                "NCCL_DEBUG",
                "run it once more with NCCL_DEBUG=INFO and keep the log of every rank",
            ),
            self.evidence(
                "flight-recorder dumps or a RAS answer",
                &[EvidenceKind::FlightDump, EvidenceKind::Ras],
                "TORCH_FR_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1, then the dump of every rank",
            ),
            self.kernel_log(),
            self.settings(
                "network settings",
                &[
                    "NCCL_SOCKET_IFNAME",
                    "NCCL_IB_HCA",
                    "NCCL_IB_GID_INDEX",
                    "NCCL_IB_DISABLE",
                    "NCCL_P2P_DISABLE",
                ],
                "NCCL_SOCKET_IFNAME and NCCL_IB_* of every node, or that none is set",
            ),
            missing(
                "nccl-tests on the same nodes",
                "all_reduce_perf -b 8 -e 4G -f 2 -g GPUS divides fabric from program",
            ),
        ];
        if self.cause() == Some(CauseKind::CollectiveMismatch) {
            rows.push(self.setting(
                "TORCH_DISTRIBUTED_DEBUG=DETAIL",
                "TORCH_DISTRIBUTED_DEBUG",
                "run it once more with TORCH_DISTRIBUTED_DEBUG=DETAIL",
            ));
        }
        if self.cause() == Some(CauseKind::ShmExhausted) {
            rows.push(missing(
                "size of /dev/shm in the container",
                "df -h /dev/shm; --ipc=host or --shm-size",
            ));
        }
        rows
    }

    fn host_crash(&self) -> Vec<Asked> {
        vec![
            self.evidence(
                "native stack with symbols",
                &[EvidenceKind::NativeFrames],
                "gdb -batch -ex run -ex bt --args COMMAND, or gdb on the core file",
            ),
            self.evidence(
                "Python stack at the crash",
                &[EvidenceKind::Signal],
                "run it once more with PYTHONFAULTHANDLER=1",
            ),
            self.evidence(
                "the kernel's own line",
                &[EvidenceKind::KernelSegfault],
                "dmesg -T of the same minute",
            ),
            missing(
                "whether a fresh environment crashes too",
                "a new virtual environment with the same versions; num_workers=0",
            ),
        ]
    }

    /// A log that was cut has lost what maintainers want most: its first error.
    fn whole_log(&self) -> Asked {
        let is_log = |kind| {
            matches!(
                kind,
                InputKind::Log | InputKind::SanitizerText | InputKind::SanitizerXml | InputKind::CudaGdb
            )
        };
        let whole: Vec<_> = self
            .report
            .inputs
            .iter()
            .enumerate()
            .filter(|(_, input)| is_log(input.kind) && !input.truncated)
            .collect();
        let answer = whole.first().map(|(at, input)| {
            let name = wording::input_name(self.report, u32::try_from(*at).unwrap_or(u32::MAX));
            let more = if whole.len() > 1 { format!(" and {} more", whole.len() - 1) } else { String::new() };
            format!("{name}, {} lines{more}", input.lines)
        });
        Asked {
            what: "the whole log from the first error on",
            answer,
            evidence: Vec::new(),
            how: "the whole file, not its tail and no screenshot",
        }
    }

    fn command(&self) -> Asked {
        let found = of_kind(self.report, EvidenceKind::Command).next();
        let answer = found.map(|evidence| {
            let list = |key: &str| -> Vec<String> {
                let values = evidence.fields.get(key).and_then(serde_json::Value::as_array);
                values.into_iter().flatten().filter_map(|word| word.as_str().map(str::to_owned)).collect()
            };
            let words: Vec<String> = list("environment").into_iter().chain(list("words")).collect();
            fit(&command_line(&words), ANSWER_COLUMNS)
        });
        Asked {
            what: "the exact command",
            answer,
            evidence: found.map(|evidence| evidence.id.clone()).into_iter().collect(),
            how: "the command line with the variables set before it",
        }
    }

    fn shapes(&self) -> Asked {
        let first = self.report.shapes.first();
        let line = NumberLine::of(self.report).map(|line| line.reported.label);
        let answer = line.or_else(|| {
            let dims = first?.get("dims")?.as_array()?;
            Some(dims.iter().map(ToString::to_string).collect::<Vec<_>>().join(" × "))
        });
        let dtype = first.and_then(|shape| shape.get("dtype")).and_then(serde_json::Value::as_str);
        let ids = first.and_then(|shape| shape.get("evidence")).and_then(serde_json::Value::as_array);
        Asked {
            what: "shapes, dtypes and strides of the operands",
            answer: answer.map(|shape| match dtype {
                Some(dtype) => fit(&format!("{shape} of {dtype}"), ANSWER_COLUMNS),
                None => fit(&shape, ANSWER_COLUMNS),
            }),
            evidence: ids.into_iter().flatten().filter_map(|id| id.as_str().map(str::to_owned)).collect(),
            how: "print shape, dtype and stride() before the failing call, or give --shape",
        }
    }

    fn kernel_log(&self) -> Asked {
        let seen = [
            EvidenceKind::Xid,
            EvidenceKind::DriverFault,
            EvidenceKind::KernelSegfault,
            EvidenceKind::OomKill,
        ];
        let mut row = self.evidence(
            "the kernel log of the same time",
            &seen,
            "dmesg -T or journalctl -k of every node",
        );
        let silent = self.report.inputs.iter().any(|input| input.kind == InputKind::KernelLog);
        if row.answer.is_none() && silent {
            row.answer = Some("it was read, and shows no fault".to_owned());
        }
        row
    }

    fn every_rank(&self) -> Asked {
        let ranks = self.report.ranks.len();
        let silent = self.report.ranks.iter().filter(|rank| rank.evidence.is_empty()).count();
        let answer = (ranks > 1 && silent == 0).then(|| format!("{ranks} ranks left lines"));
        Asked {
            what: "the log of every rank, the first failed one above all",
            answer,
            evidence: Vec::new(),
            how: "torchrun --log-dir LOGS --redirects 3, then the whole folder",
        }
    }

    fn facts(&self, what: &'static str, names: &[&str], how: &'static str) -> Asked {
        let facts: Vec<_> =
            environment(self.report).into_iter().filter(|fact| names.contains(&fact.name.as_str())).collect();
        let words: Vec<String> = facts
            .iter()
            .map(|fact| {
                let values: Vec<&str> = fact.values.iter().map(|(value, _)| value.as_str()).collect();
                format!("{} {}", fact.name, values.join(" / "))
            })
            .collect();
        Asked {
            what,
            answer: (!words.is_empty()).then(|| fit(&words.join(", "), ANSWER_COLUMNS)),
            evidence: facts.iter().flat_map(|fact| fact.values.iter().map(|(_, id)| id.clone())).collect(),
            how,
        }
    }

    fn setting(&self, what: &'static str, name: &str, how: &'static str) -> Asked {
        self.settings(what, &[name], how)
    }

    fn settings(&self, what: &'static str, names: &[&str], how: &'static str) -> Asked {
        let set: Vec<_> = environment(self.report)
            .into_iter()
            .filter(|fact| names.contains(&fact.name.as_str()))
            .filter(|fact| fact.values.iter().any(|(value, _)| value != "0"))
            .collect();
        let words: Vec<String> = set
            .iter()
            .filter_map(|fact| fact.values.first().map(|(value, _)| format!("{}={value}", fact.name)))
            .collect();
        Asked {
            what,
            answer: (!words.is_empty()).then(|| fit(&words.join(" "), ANSWER_COLUMNS)),
            evidence: set.iter().flat_map(|fact| fact.values.iter().map(|(_, id)| id.clone())).collect(),
            how,
        }
    }

    fn evidence(&self, what: &'static str, kinds: &[EvidenceKind], how: &'static str) -> Asked {
        let found: Vec<_> = self.report.evidence.iter().filter(|one| kinds.contains(&one.kind)).collect();
        let answer = found.first().map(|first| {
            let kind = wording::spelled(&first.kind).replace('_', " ");
            let name = text(first, "kernel")
                .or_else(|| text(first, "library"))
                .map(|name| format!(" of {name}"))
                .unwrap_or_default();
            let more = if found.len() > 1 { format!(" and {} more", found.len() - 1) } else { String::new() };
            fit(&format!("{kind}{name}{more}"), ANSWER_COLUMNS)
        });
        Asked { what, answer, evidence: found.iter().take(3).map(|one| one.id.clone()).collect(), how }
    }

    fn cause(&self) -> Option<CauseKind> {
        self.report.verdict.cause.as_ref().map(|cause| cause.kind)
    }
}

/// What no log can answer.
fn missing(what: &'static str, how: &'static str) -> Asked {
    Asked { what, answer: None, evidence: Vec::new(), how }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    use crate::session::{Input, Session};
    use crate::source::{self, InputSpec, Limits};

    fn rows(sample: &str) -> Vec<Asked> {
        let spec = InputSpec::Path(PathBuf::from(format!("samples/{sample}")));
        let mut session = Session::new();
        session.apply(Input::Loaded(source::load(&[spec], Limits::default())));
        asked(session.report())
    }

    fn answer(rows: &[Asked], what: &str) -> Option<String> {
        rows.iter().find(|row| row.what.contains(what)).unwrap_or_else(|| panic!("no {what}")).answer.clone()
    }

    #[test]
    fn a_memcheck_report_answers_some_questions_and_not_others() {
        let rows = rows("triton-int32-wrap-memcheck");
        assert_eq!(answer(&rows, "shapes").unwrap(), "M 234,624 × intermediate_size 9,216 of bfloat16");
        assert!(answer(&rows, "compute-sanitizer").unwrap().starts_with("sanitizer of fused_lora_xw_kernel"));
        assert_eq!(answer(&rows, "whole log").unwrap(), "run.log, 209 lines");
        assert_eq!(answer(&rows, "kernel log").unwrap(), "xid");
        assert_eq!(answer(&rows, "repro"), None);
        assert_eq!(answer(&rows, "CUDA_LAUNCH_BLOCKING"), None);
    }

    #[test]
    fn a_hang_is_asked_about_ranks_and_dumps() {
        let rows = rows("pair-size-mismatch");
        assert_eq!(answer(&rows, "every rank").unwrap(), "2 ranks left lines");
        assert!(answer(&rows, "flight-recorder").unwrap().starts_with("flight dump"));
        assert!(rows.iter().any(|row| row.what == "TORCH_DISTRIBUTED_DEBUG=DETAIL" && row.answer.is_none()));
    }

    #[test]
    fn a_healthy_run_is_asked_nothing() {
        assert_eq!(rows("pair-symmetric-ok"), []);
    }
}
