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
  python3 - "$out/$name.json" <<'PY' || head -c 300 "$out/$name.err"
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
row huge-i64 3 $cache --entry fused_lora_xw_kernel_i64 $lora --set N=9216 --set stride_ym=9216 --also 33331200
row fill-rows 0 tests/gpu/crash.cu --entry fill_rows --set cols=32768 --set stride=32768 --sweep rows
row unguarded 1 tests/gpu/crash.cu --entry add_unguarded --sweep n --also 1000
row wrong-arch 3 samples/ptx/crash.cubin --entry gather --set n=1024
row kind-null 3 tests/gpu/crash.cu --entry deref --set p=null
for kernel in misaligned asserting trapping shared_oob; do
  row "kind-$kernel" 3 tests/gpu/crash.cu --entry $kernel
done
row kind-hang 3 tests/gpu/crash.cu --entry hog --timeout 4
for kernel in racy uninit divergent_sync; do
  row "kind-$kernel" 3 tests/gpu/crash.cu --entry $kernel
done
echo "processes left behind: $(pgrep -fc '__probe' || true)"
