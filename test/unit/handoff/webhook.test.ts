/** The webhook against a receiver over real HTTP: only the status of its answer counts. */
import type { IncomingHttpHeaders } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { createServer } from "node:net";
import { expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import type { Receiver } from "../../../src/base/signed-post.ts";
import { deliveryOf } from "../../../src/handoff/delivery.ts";
import { callWebhook } from "../../../src/handoff/steps.ts";
import { announced, WEBHOOK_SECRET } from "../../support/handoff.ts";
import { accept, hang, openReceiver, refuse } from "../../support/receiver.ts";
import { listen, openProxy } from "../../support/servers.ts";
import { SIGNAL } from "../../support/service.ts";
import { NO_PROXY, plainSecret, receiverAt } from "../../support/settings.ts";
import { CA, SERVER } from "../../support/tls.ts";
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
  await expect(call(closing.url)).rejects.toThrow(/closed the connection without an answer$/);
  await expect(call(await closedAddress())).rejects.toThrow(/could not be reached \(ECONNREFUSED\)$/);
});

test("a stop ends a call, and is no failure of the receiver", async () => {
  const stop = new AbortController();
  const receiver = await openReceiver(() => stop.abort());
  await expect(call(receiver.url, 60_000, stop.signal)).rejects.toMatchObject({ code: "STOPPED" });
});

test("the connection is that to a service: a proxy, an authority of the site, and own headers", async () => {
  const seen: IncomingHttpHeaders[] = [];
  const server = createHttpsServer(SERVER, (request, response) => {
    seen.push(request.headers);
    response.writeHead(204).end();
  });
  const url = `${(await listen(server)).replace("http:", "https:")}/hook?token=in-the-query`;
  await expect(call(url)).rejects.toThrow(/could not be reached \(\w*CERT\w*\)$|\(UNABLE_TO_\w+\)$/);
  const [proxy, strict] = [await openProxy(), await openProxy("user:pass")];
  const authority = { ca: CA, headers: [{ name: "Authorization", value: plainSecret("Bearer abc") }] };
  await send({ url, ...authority, proxy: { ...NO_PROXY, https: proxy.url } });
  expect(proxy.asked).toEqual([`CONNECT ${new URL(url).host}`]);
  expect(seen).toMatchObject([{ authorization: "Bearer abc", "inlet-signature": expect.any(String) }]);
  const refused = send({ url, ...authority, proxy: { ...NO_PROXY, https: strict.url } });
  await expect(refused).rejects.toThrow(/the proxy answered with status 407$/);
});

test("a chat system gets a message with a link and without what a sender could do with it", async () => {
  const receiver = await openReceiver(accept);
  const evil = { ...delivery, subject: "<!channel> https://evil.example\n@all", sender: "a@b.example" };
  const webhook = { url: receiver.url, format: "mattermost", secret: undefined } as const;
  await send(webhook, evil, "https://inlet.example.com");
  const { headers, body } = receiver.calls[0] ?? { headers: {}, body: "{}" };
  expect(headers).not.toHaveProperty("inlet-signature");
  const [code = "", after = ""] = JSON.parse(body).text.split("\n```\n");
  expect(code).toContain("Subject: <!channel> https[:]//evil.example\\u{a}@all\n");
  expect(code).toContain("From: a@b.example\n");
  const link = "https://inlet.example.com/transfer?mailbox=m&trackingId=t1";
  expect(after).toBe(`[t1](${link})`);
});

function call(url: string, timeoutMs = 60_000, signal: AbortSignal = SIGNAL): Promise<void> {
  return send({ url, timeoutMs }, delivery, undefined, signal);
}

function send(
  { url, ...more }: Omit<Partial<Receiver>, "url"> & { readonly url: string },
  what = delivery,
  console?: string,
  signal: AbortSignal = SIGNAL,
): Promise<void> {
  return callWebhook(receiverAt(url, WEBHOOK_SECRET, more), what, console, systemClock, signal);
}

/** Where no server listens. */
async function closedAddress(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}/?token=in-the-query`;
}
