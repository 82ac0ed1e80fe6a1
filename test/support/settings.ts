/** Settings of a daemon for tests. This file needs no test runner. */
import { join } from "node:path";
import { Secret, type SecretSource } from "../../src/base/secret.ts";
import type { Receiver } from "../../src/base/signed-post.ts";
import type {
  HttpSettings,
  MailboxSettings,
  RedisQueueSettings,
  Settings,
} from "../../src/config/settings.ts";
import type { Role } from "../../src/model/order.ts";
import type { RedisSettings } from "../../src/queue/bullmq-connection.ts";

export const MAILBOX = "orders@example.com";
export const OPERATOR = { who: "anna", from: "desk" } as const;
export const PASSWORD = "Sunny+Harbour%42 ä";
/** At the mail server of tests. */
export const LOGIN = { user: "inlet", password: "Sturdy+Anchor%9 ü" };
export const NO_PROXY = { http: "", https: "", except: "" };

export function plainSecret(text: string) {
  return { described: "plain text", read: async () => new Secret(text) };
}

/** A webhook with Inlet's own format. */
export function receiverAt(url: string, secret: string, more: Partial<Receiver> = {}): Receiver {
  const connection = { proxy: NO_PROXY, ca: undefined, timeoutMs: 5_000 };
  return {
    url: new URL(url),
    format: "inlet",
    secret: plainSecret(secret),
    headers: [],
    ...connection,
    ...more,
  };
}

/** One mailbox of a simulated service whose transfers all have the usual password. */
export function mailboxSettings(
  { url, clientId }: { readonly url: string; readonly clientId: string },
  mailbox: Partial<MailboxSettings> = {},
): MailboxSettings {
  return {
    name: MAILBOX,
    email: MAILBOX,
    pollMs: 300,
    fetch: "files",
    verify: "require",
    layout: "{mailbox}/{sender}/{trackingId}",
    passwords: [{ sender: "*", trackingId: undefined, password: plainSecret(PASSWORD) }],
    passwordAttempts: 2,
    paused: false,
    service: {
      baseUrl: new URL(url),
      clientId: plainSecret(clientId),
      token: undefined,
      acceptLanguage: "en",
      userAgent: "inlet/test",
      idListForm: "repeat",
      rulesWithoutMode: undefined,
      ca: undefined,
      cert: undefined,
      key: undefined,
      proxy: NO_PROXY,
      // A busy machine may be slow, and a request with a password that is given up costs an attempt.
      timeoutMs: 60_000,
    },
    ...mailbox,
  };
}

/** Inbox and state in one folder. */
export function settingsIn(
  folder: string,
  mailboxes: readonly MailboxSettings[],
  settings: Partial<Settings> = {},
): Settings {
  return {
    source: "the test",
    digest: undefined,
    sockets: [],
    isStateNamed: false,
    timezone: undefined,
    inbox: join(folder, "inbox"),
    work: join(folder, "inbox", ".inlet"),
    state: join(folder, "state"),
    queue: "embedded",
    mailboxes,
    limits: {
      transfers: 4,
      requests: 16,
      filesPerTransfer: 4,
      minFreeBytes: 0,
      maxTransferBytes: 2 ** 40,
      maxFiles: 10_000,
    },
    handoff: { fileMode: 0o640, folderMode: 0o750, marker: undefined },
    notify: [],
    logLevel: undefined,
    keep: { ledgerMs: undefined, historyMs: undefined, passwordsMs: undefined },
    http: undefined,
    files: [],
    warnings: [],
    ...settings,
  };
}

/** A console on any free port. */
export function pageSettings(settings: Partial<HttpSettings> = {}): HttpSettings {
  return {
    listen: { host: "127.0.0.1", port: 0 },
    actions: false,
    read: "open",
    tokens: new Map(),
    hosts: [],
    ...settings,
  };
}

/** The token of one operator. */
export function namedToken(
  source: SecretSource,
  name = "anna",
  role: Role = "operate",
): HttpSettings["tokens"] {
  return new Map([[name, { source, role }]]);
}

/** A queue on the test's Redis. */
export function redisQueue(url: string, lockMs = 5_000): RedisQueueSettings {
  const secrets = { password: undefined, sentinelPassword: undefined };
  return {
    ...redisSettings(url),
    ...secrets,
    url: new URL(url),
    sentinelName: "mymaster",
    role: "all",
    lockMs,
  };
}

export function redisSettings(url: string): RedisSettings {
  return {
    url: new URL(url),
    username: undefined,
    password: undefined,
    ca: undefined,
    sentinels: [],
    sentinelName: undefined,
    sentinelPassword: undefined,
    cluster: [],
    prefix: "inlet",
  };
}
