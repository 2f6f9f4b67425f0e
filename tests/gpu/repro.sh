#!/usr/bin/env bash
# Repros of the samples on a real GPU: each is written, verified and its table run; one with the fixed kernel must be
# rejected. A table comes at the end.
#
#   tests/gpu/repro.sh [WARPFAULT] [SAMPLES] [LOG] [NAME…]
#
# Without a NAME every case runs. Needs PyTorch; nvcc for the CUDA C++ ones, two GPUs for the collective ones.
set -u
here=$(cd "$(dirname "$0")" && pwd)
warpfault=${1:-$here/../../target/release/warpfault}
samples=${2:-$here/../../samples}
log=${3:-/dev/stdout}
shift $(($# < 3 ? $# : 3))
wanted=" $* "
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
table=$work/table
touch "$table"
failures=0

# run NAME STATUS 'PATTERN' COMMAND…: holds status and output against what must be.
run() {
  local name=$1 status=$2 pattern=$3 got verdict=ok start end
  shift 3
  start=$(date +%s.%N)
  "$@" >"$work/out" 2>&1
  got=$?
  end=$(date +%s.%N)
  [ "$got" = "$status" ] || verdict="FAILED: status $got, not $status"
  grep -Eq -- "$pattern" "$work/out" || verdict="FAILED: nothing matches $pattern"
  [ "$verdict" = ok ] || failures=$((failures + 1))
  printf '%-28s %3s %7.1f s  %s\n' "$name" "$got" "$(awk "BEGIN { print $end - $start }")" "$verdict" >>"$table"
  {
    printf '\n### %s\n\n$' "$name"
    printf ' %q' "$@"
    printf '\n'
    cat "$work/out"
    printf '[status %s]\n' "$got"
  } | sed "s|$warpfault|warpfault|g; s|$work|/tmp/work|g; s|$samples|samples|g; s|$here|tests/gpu|g" >>"$log"
}

is_wanted() { [ "$wanted" = '  ' ] || [[ $wanted == *" $1 "* ]]; }

# repro NAME INPUT…: written, verified, and its table.
repro() {
  local name=$1
  shift
  is_wanted "$name" || return
  run "$name" 0 '^accepted' "$warpfault" repro "$@" -o "$work/$name" --verify --yes
  run "$name: table" 0 '^fail +fail' "$work/$name/run.sh"
}

lora=("$samples/triton-int32-wrap/run.log" "$samples/triton-cache")
repro triton "${lora[@]}"
if is_wanted triton-fixed; then
  # The same folder with the fixed kernel's code must be rejected.
  "$warpfault" repro "${lora[@]}" -o "$work/fixed" >/dev/null
  fixed=$(echo "$samples"/triton-cache/*/fused_lora_xw_kernel_i64.cubin)
  for ending in cubin ptx ttir json; do cp "${fixed%.cubin}.$ending" "$work/fixed/kernel/kernel.$ending"; done
  sed -i 's/"entry": "fused_lora_xw_kernel"/"entry": "fused_lora_xw_kernel_i64"/' "$work/fixed/case.json"
  run triton-fixed 1 'not accepted: the side that must fail passed' \
    "$warpfault" repro -o "$work/fixed" --verify --yes
fi
repro triton-trace "$samples/tritonparse-int32-wrap"
repro triton-trace-scatter "$samples/tritonparse-scatter"
repro triton-coredump "$samples/triton-coredump"
repro triton-source "${lora[@]}" "$here/lora.py"
if is_wanted triton-source; then
  # Nothing says what the backward kernel of the file must do; on this card it fails past the boundary too.
  run "triton-source: backward" 0 '^open +fail +backward, fused_lora_xw_bwd_kernel: M = 234,624' \
    "$work/triton-source/run.sh"
fi
if is_wanted triton-backward; then
  # A cache in which both kernels were compiled: the static check says on which side each row lies.
  TRITON_CACHE_DIR=$work/cache python3 "$here/lora.py" 1024 >/dev/null 2>&1
  repro triton-backward "$samples/triton-int32-wrap/run.log" "$work/cache" --entry fused_lora_xw_kernel
  run "triton-backward: backward" 0 '^fail +fail +backward, fused_lora_xw_bwd_kernel: M = 234,624' \
    "$work/triton-backward/run.sh"
fi
if is_wanted triton-probe; then
  "$warpfault" repro "${lora[@]}" -o "$work/probe" >/dev/null
  run triton-probe 0 '^confirmed' "$warpfault" probe "$work/probe/probe.toml" --yes
fi
repro segfault "$samples/torch-segv-faulthandler/run.log"
repro embedding "$samples/torch-embedding"
repro graph "$samples/torch-graph-replay-freed"
repro cuda-rows "$samples/cuda-int32-wrap-memcheck"
repro cuda-gather "$samples/coredump-gather"
repro collective-size "$samples/pair-size-mismatch"
repro collective-missing "$samples/pair-skipped-collective"
repro symmetric "$samples/pair-symmetric-size-mismatch"

echo
cat "$table"
echo "$(grep -c ' ok$' "$table") ok, $failures failed"
exit $((failures > 0))
