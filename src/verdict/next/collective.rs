//! Steps where the ranks' communication failed: what fits the line that failed, and a record of every collective only where nothing
//! tells more.
//!
//! In: the case and the verdict. Out: steps, the cheapest first. Switches are those of NCCL's documentation (environment variables),
//! and are tests, no cures.

use crate::case::Case;
use crate::read::event::{Data, NcclTopic};
use crate::tables::cause::CauseKind;

use super::super::Verdict;
use super::super::cause::port::{self, BrokenPort};
use super::super::failure::Certainty;
use super::Next;
use super::framework::{Framework, framework};
use super::program::on_host;

/// The steps.
pub(super) fn steps(case: &Case, verdict: &Verdict, program: &[String]) -> Vec<Next> {
    if names_the_ranks(case, verdict) {
        return vec![other_path()];
    }
    let set = |settings: &[&str]| -> Option<Vec<String>> {
        let head = std::iter::once("env").chain(settings.iter().copied()).map(str::to_owned);
        Some(head.chain(program.iter().cloned()).collect())
    };
    if let Some(BrokenPort { device, port, host, .. }) = port::broken(case) {
        let host = host.unwrap_or_default();
        return vec![port_state(&host, &device, &port), port_counters(&host, &device, &port), drain_port()];
    }
    if says(case, peer_access) {
        return vec![without_p2p(set(&["NCCL_P2P_DISABLE=1", "NCCL_DEBUG=INFO"])), topology()];
    }
    if says(case, registers) {
        return vec![memory_lock(), fabric()];
    }
    if says(case, |topic, _| matches!(topic, NcclTopic::Ib | NcclTopic::IbFlushed)) {
        return vec![fabric(), all_ranks()];
    }
    if says(case, |topic, _| topic == NcclTopic::Socket) {
        return vec![interfaces(set(&["NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=INIT,NET"])), all_ranks()];
    }
    let torch = framework(case) == Framework::PyTorch;
    let waited = case
        .pick(|data| {
            matches!(data, Data::CollectiveTimeout(_) | Data::WorkStatus(_) | Data::PeerLost(_)).then_some(())
        })
        .next()
        .is_some();
    let record = if torch || (waited && framework(case) == Framework::Unknown) {
        recorder(set(&["TORCH_FR_BUFFER_SIZE=2000", "TORCH_NCCL_DUMP_ON_TIMEOUT=1", "NCCL_DEBUG=WARN"]))
    } else {
        talkative(set(&["NCCL_DEBUG=INFO"]))
    };
    vec![record, all_ranks()]
}

/// Whether the ranks that differ, and in what, are known already: recorded, or printed by the ranks.
fn names_the_ranks(case: &Case, verdict: &Verdict) -> bool {
    let recorded =
        case.pick(|data| matches!(data, Data::FlightDump(_) | Data::Ras(_)).then_some(())).next().is_some();
    recorded
        || verdict.cause().is_some_and(|hypothesis| {
            hypothesis.cause == Some(CauseKind::CollectiveMismatch)
                && hypothesis.certainty >= Certainty::Supported
        })
}

/// Whether an NCCL line or result is of that kind.
fn says(case: &Case, wanted: impl Fn(NcclTopic, &str) -> bool) -> bool {
    case.pick(|data| {
        let (topic, message) = match data {
            Data::Nccl(line) if line.level != "INFO" => (line.topic, line.message.as_str()),
            Data::NcclResult(result) => (result.topic, result.last_error.as_deref().unwrap_or("")),
            _ => return None,
        };
        wanted(topic, message).then_some(())
    })
    .next()
    .is_some()
}

fn peer_access(_: NcclTopic, message: &str) -> bool {
    let lower = message.to_ascii_lowercase();
    lower.contains("peer access") || lower.contains("cuda ipc")
}

fn registers(topic: NcclTopic, message: &str) -> bool {
    let lower = message.to_ascii_lowercase();
    topic == NcclTopic::Registration
        || (lower.contains("create_qp") || lower.contains("create_cq"))
            && lower.contains("cannot allocate memory")
}

/// A command on that host; here, where none is known.
fn on(host: &str, words: &[&str]) -> Option<Vec<String>> {
    if host.is_empty() {
        return Some(words.iter().map(|word| (*word).to_owned()).collect());
    }
    on_host(host, words)
}

fn port_state(host: &str, device: &str, port: &str) -> Next {
    Next {
        id: "port-state",
        title: "Read the state of the port that reported the error, on its own node",
        command: on(host, &["ibstat", device, port]),
        cost: "none",
        why: "that node's port broke first; the ranks that report completions with status 12 only lost their peer on it",
    }
}

fn port_counters(host: &str, device: &str, port: &str) -> Next {
    Next {
        id: "port-counters",
        title: "Read that port's error counters, twice, a minute apart",
        command: on(host, &["perfquery", "-x", "-C", device, "-P", port]),
        cost: "none; needs infiniband-diags",
        why: "symbol errors or link downs that grow point to cable, transceiver or switch port",
    }
}

fn drain_port() -> Next {
    Next {
        id: "drain-node",
        title: "Drain that node before the job is restarted",
        command: None,
        cost: "one node less",
        why: "a link that went down once goes down again; the restart would meet it",
    }
}

fn other_path() -> Next {
    Next {
        id: "other-path",
        title: "Compare what the ranks do around that collective",
        command: None,
        cost: "none",
        why: "the evidence names the ranks and what each called: compare the lines that lead there, and look for a branch on rank, on data, or on an empty batch",
    }
}

fn without_p2p(command: Option<Vec<String>>) -> Next {
    Next {
        id: "without-p2p",
        title: "Rerun without direct access between the GPUs",
        command,
        cost: "slower: copies go through host memory; a test and no cure",
        why: "a pass means that these GPUs can't reach each other directly: a container without --ipc=host, ACS or an IOMMU in the way, or cards without peer access",
    }
}

fn topology() -> Next {
    Next {
        id: "topology",
        title: "See which GPUs can reach each other",
        command: Some(["nvidia-smi", "topo", "-p2p", "r"].map(str::to_owned).to_vec()),
        cost: "none",
        why: "it prints OK, or why not, for each pair",
    }
}

fn memory_lock() -> Next {
    Next {
        id: "memory-lock",
        title: "Read the limit of locked memory where the job runs",
        command: Some(["bash", "-c", "ulimit -l"].map(str::to_owned).to_vec()),
        cost: "none; inside the container or the batch job",
        why: "queue pairs and registrations pin memory: it must say unlimited (docker --ulimit memlock=-1, or the scheduler's own limit)",
    }
}

fn fabric() -> Next {
    Next {
        id: "fabric-state",
        title: "Read the state of the InfiniBand or RoCE ports on both nodes that the line names",
        command: Some(vec!["ibstat".to_owned()]),
        cost: "none",
        why: "a port that is not Active, another GID index (NCCL_IB_GID_INDEX) or a subnet that differs explains it; ib_write_bw between the two nodes shows the path without the program",
    }
}

fn interfaces(command: Option<Vec<String>>) -> Next {
    Next {
        id: "interfaces",
        title: "See which interface and address NCCL takes on each node",
        command,
        cost: "none; a longer log",
        why: "a wrong interface (NCCL_SOCKET_IFNAME), a firewall, or a name that resolves to another address ends so",
    }
}

fn recorder(command: Option<Vec<String>>) -> Next {
    Next {
        id: "flight-recorder",
        title: "Record every collective next time",
        command,
        cost: "small; one file a rank when a time-out comes",
        why: "the dumps of all ranks name the rank that never came and the line that enqueued the odd collective",
    }
}

fn talkative(command: Option<Vec<String>>) -> Next {
    Next {
        id: "nccl-debug",
        title: "Rerun with NCCL's own log, on every rank",
        command,
        cost: "none; a longer log",
        why: "NCCL says there which transport it chose and which call failed first",
    }
}

fn all_ranks() -> Next {
    Next {
        id: "all-ranks",
        title: "Add the logs of every rank and the kernel log of every node",
        command: None,
        cost: "none",
        why: "the rank that complains waits; the rank that is silent or behind is the suspect",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_for_another_host_goes_there() {
        let words = on("gpu-12", &["ibstat", "mlx5_3", "1"]).unwrap();
        assert_eq!(words, ["ssh", "--", "gpu-12", "ibstat", "mlx5_3", "1"]);
        assert_eq!(on("", &["ibstat"]).unwrap(), ["ibstat"]);
    }
}
