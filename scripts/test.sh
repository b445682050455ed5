#!/usr/bin/env bash
# Every test, in three lanes of about the same length side by side: what computes, the quick ones
# first, so that a mistake shows in seconds; what runs against servers; and what mostly waits, for
# the lab's brokers and for Airflow. A group is printed when it ends.
set -uo pipefail
bin=$1
started=$SECONDS
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

declare -A groups=(
  [unit]="tests/unit"
  [laws+spark]="tests/laws tests/spark"  # one process: they share a session
  [servers]="tests/integration --ignore tests/integration/lab"
  [dags]="tests/dags"
  [lab]="tests/integration/lab"
)

run_group() {
  local group=$1 began=$SECONDS outcome=0 words
  read -ra words <<<"${groups[$group]}"
  "$bin/python" -m pytest "${words[@]}" >"$logs/$group" 2>&1 || outcome=$?
  flock "$logs" bash -c 'echo "── $1 ($2 s)"; cat "$3"' - "$group" $((SECONDS - began)) "$logs/$group"
  return $outcome
}

lane() {
  for group in "$@"; do
    run_group "$group" || return 1
  done
}

bash scripts/moto_env.sh && bash scripts/airflow_env.sh || exit 1
lanes=()
lane unit laws+spark & lanes+=($!)
lane servers & lanes+=($!)
lane lab dags & lanes+=($!)
failed=0
for each in "${lanes[@]}"; do
  wait "$each" || failed=1
done
[ $failed = 0 ] || { echo "Tests failed after $((SECONDS - started)) s; the failures are above."; exit 1; }
echo "All tests passed in $((SECONDS - started)) s."
