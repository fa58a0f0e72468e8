#!/bin/sh
# Makes the Debian image that the lab's images are built on, for machines that can't pull one.
# Needs mmdebstrap, a Debian mirror that apt reaches, and a Docker engine. Does nothing where the image is there.
set -eu
image=iceberg-lab/base:bookworm

if docker image inspect "$image" >/dev/null 2>&1; then
    echo "$image is there"
    exit
fi
command -v mmdebstrap >/dev/null || { echo "install mmdebstrap first: apt-get install mmdebstrap" >&2; exit 1; }
docker version >/dev/null || { echo "start a Docker engine first: docs/containers.md says how" >&2; exit 1; }

root=$(mktemp)
trap 'rm -f "$root"' EXIT
# Essential packages, Python and the authorities' certificates: no apt, no manuals. passwd has useradd.
mmdebstrap --quiet --variant=essential --format=tar \
    --include=passwd,python3-minimal,libpython3-stdlib,ca-certificates \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    bookworm "$root"
docker import --change 'ENV LANG=C.UTF-8' --change 'CMD ["python3"]' "$root" "$image" >/dev/null
echo "$image made"
