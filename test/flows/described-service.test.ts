/** Deliveries from a service that is written from the published descriptions alone, and refuses what they refuse. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { daemonSettings, runOnce } from "../support/daemon.ts";
import {
  type DescribedOptions,
  type DescribedTransfer,
  openDescribedService,
} from "../support/described-service.ts";
import { MAILBOX, mailboxSettings, PASSWORD } from "../support/settings.ts";

function described(trackingId: string, more: Partial<DescribedTransfer> = {}): DescribedTransfer {
  const files = ["one.txt", "zwei & drei.csv"].map((name) => ({
    name,
    bytes: Buffer.from(`${name} of ${trackingId}`),
  }));
  return { trackingId, to: [MAILBOX], password: PASSWORD, files, ...more };
}

async function openMailbox(options: DescribedOptions) {
  const service = await openDescribedService(options);
  return { service, settings: await daemonSettings([mailboxSettings(service, { fetch: "auto" })]) };
}

test("three transfers are delivered from a service that is written from its description alone", async () => {
  const many = Array.from({ length: 30 }, (_, at) => ({
    name: `${at}.txt`,
    bytes: Buffer.from(`content ${at}`),
  }));
  const transfers = [
    described("t1"),
    described("t2", { files: many, cc: ["b@example.com"] }),
    described("t3", { message: "Psst" }),
  ];
  const { service, settings } = await openMailbox({ transfers });
  const daemon = await runOnce(settings);
  for (const { trackingId, files, message } of transfers) {
    expect(daemon.stateOf(trackingId)).toBe("delivered");
    const folder = join(settings.inbox, MAILBOX, "anna@supplier.example", trackingId);
    const manifest = JSON.parse(await readFile(join(folder, "transfer.json"), "utf8"));
    expect(manifest).toMatchObject({ verified: "all", message: message === undefined ? "none" : "present" });
    for (const { name, bytes } of files) expect(await readFile(join(folder, name))).toEqual(bytes);
  }
  // What a service refuses once is asked once: the threshold of a message, and the version for which this is remembered.
  expect(service.refused().map(({ path }) => path.replace(/.*\//, ""))).toEqual(["eml", "status"]);
});
