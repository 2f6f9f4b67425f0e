//! What an NCCL sentence is about.
//!
//! In: the sentence and the place that printed it. Out: [`NcclTopic`]. It leaves alone whether that made the job fail.

use super::super::event::{NcclTopic, Place};
use super::super::scan::has_any_case;

/// The topic of a sentence; the earlier row wins, since a sentence about a failed registration also names its transport.
#[must_use]
pub fn topic(message: &str, place: Option<&Place>) -> NcclTopic {
    let file = place.map_or("", |place| place.file.as_str());
    let any = |words: &[&str]| words.iter().any(|word| has_any_case(message, word));
    if any(&["cuda failure", "failed to cuda", "cuda error", "cumem", "cumulticast"]) {
        return cuda(message, file);
    }
    if any(&["duplicate gpu"]) {
        return NcclTopic::DuplicateGpu;
    }
    if any(&[
        "collective mismatch",
        "mismatched collective",
        "mismatch in collective",
        "mismatched algorithm",
    ]) {
        return NcclTopic::Mismatch;
    }
    if any(&["/dev/shm", "shared memory segment", "posix_fallocate", "shm_open", "no space left on device"]) {
        return NcclTopic::Shm;
    }
    if any(&[
        "unable to register",
        "ibv_reg_mr",
        "memory registration",
        "memlock",
        "failed to register",
        "reg_mr",
    ]) {
        return NcclTopic::Registration;
    }
    if any(&["net/ofi", "libfabric", "efa addr", "fi_"]) {
        return NcclTopic::Ofi;
    }
    if any(&[
        "net/ib",
        "ibv_",
        "infiniband",
        "work completion",
        "transport retry",
        "retry count exceeded",
        "mlx5",
    ]) || any(&["got completion"]) && any(&["error", "status"])
    {
        return if ib_status(message) == Some(5) { NcclTopic::IbFlushed } else { NcclTopic::Ib };
    }
    if any(&[
        "service thread]",
        "proxy service",
        "failed to execute operation",
        "retcode",
        "proxy call to rank",
    ]) {
        return if any(&["connection closed"]) { NcclTopic::PeerClosed } else { NcclTopic::Echo };
    }
    if any(&["nvls", "multicast", "nvlink sharp"]) || has_any_case(file, "nvls") {
        return NcclTopic::Nvls;
    }
    if any(&[
        "connection closed",
        "closed by remote",
        "reset by peer",
        "broken pipe",
        "remote process exited",
        "peer closed",
    ]) {
        return NcclTopic::PeerClosed;
    }
    if any(&[
        "socket",
        "bootstrap",
        "connect to",
        "to connect",
        "no route to host",
        "connection refused",
        "timed out",
        "accept failed",
        "network is unreachable",
        "call to recv",
        "call to send",
        "call to bind",
        "message truncated",
        "interface",
        "net/",
    ]) {
        return NcclTopic::Socket;
    }
    if any(&[
        "version mismatch",
        "incompatible version",
        "mismatched version",
        "driver version",
        "versions differ",
    ]) {
        return NcclTopic::Version;
    }
    if any(&["out of memory", "cannot allocate"]) {
        return NcclTopic::OutOfMemory;
    }
    NcclTopic::Other
}

/// A CUDA call inside NCCL: out of memory and the multicast set-up are matters of their own.
fn cuda(message: &str, file: &str) -> NcclTopic {
    if has_any_case(message, "out of memory")
        || has_any_case(message, "calloc")
        || message.contains("failure 2 ")
    {
        return NcclTopic::OutOfMemory;
    }
    if has_any_case(file, "nvls") || has_any_case(message, "nvls") || has_any_case(message, "multicast") {
        return NcclTopic::Nvls;
    }
    if has_any_case(message, "driver version is insufficient") {
        return NcclTopic::Version;
    }
    NcclTopic::Cuda
}

/// `with error 12, opcode` and `with status=12 opcode=`.
fn ib_status(message: &str) -> Option<u32> {
    use super::super::scan::small_after;
    small_after(message, "status=")
        .or_else(|| small_after(message, "status "))
        .or_else(|| small_after(message, "with error "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_name_their_topic() {
        for (message, wanted) in [
            ("Cuda failure 700 'an illegal memory access was encountered'", NcclTopic::Cuda),
            ("Cuda failure 2 'out of memory'", NcclTopic::OutOfMemory),
            ("Failed to CUDA calloc 4194304 bytes", NcclTopic::OutOfMemory),
            (
                "NET/IB : Got completion from peer 10.0.0.1<3456> with error 12, opcode 0, len 0, vendor err 129",
                NcclTopic::Ib,
            ),
            (
                "NET/IB: Got completion from peer 10.0.0.1<3456> with status=5 opcode=0 len=0 vendor err 249",
                NcclTopic::IbFlushed,
            ),
            ("Call to ibv_modify_qp failed with error No such device", NcclTopic::Ib),
            ("socketStartConnect: Connect to 10.0.0.1<3456> failed : Connection refused", NcclTopic::Socket),
            ("socketProgress: Connection closed by remote peer host<3456>", NcclTopic::PeerClosed),
            ("Message truncated : received 2048 bytes instead of 256", NcclTopic::Socket),
            ("Bootstrap : no socket interface found", NcclTopic::Socket),
            ("[Proxy Service 3] Failed to execute operation Connect from rank 3, retcode 3", NcclTopic::Echo),
            ("[Service thread] Connection closed by localRank 1", NcclTopic::PeerClosed),
            (
                "[Service thread] Error encountered progressing operation=Connect, res=3, closing connection",
                NcclTopic::Echo,
            ),
            (
                "Error: failed to extend /dev/shm/nccl-abc to 33030528 bytes, error: No space left on device (28)",
                NcclTopic::Shm,
            ),
            ("Call to posix_fallocate failed : No space left on device", NcclTopic::Shm),
            ("collective mismatch error, local size 4 remote size 8", NcclTopic::Mismatch),
            ("Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1000", NcclTopic::DuplicateGpu),
            (
                "NET/OFI Unable to register memory (type = 2) for device 0. RC: 12, Error: Cannot allocate memory",
                NcclTopic::Registration,
            ),
            ("NET/OFI Request 0x7f completed with error. RC: 113. Error: 2 (UNDELIVERABLE)", NcclTopic::Ofi),
            ("Call to ibv_reg_mr failed with error Cannot allocate memory", NcclTopic::Registration),
            ("Invalid config blocking attribute value -1", NcclTopic::Other),
        ] {
            assert_eq!(topic(message, None), wanted, "{message}");
        }
    }

    #[test]
    fn the_place_tells_multicast() {
        let place = Place { file: "transport/nvls.cc".to_owned(), line: Some(1), function: None };
        assert_eq!(
            topic("Cuda failure 401 'the operation cannot be performed'", Some(&place)),
            NcclTopic::Nvls
        );
    }
}
