#!/usr/bin/env bash
# Repeats what docs/gpu-validation.md records, on any machine with an NVIDIA GPU and its driver.
#   tests/gpu/run.sh [path to warpfault]
# Prints one row a check: what was asked, the exit status, the conclusion, the boundary, the wall time.
set -u
cd "$(dirname "$0")/../.."
bin=${1:-target/release/warpfault}
cache=samples/triton-cache
out=$(mktemp -d)
row() { # name expected-status command...
  local name=$1 want=$2; shift 2
  local start=$(date +%s.%N)
  timeout 120 "$bin" probe "$@" --yes --format json >"$out/$name.json" 2>"$out/$name.err"; local status=$?
  local seconds=$(awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')
  local mark=ok; [ "$status" = "$want" ] || mark=UNEXPECTED
  printf '%-10s %-26s status %s (want %s) %5ss  ' "$mark" "$name" "$status" "$want" "$seconds"
  python3 - "$out/$name.json" <<'PY' 2>/dev/null || { echo; head -c 300 "$out/$name.err"; }
import json, sys
r = json.load(open(sys.argv[1]))
b = r.get("boundary") or {}
t = "; ".join(f"{list((x['values'] or {}).values())[:1]}={x['outcome']}/{x['code']}" for x in r.get("trials", [])[:8])
c = "; ".join(f"{list((x['values'] or {}).values())[:1]}={x['outcome']}" for x in (r.get("control") or {}).get("trials", [])[:6])
m = max([x.get("device_bytes") or 0 for x in r.get("trials", [])] or [0])
print(r.get("conclusion"), "last", b.get("last_pass"), "first", b.get("first_fail"), "| trials", t, "| control", c, "| device MiB", m >> 20)
print("           why:", (r.get("why") or "")[:220])
PY
}
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
"$bin" --version
lora="--sweep M --set K=32 --set stride_xm=32"
row lora-9216 0 $cache --entry fused_lora_xw_kernel $lora --set N=9216 --set stride_ym=9216 --control $cache --control-entry fused_lora_xw_kernel_i64 --also 234624 --also 333312
row lora-1232 0 $cache --entry fused_lora_xw_kernel $lora --set N=1232 --set stride_ym=1232
row off-lattice 2 $cache --entry fused_lora_xw_kernel $lora --set N=9216 --set stride_ym=9216 --also 233017
row huge-i64 1 $cache --entry fused_lora_xw_kernel_i64 $lora --set N=9216 --set stride_ym=9216 --also 33331200
row fill-rows 0 tests/gpu/crash.cu --entry fill_rows --set cols=32768 --set stride=32768 --sweep rows --grid rows --block 256
row unguarded 1 tests/gpu/crash.cu --entry add_unguarded --sweep n --also 1000 --set x=n --set y=n --grid 'cdiv(n,256)' --block 256
row kind-null 3 tests/gpu/crash.cu --entry deref --set p=null --grid 1 --block 32
one="--grid 1 --block 32"
row kind-misaligned 3 tests/gpu/crash.cu --entry misaligned $one --set p=4096
row kind-assert 3 tests/gpu/crash.cu --entry asserting $one --set index=64:iota --set n=16
row kind-trap 3 tests/gpu/crash.cu --entry trapping $one --set p=4096
row kind-shared_oob 3 tests/gpu/crash.cu --entry shared_oob $one --set out=4096 --set n=1073741824
row kind-gather 3 tests/gpu/crash.cu --entry gather $one --set table=128 --set "index=32:random(1073741824,1073741825)" --set out=32 --set n=32
row kind-hang 3 tests/gpu/crash.cu --entry hog --timeout 4 --grid 1 --block 32 --set p=64
row kind-race 3 tests/gpu/crash.cu --entry racy $one --set out=4096
row kind-uninit 3 tests/gpu/crash.cu --entry uninit $one --set in=4096 --set out=4096
row kind-divergent_sync 3 tests/gpu/crash.cu --entry divergent_sync $one --set out=4096
echo "processes left behind: $(pgrep -fc '__probe' || true)"
