/** Every route asks for the role that it needs. */
import type { IncomingMessage } from "node:http";
import { describe, expect, test } from "vitest";
import { Secret } from "../../../src/base/secret.ts";
import { API, type ApiRoute } from "../../../src/model/api.ts";
import type { ReadAccess, Role } from "../../../src/model/order.ts";
import { checkAnswer } from "../../support/api.ts";
import { makeAccess, OPERATOR, openTestConsole, READER } from "../../support/console.ts";

const BEARERS = { none: undefined, wrong: "a-wrong-token-of-someone", read: READER, operate: OPERATOR };
/** Probes and assets ignore every token. */
const FREE = { none: "ok", wrong: "ok", read: "ok", operate: "ok" };
const OPEN = { ...FREE, wrong: 401 };
const CLOSED = { none: 401, wrong: 401, read: "ok", operate: "ok" };
const ACTION = { none: 401, wrong: 401, read: 403, operate: "ok" };

const HOUR_MS = 60 * 60_000;

const PAGES = ["/", "/transfers", "/transfer", "/mailboxes", "/mailbox", "/history"];
const ASSETS = ["/console.css", "/console.js", "/icon.svg"];

type Wanted = [path: string, method: ApiRoute["method"], answers: object];

/** The API's own table says which role a route needs. */
function expected(read: ReadAccess): Wanted[] {
  const closed = read === "open" ? OPEN : CLOSED;
  const byRole: Record<Role, object> = { read: closed, operate: ACTION };
  return [
    ...Object.entries<ApiRoute>(API).map(([path, { method, role }]): Wanted => [path, method, byRole[role]]),
    ...PAGES.map((path): Wanted => [path, "GET", closed]),
    ...ASSETS.map((path): Wanted => [path, "GET", FREE]),
    ["/actions", "POST", ACTION],
    ["/healthz", "GET", FREE],
    ["/readyz", "GET", read === "token-for-all" ? CLOSED : FREE],
    ["/metrics", "GET", read === "token-for-all" ? CLOSED : OPEN],
  ];
}

describe.each(["open", "token", "token-for-all"] as const)("with http.read: %s", (read) => {
  test.each(expected(read))("%s", async (path, method, wanted) => {
    const { url } = await openTestConsole(3, { access: makeAccess(read) });
    const answers = Object.entries(BEARERS).map(async ([name, token]) => [
      name,
      await ask(url, method, path, token),
    ]);
    expect(Object.fromEntries(await Promise.all(answers))).toEqual(wanted);
  });
});

test("a reader sees pages without forms for actions, and can sign out", async () => {
  const { url } = await openTestConsole(3, { access: makeAccess("token") });
  for (const [token, canAct] of [
    [READER, false],
    [OPERATOR, true],
  ] as const) {
    const cookie = await signIn(url, token);
    for (const path of ["", "transfers"]) {
      const page = await (await fetch(url + path, { headers: { cookie } })).text();
      expect([path, page.includes('action="actions"')]).toEqual([path, canAct]);
      expect([path, page.includes('name="action"')]).toEqual([path, canAct]);
      expect(page).toContain("T-0");
    }
    const page = await (await fetch(url, { headers: { cookie } })).text();
    const proof = /action="sign-out".*?name="proof" value="([^"]+)"/s.exec(page)?.[1] ?? "";
    const form = async (path: string) => {
      const body = new URLSearchParams({ proof, action: "nothing" });
      return (await fetch(url + path, { method: "POST", body, headers: { cookie }, redirect: "manual" }))
        .status;
    };
    expect(await form("actions")).toBe(canAct ? 400 : 403);
    expect(await form("sign-out")).toBe(303);
    expect((await fetch(url, { headers: { cookie } })).status).toBe(401);
  }
});

test("before signing in, a closed console reveals nothing, and leads back to the page that was asked for", async () => {
  const { url } = await openTestConsole(3, { access: makeAccess("token") });
  const before = await fetch(`${url}transfers?state=waiting`);
  const body = new URLSearchParams({ token: "wrong" });
  const wrong = await fetch(`${url}sign-in`, { method: "POST", body });
  for (const answer of [before, wrong]) {
    expect(answer.status).toBe(401);
    const page = await answer.text();
    expect(page).toContain('action="sign-in"');
    for (const known of ["T-0", "/inbox", "example.com", "attention"]) expect(page).not.toContain(known);
    if (answer === before) expect(page).toContain('name="back" value="transfers?state=waiting"');
    else expect(page).toContain("The token is wrong.");
  }
});

test("a changed role applies to sessions that are open", async () => {
  let role: Role = "operate";
  const readTokens = async () => new Map([["operator", { token: new Secret(OPERATOR), role }]]);
  const { url } = await openTestConsole(3, { access: makeAccess("token", readTokens) });
  const cookie = await signIn(url, OPERATOR);
  const hasForms = async () =>
    (await (await fetch(url, { headers: { cookie } })).text()).includes('name="action"');
  expect(await hasForms()).toBe(true);
  role = "read";
  expect(await hasForms()).toBe(false);
});

test("a session ends twelve hours after the sign-in, also for requests of the page's own script", async () => {
  let nowMs = 0;
  const clock = { now: () => nowMs };
  const { url } = await openTestConsole(3, { access: makeAccess("token", undefined, clock) });
  const cookie = await signIn(url, OPERATOR);
  const statuses = () =>
    Promise.all(
      ["", "api/status"].map(async (path) => (await fetch(url + path, { headers: { cookie } })).status),
    );
  nowMs = 12 * HOUR_MS;
  expect(await statuses()).toEqual([200, 200]);
  nowMs++;
  expect(await statuses()).toEqual([401, 401]);
});

/** "ok" for every status that says nothing about the token. */
async function ask(
  url: string,
  method: string,
  path: string,
  token: string | undefined,
): Promise<number | "ok"> {
  const left = new AbortController();
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const answer = await fetch(new URL(path, url), { method, headers, signal: left.signal });
  const { status } = answer;
  const type = answer.headers.get("content-type");
  // A stream of events does not end.
  const body = type === "text/event-stream" ? "" : await answer.text();
  left.abort();
  checkAnswer({ method, url: path, status, type, version: answer.headers.get("inlet-api"), body });
  if (status === 401 && path.startsWith("/api/"))
    expect(answer.headers.get("www-authenticate")).toBe("Bearer");
  return status === 401 || status === 403 ? status : "ok";
}

async function signIn(url: string, token: string): Promise<string> {
  const body = new URLSearchParams({ token });
  const answer = await fetch(`${url}sign-in`, { method: "POST", body, redirect: "manual" });
  expect(answer.status).toBe(303);
  return answer.headers.get("set-cookie")?.split(";")[0] ?? "";
}

test("many sessions of one token end no session of another one", async () => {
  const access = makeAccess("token");
  const request = { headers: {}, socket: {} } as IncomingMessage;
  const cookie = await access.signIn(request, OPERATOR);
  for (let at = 0; at < 101; at++) await access.signIn(request, READER);
  const [pair = ""] = cookie?.split(";") ?? [];
  expect(access.find({ headers: { cookie: pair } } as IncomingMessage)?.who).toBe("operator");
});
