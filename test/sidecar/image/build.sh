#!/usr/bin/env bash
# Builds the sidecar's image by Dockerfile.sidecar, as a user would, but without a daemon and without a registry of images, by buildah:
#   build.sh COMPILER.tar BASE.tar FOLDER
# COMPILER.tar is localhost/compiler:ci, with a C compiler and a static C library; BASE.tar is localhost/node:24, with Node, busybox and certificates.
# FOLDER gets sidecar.tar (localhost/shipmate-sidecar:ci) and busybox.tar (localhost/busybox:ci, an image that has nothing but busybox).
set -euo pipefail
compiler=$1 base=$2 out=$3
cd "$(dirname "$0")/../../.."
store=$(mktemp -d)
trap 'rm -rf "$store"' EXIT
mkdir "$store/empty"
image() { buildah --root "$store/images" --runroot "$store/run" "$@"; }
build() { image build -q --isolation chroot "$@"; }
save() { rm -f "$2" && image push -q "$1" "docker-archive:$2:$1"; }

image pull -q "docker-archive:$compiler"
image pull -q "docker-archive:$base"

# What node:24-bookworm has: Node, npm, a compiler; and the certificates that this machine trusts.
build -t localhost/builder:ci -f - "$(npm root -g)/npm" <<'END'
FROM localhost/compiler:ci
COPY --from=localhost/node:24 /usr/local/bin/node /usr/local/bin/node
COPY --from=localhost/node:24 /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY . /usr/local/lib/node_modules/npm
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm
ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
END
build -t localhost/shipmate-sidecar:ci --build-arg BUILDER=localhost/builder:ci --build-arg BASE=localhost/node:24 -f Dockerfile.sidecar .
save localhost/shipmate-sidecar:ci "$out/sidecar.tar"

build -t localhost/busybox:ci -f - "$store/empty" <<'END'
FROM scratch
COPY --from=localhost/node:24 /bin/busybox /bin/busybox
RUN ["/bin/busybox", "--install", "-s", "/bin"]
ENV PATH=/bin
END
save localhost/busybox:ci "$out/busybox.tar"
