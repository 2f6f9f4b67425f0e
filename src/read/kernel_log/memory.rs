//! Processes killed for host memory: by the kernel, a cgroup, Slurm, Kubernetes, Ray.
//!
//! In: a line. Out: [`Data::OomKill`]. The line of the process that merely asked (`invoked oom-killer`) names no victim: it
//! counts where the log ends, or goes on, without the line of the kill.

use super::super::event::{Data, OomKill};
use super::super::lines::{Cx, Line};
use super::super::scan::{after, before, between, has_any_case, number_after, small_after};

/// Reads such a line.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> bool {
    let Some(kill) = kill(line.body()).or_else(|| asked(line, cx)) else { return false };
    cx.push(line, Data::OomKill(kill));
    true
}

/// Lines between a call of the kernel's killer and the kill: registers, memory counts, one line for each process.
const TASK_LINES: usize = 4_000;

/// `python invoked oom-killer: gfp_mask=0x…, order=0` without the kill under it.
fn asked(line: &Line<'_>, cx: &Cx<'_>) -> Option<OomKill> {
    let body = line.body();
    if !body.contains(" invoked oom-killer: ") {
        return None;
    }
    let told = cx.after(line).take(TASK_LINES).any(|next| kill(next.body()).is_some());
    (!told).then(|| OomKill { cgroup: body.contains("memcg"), ..OomKill::default() })
}

fn kill(body: &str) -> Option<OomKill> {
    if let Some(rest) = after(body, "ut of memory: Kill") {
        let rest = after(rest, "process ")?;
        return Some(OomKill {
            pid: small_after(rest, ""),
            process: between(rest, "(", ")").map(str::to_owned),
            anon_rss_bytes: number_after(rest, "anon-rss").and_then(|kib| kib.checked_mul(1024)),
            cgroup: body.contains("cgroup"),
        });
    }
    if body.contains("oom-kill:constraint=") {
        let field = |key: &str| after(body, key).map(|rest| before(rest, ",").to_owned());
        return Some(OomKill {
            pid: small_after(body, ",pid="),
            process: field(",task="),
            anon_rss_bytes: None,
            cgroup: body.contains("CONSTRAINT_MEMCG"),
        });
    }
    let slurm = (body.contains("oom-kill event") || body.contains("oom_kill event"))
        && !body.contains(" 0 oom")
        || body.contains("out-of-memory handler")
        || (body.contains("task") && body.contains(": Out Of Memory"))
        || has_any_case(body, "exceeded") && has_any_case(body, "memory limit") && has_any_case(body, "step")
        || body.contains("TERM_MEMLIMIT");
    let kubernetes = body.contains("OOMKilled") && !body.contains("false");
    if slurm || kubernetes {
        return Some(OomKill { cgroup: true, ..OomKill::default() });
    }
    ray(body).then(|| OomKill { pid: small_after(body, "pid="), ..OomKill::default() })
}

/// Ray's memory monitor: the task's own error, or the raylet's count of the workers that it killed.
fn ray(body: &str) -> bool {
    let counted = before(body, " Workers (tasks / actors) killed due to memory pressure");
    let killed = counted.len() < body.len()
        && counted.rsplit([' ', ']']).next().is_some_and(|count| count.parse::<u64>().is_ok_and(|n| n > 0));
    killed
        || body.contains("running low on memory") && has_any_case(body, "kill")
        || body.contains("exceeds the memory usage threshold")
            && (body.contains("Ray killed this worker") || body.contains("worker was killed"))
}
