/** Streams of events, over several lives of the server. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { EventStreams } from "../../../src/console/events.ts";

test("a server that was closed and listens again still tells its clients of changes", async () => {
  const streams = new EventStreams();
  const server = createServer((_, response) => {
    streams.add(response, () => ({ event: "status", data: streams.version }));
    streams.changed();
  }).listen(0, "127.0.0.1");
  onTestFinished(async () => {
    streams.close();
    server.close();
    await once(server, "close");
  });
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const before = await fetch(`http://127.0.0.1:${port}/`);
  streams.close();
  await before.text();
  const { body } = await fetch(`http://127.0.0.1:${port}/`);
  let text = "";
  for await (const chunk of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    if (text.includes("data: 2")) break;
  }
  expect(text.match(/data: \d/g)).toEqual(["data: 1", "data: 2"]);
});
