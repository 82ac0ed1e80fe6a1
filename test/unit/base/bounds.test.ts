/** What programs and servers that an operator has chosen can make Inlet keep. Other doors are tested where they are. */
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { MAIL_ANSWER_BYTES, OUTPUT_BYTES } from "../../../src/base/bounds.ts";
import { runChild } from "../../../src/base/system-program.ts";
import type { MailChannel } from "../../../src/model/notify.ts";
import { checkMailServer } from "../../../src/notify/send.ts";
import { SIGNAL } from "../../support/service.ts";

test("of a program that writes 50 MB, the start and the end are kept", async () => {
  const argv = ["sh", "-c", "yes | head -c 50000000; yes | head -c 50000000 >&2; echo the end"] as const;
  const start = { argv, env: { PATH: process.env["PATH"] ?? "" }, timeoutMs: 60_000 };
  const { stdout, output, exitCode } = await runChild(start, 1_000, SIGNAL);
  expect([exitCode, stdout.length, output.endsWith("the end")]).toEqual([0, OUTPUT_BYTES, true]);
  expect(output.length).toBeLessThanOrEqual(OUTPUT_BYTES);
});

test("a mail server whose answer does not end is left long before the timeout", async () => {
  let sentBytes = 0;
  const server = createServer((socket) => {
    socket.on("error", () => {});
    const send = () => {
      for (let isTaken = true; isTaken && !socket.destroyed; sentBytes += 64 * 1024)
        isTaken = socket.write("x".repeat(64 * 1024));
    };
    socket.on("drain", send);
    socket.write("220 ");
    send();
  });
  onTestFinished(() => void server.close());
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const none = { user: undefined, password: undefined, ca: undefined };
  const people = { to: ["a@example.com"], from: "b@example.com" };
  const channel: MailChannel = {
    kind: "mail",
    ...people,
    ...none,
    host: "127.0.0.1",
    port,
    tls: "none",
    timeoutMs: 600_000,
  };
  await expect(checkMailServer(channel, SIGNAL)).rejects.toMatchObject({ code: "MAIL_UNREACHABLE" });
  // What the system has buffered is not kept.
  expect(sentBytes).toBeLessThan(MAIL_ANSWER_BYTES + 32 * 1024 ** 2);
});
