"""Calls a PyTorch operator with one index outside its table: python3 repro.py pass|fail

Sizes, the index and its position stand in case.json. Needs PyTorch and a GPU.
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

case = json.loads((Path(__file__).resolve().parent / "case.json").read_text())
program = case["program"]
sizes = {name: size["value"] for name, size in case["sizes"].items()}
if not torch.cuda.is_available():
    cannot_run("PyTorch sees no GPU")

indices = torch.arange(sizes["indices"], device="cuda") % sizes["rows"]
if sys.argv[1] == "fail":
    indices[program["position"] % sizes["indices"]] = program["bad_index"]
{% if program.operator == "embedding" %}
table = torch.randn(sizes["rows"], sizes["columns"], device="cuda")
out = torch.nn.functional.embedding(indices, table)
{% elif program.operator == "index" %}
table = torch.randn(sizes["rows"], sizes["columns"], device="cuda")
out = table[indices]
{% elif program.operator == "gather" %}
table = torch.randn(sizes["rows"], sizes["columns"], device="cuda")
out = torch.gather(table, 0, indices[:, None].expand(-1, sizes["columns"]))
{% else %}
logits = torch.randn(sizes["indices"], sizes["rows"], device="cuda")
out = torch.nn.functional.cross_entropy(logits, indices, reduction="none")
{% endif %}
torch.cuda.synchronize()  # a failed assertion is reported here
print("passed", tuple(out.shape))
