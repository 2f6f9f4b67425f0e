"""Runs the user's script as the crashed job did: python3 repro.py pass|fail

Script and arguments stand in case.json; faulthandler is on.
"""

import faulthandler
import json
import runpy
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
program = json.loads((HERE / "case.json").read_text())["program"]
faulthandler.enable()
script = str(HERE / program["script"])
sys.argv = [script, *program[f"{sys.argv[1]}_arguments"]]
runpy.run_path(script, run_name="__main__")
