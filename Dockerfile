# syntax=docker/dockerfile:1
# The image of Stowage. `npm run image` assembles the same /opt/stowage and the configuration of the last stage below into an
# OCI image without a container engine. Build it with:
#   docker build --build-arg VERSION=$(node -p "require('./package.json').version") --build-arg REVISION=$(git rev-parse HEAD) -t stowage .
# The base needs Node.js 20.19 or newer, and the package manager of Debian.
ARG NODE_IMAGE=node:24.11.1-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /src
COPY package.json package-lock.json ./
# Not `npm ci`, which refuses a lock file without the optional packages of all platforms. The versions are the locked ones.
RUN npm install --ignore-scripts --no-fund --no-audit
COPY . .
RUN node scripts/image/prepare-tree.mjs /tree

FROM ${NODE_IMAGE}
ARG VERSION=unknown
ARG REVISION=unknown
# The programs that `stowage driver` and `stowage node` call; servers and sidecars need none of them.
RUN apt-get update \
  && apt-get install -y --no-install-recommends e2fsprogs mount util-linux xfsprogs \
  && rm -rf /var/lib/apt/lists/* /var/cache/* /var/log/* \
  && install -d -o 65532 -g 65532 -m 0700 /var/lib/stowage
COPY --from=build /tree /opt/stowage
ENV PATH=/opt/stowage/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ENV NODE_ENV=production
ENV XDG_DATA_HOME=/var/lib
WORKDIR /var/lib/stowage
# Drivers and nodes that mount run as root: `--user 0`, or `runAsUser: 0` in a pod. Everything else runs as this user, also on a
# read-only root: only /var/lib/stowage and /tmp are written to.
USER 65532:65532
EXPOSE 7443
VOLUME /var/lib/stowage
ENTRYPOINT ["/opt/stowage/bin/stowage"]
CMD ["--help"]
LABEL org.opencontainers.image.title="Stowage"
LABEL org.opencontainers.image.description="A storage control plane that speaks the Kubernetes API."
LABEL org.opencontainers.image.licenses="Apache-2.0"
LABEL org.opencontainers.image.version="${VERSION}"
LABEL org.opencontainers.image.revision="${REVISION}"
