/** New connections to a service resume the TLS session of an earlier one, which saves a round trip or computing time. */
import { createServer } from "node:https";
import type { TLSSocket } from "node:tls";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, onTestFinished, test } from "vitest";
import { openConnections } from "../../../src/base/connection.ts";
import { listen } from "../../support/servers.ts";
import { CA, SERVER } from "../../support/tls.ts";

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

test.each(["TLSv1.2", "TLSv1.3"] as const)("a second connection resumes the session: %s", async (version) => {
  const seen: unknown[] = [];
  const server = createServer(
    { ...SERVER, minVersion: version, maxVersion: version },
    (request, response) => {
      const socket = request.socket as TLSSocket;
      seen.push({ version: socket.getProtocol(), isResumed: socket.isSessionReused() });
      response.setHeader("connection", "close").end();
    },
  );
  const { port } = new URL(await listen(server));
  const proxy = { http: "", https: "", except: "" };
  const options = { ca: CA, cert: undefined, key: undefined, timeoutMs: 20_000 };
  const url = new URL(`https://localhost:${port}`);
  const connections = openConnections({ ...options, proxy }, url);
  onTestFinished(() => connections.destroy());

  for (const _ of [1, 2]) {
    const { body } = await connections.request({ origin: url.origin, path: "/", method: "GET" });
    await body.dump();
    collectGarbage();
  }

  expect(seen).toEqual([
    { version, isResumed: false },
    { version, isResumed: true },
  ]);
});
