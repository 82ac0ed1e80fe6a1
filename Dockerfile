# Inlet in a container: the built program, which contains its packages, without root, on a read-only file system.
# It needs a configuration at /etc/inlet/inlet.yaml (or everything in the environment), and two volumes.

# The exact Node that it is tested with. The digest pins its bytes, for amd64 and arm64. CONTRIBUTING.md says how to
# update it. To build on another image, use --build-arg NODE_IMAGE=…
ARG NODE_IMAGE=docker.io/library/node:24.21.0-bookworm-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6

FROM ${NODE_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
# No package's own script is run: none is needed.
RUN npm ci --ignore-scripts
COPY tsconfig.json build.ts ./
COPY packaging/sbom.ts ./packaging/
COPY src ./src
COPY simulator ./simulator
RUN npm run build && mkdir empty

# The program needs Node alone, without its package managers. In /run/inlet the daemon has its socket. A tmpfs there takes the
# mode, but not the owner: with the sticky bit it is safe for all users.
FROM ${NODE_IMAGE} AS base
RUN mkdir --mode=1777 /run/inlet && chown 1000:1000 /run/inlet && rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack \
      /usr/local/bin/yarn /usr/local/bin/yarnpkg /opt/yarn* /usr/local/include/node

# From scratch, so that no layer below holds the removed files.
FROM scratch
COPY --from=base / /
ARG NODE_IMAGE
# `docker build --build-arg VERSION=…` sets them. The release workflow sets all three.
ARG VERSION=
ARG REVISION=
ARG SOURCE=
LABEL org.opencontainers.image.title="Inlet" \
      org.opencontainers.image.description="Receives the transfers of a secure file-transfer service, proves them complete, and hands each over as one finished folder." \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.base.name="${NODE_IMAGE}"
COPY package.json LICENSE /opt/inlet/
COPY bin /opt/inlet/bin
COPY config/inlet.example.yaml config/inlet.schema.json config/inlet.openapi.json /opt/inlet/config/
COPY config/completion /opt/inlet/config/completion
COPY --from=build /build/dist /opt/inlet/dist
# For `docker exec CONTAINER inlet status`.
RUN ln -s /opt/inlet/bin/inlet.cjs /usr/local/bin/inlet
# New volumes take their owner from here.
COPY --from=build --chown=1000:1000 /build/empty /srv/inbox
COPY --from=build --chown=1000:1000 /build/empty /var/lib/inlet
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ENV NODE_ENV=production STATE_DIRECTORY=/var/lib/inlet
# By number, so that an orchestrator can see that it is not root.
USER 1000:1000
VOLUME ["/etc/inlet", "/srv/inbox", "/var/lib/inlet"]
WORKDIR /srv/inbox
STOPSIGNAL SIGTERM
# No shell is needed. It asks the daemon on its socket in /run/inlet, else at http.listen, and never sends a token.
HEALTHCHECK --interval=60s --timeout=15s --start-period=120s --retries=3 \
  CMD ["/usr/local/bin/node", "/opt/inlet/bin/inlet.cjs", "status", "--health"]
ENTRYPOINT ["/usr/local/bin/node", "/opt/inlet/bin/inlet.cjs"]
CMD ["run"]
