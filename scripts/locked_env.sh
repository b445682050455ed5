#!/bin/sh
# locked_env.sh VENV LOCK PROGRAM: an environment with exactly the packages of LOCK, which have PROGRAM.
# Does nothing where all is in place. PYTHON names the interpreter; uv is used if present, else venv and pip.
set -eu
venv=$1 lock=$2 program=$3
python="${PYTHON:-python3}"

if [ -x "$venv/bin/$program" ] && cmp -s "$lock" "$venv/installed.lock"; then
    exit 0
fi

echo "Installing $program into $venv ..." >&2
rm -f "$venv/installed.lock"
if uv=$(command -v uv); then
    "$uv" venv --quiet --clear --python "$python" "$venv"
    VIRTUAL_ENV="$venv" "$uv" pip sync --quiet --require-hashes "$lock"
else
    "$python" -m venv --clear "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes --no-deps -r "$lock"
fi
cp "$lock" "$venv/installed.lock"
