//! NVSHMEM's set-up: transports, topology and connections that fail before any kernel runs.
//!
//! ```text
//! src/host/transport/transport.cpp:420: non-zero status: 7 connect EPS failed
//! ```
//!
//! In: a message. Out: an [`NcclLine`]: symmetric memory is communication too. It leaves a CUDA status in the line to its reader,
//! and other programs' `non-zero status` to whom it belongs.

use super::super::event::{NcclLine, NcclTopic};
use super::super::scan::small_after;

/// Linux's number of a connection that timed out.
const TIMED_OUT: u32 = 110;

/// The failure that a line tells of.
pub(super) fn parse(body: &str) -> Option<NcclLine> {
    let status = small_after(body, "non-zero status: ").filter(|&status| status > 0);
    let any = |words: &[&str]| words.iter().any(|word| body.contains(word));
    let transport = any(&[
        "init failed for transport: ",
        "Unable to initialize any transports",
        "init failed for remote transport",
    ]);
    let own = status.is_some() && any(&["nvshmem", "NVSHMEM", "/ibgda", "/ibrc", "/transport", "ep_connect"]);
    let cuda = any(&["cuda failed", "cuda error", "CUDA error"]);
    (transport || own && !cuda).then(|| NcclLine {
        level: "ERROR".to_owned(),
        message: body.trim().to_owned(),
        topic: match status {
            Some(TIMED_OUT) if body.contains("ibv_") => NcclTopic::Ib,
            _ => NcclTopic::Other,
        },
        ..NcclLine::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_up_errors_and_what_is_none() {
        let topic = |body: &str| parse(body).map(|line| line.topic);
        for body in [
            "/s/src/host/transport/transport.cpp:420: non-zero status: 7 connect EPS failed ",
            "/s/src/host/init/init.cu:989: non-zero status: 7 nvshmem detect topo failed ",
            "/s/transport.cpp:nvshmemi_transport_init:275: init failed for transport: IBGDA",
            "/s/modules/transport/ibgda/ibgda.cpp:1393: non-zero status: 121 Error in mlx5dv_devx_obj_modify",
        ] {
            assert_eq!(topic(body), Some(NcclTopic::Other), "{body}");
        }
        let timed_out = "/s/modules/transport/ibrc/ibrc.cpp:418: non-zero status: 110 ibv_modify_qp failed ";
        assert_eq!(topic(timed_out), Some(NcclTopic::Ib));
        for body in [
            "make: non-zero status: 2",
            "/s/init.cu:989: non-zero status: 0 nvshmem setup",
            "/s/nvshmem/init.cu:9: non-zero status: 7 cuda failed with an illegal memory access was encountered",
        ] {
            assert_eq!(topic(body), None, "{body}");
        }
    }
}
