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

report() {  # what one run of pytest printed, in one piece
  flock "$logs" bash -c 'echo "── $1"; cat "$2"' - "$1" "$2"
}

run_group() {
  local group=$1 began=$SECONDS outcome=0 words
  read -ra words <<<"${groups[$group]}"
  "$bin/python" -m pytest -o cache_dir="$logs/cache-$group" "${words[@]}" >"$logs/$group" 2>&1 || outcome=$?
  [ $outcome = 0 ] || touch "$logs/failed-$group"
  report "$group ($((SECONDS - began)) s)" "$logs/$group"
}

lane() {
  for group in "$@"; do
    run_group "$group"
  done
}

# A machine that does three things at once may starve a server. A few failures are run again, alone, and named:
# a test that fails twice fails the run, and one that passes then is to be made steadier.
run_again() {
  local group=$1 words failures
  failures=$(grep -c '^\(FAILED\|ERROR\) tests/' "$logs/$group")
  [ "$failures" -ge 1 ] && [ "$failures" -le 5 ] || return 1
  read -ra words <<<"${groups[$group]}"
  local outcome=0
  "$bin/python" -m pytest -o cache_dir="$logs/cache-$group" --last-failed --last-failed-no-failures none \
    "${words[@]}" >"$logs/$group-again" 2>&1 || outcome=$?
  report "$group: $failures failed beside other tests, run again alone" "$logs/$group-again"
  [ $outcome = 0 ] || return 1
  grep '^\(FAILED\|ERROR\) tests/' "$logs/$group" | sed 's/^/UNSTEADY: /; s/ - .*//' >>"$logs/unsteady"
}

bash scripts/moto_env.sh && bash scripts/deploy_env.sh && bash scripts/airflow_env.sh || exit 1
lane unit laws+spark &
lane servers &
lane lab dags &
wait
for mark in "$logs"/failed-*; do
  [ -e "$mark" ] || continue
  run_again "${mark##*/failed-}" || { echo "Tests failed after $((SECONDS - started)) s; the failures are above."; exit 1; }
done
[ ! -e "$logs/unsteady" ] || cat "$logs/unsteady"
echo "All tests passed in $((SECONDS - started)) s."
