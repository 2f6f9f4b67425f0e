#!/usr/bin/env bash
# GPU core dumps of a real GPU, small and large, and what `warpfault analyze` reads from each of them alone: time, memory,
# class, cause, arguments. A table comes at the end.
#
#   tests/gpu/dumps.sh [WARPFAULT] [CRASH.CU] [LOG] [KEEP]
#
# CRASH.CU is a program whose cases `gather` and `int32_wrap` crash (`crash CASE`). With KEEP, the dumps are left in that folder,
# compressed. Needs nvcc, python3 and one idle GPU.
set -u
here=$(cd "$(dirname "$0")" && pwd)
warpfault=${1:-$here/../../target/release/warpfault}
source=${2:-$here/crash.cu}
log=${3:-/dev/stdout}
keep=${4:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)
# A program that ends on its own error cuts the dump that the driver is still writing: it waits, and the driver aborts it.
sed 's/exit(1)/sleep(60), exit(1)/; 1i #include <unistd.h>' "$source" >"$work/crash.cu"
nvcc -O1 -lineinfo -arch="sm_$arch" -o "$work/crash" "$work/crash.cu" || exit 2
failures=0

# Memory is bulk; registers, parameters and the relocated code stay. Without skip_constbank_memory beside skip_global_memory, driver
# 580.159 left a dump of its first 68,672 bytes.
export CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1 CUDA_COREDUMP_SHOW_PROGRESS=1
export CUDA_COREDUMP_GENERATION_FLAGS=skip_nonrelocated_elf_images,skip_global_memory,skip_shared_memory,skip_local_memory,skip_constbank_memory

# dump CASE PATTERN…: crashes, then holds the report of the dump alone against each pattern.
dump() {
  local name=$1 file report pattern verdict=ok numbers
  shift
  CUDA_COREDUMP_FILE="$work/$name.nvcudmp" "$work/crash" "$name" >"$work/$name.log" 2>&1
  gzip -k1 "$work/$name.nvcudmp"
  for file in "$work/$name.nvcudmp" "$work/$name.nvcudmp.gz"; do
    report=$work/report.json
    numbers=$(python3 - "$warpfault" "$file" "$report" <<'PY'
import os, resource, subprocess, sys, time
start = time.monotonic()
with open(sys.argv[3], "w") as out:
    subprocess.run([sys.argv[1], "analyze", sys.argv[2], "--json"], stdout=out)
wall = time.monotonic() - start
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{wall:.2f} s wall, {used.ru_utime + used.ru_stime:.2f} s CPU, {used.ru_maxrss / 1024:.0f} MiB at most")
PY
)
    verdict=ok
    for pattern in "$@"; do
      tr -d '\n' <"$report" | grep -Eq -- "$pattern" || verdict="FAILED: nothing matches $pattern"
    done
    [ "$verdict" = ok ] || failures=$((failures + 1))
    printf '%-12s %6.1f MB  %s  %s\n' "$name${file#"$work/$name.nvcudmp"}" \
      "$(awk "BEGIN { print $(stat -c %s "$file") / 1e6 }")" "$numbers" "$verdict" >>"$work/table"
    { printf '\n### %s\n\n' "${file##*/}"; "$warpfault" analyze "$file"; } | sed "s|$work|/tmp/work|g" >>"$log"
  done
  if [ -n "$keep" ]; then mkdir -p "$keep" && cp "$work/$name.nvcudmp.gz" "$keep/"; fi
}

dump gather '"class": *"illegal_address"' '"kernel": *"gather' 'crash\.cu'
dump int32_wrap '"class": *"illegal_address"' '"kernel": *"fill_rows' '"kind": *"int32_overflow", *"certainty": *"(supported|proven)"' \
  '70000' '32768'

echo
cat "$work/table"
echo "$failures failed"
exit $((failures > 0))
