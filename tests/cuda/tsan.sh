#!/usr/bin/env bash
# The thread sanitizer over the CUDA executor and the stand-ins: clean as they are, and with one wait of a stream for an
# event left out a race is reported, or the result of the whole numbers is another.
#
#   tsan.sh SOURCE-FOLDER BUILD-FOLDER
set -u
source=$(readlink -f -- "$1")
build=$2
jobs=$(nproc)
ccache=$(command -v ccache)
cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DSTAVE_ALONE=ON -DSTAVE_SANITIZE=thread \
  -DCMAKE_CXX_COMPILER_LAUNCHER="$ccache" >/dev/null && ninja -C "$build" -j "$jobs" test_cuda_plain >"$build/log" 2>&1 || { tail -n 30 "$build/log" && exit 1; }

export LD_LIBRARY_PATH=$build/tests/fake_cuda/lib FAKE_CUDA_DEVICES=8
# Its shadow memory does not fit the addresses of newer kernels.
program() { setarch -R timeout 300 "$build/tests/fake_cuda/test_cuda_plain" "$@"; }

program >"$build/out" 2>&1 || { head -n 60 "$build/out" && exit 1; }
printf 'clean: %s\n' "$(tail -n 1 "$build/out")"

# Some waits of the first steps; one that others imply would not be missed.
missed=0
tried=0
for drop in 5 15 25 40 61 75; do
  tried=$((tried + 1))
  if FAKE_CUDA_DROP_WAIT=$drop TSAN_OPTIONS=halt_on_error=1 program 1 >"$build/out" 2>&1; then
    printf 'wait %s: not missed\n' "$drop"
    missed=$((missed + 1))
  else
    printf 'wait %s: %s\n' "$drop" "$(grep -m 1 -oE 'WARNING: ThreadSanitizer: [a-z ]*|.*differs.*' "$build/out")"
  fi
done
printf '%d of %d waits left out were found\n' "$((tried - missed))" "$tried"
((tried - missed > tried / 2))
