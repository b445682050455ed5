#!/bin/sh
# Makes Airflow's own environment in .venv-airflow, from airflow_dags/requirements.lock.
# acktrail is not installed there: Airflow runs it as a command. Does nothing where all is in place.
# PYTHON names the interpreter; uv is used if present, else venv and pip.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
lock="$root/airflow_dags/requirements.lock"
venv="${AIRFLOW_VENV:-$root/.venv-airflow}"
python="${PYTHON:-python3}"

if [ -x "$venv/bin/airflow" ] && cmp -s "$lock" "$venv/installed.lock"; then
    exit 0
fi

echo "Installing Airflow into $venv ..." >&2
rm -f "$venv/installed.lock"
if uv=$(command -v uv); then
    "$uv" venv --quiet --clear --python "$python" "$venv"
    VIRTUAL_ENV="$venv" "$uv" pip sync --quiet --require-hashes "$lock"
else
    "$python" -m venv --clear "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes --no-deps -r "$lock"
fi
cp "$lock" "$venv/installed.lock"
