/** Requests to a console without a daemon, on which everyone may act. */
import { once } from "node:events";
import { request } from "node:http";
import type { AddressInfo } from "node:net";
import { systemClock } from "../../src/base/clock.ts";
import { Secret } from "../../src/base/secret.ts";
import { createConsole } from "../../src/console/server.ts";
import { Sessions, type Tokens } from "../../src/console/sessions.ts";
import { Board } from "../../src/observe/board.ts";
import { makeRecord } from "../../test/support/record.ts";
import { type Sent, sendTo } from "./senders.ts";

const FACTS = { program: "1", host: "h", pid: 1, queue: "embedded", role: "all", inbox: "/inbox" } as const;
/** Transfers on the board. */
const KNOWN = 1_000;

const TOKENS = async (): Promise<Tokens> => {
  return new Map([["ops", { token: new Secret("0123456789abcdef"), role: "operate" }]]);
};

type Work = () => Promise<unknown>;

interface Asked {
  readonly method?: "POST";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

type Send = (path: string, asked?: Asked) => Promise<{ readonly text: string; readonly cookie: string }>;

export function sendCookies(count: number): Work {
  const cookie = Array.from({ length: count }, (_, at) => `cookie-${at}=b`).join("; ");
  return () => withConsole((send) => send("/", { headers: { cookie } }));
}

export function visitTimes(count: number): Work {
  return () =>
    withConsole(async (send) => {
      for (let visits = 0; visits < count; visits++) await send("/mailboxes");
    });
}

export function postForm(count: number): Work {
  const keys = Array.from({ length: count }, (_, at): [string, string] => {
    return ["t", JSON.stringify(["m", `T-${at}`])];
  });
  return () =>
    withConsole(async (send) => {
      const { text, cookie } = await send("/transfers");
      const proof = /name="proof" value="([^"]+)"/.exec(text)?.[1] ?? "";
      const fields = new URLSearchParams([["proof", proof], ["action", "retry"], ...keys]);
      const headers = { cookie, "content-type": "application/x-www-form-urlencoded" };
      await send("/actions", { method: "POST", headers, body: fields.toString() });
    });
}

/** `undefined`: no such value. */
export function postJson(makeValue: (at: number, count: number) => string | undefined) {
  return (count: number): Work => {
    const values = Array.from({ length: count }, (_, at) => makeValue(at, count));
    const transfers = values.filter((value) => value !== undefined).join();
    const body = `{"action":"retry","transfers":[${transfers}]}`;
    const headers = { "content-type": "application/json" };
    return () => withConsole((send) => send("/api/actions", { method: "POST", headers, body }));
  };
}

export function searchText(count: number): Work {
  const text = "*a".repeat(count / 2);
  return () => withConsole((send) => send(`/transfers?text=${text}`));
}

/** The text on as many connections as its bytes need, at a console that demands tokens. */
export function sendBytes(text: string, leaves?: Sent["leaves"]) {
  return (bytes: number): Work => {
    const times = Math.ceil(bytes / text.length);
    const sent = { text, times, ...(leaves === undefined ? {} : { leaves }) };
    return () => withConsole((_send, port) => sendTo(port, sent), TOKENS);
  };
}

export function requestOf(method: string, path: string, headers = "", body = ""): string {
  const length = body === "" ? "" : `Content-Length: ${body.length}\r\n`;
  return `${method} ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}${length}\r\n${body}`;
}

async function withConsole(
  visit: (send: Send, port: number) => Promise<unknown>,
  readTokens?: () => Promise<Tokens>,
): Promise<void> {
  const board = new Board(FACTS, [], systemClock);
  for (let at = 0; at < KNOWN; at++) {
    const record = makeRecord({ trackingId: `T-${at}`, state: "waiting", reason: "retry" });
    board.listener({ type: "transfer-changed", record, fault: undefined });
  }
  const access = new Sessions({
    read: "open",
    readTokens,
    cookie: "bench",
    clock: systemClock,
    onWrong: () => {},
  });
  const started = { submitted: Promise.resolve(), settled: Promise.resolve(), results: () => [] };
  const server = createConsole(
    {
      board,
      metrics: async () => "",
      operate: {
        history: async () => ({ entries: [], damaged: [] }),
        list: async () => ({ total: 0, page: 1, pages: 1, size: 1, transfers: [], damaged: [] }),
        story: async () => undefined,
        objectionTo: async () => undefined,
        start: async () => started,
        actOnMailboxes: async () => [],
      },
      tally: async () => [],
      access,
      hosts: [],
      stuck: () => undefined,
      onLimited: () => {},
    },
    systemClock,
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  try {
    await visit((path, asked) => ask(port, path, asked), port);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

async function ask(port: number, path: string, { method, headers, body }: Asked = {}) {
  const sent = request({ host: "127.0.0.1", port, path, method: method ?? "GET", headers: headers ?? {} });
  sent.end(body);
  const [response] = await once(sent, "response");
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += chunk;
  const [cookie = ""] = response.headers["set-cookie"] ?? [];
  return { text, cookie: cookie.split(";")[0] ?? "", status: response.statusCode };
}
