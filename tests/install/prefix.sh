#!/usr/bin/env bash
# A build without root: Debian's packages of the libraries are unpacked into a folder of their own, and CMake finds each of
# them there, also where others are installed. Skipped (77) where no packages can be had.
#
#   prefix.sh ROOT [FOLDER]
#
# With FOLDER it stays, as FOLDER/prefix, and stave is built with it in FOLDER/build and run; else CMake's part alone is
# tried. The machine has a compiler, CMake, Ninja and Java.
set -u
root=$(readlink -f -- "$1")
if (($# > 1)); then
  work=$2
  mkdir -p -- "$work" && work=$(readlink -f -- "$work") || exit 1
else
  work=$(mktemp -d) || exit 1
  trap 'rm -rf "$work"' EXIT
fi
skip() {
  printf 'skipped: %s\n' "$*"
  exit 77
}
for tool in apt-get dpkg java; do
  command -v "$tool" >/dev/null || skip "no $tool here"
done

# What the launcher installs is what is needed; MPI is a cluster's own.
tools=(g++ cmake ninja-build default-jre-headless)
mapfile -t packages < <(sed -n '/^packages=(/,/^)/{//d;p}' "$root/stave" | tr -s ' ' '\n' |
  grep -vxE '|g\+\+|cmake|ninja-build|libopenmpi-dev|openmpi-bin')
((${#packages[@]} > 5)) || {
  printf 'no list of packages in %s/stave\n' "$root"
  exit 1
}

# The packages that a machine without any would get for the arguments.
closure() {
  apt-get -s -o Dir::State::status="$work/none" --no-install-recommends install "$@" 2>/dev/null |
    awk '/^Inst/ {print $2}' | sort
}
: >"$work/none"
closure "${tools[@]}" >"$work/tools"
closure "${tools[@]}" "${packages[@]}" >"$work/all"
mapfile -t wanted < <(comm -13 "$work/tools" "$work/all")
((${#wanted[@]} > 0)) || skip "apt has no lists of packages"
mkdir -p "$work/packages" "$work/prefix" && cd "$work/packages" || exit 1
timeout 120 apt-get -q download "${wanted[@]}" >"$work/log" 2>&1 || skip "the packages cannot be had: $(tail -n 1 "$work/log")"
for package in *.deb; do
  dpkg -x "$package" "$work/prefix" || exit 1
done
prefix=$work/prefix/usr
# On Debian 12 some still are in /lib, which is /usr/lib.
[[ ! -d $work/prefix/lib ]] || cp -a "$work/prefix/lib/." "$prefix/lib/"

# ANTLR's tool of Debian's looks for its classes in /usr.
cat >"$prefix/bin/antlr4" <<'END'
#!/bin/sh
exec java -cp "$(dirname "$0")/../share/java/*" org.antlr.v4.Tool "$@"
END

cmake -S "$root" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DSTAVE_CUDA=OFF -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags >"$work/log" 2>&1 || {
  cat "$work/log"
  exit 1
}
failed=0
for name in STAVE_ANTLR4 STAVE_ANTLR4_INCLUDE STAVE_ANTLR4_RUNTIME STAVE_DNNL_INCLUDE STAVE_DNNL STAVE_GLOO_INCLUDE STAVE_GLOO \
  CLI11_DIR doctest_DIR fmt_DIR nlohmann_json_DIR rapidcheck_DIR tomlplusplus_DIR; do
  grep -qE "^$name:[A-Z]+=$prefix/" "$work/build/CMakeCache.txt" && continue
  printf 'not from the prefix: %s\n' "$(grep "^$name:" "$work/build/CMakeCache.txt" || echo "$name, which CMake does not look for")"
  failed=1
done
ninja -C "$work/build" stave_grammar >"$work/log" 2>&1 || {
  cat "$work/log"
  exit 1
}
if ((failed == 0 && $# > 1)); then
  ninja -C "$work/build" stave && "$work/build/cli/stave" run zb_h1 --steps 4 --verify || failed=1
fi
((failed == 0)) && printf '%d packages in a prefix, all found there\n' "${#wanted[@]}"
exit "$failed"
