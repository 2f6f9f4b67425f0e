"""Compiles the user's Triton kernel and launches it once: python3 repro.py SIZE

The kernel stands in user_kernels.py; grid, arguments and buffer sizes in case.json. Needs PyTorch, Triton and a GPU.
"""

import ast
import importlib.util
import json
import struct
import sys
import tempfile
from pathlib import Path

CANNOT_RUN = 3
HERE = Path(__file__).resolve().parent
# Modules that a kernel's file may import; the rest would start the job.
MODULES = {"__future__", "functools", "itertools", "math", "numpy", "torch", "triton", "typing"}
INTEGERS = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}


def cannot_run(why):
    print("cannot run:", why)
    sys.exit(CANNOT_RUN)


try:
    import torch
    import triton  # noqa: F401
except ImportError as error:
    cannot_run(f"{error.name} is not installed")


def belongs(node):
    """Whether a statement of the user's file is an import, a constant or a function for the GPU."""
    if isinstance(node, ast.Import):
        return all(name.name.split(".")[0] in MODULES for name in node.names)
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").split(".")[0] in MODULES
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        return node.value is not None and all(
            isinstance(part, (ast.Constant, ast.UnaryOp, ast.USub, ast.Call, ast.Attribute, ast.Name, ast.Load))
            and (not isinstance(part, ast.Call) or ast.unparse(part.func).endswith("constexpr"))
            for part in ast.walk(node.value)
        )
    return isinstance(node, ast.FunctionDef) and any("jit" in ast.unparse(mark) for mark in node.decorator_list)


def kernels(source):
    """The user's kernels as a module: every line stays where it was, what doesn't belong is blank."""
    text = source.read_text()
    lines, kept = text.splitlines(keepends=True), set()
    for node in filter(belongs, ast.parse(text).body):
        first = min([node.lineno, *[mark.lineno for mark in getattr(node, "decorator_list", [])]])
        kept.update(range(first, node.end_lineno + 1))
    blank = "".join(line if number in kept else "\n" for number, line in enumerate(lines, 1))
    path = Path(tempfile.mkdtemp()) / source.name
    path.write_text(blank)
    spec = importlib.util.spec_from_file_location("user_kernels", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def buffer(argument):
    """A tensor on the GPU as large as the kernel may reach."""
    if argument["dtype"] is None:
        cannot_run(f"case.json tells no element type of {argument['name']}")
    dtype, fill = getattr(torch, argument["dtype"]), argument["fill"]
    raw = torch.zeros(argument["bytes"], dtype=torch.uint8, device="cuda")
    if fill["rule"] == "zero":
        return raw.view(dtype)
    numbers = raw.view(getattr(torch, INTEGERS[fill["element_bytes"]]))
    if fill["rule"] == "iota":
        torch.arange(numbers.numel(), out=numbers)
    elif fill["rule"] == "random":
        numbers.random_(fill["low"], fill["high"])
    else:
        numbers.fill_(fill["value"])
    return numbers.view(dtype)


def number(argument):
    data, shown = bytes.fromhex(argument["hex"]), argument["shown"]
    if shown.lstrip("-").isdigit():
        return int(shown)
    return struct.unpack("<f" if len(data) == 4 else "<d", data)[0]


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
    function = getattr(kernels(HERE / program["source"]), kernel["entry"])
    makers = {"buffer": buffer, "number": number, "null": lambda _: None}
    try:
        arguments = {argument["name"]: makers[argument["is"]](argument) for argument in launch["arguments"]}
    except torch.cuda.OutOfMemoryError as error:
        cannot_run(f"the buffers don't fit this GPU ({error})")
    torch.cuda.synchronize()
    function[tuple(launch["grid"])](**arguments, **kernel["constants"], num_warps=kernel["warps"])
    torch.cuda.synchronize()  # an illegal access is reported here
    print(kernel["entry"], sys.argv[1], "passed")


if __name__ == "__main__":
    main()
