"""Calls what stood innermost in the crashed process: python3 repro.py pass|fail

The function and the address that it is given stand in case.json. Needs nothing but Python.
"""

import ctypes
import faulthandler
import json
import sys
from pathlib import Path

program = json.loads((Path(__file__).resolve().parent / "case.json").read_text())["program"]
function = getattr(ctypes, program["function"])
faulthandler.enable()

if sys.argv[1] == "pass":
    memory = ctypes.create_string_buffer(64)  # mapped, and zero at its end
    address = ctypes.addressof(memory)
else:
    address = program["address"]
print("read at", hex(address), flush=True)
function(address)  # dies here, where the address is not mapped
print("passed")
