import { expect, test } from "vitest";
import type { HttpSettings } from "../../../src/config/settings.ts";
import { DaemonClient } from "../../../src/operate/client.ts";
import { Remote } from "../../../src/operate/remote.ts";
import { makeAccess, openTestConsole, READER } from "../../support/console.ts";
import { namedToken, pageSettings, plainSecret } from "../../support/settings.ts";

const UNREADABLE = { described: "the test", read: () => Promise.reject(new Error("EACCES")) };

test("a closed console is read with the first token that can be read, and acted on without one", async () => {
  const { url } = await openTestConsole(1, { access: makeAccess("token") });
  const tokens = new Map([
    ...namedToken(UNREADABLE, "first"),
    ...namedToken(plainSecret(READER), "second", "read"),
  ]);
  const client = connect(url, { read: "token", tokens });
  expect(await client.get("/api/status", {})).toMatchObject({ live: true });
  const act = client.post("/api/actions", {}, 0);
  await expect(act).rejects.toMatchObject({ code: "UNAUTHORIZED" });
  const without = connect(url, { read: "token", tokens: namedToken(UNREADABLE) });
  await expect(without.get("/api/status", {})).rejects.toMatchObject({ code: "UNAUTHORIZED" });
});

test("a problem becomes the fault that it names, with its detail", async () => {
  const { url } = await openTestConsole(0);
  const client = connect(url);
  await expect(client.get("/api/history", { limit: 0 })).rejects.toMatchObject({
    code: "REQUEST_INVALID",
    message: expect.stringContaining("refuses: limit must be a number from 1 to 5000."),
  });
  await expect(client.post("/api/actions", {}, 0)).rejects.toMatchObject({
    code: "NOT_ALLOWED",
    // The advice follows once.
    message: expect.stringMatching(/refuses$/),
  });
  const key = { mailbox: "m", trackingId: "t" };
  expect(await new Remote(client, { mailboxes: [] }).story(key)).toBeUndefined();
});

function connect(url: string, settings: Partial<HttpSettings> = {}): DaemonClient {
  const { hostname: host, port } = new URL(url);
  const listen = { host, port: Number(port) };
  return new DaemonClient(pageSettings({ listen, ...settings }), "anna", new AbortController().signal);
}
