#!/bin/bash
# tests/embed/packages.sh FOLDER: installs the Debian packages in FOLDER on this system, which has none of rill, and uses them
# as a user does.  As root, from a checkout's root; for .ci/full in a system of its own.
set -eux
export DEBIAN_FRONTEND=noninteractive
packages=$(cd "$1" && pwd)
apt-get update
# man's pages and completion are used here; a compiler is for the program to write.
apt-get install -y --no-install-recommends gcc g++ libc6-dev pkg-config man-db bash-completion \
  "$packages"/librill0_*.deb "$packages"/librill-dev_*.deb "$packages"/rill-tools_*.deb
# Only the package for MPI brings MPI.
if dpkg-query -W -f '${Package}\n' | grep -E 'mpi|librill-comm'; then exit 1; fi

work=$(mktemp -d)
here=$(pwd)
cd "$work"
version=$(pkg-config --modversion rill)
[ "$(rill --version)" = "rill $version" ]
[ "$(rillcc --version)" = "rillcc $version" ]
rill info | grep "^rill $version\$"
rill demo --device cpu -o out.png | grep '^result .*every byte'
for page in rill rill-info rillcc; do
  man -w "$page" | grep "^/usr/share/man/man1/$page.1"
done
bash -c 'source /usr/share/bash-completion/bash_completion; _completion_loader rill || [ $? = 124 ]; complete -p rill'

# A program of C, and one with a kernel.
read -ra flags <<<"$(pkg-config --cflags --libs rill)"
cc -Wall -Werror "$here/docs/examples/hello_streams.c" -o hello "${flags[@]}"
./hello
"$(pkg-config --variable=rillcc rill)" --target cpu -o saxpy.rill.c --header saxpy.rill.h "$here/docs/examples/saxpy.kernel.cu"
cc -I. "$here/docs/examples/saxpy.c" saxpy.rill.c -o saxpy "${flags[@]}"
./saxpy

# Nothing looks for libraries elsewhere than the loader does.
for file in /usr/bin/rill /usr/lib/*/librill*.so.*; do
  if readelf -d "$file" | grep -E 'R(UN)?PATH'; then exit 1; fi
done

# Without MPI rill_comm says so; with it, it is found.
read -ra flags <<<"$(pkg-config --cflags --libs rill_comm)"
cc "$here/tests/embed/comm_engine.c" -o engine "${flags[@]}"
if ./engine | grep '^/usr/lib/.*/librill_comm_mpi'; then exit 1; fi
apt-get install -y --no-install-recommends openmpi-bin "$packages"/librill-comm-mpi0_*.deb
./engine | grep '^/usr/lib/.*/librill_comm_mpi\.so\.'
# What is removed leaves nothing.
apt-get purge -y librill0
if find /usr/bin /usr/lib /usr/share /usr/include -name 'rill*' -o -name 'librill*' | grep .; then exit 1; fi
echo "the packages of rill $version work"
