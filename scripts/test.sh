#!/usr/bin/env bash
# Every test, the quick ones first, so that a mistake shows in seconds.
set -euo pipefail
bin=$1
started=$SECONDS
for group in unit laws spark golden integration dags; do
  [ -n "$(find "tests/$group" -name 'test_*.py' -print -quit 2>/dev/null)" ] || continue
  echo "── $group"
  "$bin/python" -m pytest "tests/$group"
done
echo "All tests passed in $((SECONDS - started)) s."
