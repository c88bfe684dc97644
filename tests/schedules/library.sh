#!/usr/bin/env bash
# schedules/README.md is what `stave list --table` prints, and every file says what it is and where it comes from, in at
# most 60 lines of language, most in fewer than 30.
#
#   library.sh STAVE
set -u
stave=$1
cd -- "$(dirname -- "$(readlink -f -- "$0")")/../.."
export STAVE_SCHEDULES=$PWD/schedules
"$stave" list --table | diff -u schedules/README.md - || {
  echo "schedules/README.md is not current: ninja library-update"
  exit 1
}
wrong=0 files=0 short=0
for file in schedules/*.sched; do
  files=$((files + 1))
  for what in '^# [^ ]' '^# Source: .'; do
    grep -q "$what" "$file" || { echo "$file: no line of its header matches $what"; wrong=1; }
  done
  lines=$(grep -cvE '^[[:space:]]*(#|$)' "$file")
  ((lines < 30)) && short=$((short + 1))
  ((lines <= 60)) || { echo "$file: $lines lines; 60 at most"; wrong=1; }
done
((2 * short > files)) || { echo "only $short of $files files have fewer than 30 lines"; wrong=1; }
echo "$files files, $short of them shorter than 30 lines"
exit $wrong
