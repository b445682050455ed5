#!/bin/sh
# Makes the environment of the tests' S3 server (moto) in .venv-moto, from tests/integration/moto.lock.
# It is not part of .venv: botocore needs an older python-dateutil than acktrail is tested with.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
exec sh "$root/scripts/locked_env.sh" "${MOTO_VENV:-$root/.venv-moto}" "$root/tests/integration/moto.lock" moto_server
