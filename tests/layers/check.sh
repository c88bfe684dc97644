#!/usr/bin/env bash
# House rules that a compiler does not check. Prints each breach; fails if there is one.
#
#   check.sh ROOT
set -u
cd -- "$1" || exit 2
breaches=0
breach() {
  printf '%s\n' "$*"
  breaches=$((breaches + 1))
}

folders=(core compiler scheduler executor visualize cli)
declare -A below=(
  [core]="core"
  [compiler]="core compiler"
  [scheduler]="core compiler scheduler"
  [executor]="core executor"
  [visualize]="core compiler scheduler visualize"
  [cli]="core compiler scheduler executor visualize cli"
)

# An include goes down, and is written from the root.
for folder in "${folders[@]}"; do
  [[ -d $folder ]] || continue
  while IFS=: read -r file line text; do
    target=${text#*\"}
    target=${target%\"*}
    # Headers that a build makes have no folder of ours.
    [[ $target == generated/* ]] && continue
    top=${target%%/*}
    [[ " ${below[$folder]} " == *" $top "* ]] || breach "$file:$line: $folder must not include \"$target\""
  done < <(grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' --include=*.h --include=*.cpp "$folder")
done

# Foreign headers are seen by the files that are meant to see them.
only() {
  local pattern=$1 allowed=$2
  while IFS=: read -r file line _; do
    [[ $file =~ ^($allowed)$ ]] || breach "$file:$line: includes $pattern, which only $allowed may"
  done < <(grep -rnE "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]($pattern)" --include=*.h --include=*.cpp \
    "${folders[@]}" 2>/dev/null)
}
only 'antlr4|SchedLexer|SchedParser|SchedBaseVisitor|generated/Sched' 'compiler/parse(\.cpp|_errors\.h)'
only 'cuda|nccl|cublas' 'executor/cuda/.*'
only 'nvtx' 'executor/nvtx.h'
only 'gloo' 'executor/transport/gloo\.cpp'
only 'mpi\.h' 'executor/transport/mpi\.cpp'
only 'CLI/' 'cli/.*'
only 'nlohmann/' 'cli/.*|visualize/.*|compiler/render.*'
only 'fmt/' 'compiler/.*|scheduler/.*|visualize/.*|cli/.*'
only 'boost/' 'compiler/.*|scheduler/.*'
only 'oneapi/|dnnl' 'executor/cpu/.*'
only 'toml\+\+' 'scheduler/toml\.cpp'

# Such a glob is work for ninja at every launch, which then always has something to do.
while IFS= read -r line; do
  breach "$line: name the folder in CMAKE_CONFIGURE_DEPENDS instead"
done < <(grep -rnE 'GLOB.*CONFIGURE_DEPENDS' --include=CMakeLists.txt --include='*.cmake' "${folders[@]}" tests cmake bench)

# Past 600 lines there is a second concept in a file.
while IFS= read -r file; do
  lines=$(wc -l <"$file")
  ((lines <= 600)) || breach "$file: $lines lines; 600 at most"
done < <(find "${folders[@]}" tests bench grammar -type f \( -name '*.h' -o -name '*.cpp' -o -name '*.g4' \) 2>/dev/null)

# A header says in its first line what it is for; only cli/ ends the process, and core/check.cpp for a bug of ours. A child
# that fork() made is not the process: launch.cpp ends one that cannot become a rank.
while IFS= read -r file; do
  [[ $(head -n 1 "$file") == [/][/*]* ]] || breach "$file:1: a header begins with a comment that says what it does"
done < <(find "${folders[@]}" -type f -name '*.h' 2>/dev/null)
while IFS=: read -r file line _; do
  [[ $file == cli/* || $file == core/check.cpp || $file == executor/control/launch.cpp ]] ||
    breach "$file:$line: only cli/ may end the process"
done < <(grep -rnE '(^|[^_[:alnum:].>])(std::|::)?(_?exit\(|quick_exit\(|abort\(\))' --include=*.h --include=*.cpp "${folders[@]}" 2>/dev/null |
  grep -vE ':[0-9]+:[[:space:]]*//')

# Tests use no program that ./stave does not install on a fresh machine.
while IFS= read -r line; do
  breach "$line: a fresh machine does not have it"
done < <(grep -rnE '^(# RUN:|\$) .*\b(python3?|jq|node|perl)[[:space:]]' --include='*.test' --include='*.sched' --include='*.md' \
  tests README.md docs)

# Every kind of diagnostic has a golden test that shows it, or a unit test where no file can bring it about.
if [[ -f compiler/diagnostic_kinds.h ]]; then
  while IFS= read -r kind; do
    grep -qsF "# KIND: $kind" tests/golden/*.sched tests/golden/*.test ||
      grep -qsE "^#[>!].*\[$kind\]" tests/golden/*.sched tests/golden/*.test ||
      grep -rqsF "\"$kind\"" tests/unit ||
      breach "compiler/diagnostic_kinds.h: no test shows \`$kind\`"
  done < <(grep -oE '"[a-z0-9]+(-[a-z0-9]+)*"' compiler/diagnostic_kinds.h | tr -d '"' | sort -u)
fi

((breaches == 0)) || printf '%d breaches\n' "$breaches"
((breaches == 0))
