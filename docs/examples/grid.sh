# Schedules on the nine clusters of the grid, each against the first of them: makespan over makespan.
#
#   [MODEL=FILE] grid.sh ARGUMENTS OF stave compare ...
printf '%-8s %-8s' compute network
first=yes
for compute in slow middle fast; do
  for network in fast middle slow; do
    ./stave compare "$@" --cluster grid_${compute}_$network --model ${MODEL:-dense_128} --json |
      awk -v at="$(printf '%-8s %-8s' $compute $network)" -v first=$first '
        /"label"/ { gsub(/[",]/, ""); head = head sprintf(" %18s", $2) }
        /"priced": [0-9.]+,/ { gsub(/,/, ""); if (!base) base = $2; row = row sprintf(" %18.3f", $2 / base) }
        END { if (first) print head; print at row }'
    first=
  done
done
