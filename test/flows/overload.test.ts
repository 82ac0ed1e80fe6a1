/** A service, or a proxy before it, that refuses requests beyond a number at once. */
import { createServer, request } from "node:http";
import { expect, test } from "vitest";
import { daemonSettings, runOnce } from "../support/daemon.ts";
import { listen } from "../support/servers.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { mailboxSettings } from "../support/settings.ts";

const AT_ONCE = 2;
const NAMES = Array.from({ length: 40 }, (_, at) => `t${at}`);
const OWN = { type: "application/json", body: '{"errorCode":2007,"errorMessage":"Too many requests"}' };
const FOREIGN = { type: "text/html", body: "<html>Too many requests</html>" };

// As in the program: a transfer that waits for its service is left to the next run.
test.each([
  ["the service", OWN, 5_000],
  ["a proxy", FOREIGN, 1_000],
])(
  "`once` delivers everything although %s refuses more than 2 requests at once",
  async (_, refusal, retryMs) => {
    const { settings, refused } = await openBusyService(refusal);
    const daemon = await runOnce(settings, { retryMs });
    expect(NAMES.map((name) => daemon.stateOf(name))).toEqual(NAMES.map(() => "delivered"));
    expect(refused()).toBeGreaterThan(0);
  },
);

async function openBusyService(refusal: typeof OWN) {
  const simulator = await openTestSimulator({
    transfers: NAMES.map((trackingId) => transferPlan({ trackingId })),
  });
  let [inFlight, refused] = [0, 0];
  const front = createServer((message, response) => {
    const { method = "GET", headers } = message;
    inFlight++;
    response.on("close", () => inFlight--);
    if (inFlight > AT_ONCE) {
      refused++;
      return void response.writeHead(429, { "content-type": refusal.type }).end(refusal.body);
    }
    const onward = request(new URL(message.url ?? "/", simulator.url), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    // The answer of a distant service takes a while, so requests overlap.
    setTimeout(() => message.pipe(onward), 20);
  });
  const url = await listen(front);
  const settings = await daemonSettings([mailboxSettings({ url, clientId: simulator.clientId })]);
  return { settings, refused: () => refused };
}
