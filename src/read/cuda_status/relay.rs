//! Whether the printer of a status only relays it: watchdog, NCCL, destructors, allocators, libraries, the sanitizer's echo.
//!
//! In: a message and the lines around it. Out: the messenger. It leaves alone whether another line shows the cause.

use crate::read::event::Messenger;
use crate::read::pattern::Pattern;

static DESTRUCTOR: Pattern = Pattern::new(
    r"destroyEvent|__dealloc__|__del__|\bfinalize\w*\b|(?:^|\W)~\w+|[Dd]estructor|failed to unload|unload module|ModuleUnload|[Dd]estroying|EventDestroy|StreamDestroy|GraphExecDestroy|Exception ignored in|failed to destroy",
);
/// NCCL's own wording, which PyTorch repeats under `Last error:`.
static NCCL_SAYS: Pattern = Pattern::new(r"\bCuda failure (?:\d{1,3} )?'");
static ALLOCATOR: Pattern = Pattern::new(
    r"free_impl|free failed|[Ff]ailed to (?:cuda)?[Ff]ree|\bcudaFree\w*\b|\bcuMemFree\w*\b|dealloc|raw_delete|CUDAMallocAsyncAllocator|CachingAllocator|CachingHostAllocator",
);

/// Who relays the status, as far as the message itself tells.
#[must_use]
pub fn messenger_of(text: &str) -> Option<Messenger> {
    let has = |word: &str| text.contains(word);
    if has("Program hit ") {
        return Some(Messenger::SanitizerEcho);
    }
    if has("atchdog") {
        return Some(Messenger::NcclWatchdog);
    }
    if has("NCCL WARN") || has("Test NCCL failure") || has("NCCL error") || NCCL_SAYS.is_match(text) {
        return Some(Messenger::Nccl);
    }
    if has("CUBLAS_STATUS") {
        return Some(Messenger::Cublas);
    }
    if has("CUDNN_STATUS") || has("cuDNN Error") {
        return Some(Messenger::Cudnn);
    }
    if DESTRUCTOR.is_match(text) {
        return Some(Messenger::Destructor);
    }
    ALLOCATOR.is_match(text).then_some(Messenger::Allocator)
}

/// Whether a line before the status opens a block that is cleaned up: `Exception ignored in: 'cupy.….__dealloc__'`.
#[must_use]
pub fn opens_destructor(line: &str) -> bool {
    line.contains("Exception ignored in") || line.contains("__dealloc__") || line.contains("__del__")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relays_show_themselves() {
        let table = [
            (
                "Process group watchdog thread terminated with exception: CUDA error: x",
                Messenger::NcclWatchdog,
            ),
            ("h:1:2 [6] include/alloc.h:124 NCCL WARN Cuda failure 700 'x'", Messenger::Nccl),
            ("CUDA warning: x (function destroyEvent)", Messenger::Destructor),
            (
                "1: [cudaResources.cpp::~ScopedCudaEvent::24] Error Code 1: Cuda Runtime (x)",
                Messenger::Destructor,
            ),
            ("Failed to cudaFree pointer 0x7f (error 700 x)", Messenger::Allocator),
            ("what():  device free failed: x", Messenger::Allocator),
            ("cuDNN Error: execute(a) failed with message: err 700 != CUDA_SUCCESS", Messenger::Cudnn),
            ("Program hit cudaErrorIllegalAddress (error 700) due to \"x\"", Messenger::SanitizerEcho),
        ];
        for (text, messenger) in table {
            assert_eq!(messenger_of(text), Some(messenger), "{text}");
        }
        assert_eq!(messenger_of("RuntimeError: CUDA error: x"), None);
    }
}
