/** Downloads whose connections break or close at their end: they complete, and none is repeated for ever. */
import { createServer, request } from "node:http";
import { buffer } from "node:stream/consumers";
import { expect, test } from "vitest";
import { daemonSettings, startDaemon } from "../support/daemon.ts";
import { listen } from "../support/servers.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { mailboxSettings } from "../support/settings.ts";

test.each(["files", "zip"] as const)(
  "by %s, a bandwidth limit far below the service's rate fetches no byte twice, although the service closes each connection",
  async (fetch) => {
    // Many sizes, so that files end at any position of the read-ahead.
    const files = Array.from({ length: 12 }, (_, at) => ({
      name: `f${at}`,
      generate: { bytes: 2 * 65_536 + at * 6_000 },
    }));
    const totalBytes = files.reduce((sum, { generate }) => sum + generate.bytes, 0);
    const simulator = await openTestSimulator({ transfers: [transferPlan({ trackingId: "t1", files })] });
    const { url, sent } = await openHastyFront(simulator.url);
    const settings = await daemonSettings([mailboxSettings({ ...simulator, url }, { fetch })]);
    const bandwidth = [{ at: undefined, bytesPerSecond: 1_000_000 }];
    const daemon = startDaemon({ ...settings, limits: { ...settings.limits, bandwidth } });
    await expect.poll(() => daemon.stateOf("t1"), { timeout: 20_000 }).toBe("delivered");
    expect(daemon.changes.map(({ state }) => state)).not.toContain("waiting");
    const downloads = sent.filter(({ path }) => /\/(files\/.+|zip)$/.test(path));
    expect(downloads.map(({ status }) => status)).toEqual(downloads.map(() => 200));
    expect(downloads).toHaveLength(fetch === "files" ? files.length : 1);
    const bytes = downloads.reduce((sum, each) => sum + each.bytes, 0);
    expect(bytes).toBeLessThan(totalBytes + 64 * 1024);
  },
  30_000,
);

/** A proxy that announces the length of each answer, and closes its side of the connection after sending it. */
async function openHastyFront(service: string) {
  const sent: { path: string; status: number; bytes: number }[] = [];
  const server = createServer((message, response) => {
    const { method = "GET", headers, url: path = "" } = message;
    const onward = request(new URL(path, service), { method, headers }, async (answer) => {
      const { "transfer-encoding": _, ...kept } = answer.headers;
      const [status, body] = [answer.statusCode ?? 502, await buffer(answer)];
      sent.push({ path, status, bytes: body.length });
      response.once("finish", () => message.socket.end());
      response.writeHead(status, { ...kept, connection: "keep-alive", "content-length": body.length });
      response.end(body);
    });
    onward.on("error", () => message.socket.destroy());
    message.pipe(onward);
  });
  return { url: await listen(server), sent };
}
