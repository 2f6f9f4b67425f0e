"""Ranks that disagree about one collective: ./run.sh pass|fail

Operation, sizes and the rank that differs stand in case.json. Needs PyTorch and a GPU for each rank.
"""

import json
import os
import sys
import threading
from datetime import timedelta
from pathlib import Path

CANNOT_RUN = 3


def cannot_run(why):
    print("cannot run:", why)
    sys.exit(CANNOT_RUN)


try:
    import torch
    import torch.distributed as dist
except ImportError:
    cannot_run("PyTorch is not installed")

case = json.loads((Path(__file__).resolve().parent / "case.json").read_text())
program = case["program"]
elements = case["sizes"]["elements"]["value"]
rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
if torch.cuda.device_count() < ranks:
    cannot_run(f"{ranks} ranks need {ranks} GPUs; PyTorch sees {torch.cuda.device_count()}")
torch.cuda.set_device(rank)
dist.init_process_group("nccl", timeout=timedelta(seconds=program["timeout_s"]), device_id=torch.device("cuda", rank))
dtype = getattr(torch, program["dtype"])
odd = sys.argv[1] == "fail" and rank == program["odd_rank"]


def call(count):
    """The collective on so many elements."""
    data = torch.ones(count, dtype=dtype, device="cuda")
    if program["operation"] == "all_gather":
        dist.all_gather_into_tensor(torch.empty(count * ranks, dtype=dtype, device="cuda"), data)
    elif program["operation"] == "reduce_scatter":
        dist.reduce_scatter_tensor(data, torch.ones(count * ranks, dtype=dtype, device="cuda"))
    elif program["operation"] == "broadcast":
        dist.broadcast(data, src=0)
    else:
        dist.all_reduce(data)


call(elements)  # every rank the same: shows that the ranks can talk at all
torch.cuda.synchronize()
print("rank", rank, "is connected", flush=True)
# By then the watchdog has said what it has to say; tearing the hung communicator down can take minutes.
end = threading.Timer(program["timeout_s"] + 8, os._exit, [1])
end.daemon = True
end.start()
{% if program.fault == "size" %}
call(case["sizes"]["odd_elements"]["value"] if odd else elements)
{% else %}
if not odd:
    call(elements)
{% endif %}
call(elements)  # hangs where the ranks are out of step; the watchdog ends it
torch.cuda.synchronize()
print("rank", rank, "passed", flush=True)
dist.barrier()
dist.destroy_process_group()
