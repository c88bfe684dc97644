#!/usr/bin/env bash
# Every line of figures.txt: the claim, added to the schedule as an `expect`, must hold. What stands in braces is added too.
#
#   figures.sh STAVE
set -uf
stave=$1
cd -- "$(dirname -- "$(readlink -f -- "$0")")/../.."
wrong=0 tried=0
while IFS='|' read -r what claim source; do
  [[ -z $what || $what == \#* ]] && continue
  more=
  [[ $what == *{*}* ]] && more=${what#*\{} && more=${more%\}*} && what=${what%%\{*}
  read -r file arguments <<<"$what"
  tried=$((tried + 1))
  # shellcheck disable=SC2086
  { cat "schedules/$file.sched" && printf '%s\nexpect %s\n' "$more" "$claim"; } | "$stave" check - $arguments >/dev/null && continue
  printf 'does not hold: %s %s:%s(%s)\n' "$file" "$arguments" "$claim" "$source"
  wrong=$((wrong + 1))
done <tests/schedules/figures.txt
echo "$tried figures, $wrong wrong"
((tried > 0 && wrong == 0))
