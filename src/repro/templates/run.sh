#!/usr/bin/env bash
# ./run.sh        runs every row in a process of its own; exit status 0: each came out as expected, 1: not, 2: can't run
# ./run.sh pass   runs the side that must pass, ./run.sh fail the one that must fail; both show all that is printed
set -u
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 2
{% for name, value in environment | items %}
export {{ name | variable }}={{ value | sh }}
{% endfor %}

pass={{ sides.pass | sh }}
fail={{ sides.fail | sh }}
keys=({% for row in rows %}{{ row.key | sh }}{% if not loop.last %} {% endif %}{% endfor %})
labels=({% for row in rows %}{{ row.label | sh }}{% if not loop.last %} {% endif %}{% endfor %})
expected=({% for row in rows %}{% if row.expect %}{{ row.expect | sh }}{% else %}open{% endif %}{% if not loop.last %} {% endif %}{% endfor %})
pattern={{ pattern | sh }} # what the failing side prints

{% if is_cuda %}
# Compiled once for the GPU that is here.
if [ ! -x repro ] || [ repro.cu -nt repro ]; then
  nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null) || {
    echo "cannot run: nvcc was not found"
    exit 2
  }
  "$nvcc" -O1 -lineinfo -arch=native -o repro repro.cu || exit 2
fi
{% endif %}
row() { # KEY: one row, ended at its deadline
{% if is_cuda %}
  timeout -k 5 {{ deadline_s }} ./repro "$1"
{% elif ranks %}
  python3 -c 'import torch' 2>/dev/null || {
    echo 'cannot run: PyTorch is not installed'
    return 3
  }
  timeout -k 5 {{ deadline_s }} python3 -m torch.distributed.run --standalone --nproc-per-node {{ ranks }} repro.py "$1"
{% else %}
  timeout -k 5 {{ deadline_s }} python3 repro.py "$1"
{% endif %}
}

case ${1:-table} in
pass | fail)
  if [ "$1" = pass ]; then row "$pass"; else row "$fail"; fi
  exit
  ;;
{% if kind == "segfault" %}
gdb) # the native stack of the failing side
  exec gdb -batch -ex run -ex bt --args python3 repro.py "$fail"
  ;;
{% endif %}
table) ;;
*)
  echo "usage: ./run.sh [pass|fail]"
  exit 2
  ;;
esac

status=0
printf '%-8s  %-10s  %s\n' expected 'came out' row
for at in "${!keys[@]}"; do
  said=$(row "${keys[at]}" 2>&1)
  code=$?
  if [ $code = 0 ]; then
    got=pass
  elif grep -q '^cannot run:' <<<"$said"; then
    got='cannot run'
  elif grep -Eq -- "$pattern" <<<"$said"; then
    got=fail
  else
    got="other ($code)"
  fi
  printf '%-8s  %-10s  %s\n' "${expected[at]}" "$got" "${labels[at]}"
  [ "$got" = "${expected[at]}" ] && continue
{% if has_open %}
  [ "${expected[at]}" = open ] && [ "$got" != 'cannot run' ] && continue # nothing tells what must happen
{% endif %}
  printf '%s\n' "$said" | tail -n 5
  [ "$got" = 'cannot run' ] && status=2
  [ $status = 0 ] && status=1
done
{% if numbers %}
printf '\n%s\n' {{ numbers | sh }}
{% endif %}
exit $status
