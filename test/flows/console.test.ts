/** The console and its API, for programs and for hostile visitors. */
import { readdir } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import type { Scenario } from "../../simulator/scenario.ts";
import { Secret } from "../../src/base/secret.ts";
import type { Settings } from "../../src/config/settings.ts";
import type { Status } from "../../src/model/status.ts";
import { checkAnswer } from "../support/api.ts";
import { daemonSettings, startDaemon } from "../support/daemon.ts";
import { findProgram } from "../support/debian.ts";
import { makeFolder, runCommand } from "../support/program.ts";
import { readRulePassword } from "../support/rule-passwords.ts";
import { openFront } from "../support/servers.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX, mailboxSettings, namedToken, pageSettings, plainSecret } from "../support/settings.ts";

const ANYWHERE = pageSettings({ hosts: ["inbox.example.com"] });
const OPEN_AND_CLOSED = [
  transferPlan({ trackingId: "t1" }),
  transferPlan({ trackingId: "t2", password: "unknown" }),
];

describe("the API", () => {
  test("returns the status and the history as JSON", async () => {
    const { daemon, url } = await start({ transfers: [transferPlan({ trackingId: "t1" })] });
    await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
    const status = await read(`${url}api/status`);
    expect(status.json).toMatchObject({
      version: 1,
      daemon: { queue: "embedded", role: "all", inbox: daemon.settings.inbox },
      troubles: [],
      mailboxes: [{ name: MAILBOX, tokenValidUntil: expect.any(String), lastSuccess: expect.any(String) }],
      recent: [{ trackingId: "t1", folder: `${MAILBOX}/anna@supplier.example/t1` }],
    });
    await expect
      .poll(async () => (await read(`${url}api/history?text=ANNA`)).json)
      .toMatchObject({ entries: [{ trackingId: "t1", state: "delivered" }], damaged: [] });
    expect((await read(`${url}api/history?text=unknown`)).json).toMatchObject({ entries: [] });
    const newest = await read(`${url}api/history?since=1h&state=delivered&limit=1`);
    expect(newest.json).toMatchObject({ entries: [{ trackingId: "t1" }] });
    expect((await read(`${url}api/history?state=quarantined`)).json).toMatchObject({ entries: [] });
    for (const wrong of ["limit=0", "limit=x", "since=soon", "state=lost", "folder=x"]) {
      const refused = await read(`${url}api/history?${wrong}`);
      expect(refused).toMatchObject({ status: 400, json: { code: "REQUEST_INVALID" } });
    }
  });

  test("is alive from the start, and ready as soon as it can work", async () => {
    const { simulator, url } = await start({});
    expect(await read(`${url}healthz`)).toMatchObject({ status: 200, json: { alive: true } });
    await expect.poll(async () => (await read(`${url}readyz`)).status).toBe(200);
    simulator.addFault({ on: "received", times: "always", does: { kind: "error", status: 503 } });
    await expect
      .poll(() => read(`${url}readyz`))
      .toMatchObject({ status: 503, json: { ready: false, reasons: ["No mailbox can be polled."] } });
    expect((await read(url)).body).toContain("1 failing");
    expect((await read(`${url}mailbox?name=${encodeURIComponent(MAILBOX)}`)).body).toContain(
      "The service failed",
    );
  });

  test("sends changes as events: the status for programs, a heartbeat for browsers", async () => {
    const { simulator, url } = await start({});
    const [plain, page] = [await listen(`${url}api/events`), await listen(`${url}api/events?as=heartbeat`)];
    simulator.addTransfer(transferPlan({ trackingId: "t1" }));
    await expect.poll(() => plain.received()).toMatch(/event: status\ndata: .*"recent":\[\{[^\]]*"t1"/);
    await expect
      .poll(() => page.received())
      .toMatch(/event: heartbeat\ndata: .*"tone":"good","words":"All is well"/);
    const beats = () => page.received().split("event: heartbeat").length;
    const before = beats();
    // Also if nothing happens.
    await expect.poll(beats).toBeGreaterThan(before + 1);
  });

  test("has metrics that Prometheus accepts", { tags: ["system"] }, async () => {
    const { daemon, url } = await start({ transfers: OPEN_AND_CLOSED });
    await expect.poll(() => daemon.stateOf("t2")).toBe("waiting");
    await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
    // Each poll tries it again, and it is being downloaded for a moment.
    let body = "";
    await expect
      .poll(async () => {
        body = (await read(`${url}metrics`)).body;
        return body;
      })
      .toContain("inlet_attention 1\n");
    const promtool = await findProgram("promtool", ["prometheus"]);
    const checked = await runCommand(promtool.path, ["check", "metrics"], { input: body });
    expect(checked).toMatchObject({ exitCode: 0, stdout: "", stderr: "" });
    for (const line of [
      `inlet_ended_total{mailbox="${MAILBOX}",state="delivered"} 1`,
      `inlet_passwords_refused_total{mailbox="${MAILBOX}"} 1`,
      'inlet_transfers{state="waiting"} 1',
      "inlet_attention 1",
      "inlet_received_bytes_total 13",
    ]) {
      expect(body).toContain(`${line}\n`);
    }
  });
});

describe("hostile visitors", () => {
  test("learn nothing under another host name, change nothing, and cannot make another user's browser request anything but pages", async () => {
    const { url } = await start({});
    const { port } = new URL(url);
    const askAs = (host: string, path = "/") => read(`http://127.0.0.1:${port}${path}`, { host });
    const api = ["status", "transfers", "events", "history"].map((path) => `/api/${path}`);
    for (const path of ["/", "/transfers", "/history", ...api, "/console.js", "/metrics", "/readyz"])
      expect((await askAs("evil.example", path)).status).toBe(421);
    expect((await askAs("inbox.example.com")).status).toBe(200);
    expect((await askAs(`localhost:${port}`)).status).toBe(200);
    expect((await askAs("evil.example", "/healthz")).status).toBe(200);
    for (const method of ["POST", "PUT", "DELETE", "OPTIONS"]) {
      expect((await read(url, {}, method)).status).toBe(405);
    }
    for (const path of ["/nothing", "/../../etc/passwd", "//x", "/assets/console.css", "/%2e%2e/x"]) {
      expect((await read(`http://127.0.0.1:${port}${path}`)).status).toBe(404);
    }
    const askAcross = async (path: string) =>
      (await read(url + path, { "sec-fetch-site": "cross-site" })).status;
    for (const path of ["history?text=x", ...api.map((it) => it.slice(1)), "console.js"])
      expect([path, await askAcross(path)]).toEqual([path, 403]);
    for (const path of ["", "transfers?state=waiting", "healthz", "metrics"])
      expect(await askAcross(path)).toBe(200);
    const asImage = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" };
    expect((await read(url, asImage)).status).toBe(403);
  });

  test("I4 no leaks: no answer contains a secret", async () => {
    const { daemon, url, simulator } = await start({ transfers: OPEN_AND_CLOSED });
    await expect.poll(() => daemon.stateOf("t2")).toBe("waiting");
    const story = `mailbox=${encodeURIComponent(MAILBOX)}&trackingId=t2`;
    const pages = ["", "transfers", `transfer?${story}`, "mailboxes", "history", "metrics", "readyz"];
    const api = ["status", "transfers", `transfers/story?${story}`, "history"].map((path) => `api/${path}`);
    const paths = [...pages, ...api];
    const answers = await Promise.all(paths.map((path) => read(url + path)));
    const password = await readRulePassword(daemon.settings.mailboxes[0]?.passwords[0]);
    const secrets = [simulator.clientId, password ?? "?"];
    for (const { body } of answers) for (const secret of secrets) expect(body).not.toContain(secret);
    for (const { headers } of answers)
      expect(headers["content-security-policy"]).toContain("default-src 'none'");
  });
});

describe("acting", () => {
  const TOKEN = "console-Token:1-0";
  const BEARER = { authorization: `Bearer ${TOKEN}` };
  const OPERABLE = pageSettings({ actions: true, tokens: namedToken(plainSecret(TOKEN)) });
  const RIGHT = "the-Right:1";
  const order = { action: "password", mailbox: MAILBOX, trackingId: "t1", password: RIGHT };
  const form = { action: "password", t: JSON.stringify([MAILBOX, "t1"]), password: RIGHT };

  /** A daemon with transfers that wait for a password. */
  async function startClosed(http = OPERABLE) {
    const ids = ["t1", "t2"];
    const transfers = ids.map((trackingId) => transferPlan({ trackingId, password: RIGHT }));
    const started = await start({ transfers }, { http });
    await expect.poll(() => ids.map((id) => started.daemon.stateOf(id))).toEqual(ids.map(() => "waiting"));
    return started;
  }

  async function signIn(url: string) {
    const { headers } = await submit(`${url}sign-in`, { token: TOKEN });
    const setCookie = String(headers["set-cookie"]);
    const [cookie = ""] = setCookie.split(";");
    const page = (await read(url, { cookie })).body;
    return { cookie, setCookie, page, proof: proofIn(page) };
  }

  const saying = (words: string) => ({ json: { detail: expect.stringContaining(words) } });

  const act = (url: string, body: object, headers: Record<string, string> = BEARER) =>
    post(`${url}api/actions`, body, headers);

  test("is off by default, and also if only reading needs a token", async () => {
    const open = await start({});
    expect(await act(open.url, order)).toMatchObject({ status: 403, json: { code: "NOT_ALLOWED" } });
    expect((await read(open.url)).body).not.toContain("Sign in");
    const { url } = await start({}, { http: { ...OPERABLE, actions: false, read: "token" } });
    expect((await read(`${url}transfers`)).status).toBe(401);
    expect((await read(`${url}transfers`, BEARER)).status).toBe(200);
    expect((await act(url, order)).status).toBe(403);
    expect((await signIn(url)).page).toContain("read only");
  });

  test("is possible for programs with the token, and answers in JSON", async () => {
    const { url, daemon } = await startClosed();
    for (const authorization of ["", "Bearer wrong", TOKEN])
      expect((await act(url, order, { authorization })).status).toBe(401);
    expect((await act(url, { ...order, action: "explode" })).status).toBe(400);
    const elsewhere = await act(url, { ...order, mailbox: "else" });
    expect([elsewhere.status, elsewhere.json]).toEqual([
      404,
      {
        type: "docs/faults.md#NO_SUCH_TRANSFER",
        title: "No transfer with this tracking-id is known here",
        status: 404,
        code: "NO_SUCH_TRANSFER",
        detail: "Nothing was done with t1: there is no such transfer here.",
        results: [expect.objectContaining({ result: "refused" })],
      },
    ]);
    expect(await act(url, { ...order, password: "" })).toMatchObject({
      status: 400,
      ...saying("is missing."),
    });
    const wrong = { ...order, trackingId: "t2", password: "wrong:1", wait: 60 };
    const attention = { status: 200, result: "attention", state: "waiting" };
    expect((await act(url, wrong)).json).toMatchObject({ results: [attention] });
    const fine = { trackingId: "t1", status: 200, result: "fine", state: "delivered" };
    expect((await act(url, { ...order, wait: 60 })).json).toMatchObject({ results: [fine] });
    for (const [action = "", words = ""] of [
      ["discard", "it is delivered, and nothing is left to discard."],
      ["password", "it is delivered, and needs no password."],
    ]) {
      expect(await act(url, { ...order, action })).toMatchObject({ status: 409, ...saying(words) });
    }
    expect(await readdir(join(daemon.settings.state, "passwords", MAILBOX))).toEqual([]);
    expect((await read(`${url}api/actions`)).status).toBe(405);
    const large = await act(url, { ...order, password: "x".repeat(1_000_000) });
    expect(large).toMatchObject({ status: 413, json: { code: "REQUEST_TOO_LARGE" } });
  });

  test("needs a token with the role operate, and the journal records its name", async () => {
    const reader = { authorization: "Bearer reader-Token:1-0" };
    const wall = namedToken(plainSecret("reader-Token:1-0"), "wall", "read");
    const http = { ...OPERABLE, read: "token", tokens: new Map([...OPERABLE.tokens, ...wall]) } as const;
    const { url } = await startClosed(http);
    expect((await read(`${url}api/status`)).status).toBe(401);
    expect((await read(`${url}api/status`, reader)).status).toBe(200);
    const refused = saying("The role read of wall is not enough: this needs a token with the role operate");
    expect(await act(url, { ...order, wait: 60 }, reader)).toMatchObject({ status: 403, ...refused });
    expect((await act(url, { ...order, wait: 60 })).status).toBe(200);
    const acts = await read(`${url}api/history?kind=acts`, reader);
    expect(acts.json).toMatchObject({ entries: [{ act: "password", who: "anna", trackingId: "t1" }] });
  });

  test("accepts no password after all attempts are spent, and shows no form for one", async () => {
    const transfers = [transferPlan({ trackingId: "t1", password: RIGHT })];
    const simulator = await openTestSimulator({ transfers });
    const belowPath = await openFront(simulator, () => undefined, "/transfer");
    const mailbox = mailboxSettings(belowPath, { passwordAttempts: 1 });
    const daemon = startDaemon(await daemonSettings([mailbox], { http: OPERABLE }));
    const url = await daemon.page;
    // The action reads the note, which is written a moment later.
    await expect.poll(async () => (await read(`${url}api/transfers`)).body).toContain('"state":"waiting"');
    const refused = saying("1 attempts are spent, which is all");
    expect(await act(url, order)).toMatchObject({ status: 409, ...refused });
    expect(await readdir(join(daemon.settings.state, "passwords"))).toEqual([]);
    const { page } = await signIn(url);
    for (const action of ["discard", "grant"]) expect(page).toContain(`value="${action}"`);
    expect(page).not.toContain('name="password"');
  });

  test("cannot be forged by another site, even in the browser of a signed-in user", async () => {
    const { url, daemon } = await startClosed();
    const { cookie, setCookie, proof } = await signIn(url);
    expect(setCookie).toMatch(/HttpOnly; SameSite=Strict/);
    const proven = { ...form, proof };
    const forged: [object, Record<string, string>][] = [
      [form, { cookie }],
      [{ ...form, proof: "guessed" }, { cookie }],
      [proven, {}],
      [proven, { cookie, origin: "https://evil.example" }],
      [proven, { cookie, "sec-fetch-site": "cross-site" }],
      [proven, { cookie, host: "evil.example" }],
    ];
    for (const [fields, headers] of forged)
      expect([401, 403, 421]).toContain((await submit(`${url}actions`, fields, headers)).status);
    // A cookie is not enough for the API.
    expect((await act(url, { ...order, proof }, { cookie })).status).toBe(401);
    expect(daemon.stateOf("t1")).toBe("waiting");
    expect((await submit(`${url}actions`, proven, { cookie })).status).toBe(303);
    await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
  });

  test("poll, pause and resume a mailbox, from its page and from a program", async () => {
    const { url, daemon, simulator } = await start({}, { http: OPERABLE });
    const program = (body: object, headers: Record<string, string> = BEARER) =>
      post(`${url}api/mailboxes/actions`, body, headers);
    const page = `${url}mailbox?name=${MAILBOX}`;
    expect((await read(page)).body).not.toContain("Poll now");
    expect((await program({ action: "pause" }, { authorization: "Bearer wrong" })).status).toBe(401);
    expect((await program({ action: "stop" })).status).toBe(400);
    expect((await program({ action: "poll", wait: 60 })).json).toMatchObject({
      results: [{ mailbox: MAILBOX, result: "fine", listed: 0 }],
    });
    expect((await program({ action: "poll", mailbox: "nobody" })).json).toMatchObject({
      results: [{ mailbox: "nobody", status: 404, result: "refused" }],
    });
    const { cookie, proof } = await signIn(url);
    const click = async (action: string) => {
      const fields = { action, mailbox: MAILBOX, back: `mailbox?name=${MAILBOX}` };
      expect((await submit(`${url}mailbox-actions`, fields, { cookie })).status).toBe(401);
      const answer = await submit(`${url}mailbox-actions`, { ...fields, proof }, { cookie });
      expect([answer.status, answer.headers["location"]]).toEqual([303, fields.back]);
      return (await read(page, { cookie })).body;
    };
    expect(await click("poll")).toContain(`${MAILBOX}: 0 active transfers, 0 new.`);
    expect((await read(`${url}metrics`)).body).toMatch(/inlet_mailbox_up\{.*\} 1/);
    const paused = await click("pause");
    expect(paused).toContain(">paused by anna<");
    expect(paused).toMatch(/Paused by anna since .*inlet resume/s);
    expect([paused.includes("Poll now"), paused.includes("<button>Resume")]).toEqual([false, true]);
    expect((await read(`${url}mailboxes`)).body).toContain(">paused by anna<");
    expect((await read(`${url}readyz`)).status).toBe(200);
    const status = (await read(`${url}api/status`)).json as Status;
    expect(status.troubles).toMatchObject([{ what: `mailbox ${MAILBOX}`, code: "MAILBOX_PAUSED" }]);
    expect((await read(`${url}metrics`)).body).not.toMatch(/inlet_mailbox_up\{/);
    simulator.addTransfer(transferPlan({ trackingId: "t1" }));
    expect((await program({ action: "resume", mailbox: MAILBOX })).json).toMatchObject({
      results: [{ result: "fine", text: `${MAILBOX} is resumed.` }],
    });
    await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
  });

  test("a changed token applies without a restart, and ends sessions of the old one", async () => {
    let token = TOKEN;
    const source = { described: "the test", read: async () => new Secret(token) };
    const { url, daemon } = await startClosed({ ...OPERABLE, tokens: namedToken(source) });
    const { cookie, proof } = await signIn(url);
    const click = async () => (await submit(`${url}actions`, { ...form, proof }, { cookie })).status;
    expect(await click()).toBe(303);
    token = "another-Token:2-0";
    await expect.poll(click).toBe(401);
    expect((await act(url, order)).status).toBe(401);
    await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
    // The new token is accepted, but nothing is left to do.
    expect((await act(url, order, { authorization: `Bearer ${token}` })).status).toBe(409);
  });

  test("a second Inlet on the same host does not end sessions of the first", async () => {
    const { url } = await start({}, { http: OPERABLE });
    const urls = [url, (await start({}, { http: OPERABLE })).url];
    const cookies = await Promise.all(urls.map(async (url) => (await signIn(url)).cookie));
    expect(new Set(cookies.map((cookie) => cookie.split("=")[0])).size).toBe(2);
    for (const url of urls)
      expect((await read(url, { cookie: cookies.join("; ") })).body).toContain("Sign out");
  });

  test("shows only notices of the daemon, and no text from a link", async () => {
    const { url } = await start({}, { http: OPERABLE });
    const { cookie, proof } = await signIn(url);
    expect((await read(`${url}?notice=Call+0900+1234`, { cookie })).body).not.toContain("0900");
    const none = { action: "retry", back: "transfers", proof };
    const wanted = { ...none, t: JSON.stringify([MAILBOX, "nothing"]) };
    const answer = await submit(`${url}actions`, wanted, { cookie });
    expect([answer.status, answer.headers["location"]]).toEqual([303, "transfers"]);
    const outcome = "nothing: Nothing was done with nothing: there is no such transfer here.";
    await expect.poll(async () => (await read(`${url}transfers`, { cookie })).body).toContain(outcome);
    // A form without a selection is answered by a notice, once.
    await submit(`${url}actions`, none, { cookie });
    const notice = '<p class="notice bad">No transfer is selected.</p>';
    expect((await read(url, { cookie })).body).toContain(notice);
    expect((await read(url, { cookie })).body).not.toContain(notice);
    // It never leads to another site.
    for (const back of ["https://evil.example/", "//evil.example", "javascript:alert(1)", "../x"]) {
      const { headers } = await submit(`${url}actions`, { ...wanted, back }, { cookie });
      expect(headers["location"]).toBe("./");
    }
  });
});

test("a Unix socket works too, and replaces one that a crash left", async () => {
  const path = join(await makeFolder(), "inlet.sock");
  const { daemon } = await start({}, { http: pageSettings({ listen: { path }, actions: true }) });
  expect(await daemon.page).toBe(`unix:${path}`);
  expect((await read("http://localhost/healthz", {}, "GET", path)).status).toBe(200);
  // The socket needs no token.
  const { headers } = await read("http://localhost/", {}, "GET", path);
  expect(headers["set-cookie"]).toBeDefined();
  const wanted = JSON.stringify({ action: "retry", mailbox: MAILBOX, trackingId: "nothing" });
  const json = { "content-type": "application/json" };
  const ask = async (more: Record<string, string>) =>
    (await read("http://localhost/api/actions", { ...json, ...more }, "POST", path, wanted)).status;
  expect(await ask({})).toBe(404);
  expect(await ask({ origin: "null" })).toBe(401);
  expect(await ask({ "sec-fetch-site": "same-origin" })).toBe(401);
  expect(await ask({ "content-type": "text/plain" })).toBe(401);
});

test("an address that is in use is reported, and does not prevent deliveries", async () => {
  const { url } = await start({});
  const taken = { host: "127.0.0.1", port: Number(new URL(url).port) };
  const simulator = await openTestSimulator({ transfers: [transferPlan({ trackingId: "t1" })] });
  const http = pageSettings({ listen: taken });
  const daemon = startDaemon(await daemonSettings([mailboxSettings(simulator)], { http }));
  await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
  expect(daemon.reports).toEqual([`http://127.0.0.1:${taken.port}/: EADDRINUSE`]);
});

async function start(scenario: Scenario, settings: Partial<Settings> = {}) {
  const simulator = await openTestSimulator(scenario);
  const daemon = startDaemon(
    await daemonSettings([mailboxSettings(simulator)], { http: ANYWHERE, ...settings }),
  );
  return { simulator, daemon, url: await daemon.page };
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
  /** `undefined` for other content. */
  readonly json: unknown;
}

/** Unlike `fetch`, sends path and host unchanged. */
async function read(
  url: string,
  headers: Record<string, string> = {},
  method = "GET",
  socketPath?: string,
  content?: string,
): Promise<Answer> {
  const { hostname, port } = new URL(url);
  const path = url.slice(url.indexOf("/", "http://".length));
  const target = socketPath === undefined ? { hostname, port } : { socketPath };
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const receive = async (response: IncomingMessage): Promise<Answer> => {
    const body = await text(response);
    const { statusCode: status = 0 } = response;
    const { "content-type": type = "", "inlet-api": version } = response.headers;
    checkAnswer({ method, url, status, type, version: String(version), body });
    const json: unknown = /^application\/(problem\+)?json/.test(type) ? JSON.parse(body) : undefined;
    return { status, headers: response.headers, body, json };
  };
  request({ ...target, path, method, headers, agent: false }, (response) =>
    receive(response).then(resolve, reject),
  )
    .once("error", reject)
    .end(content);
  return promise;
}

async function post(url: string, fields: object, headers: Record<string, string>): Promise<Answer> {
  const type = { "content-type": "application/json" };
  return read(url, { ...headers, ...type }, "POST", undefined, JSON.stringify(fields));
}

/** Sends a form, as a browser does. */
async function submit(url: string, fields: object, headers: Record<string, string> = {}): Promise<Answer> {
  const type = { "content-type": "application/x-www-form-urlencoded" };
  const body = new URLSearchParams(Object.entries(fields) as [string, string][]).toString();
  return read(url, { ...headers, ...type }, "POST", undefined, body);
}

function proofIn(page: string): string {
  return /name="proof" value="([^"]+)"/.exec(page)?.[1] ?? "";
}

async function listen(url: string): Promise<{ received(): string }> {
  let received = "";
  const response = await fetch(url);
  void (async () => {
    for await (const chunk of response.body ?? []) received += Buffer.from(chunk).toString();
  })().catch(() => {});
  return { received: () => received };
}
