#!/usr/bin/env bash
# Makes the image that a project's image is built with, by buildah, where no registry of images can be reached:
#   npm.sh BASE.tar FOLDER
# BASE.tar is localhost/node:24, with Node, busybox and the certificates that this machine trusts. FOLDER gets storage.conf, by which buildah finds
# localhost/base:ci, which is that with a history, without which nothing can be built on what is built on it; and localhost/npm:ci, which has npm too.
set -euo pipefail
base=$1 out=$2
printf '[storage]\ndriver = "overlay"\ngraphroot = "%s/images"\nrunroot = "%s/run"\n' "$out/storage" "$out/storage" >"$out/storage.conf"
export CONTAINERS_STORAGE_CONF=$out/storage.conf
buildah pull -q "docker-archive:$base"
build() { buildah build -q --isolation chroot "$@"; }
build -t localhost/base:ci -f - "$(npm root -g)/npm" <<'END'
FROM scratch
COPY --from=localhost/node:24 / /
ENV PATH=/usr/local/bin:/usr/bin:/bin
END
build -t localhost/npm:ci -f - "$(npm root -g)/npm" <<'END'
FROM localhost/base:ci
COPY . /usr/local/lib/node_modules/npm
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm && ln -sf /bin/env /usr/bin/env
ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
END
