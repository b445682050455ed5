#!/usr/bin/env bash
# The long versions of the crash and fault tests, whole or one part; each part takes at most 40 minutes.
set -euo pipefail
bin=$1
part=${2:-}
declare -A parts=(
  [agents]="tests/unit/ingest tests/integration/test_agent_kill.py tests/integration/test_lake_damage.py tests/integration/test_many_agents.py"
  [alerts]="tests/integration/test_alerts.py tests/unit/alerts/test_day.py"
  [day]="tests/integration/test_watch_day.py"
  [warnings]="tests/soak/test_warning.py"
  [ordinary]="tests/soak/test_ordinary_cluster.py"
  [outages]="tests/soak/test_outages.py"
  [drivers]="tests/soak/test_drivers.py -k disk"
  [stores]="tests/soak/test_drivers.py -k s3"
  [laws]="tests/soak/test_law_on_s3.py"
  [truth]="tests/soak/test_truth.py"
  [report]="tests/soak/test_report.py"
  [journey]="tests/soak/test_short_journey.py tests/soak/test_journey.py"
  [java]="tests/integration/test_java_client.py tests/soak/test_java_audit_cluster.py tests/soak/test_java_frameworks.py"
  [clients]="tests/soak/test_client_memory.py tests/soak/test_client_kills.py"
)
order=(agents alerts day warnings ordinary outages drivers stores laws truth report java clients)
if [ -n "$part" ] && [ -z "${parts[$part]:-}" ]; then
  echo "There is no part $part. PART is one of: ${order[*]}." >&2
  exit 2
fi
bash "$(dirname "$0")/moto_env.sh"
for name in ${part:-"${order[@]}"}; do
  echo "── $name"
  # shellcheck disable=SC2086
  ACKTRAIL_SOAK=1 "$bin/python" -m pytest -s --timeout 7200 ${parts[$name]}
done
