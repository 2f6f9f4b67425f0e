"""Symmetric memory beside the plain all_reduce: ./run.sh pass|fail, or every row by ./run.sh

Sizes stand in case.json. Needs PyTorch and a GPU for each rank; the GPUs must reach each other's memory.
"""

import json
import os
import sys
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
elements = case["sizes"]["elements"]["value"]
rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
if torch.cuda.device_count() < ranks:
    cannot_run(f"{ranks} ranks need {ranks} GPUs; PyTorch sees {torch.cuda.device_count()}")
torch.cuda.set_device(rank)
dist.init_process_group("nccl", timeout=timedelta(seconds=60), device_id=torch.device("cuda", rank))
mode = sys.argv[1]


def plain():
    """NCCL alone: no window, no rendezvous."""
    data = torch.ones(elements, dtype=torch.bfloat16, device="cuda")
    dist.all_reduce(data)
    return data


def symmetric(count):
    """The same sum over the peers' windows."""
    try:
        import torch.distributed._symmetric_memory as symm
    except ImportError:
        cannot_run("this PyTorch has no symmetric memory")
    group = dist.group.WORLD.group_name
    window = symm.empty(count, dtype=torch.bfloat16, device="cuda").fill_(1)
    symm.rendezvous(window, group)  # compares the windows of all ranks
    return torch.ops.symm_mem.one_shot_all_reduce(window, "sum", group)


if mode == "plain":
    out = plain()
elif mode == "pass":
    out = symmetric(elements)
{% if program.fault == "size" %}
else:
    odd = rank == case["program"]["odd_rank"]
    out = symmetric(case["sizes"]["odd_elements"]["value"] if odd else elements)
{% else %}
else:
    ordinary = torch.ones(elements, dtype=torch.bfloat16, device="cuda")
    out = torch.ops.symm_mem.one_shot_all_reduce(ordinary, "sum", dist.group.WORLD.group_name)
{% endif %}
torch.cuda.synchronize()
if not bool((out == ranks).all()):
    sys.exit(f"rank {rank}: the sum is wrong")
print("rank", rank, "passed", flush=True)
dist.barrier()
dist.destroy_process_group()
