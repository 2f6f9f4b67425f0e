"""Launches a compiled Triton kernel once: python3 repro.py SIZE

Code, grid, arguments and buffer sizes stand in case.json and kernel/. Needs PyTorch and a GPU.
"""

import ctypes
import json
import sys
from pathlib import Path

CANNOT_RUN = 3
HERE = Path(__file__).resolve().parent
INTEGERS = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}
# Values of the driver's enumerations (cuda.h).
MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
NO_BINARY_FOR_GPU = 209


def cannot_run(why):
    print("cannot run:", why)
    sys.exit(CANNOT_RUN)


try:
    import torch
except ImportError:
    cannot_run("PyTorch is not installed")


def check(driver, call, status):
    """Raises for a status of the driver, in PyTorch's words."""
    if status:
        text = ctypes.c_char_p()
        driver.cuGetErrorString(status, ctypes.byref(text))
        raise RuntimeError(f"CUDA error: {(text.value or b'').decode()} ({call}: {status})")


def buffer(argument):
    """A tensor on the GPU as large as the kernel may reach."""
    size, fill = argument["bytes"], argument["fill"]
    if fill["rule"] == "zero":
        return torch.zeros(size, dtype=torch.uint8, device="cuda")
    width = fill["element_bytes"]
    dtype, count = getattr(torch, INTEGERS[width]), size // width
    if fill["rule"] == "iota":
        return torch.arange(count, dtype=dtype, device="cuda")
    if fill["rule"] == "random":
        return torch.randint(fill["low"], fill["high"], (count,), dtype=dtype, device="cuda")
    return torch.full((count,), fill["value"], dtype=dtype, device="cuda")


def load(driver, kernel):
    """The kernel's handle, from the first image that has code for this GPU."""
    for image in kernel["images"]:
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        code = (HERE / image).read_bytes() + b"\0"
        status = driver.cuModuleLoadData(ctypes.byref(module), code)
        if status == NO_BINARY_FOR_GPU:
            continue
        check(driver, "cuModuleLoadData", status)
        name = kernel["entry"].encode()
        check(driver, "cuModuleGetFunction", driver.cuModuleGetFunction(ctypes.byref(function), module, name))
        return function
    cannot_run("the compiled kernel has no code for this GPU")


def chosen(program, key):
    """The kernel whose launches hold the key: the forward one, or a backward one."""
    for kernel in (program, *program.get("backward", ())):
        if key in kernel["launches"]:
            return kernel
    cannot_run(f"case.json has no launch for {key}")


def main():
    program = json.loads((HERE / "case.json").read_text())["program"]
    kernel = chosen(program, sys.argv[1])
    launch = kernel["launches"][sys.argv[1]]
    if not torch.cuda.is_available():
        cannot_run("PyTorch sees no GPU")
    torch.zeros(1, device="cuda")  # makes the context that the driver's calls use
    driver = ctypes.CDLL("libcuda.so.1")
    function = load(driver, kernel)
    shared = ctypes.c_int(launch["shared_bytes"])
    if shared.value > 48 << 10:
        status = driver.cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED_SIZE_BYTES, shared)
        check(driver, "cuFuncSetAttribute", status)

    kept, slots = [], []
    try:
        for argument in launch["arguments"]:
            if argument["is"] == "buffer":
                kept.append(buffer(argument))
                slots.append(ctypes.c_uint64(kept[-1].data_ptr()))
            elif argument["is"] == "number":
                data = bytes.fromhex(argument["hex"])
                slots.append((ctypes.c_char * len(data)).from_buffer_copy(data))
            else:
                slots.append(ctypes.c_uint64(0))
    except torch.cuda.OutOfMemoryError as error:
        cannot_run(f"the buffers don't fit this GPU ({error})")
    torch.cuda.synchronize()

    pointers = (ctypes.c_void_p * len(slots))(*[ctypes.addressof(slot) for slot in slots])
    status = driver.cuLaunchKernel(function, *launch["grid"], *launch["block"], shared, None, pointers, None)
    check(driver, "cuLaunchKernel", status)
    torch.cuda.synchronize()  # an illegal access is reported here
    print(kernel["entry"], sys.argv[1], "passed")


if __name__ == "__main__":
    main()
