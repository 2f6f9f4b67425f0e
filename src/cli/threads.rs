//! Threads for the readers, as many as the system grants.
//!
//! In: nothing. Out: the pool that the readers share. Where a limit on processes or address space grants fewer threads than there are
//! processors, it has fewer; where it grants none, the work is done on the calling thread. Left alone, the pool's own
//! start ends the program in a panic there.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;

/// Makes the pool. Whoever made one before keeps it.
pub fn start() {
    let grants_one = Builder::new().spawn(|| ()).is_ok_and(|thread| thread.join().is_ok());
    let pool = rayon::ThreadPoolBuilder::new();
    let _ = if grants_one {
        let running = AtomicUsize::new(0);
        pool.spawn_handler(move |thread| spawn(thread, &running)).build_global()
    } else {
        pool.num_threads(1).use_current_thread().build_global()
    };
}

/// A thread that isn't granted is done without, as long as there is one.
fn spawn(thread: rayon::ThreadBuilder, running: &AtomicUsize) -> std::io::Result<()> {
    match Builder::new().name("warpfault-reader".to_owned()).spawn(|| thread.run()) {
        Ok(_) => {
            running.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
        Err(_) if running.load(Ordering::Relaxed) > 0 => Ok(()),
        Err(error) => Err(error),
    }
}
