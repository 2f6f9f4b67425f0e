#!/usr/bin/env bash
# The probe on a real GPU: every case with the status and the words that it must end with, and a table at the end.
#
#   tests/gpu/run.sh [WARPFAULT] [SAMPLES] [LOG]
#
# Needs a driver and one idle GPU. Cases that need nvcc, compute-sanitizer or an sm_90 GPU are skipped where that is
# missing. The cached kernels of the samples were compiled for sm_90; on another GPU their PTX runs, where it can.
set -u
here=$(cd "$(dirname "$0")" && pwd)
warpfault=${1:-$here/../../target/release/warpfault}
samples=${2:-$here/../../samples}
log=${3:-/dev/stdout}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cache=$samples/triton-cache
table=$work/table
failures=0

leftovers() { # probe processes that outlived their parent
  local found=0 file
  for file in /proc/[0-9]*/cmdline; do
    if { tr '\0' ' ' <"$file"; } 2>/dev/null | grep -q ' __probe'; then found=$((found + 1)); fi
  done
  echo "$found"
}

# run NAME STATUS 'PATTERN|PATTERN…' ARGUMENTS…: runs the program, holds status and output against what must be.
# Patterns are extended regular expressions, separated by ';;', and each must match some line.
run() {
  local name=$1 status=$2 patterns=$3 start end got verdict pattern left
  shift 3
  start=$(date +%s.%N)
  "$warpfault" "$@" >"$work/out" 2>"$work/err"
  got=$?
  end=$(date +%s.%N)
  verdict=ok
  [ "$got" = "$status" ] || verdict="FAILED: status $got, not $status"
  while IFS= read -r pattern; do
    [ -z "$pattern" ] && continue
    cat "$work/out" "$work/err" | grep -Eq -- "$pattern" || verdict="FAILED: nothing matches $pattern"
  done < <(printf '%s\n' "$patterns" | sed 's/;;/\n/g')
  left=$(leftovers)
  [ "$left" = 0 ] || verdict="FAILED: $left processes left behind"
  [ "$verdict" = ok ] || failures=$((failures + 1))
  printf '%-34s %4s %7.2f s  %s\n' "$name" "$got" "$(awk "BEGIN { print $end - $start }")" "$verdict" >>"$table"
  {
    printf '\n### %s\n\n$ warpfault' "$name"
    printf ' %q' "$@"
    printf '\n'
    cat "$work/out"
    grep -Ev '^warpfault: (control )?([0-9,]+ +)?[a-z_]+ +(-|[0-9]+) +[-0-9.]+ +[-0-9.]+ ' "$work/err"
    printf '[status %s]\n' "$got"
  } | sed "s|$work|/tmp/work|g; s|$samples|samples|g; s|$here|tests/gpu|g" >>"$log"
}

skip() { printf '%-34s %4s %9s  %s\n' "$1" - - "skipped: $2" >>"$table"; }

lora="probe $cache --set N=9216 --set K=32 --sweep M"
# shellcheck disable=SC2086 # the words of $lora are meant to be split
{
  run doctor 0 '^\+ driver;;^\+ GPU 0' doctor

  # The sample kernel: the boundary, the reported size, one well past it, and the fixed kernel.
  run lora-boundary 0 '^confirmed;;233,008 +pass;;233,024 +illegal_address +700;;the control passes 233,024, 234,624, 333,312' \
    $lora --entry fused_lora_xw_kernel --set M=234624 --also 333312 --control "$cache" --control-entry fused_lora_xw_kernel_i64
  cp "$work/out" "$work/lora.txt"
  run lora-json 0 '"conclusion": "confirmed";;"schema": "warpfault/probe/1"' \
    $lora --entry fused_lora_xw_kernel --set M=234624 --json
  peak=$(grep -o '"device_bytes": [0-9]*' "$work/out" | grep -o '[0-9]*' | sort -n | tail -1)
  if [ -n "$peak" ] && [ "$peak" -lt $((700 << 20)) ]; then
    printf '%-34s %4s %9s  %s\n' memory-under-700-MiB - - "ok ($((peak >> 20)) MiB)" >>"$table"
  else
    printf '%-34s %4s %9s  %s\n' memory-under-700-MiB - - "FAILED: ${peak:-unknown} bytes" >>"$table"
    failures=$((failures + 1))
  fi
  run lora-narrow 0 '^confirmed;;1,743,088 +pass;;1,743,104 +illegal_address' \
    probe "$cache" --entry fused_lora_xw_kernel --set N=1232 --set K=32 --sweep M
  run off-lattice 2 'no multiple of 16' $lora --entry fused_lora_xw_kernel --set M=233016
  run off-lattice-argument 2 'K=33 is no multiple of 16' \
    probe "$cache" --entry fused_lora_xw_kernel --set N=9216 --set K=33 --sweep M --set M=234624
  run fixed-kernel 1 'no boundary' $lora --entry fused_lora_xw_kernel_i64 --set M=234624
  run larger-than-the-card 1 '33,331,200 +pass' $lora --entry fused_lora_xw_kernel_i64 --set M=33331200
  run real-memory 0 '^confirmed' $lora --entry fused_lora_xw_kernel --memory real --memory-limit 16384
  run bound-wrongly 1 'not an overflow' $lora --entry fused_lora_xw_kernel --set M=234624 --set y_ptr=1000
  run no-mask 1 'not an overflow' \
    probe "$cache" --entry no_mask_kernel --set n=1000 --sweep n --set x_ptr=n --set y_ptr=n --grid 'cdiv(n,1024)'
  run reference 0 '^confirmed;;233,016 +pass;;233,017 +illegal_address;;not your kernel' probe 234624x9216 --dtype bf16
  run ptx 0 '^confirmed;;65,536 +pass;;65,537 +illegal_address' probe "$samples/ptx/crash.ptx" --entry fill_rows \
    --sweep arg1 --set arg2=32768 --set arg3=32768 --grid arg1 --block 256
}

if command -v compute-sanitizer >/dev/null || [ -x /usr/local/cuda/bin/compute-sanitizer ]; then
  # shellcheck disable=SC2086
  run lora-sanitize 0 'compute-sanitizer: write 16 in fused_lora_xw_kernel at .*triton_cases.py:18' \
    $lora --entry fused_lora_xw_kernel --sanitize
else
  skip lora-sanitize 'no compute-sanitizer'
fi
# shellcheck disable=SC2086
run lora-core-dump 0 'core dump: .*fused_lora_xw_kernel' $lora --entry fused_lora_xw_kernel --core-dump

# From the log and the cache to a proven cause: the walk with a yes to its probe, and a saved report beside the log. The
# walk ends with 3 because nobody answers its other questions.
incident="$samples/triton-int32-wrap/run.log $samples/triton-int32-wrap/dmesg.log $cache"
# shellcheck disable=SC2086
{
  run walk-proven 3 "Proven: a probe reran fused_lora_xw_kernel on .*M = 233,008 passes, 233,024 ends with illegal_address, as \
predicted.*the fixed kernel fused_lora_xw_kernel_i64 passes there" playbook run auto $incident --no-save --yes-to probe
  cp "$work/out" "$work/walk.txt"
  "$warpfault" $lora --entry fused_lora_xw_kernel --set M=234624 --control "$cache" \
    --control-entry fused_lora_xw_kernel_i64 --json >"$work/probe.json" 2>/dev/null
  run analyze-proven 0 'int32_overflow \[proven\]' analyze $incident "$work/probe.json"
  run analyze-without-probe 0 'int32_overflow \[supported\]' analyze $incident
  run walk-proven-from-core-dump 3 'Proven: a probe reran scatter_rows on .*first_row = 262,128 passes, 262,144 ends' \
    playbook run index-overflow "$samples/triton-coredump" --no-save --yes-to probe
}

# CUDA C++: with nvcc where it is there, with NVRTC always.
run nvrtc-fill-rows 0 '^confirmed;;65,536 +pass;;65,537 +illegal_address;;compiled with NVRTC' probe "$here/kernels.cu" --nvrtc \
  --entry fill_rows --sweep rows --set rows=70000 --set cols=32768 --set stride=cols --grid rows --block 256
run under-run 1 'before the start of a buffer;;small, starts guarded' probe "$here/kernels.cu" --nvrtc --entry shift_left \
  --sweep n --set n=4096 --set x=n --grid 'cdiv(n,256)' --block 256
run one-past-the-end 1 'not an overflow' probe "$here/kernels.cu" --nvrtc --entry one_past \
  --sweep n --set n=4000 --set x=n --grid 'cdiv(n+1,256)' --block 256
run hangs-past-a-size 3 'timeout' probe "$here/kernels.cu" --nvrtc --entry hang_past \
  --sweep n --set n=4096 --set p=1024 --grid 1 --block 32 --timeout 4

nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
if [ -n "$nvcc" ]; then
  run nvcc-fill-rows 0 '^confirmed;;65,536 +pass;;65,537 +illegal_address;;compiled with nvcc' probe "$here/crash.cu" \
    --entry fill_rows --sweep rows --set rows=70000 --set cols=32768 --set stride=cols --grid rows --block 256
  run add-unguarded 1 'not an overflow' probe "$here/crash.cu" --entry add_unguarded \
    --sweep n --set n=1000 --set x=n --set y=n --grid 'cdiv(n,256)' --block 256
  arch=$("$warpfault" doctor --json | grep -o '"compute_capability": "[0-9.]*"' | head -1 | tr -dc '0-9')
  "$nvcc" -cubin -lineinfo -arch="sm_$arch" -o "$work/crash.cubin" "$here/crash.cu"
  other=80
  [ "${arch%?}" = 8 ] && other=90
  "$nvcc" -cubin -arch=sm_$other -o "$work/other.cubin" "$here/kernels.cu"
  run other-architecture 3 'no_kernel_image' probe "$work/other.cubin" --entry fill_rows --sweep arg1 --set arg1=100 \
    --set arg2=32 --set arg3=32 --set arg0=arg1*32 --grid arg1 --block 32
  kind() { # NAME STATUS PATTERN ENTRY ARGUMENTS…
    local name=$1 status=$2 pattern=$3 entry=$4
    shift 4
    run "$name" "$status" "$pattern" probe "$work/crash.cubin" --entry "$entry" "$@"
  }
  # An index of 2^30 in element 777, as crash.cu has it.
  printf '%08x' $(seq 0 1023) | sed 's/\(..\)\(..\)\(..\)\(..\)/\\x\4\\x\3\\x\2\\x\1/g' >"$work/hex"
  printf "$(cat "$work/hex")" >"$work/index"
  printf '\x00\x00\x00\x40' | dd of="$work/index" bs=1 seek=$((777 * 4)) conv=notrunc 2>/dev/null
  one='--grid 1 --block 32'
  # shellcheck disable=SC2086
  {
    kind null 3 'illegal_address +700' deref --set arg0=null $one
    kind host-pointer 3 'illegal_address +700' deref --set arg0=host $one
    # Given back, it is unmapped; handed out anew, as a caching allocator does, nothing shows.
    kind use-after-free-unmapped 3 'illegal_address +700' deref --set "arg0=freed(67108864)" $one
    kind use-after-free-reused 3 ' pass +0' deref --set "arg0=reused(67108864)" $one
    kind misaligned 3 'misaligned_address +716' misaligned --set arg0=4096 $one
    kind assert 3 'device_assert +710' asserting --set 'arg0=1024:value(2139062143)' --set arg1=10 --grid 1 --block 4
    kind trap 3 'launch_failure +719' trapping --set arg0=1024 $one
    kind shared-oob 3 'illegal_instruction +715' shared_oob --set arg0=1024 --set arg1=4194304 --grid 1 --block 64 --shared 256
    kind bad-jump 3 'timeout' jump --set arg0=1024 $one --timeout 4
    kind hang 3 'timeout' hog --set arg0=1024 $one --timeout 4
    kind race 3 ' pass +0' racy --set arg0=1024 --grid 1 --block 64
    kind uninit 3 ' pass +0' uninit --set arg0=1024 --set arg1=1024 --grid 1 --block 64
    kind divergent-sync 3 ' pass +0' divergent_sync --set arg0=1024 $one
    kind gather-plain 3 'illegal_address +7(00|17)' gather --memory plain --set arg0=1024 --set "arg1=1024:file($work/index)" \
      --set arg2=1024 --set arg3=1024 --grid 4 --block 256
    kind gather-guarded 3 'illegal_address +700' gather --set arg0=1024 --set "arg1=1024:file($work/index)" \
      --set arg2=1024 --set arg3=1024 --grid 4 --block 256
    kind too-much-shared 3 'launch_config' shared_oob --set arg0=1024 --set arg1=0 $one --shared 307200
  }
else
  skip nvcc-cases 'no nvcc'
fi

CUDA_VISIBLE_DEVICES='' run no-gpu-shown 2 'shows no GPU' probe 1000x1000

echo
cat "$table"
echo "$(grep -c ' ok' "$table") ok, $failures failed"
# The repros, where PyTorch is there; those of collectives need two GPUs.
if python3 -c 'import torch' 2>/dev/null; then
  "$here/repro.sh" "$warpfault" "$samples" "$log" || failures=$((failures + 1))
fi
exit $((failures > 0))
