//! Steps and mitigations where `/dev/shm` has no room.
//!
//! In: the program's words. Out: steps, the cheapest first, and what to change. A container's default is 64 MB.

use super::{Mitigation, Next};

/// The steps.
pub(super) fn steps() -> Vec<Next> {
    vec![
        Next {
            id: "shm-size",
            title: "Read how large /dev/shm is and how full",
            command: Some(["df", "-h", "/dev/shm"].map(str::to_owned).to_vec()),
            cost: "none; inside the container, while the job runs",
            why: "workers hand batches over there; a container has 64 MB of it unless told otherwise",
        },
        Next {
            id: "no-workers",
            title: "Rerun with num_workers=0",
            command: None,
            cost: "slower loading",
            why: "without workers nothing passes through /dev/shm: a pass points to its size",
        },
    ]
}

/// What to change.
pub(super) fn mitigations() -> Vec<Mitigation> {
    let m = |scope, summary: &str| Mitigation { summary: summary.to_owned(), scope };
    vec![
        m(
            "stop-gap",
            "fewer workers, a smaller prefetch_factor, or torch.multiprocessing.set_sharing_strategy(\"file_system\")",
        ),
        m(
            "fix",
            "give the container room: docker run --shm-size=16g or --ipc=host; in Kubernetes an emptyDir of medium Memory at /dev/shm",
        ),
        m("verification", "df -h /dev/shm during a whole epoch stays below its size"),
    ]
}
