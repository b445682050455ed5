#!/usr/bin/env bash
# The real servers and tools that tests and benchmarks run against. Debian's packages start services
# of their own; the tests start theirs on loopback, so those are kept from starting.
set -euo pipefail
declare -A needs=(
  [prometheus]=prometheus
  [prometheus-alertmanager]=prometheus-alertmanager
  [logrotate]=logrotate
  [rg]=ripgrep
  [systemd-analyze]=systemd
  [javac]=default-jdk-headless
  [chromium]=chromium
)
missing=()
for program in "${!needs[@]}"; do
  command -v "$program" >/dev/null || missing+=("${needs[$program]}")
done
[ ${#missing[@]} -gt 0 ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "Needed for the tests: ${missing[*]}. Install them (Debian: apt-get install ${missing[*]}) and run again." >&2
  exit 2
fi
echo "Installing ${missing[*]} …" >&2
made_policy=
if [ ! -e /usr/sbin/policy-rc.d ]; then
  printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
  chmod +x /usr/sbin/policy-rc.d
  made_policy=yes
fi
trap '[ -z "$made_policy" ] || rm -f /usr/sbin/policy-rc.d' EXIT
{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >/dev/null
