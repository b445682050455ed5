#!/usr/bin/env bash
# The environment in .venv, Java 17 or later, the pinned jars, and the archive that makes Spark start fast.
set -euo pipefail
python=$1
venv=$2

say() { printf '%s\n' "$*" >&2; }

java_is_new_enough() {
  command -v java >/dev/null || return 1
  version=$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
  [ "${version:-0}" -ge 17 ]
}

if ! java_is_new_enough; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "Installing Java 17 (openjdk-17-jre-headless) …"
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless; } >/dev/null
  else
    say "Java 17 or later is needed: install it (Debian: apt-get install openjdk-17-jre-headless) and run again."
    exit 2
  fi
fi

rm -f "$venv/.ready"
say "Installing the Python packages into $venv …"
if command -v uv >/dev/null; then
  [ -x "$venv/bin/python" ] || uv venv --quiet --python "$python" "$venv"
  VIRTUAL_ENV=$venv uv pip install --quiet --require-hashes -r requirements.lock
  VIRTUAL_ENV=$venv uv pip install --quiet --no-deps --editable .
else
  [ -x "$venv/bin/pip" ] || "$python" -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --editable .
fi

say "Fetching the pinned Delta jars and making the start-up archive …"
"$venv/bin/python" -m pipelines.warm --archive
touch "$venv/.ready"
