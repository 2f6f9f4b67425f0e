"""Replays a CUDA graph whose input was freed: python3 repro.py pass|fail

The size stands in case.json. Needs PyTorch and a GPU.
"""

import json
import sys
from pathlib import Path

CANNOT_RUN = 3


def cannot_run(why):
    print("cannot run:", why)
    sys.exit(CANNOT_RUN)


try:
    import torch
except ImportError:
    cannot_run("PyTorch is not installed")

size = json.loads((Path(__file__).resolve().parent / "case.json").read_text())["sizes"]["size"]["value"]
if not torch.cuda.is_available():
    cannot_run("PyTorch sees no GPU")

source = torch.ones(size, size, device="cuda")
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    source.sum(0)  # warm-up outside the capture
torch.cuda.synchronize()

graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    out = source.sum(0)

if sys.argv[1] == "fail":
    # The graph holds the address, not the tensor: after this the driver unmaps it.
    del source
    torch.cuda.empty_cache()
graph.replay()
torch.cuda.synchronize()  # an illegal access is reported here
print("passed", out.sum().item())
