#!/usr/bin/env bash
# The thread sanitizer over the CUDA executor and the stand-ins: clean as they are, and with one wait of a stream for an
# event left out a race is reported, or the result of the whole numbers is another, in at least one run of some.
#
#   tsan.sh SOURCE-FOLDER BUILD-FOLDER
set -u
source=$(readlink -f -- "$1")
build=$2
tries=12
ccache=$(command -v ccache)
if ! cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DSTAVE_ALONE=ON -DSTAVE_SANITIZE=thread \
  -DCMAKE_CXX_COMPILER_LAUNCHER="$ccache" >"$build.log" 2>&1 || ! ninja -C "$build" test_cuda_plain >>"$build.log" 2>&1; then
  tail -n 30 "$build.log"
  exit 1
fi

export LD_LIBRARY_PATH=$build/tests/fake_cuda/lib FAKE_CUDA_DEVICES=8
# Its shadow memory does not fit the addresses of newer kernels.
program() { setarch -R timeout 120 "$build/tests/fake_cuda/test_cuda_plain" "$@" >"$build/out" 2>&1; }
found() { grep -m 1 -oE 'WARNING: ThreadSanitizer: [a-z ]*|.*differs.*' "$build/out"; }

program || {
  printf 'as it is, it ends with status %d\n' "$?"
  head -n 60 "$build/out"
  exit 1
}
printf 'clean: %s\n' "$(tail -n 1 "$build/out")"

# Some waits of the first steps. A thread may happen to come late enough without the wait: then another time it does not.
missed=0
for drop in 5 15 25 40 61 75; do
  what=
  for ((try = 0; try < tries && ${#what} == 0; ++try)); do
    FAKE_CUDA_DROP_WAIT=$drop TSAN_OPTIONS=halt_on_error=1 program 1
    status=$?
    ((status == 0)) && continue
    # A run that hangs or cannot start finds nothing.
    what=$(found) || {
      printf 'wait %s: status %d, and said\n' "$drop" "$status"
      head -n 30 "$build/out"
      exit 1
    }
  done
  ((${#what} > 0)) || missed=$((missed + 1))
  printf 'wait %s: %s\n' "$drop" "${what:-not missed in $tries runs}"
done
((missed == 0))
