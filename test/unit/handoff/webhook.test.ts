/** The webhook against a receiver over real HTTP: only the status of its answer counts. */
import { createServer } from "node:net";
import { expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { deliveryOf } from "../../../src/handoff/delivery.ts";
import { callWebhook } from "../../../src/handoff/webhook.ts";
import { announced, makeHandoff } from "../../support/handoff.ts";
import { accept, hang, openReceiver, refuse } from "../../support/receiver.ts";
import { SIGNAL } from "../../support/service.ts";
import { recordOf } from "./bench.ts";

const delivery = announced(deliveryOf("t1.ab~1", recordOf("t1")));

test("a call is accepted by any status of success, however long the body is that comes with it", async () => {
  const receiver = await openReceiver(accept, (response) => {
    response.writeHead(202).write("x".repeat(1_000_000));
  });
  await call(receiver.url);
  await call(receiver.url);
  const [{ headers, path } = { headers: {}, path: "" }] = receiver.calls;
  expect(path).toBe("/hook?token=in-the-query");
  expect(headers).toMatchObject({
    "content-type": "application/json",
    "idempotency-key": delivery.id,
    "content-length": String(Buffer.byteLength(receiver.calls[0]?.body ?? "")),
  });
});

test("any other status is a failure that says so, and until when to wait", async () => {
  const receiver = await openReceiver(
    refuse(503, { "retry-after": "120" }),
    refuse(302, { location: "http://127.0.0.1:1/" }),
  );
  await expect(call(receiver.url)).rejects.toMatchObject({
    message: expect.stringContaining("status 503"),
    retryAfterMs: 120_000,
  });
  await expect(call(receiver.url)).rejects.toThrow("redirects are not followed");
});

test("a receiver that does not answer, closes, or is not there is named without its address", async () => {
  const silent = await openReceiver(hang);
  await expect(call(silent.url, 50)).rejects.toThrow("no answer within 0.05 s");
  const closing = await openReceiver((response) => void response.destroy());
  await expect(call(closing.url)).rejects.toThrow(/could not be reached \(ECONNRESET\)$/);
  await expect(call(await closedAddress())).rejects.toThrow(/could not be reached \(ECONNREFUSED\)$/);
});

test("a stop ends a call, and is no failure of the receiver", async () => {
  const stop = new AbortController();
  const receiver = await openReceiver(() => stop.abort());
  await expect(call(receiver.url, 60_000, stop.signal)).rejects.toMatchObject({ code: "STOPPED" });
});

async function call(url: string, timeoutMs = 60_000, signal: AbortSignal = SIGNAL): Promise<void> {
  const { webhook } = makeHandoff({ webhook: url, webhookTimeoutMs: timeoutMs });
  if (webhook === undefined) throw new Error("no webhook");
  await callWebhook(webhook, delivery, systemClock, signal);
}

/** Where no server listens. */
async function closedAddress(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}/?token=in-the-query`;
}
