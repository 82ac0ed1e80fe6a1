/** What a service refuses is learned once: a healthy daemon sends no request that is answered with an error. */
import { expect, test } from "vitest";
import { daemonSettings, runOnce, startDaemon } from "../support/daemon.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { mailboxSettings } from "../support/settings.ts";

const MAILBOXES = 50;
const TRANSFERS = 200;
const POLLS = 1_000;
/** Statuses of requests that a client should not have sent, or not so soon. */
const REFUSED: readonly number[] = [400, 404, 405, 406, 429, 501];

test("1,000 polls and 200 transfers cause no refused request but those from which the service is learned, once", async () => {
  const addresses = Array.from({ length: MAILBOXES }, (_, at) => `box${at}@example.com`);
  const small = Array.from({ length: 3 }, (_, at) => ({ name: `${at}.txt`, text: `content ${at}` }));
  const many = Array.from({ length: 20 }, (_, at) => ({ name: `${at}.txt`, text: `content ${at}` }));
  const transfers = Array.from({ length: TRANSFERS }, (_, at) =>
    transferPlan({
      trackingId: `t${at}`,
      to: [addresses[at % MAILBOXES] ?? ""],
      files: at % 10 === 0 ? many : small,
      ...(at % 3 === 0 ? { message: `Message ${at}` } : {}),
    }),
  );
  const simulator = await openTestSimulator({ transfers, oldPaths: true, threshold: "int32" });
  const mailboxes = addresses.map((email) =>
    mailboxSettings(simulator, { name: email, email, fetch: "auto", pollMs: 100 }),
  );
  const settings = await daemonSettings(mailboxes);
  const { changes } = await runOnce(settings);
  expect(changes.filter(({ state }) => state === "delivered")).toHaveLength(TRANSFERS);
  const daemon = startDaemon(settings);
  const polls = () =>
    simulator
      .requests()
      .filter(({ operation, query }) => operation === "received" && query["page"]?.[0] === "1");
  await expect.poll(() => polls().length, { interval: 200 }).toBeGreaterThanOrEqual(POLLS);
  await daemon.stop();
  const requests = simulator.requests();
  expect(requests.length).toBeLessThan(10_000);
  const refused = requests.filter(({ status }) => REFUSED.includes(status));
  // Each path once, and once that a threshold must be a whole number.
  const learned = new Set(
    refused.map(
      ({ path, status, query }) => `${status} ${path.split("/").at(-1)} ${query["threshold"] ?? ""}`,
    ),
  );
  expect([...learned].toSorted()).toEqual([
    "400 eml 0.000001",
    "404 checksums ",
    "404 eml 0.000001",
    "404 zip ",
  ]);
  expect(refused).toHaveLength(learned.size);
});
