#!/bin/sh
# Makes Airflow's own environment in .venv-airflow, from airflow_dags/requirements.lock.
# acktrail is not installed there: Airflow runs it as a command.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
exec sh "$root/scripts/locked_env.sh" "${AIRFLOW_VENV:-$root/.venv-airflow}" "$root/airflow_dags/requirements.lock" airflow
