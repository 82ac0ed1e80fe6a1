# Inlet in a container: compiled code and production dependencies on the official Node image, without root.
FROM node:24-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY . .
RUN npm run build && npm ci --ignore-scripts --omit=dev

FROM node:24-bookworm-slim
LABEL org.opencontainers.image.title="Inlet" org.opencontainers.image.licenses="MIT"
WORKDIR /opt/inlet
COPY --from=build /build/package.json ./
COPY --from=build /build/bin ./bin
COPY --from=build /build/dist ./dist
COPY --from=build /build/node_modules ./node_modules
USER node
ENTRYPOINT ["node", "/opt/inlet/bin/inlet.cjs"]
