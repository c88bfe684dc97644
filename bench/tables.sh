#!/usr/bin/env bash
# Seconds to read and check a table of ten million cells, as PyTorch's CSV and as a `table` of the language.
#
#   bench/tables.sh STAVE
set -eu
stave=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd -- "$(dirname -- "$(readlink -f -- "$0")")/.."
"$stave" table schedules/one_f_one_b.sched P=500 M=10000 -o "$folder/table.csv"
"$stave" table schedules/one_f_one_b.sched P=500 M=10000 --format sched -o "$folder/table.sched"
for file in table.csv table.sched; do
  printf '%-12s %5.0f MB   ' "$file" "$(($(stat -c %s "$folder/$file") / 1000000))"
  begin=$(date +%s.%N)
  "$stave" check "$folder/$file" >/dev/null
  awk "BEGIN { printf \"%.1f s\\n\", $(date +%s.%N) - $begin }"
done
