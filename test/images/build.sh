#!/usr/bin/env bash
# Builds the images by Dockerfile.controller and Dockerfile.sidecar, as a user would, but without a daemon and without a registry of images, by buildah:
#   build.sh COMPILER.tar BASE.tar FOLDER
# COMPILER.tar is localhost/compiler:ci, with a C compiler and a static C library; BASE.tar is localhost/node:24, with Node, busybox and certificates.
# FOLDER gets controller.tar (localhost/shipmate-controller:ci, on a base that has Node, its libraries, and no shell), sidecar.tar (localhost/shipmate-sidecar:ci, on
# BASE.tar's), busybox.tar (localhost/busybox:ci, an image that has nothing but busybox), and images.txt: the digest of each of ours.
# With TWICE=1 the two are built a second time, with nothing kept of the first; if a digest differs, it fails.
set -euo pipefail
compiler=$1 base=$2 out=$3
cd "$(dirname "$0")/../.."
epoch=$(git log -1 --format=%ct 2>/dev/null || echo 0)
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
# Wherever it is installed, whichever Node is first in the path.
npm=$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")
store=$(mktemp -d)
trap 'rm -rf "$store"' EXIT
mkdir "$store/empty"
image() { buildah --root "$store/images" --runroot "$store/run" "$@"; }
build() { image build -q --isolation chroot "$@"; }
save() { rm -f "$2" && image push -q "$1" "docker-archive:$2:$1"; }

image pull -q "docker-archive:$compiler" >/dev/null
image pull -q "docker-archive:$base" >/dev/null

# What node:24-bookworm has: Node, npm, a compiler; and the certificates that this machine trusts.
build -t localhost/builder:ci -f - "$npm" <<'END'
FROM scratch
COPY --from=localhost/compiler:ci / /
COPY --from=localhost/node:24 /usr/local/bin/node /usr/local/bin/node
COPY --from=localhost/node:24 /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY . /usr/local/lib/node_modules/npm
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm
END
# What a distroless image of Node has: Node in /nodejs/bin, its libraries, certificates, and no program besides.
build --timestamp 0 -t localhost/bare:ci -f - "$store/empty" <<'END'
FROM scratch
COPY --from=localhost/node:24 /lib /lib
COPY --from=localhost/node:24 /lib64 /lib64
COPY --from=localhost/node:24 /usr/lib/x86_64-linux-gnu /usr/lib/x86_64-linux-gnu
COPY --from=localhost/node:24 /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=localhost/node:24 /usr/local/bin/node /nodejs/bin/node
END
build --timestamp 0 -t localhost/base:ci -f - "$store/empty" <<'END'
FROM scratch
COPY --from=localhost/node:24 / /
END

ours() { # name base more…
  local name=$1 on=$2
  shift 2
  build --layers --timestamp "$epoch" --build-arg SOURCE_DATE_EPOCH="$epoch" --build-arg REVISION="$revision" \
    --build-arg BUILDER=localhost/builder:ci --build-arg BASE="$on" -f "Dockerfile.$name" -t "localhost/shipmate-$name:ci" "$@" . >/dev/null
  image inspect --type image --format '{{.FromImageDigest}}' "localhost/shipmate-$name:ci"
}
both() { # more…
  printf 'controller %s\n' "$(ours controller localhost/bare:ci "$@")"
  printf 'sidecar %s\n' "$(ours sidecar localhost/base:ci "$@")"
}
both | tee "$out/images.txt"
for name in controller sidecar; do save "localhost/shipmate-$name:ci" "$out/$name.tar"; done
if [ "${TWICE:-}" = 1 ]; then
  both --no-cache >"$out/again.txt"
  diff "$out/images.txt" "$out/again.txt" || { echo 'build.sh: the same tree gave another digest' >&2; exit 1; }
  echo 'the same digests again, with nothing kept'
fi

build -t localhost/busybox:ci -f - "$store/empty" <<'END' >/dev/null
FROM scratch
COPY --from=localhost/node:24 /bin/busybox /bin/busybox
RUN ["/bin/busybox", "--install", "-s", "/bin"]
ENV PATH=/bin
END
save localhost/busybox:ci "$out/busybox.tar"
