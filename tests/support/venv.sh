#!/bin/sh
# venv.sh PYTHON: see to it that this CPython can make virtual environments, or say in one line what is missing.
set -eu

can() {
  "$1" -c "import ensurepip, venv" 2> /dev/null
}

command -v "$1" > /dev/null || { echo "there is no $1 here: install CPython 3.11 or newer, or name it: make PYTHON=..." >&2; exit 1; }
can "$1" && exit
package=$("$1" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
  echo "installing $package, without which $1 makes no virtual environments"
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$package"; } > /dev/null || true
fi
can "$1" || { echo "$1 makes no virtual environments: it lacks the module ensurepip, which is in Debian's $package" >&2; exit 1; }
