#!/usr/bin/env bash
# Every test, in two lanes side by side: what computes, the quick ones first, so that a mistake
# shows in seconds; and what waits for real servers. A group is printed when it ends.
set -uo pipefail
bin=$1
started=$SECONDS
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

run_group() {  # one process for each group: laws+spark share a session
  local group=$1 began=$SECONDS outcome=0 folders
  read -ra folders <<<"${group//+/ }"
  "$bin/python" -m pytest "${folders[@]/#/tests/}" >"$logs/$group" 2>&1 || outcome=$?
  flock "$logs" bash -c 'echo "── $1 ($2 s)"; cat "$3"' - "$group" $((SECONDS - began)) "$logs/$group"
  return $outcome
}

lane() {
  for group in "$@"; do
    run_group "$group" || return 1
  done
}

lane unit laws+spark &
computing=$!
{ bash scripts/airflow_env.sh && lane integration dags; } &
serving=$!
failed=0
wait $computing || failed=1
wait $serving || failed=1
[ $failed = 0 ] || { echo "Tests failed after $((SECONDS - started)) s; the failures are above."; exit 1; }
echo "All tests passed in $((SECONDS - started)) s."
