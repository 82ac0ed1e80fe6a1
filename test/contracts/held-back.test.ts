/** A bandwidth limit holds bytes back while the service, which has sent all of them, closes the connection. */
import { once } from "node:events";
import { createServer, type OutgoingHttpHeaders } from "node:http";
import { buffer } from "node:stream/consumers";
import { expect, test } from "vitest";
import { Secret } from "../../src/base/secret.ts";
import type { Bandwidth } from "../../src/service/bandwidth.ts";
import type { Download, ServicePort } from "../../src/service/port.ts";
import { listen } from "../support/servers.ts";
import { openTestService, SIGNAL } from "../support/service.ts";

const FIRST = Buffer.alloc(10, "a");
/** Exactly as much as is read ahead. */
const REST = Buffer.alloc(64 * 1024, "b");
const ALL = Buffer.concat([FIRST, REST]);

const ACCESS = { transferId: "t", password: new Secret("secret") };

const ANNOUNCED = { "content-length": ALL.length };

test.each([
  ["is complete if the announced number of bytes arrived", ANNOUNCED, "closed"],
  ["is complete if the end was marked", { "transfer-encoding": "chunked" }, "ended"],
] as const)("a file %s", async (_, headers, moment) => {
  const { service, gate, ...moments } = await openHasty(headers);
  const body = buffer((await openFile(service)).body);
  await moments[moment];
  gate.resolve();
  expect((await body).equals(ALL)).toBe(true);
});

test("a file is cut short if bytes are missing, and the received bytes still count", async () => {
  const { service, gate, closed } = await openHasty({ "content-length": ALL.length + 1 });
  const { body } = await openFile(service);
  let bytes = 0;
  const reading = (async () => {
    for await (const chunk of body) bytes += chunk.byteLength;
  })();
  await closed;
  gate.resolve();
  await expect(reading).rejects.toMatchObject({ code: "CONNECTION_LOST" });
  expect(bytes).toBe(ALL.length);
});

function openFile(service: ServicePort): Promise<Download> {
  return service.openFile(ACCESS, { id: "f", name: "f" }, {}, SIGNAL);
}

/** Sends the rest while the first bytes are held back, then closes its side. `closed`: the client has closed too. */
async function openHasty(headers: OutgoingHttpHeaders) {
  const gate = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  const server = createServer(async (_, response) => {
    const { socket } = response;
    if (socket === null) return;
    socket.once("close", () => closed.resolve());
    response.writeHead(200, headers).write(FIRST);
    await held.promise;
    response.end(REST);
    await once(response, "finish");
    socket.end();
    ended.resolve();
  });
  const bandwidth: Pick<Bandwidth, "take"> = {
    take(bytes) {
      held.resolve();
      return gate.promise.then(() => bytes);
    },
  };
  const url = await listen(server);
  const service = openTestService({ url, clientId: "client" }, { bandwidth });
  return { service, gate, ended: ended.promise, closed: closed.promise };
}
