/** The `notify` list: who is notified of what, by mail or webhook, and when. */
import {
  type ChannelSettings,
  DAEMON_KINDS,
  MAIL_TLS,
  type MailChannel,
  type MailTls,
  NOTICE_KINDS,
  type NoticeKind,
} from "../model/notify.ts";
import { CERTIFICATES, SECRET } from "./credentials.ts";
import { type Draft, type KeyPath, showValue } from "./draft.ts";
import { readKeys } from "./layers.ts";
import {
  group,
  HOST_PATTERN,
  key,
  READ,
  type SchemaKeys,
  type SchemaNode,
  TEXT,
  type Written,
} from "./schema-nodes.ts";
import { LOOPBACK } from "./service.ts";
import { QUIET, quietReader } from "./times.ts";
import { DURATION } from "./units.ts";
import { WEBHOOK } from "./webhook.ts";

/** ASCII without quotes, comments, control characters and separators, so that it cannot end a header or a command. */
const ADDRESS = {
  type: "string",
  title: "a mail address such as ops@example.com",
  pattern: "^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9.-]{1,190}$",
} as const satisfies SchemaNode;

const KINDS = {
  type: "array",
  title: `a list of ${NOTICE_KINDS.join(", ")}`,
  items: { type: "string", enum: NOTICE_KINDS },
} as const satisfies SchemaNode;

const MAIL = {
  type: "object",
  title: "a group of keys",
  properties: {
    to: key(
      { type: "array", title: "a list of at least one mail address", items: ADDRESS, minItems: 1 },
      "The recipients of each mail.",
    ),
    from: key(ADDRESS, "The sender of each mail. Undeliverable mails return to it."),
    server: {
      ...TEXT,
      title: "the address of a mail server such as smtp://mail.example.com:587",
      maxLength: 300,
      default: "smtp://localhost",
      description:
        "The mail server: `smtp://HOST:PORT`, or `smtps://HOST:PORT` for TLS from the first byte. Default port: 587 for `smtp`, 25 for `smtp` on this machine, 465 for `smtps`.",
      writeOnly: true,
      [READ]: readServer,
    },
    tls: key(
      { type: "string", enum: MAIL_TLS },
      "`required`: STARTTLS, or no mail. `opportunistic`: STARTTLS if the server offers it. `implicit`: TLS from the first byte. `none`: no encryption. Certificates are always checked. Default: `implicit` for `smtps`, `none` on this machine, else `required`.",
    ),
    ca: key(CERTIFICATES, "A PEM file with additional certificate authorities to trust."),
    user: key(SECRET, "The user to log in as. Requires `password`."),
    password: key(
      SECRET,
      "The password to log in with. Requires `user`, and `tls: required` or `implicit` unless the server is on this machine.",
    ),
    timeout: key({ ...DURATION, default: "60s" }, "The longest time to send a mail, at most 24h."),
  },
  required: ["to", "from"],
  additionalProperties: false,
  description: "Sends mails as plain text.",
} as const satisfies SchemaNode;

const KEYS = {
  mail: { ...MAIL, [READ]: readMail },
  webhook: key(
    WEBHOOK,
    "Receives a POST for each message, instead of a mail. See docs/operating.md#notifications.",
  ),
  on: key(
    { ...KINDS, minItems: 1 },
    `What to notify of: ${NOTICE_KINDS.map((kind) => `\`${kind}\``).join(", ")}. Default: all; with \`mailboxes\`, all but ${DAEMON_KINDS.map((kind) => `\`${kind}\``).join(", ")}.`,
  ),
  mailboxes: {
    type: "array",
    title: "a list of names or addresses of mailboxes such as *@example.com",
    items: { ...TEXT, title: "a name or address of a mailbox", maxLength: 254 },
    minItems: 1,
    description:
      "The mailboxes to notify of: names or addresses, in which `*` matches any characters and `?` matches one. Default: all.",
  },
  gather: key(
    { ...DURATION, default: "30s" },
    "How long a message waits for more notifications before it is sent, at most 24h.",
  ),
  every: key(
    { ...DURATION, default: "15m" },
    "The least time between two messages, at most 24h. Everything that happens in between goes into the next message.",
  ),
  quiet: key(
    { ...QUIET, [READ]: quietReader("leaves no time to notify") },
    "The quiet hours. Notifications wait until the quiet hours end. Two kinds of notifications are sent at once: those in `urgent`, and those about a transfer that expires before the quiet hours end.",
  ),
  urgent: key(
    KINDS,
    "What to notify of in quiet hours too. Between two messages with urgent notifications, `every` still applies. Other messages do not delay an urgent notification. Default: `[disk]`.",
  ),
} as const satisfies SchemaKeys;

export const NOTIFY = {
  type: "array",
  title: "a list of notifications",
  items: {
    ...group(KEYS, "One channel for notifications, with either `mail` or `webhook`."),
    title: "a notification",
  },
  description: "Who is notified when a person has to act. See docs/operating.md#notifications.",
} as const satisfies SchemaNode;

type RawMail = Written<typeof MAIL>;

const MAILBOX_KINDS = NOTICE_KINDS.filter((kind) => !DAEMON_KINDS.includes(kind));
const DEFAULT_URGENT: readonly NoticeKind[] = ["disk"];
const SCHEME_PORTS: Readonly<Record<string, number>> = { "smtp:": 587, "smtps:": 465 };
const LOCAL_PORT = 25;
const HOST = new RegExp(`^${HOST_PATTERN}$`);

/** Problems go to the draft; an entry with a problem may be missing from the result. */
export async function readNotify(
  entries: Written<typeof NOTIFY> = [],
  draft: Draft,
): Promise<readonly ChannelSettings[]> {
  const read: ChannelSettings[] = [];
  for (const [at, raw] of entries.entries()) {
    if (raw === undefined) continue;
    const path = ["notify", at];
    const hasProblem = draft.problems.has([...path, "mail"]) || draft.problems.has([...path, "webhook"]);
    if ((raw.mail === undefined) === (raw.webhook === undefined) && !hasProblem) {
      draft.problems.add(path, "must have either mail or webhook");
    }
    const settings = await readKeys(KEYS, [{ raw, path }], draft);
    const { mail, webhook, mailboxes, quiet, gather, every, urgent = DEFAULT_URGENT } = settings;
    const { on = mailboxes === undefined ? NOTICE_KINDS : MAILBOX_KINDS } = settings;
    const channel = mail ?? (webhook && ({ kind: "webhook", ...webhook } as const));
    const times = { quiet, gatherMs: gather, everyMs: every };
    if (channel !== undefined) read.push({ channel, on, urgent, mailboxes, ...times });
  }
  return read;
}

async function readMail(raw: RawMail, path: KeyPath, draft: Draft): Promise<MailChannel | undefined> {
  const read = await readKeys(MAIL.properties, [{ raw, path }], draft);
  const { from, to = [], server, user, password, ca, timeout: timeoutMs } = read;
  if (server === undefined || from === undefined || to.length === 0) return undefined;
  const tls = readTls(read.tls, server, [...path, "tls"], draft);
  checkLogin(raw, tls, server, path, draft);
  return { kind: "mail", to, from, host: server.host, port: server.port, tls, user, password, ca, timeoutMs };
}

interface Server {
  readonly host: string;
  readonly port: number;
  readonly isImplicit: boolean;
  readonly isLocal: boolean;
}

/** Messages do not quote the address: by mistake, it may hold a password. */
function readServer(text: string, path: KeyPath, draft: Draft): Server | undefined {
  const url = URL.parse(text);
  const usualPort = SCHEME_PORTS[url?.protocol ?? ""];
  if (url === null || usualPort === undefined || !HOST.test(url.hostname)) {
    draft.problems.add(path, `must be ${MAIL.properties.server.title}`);
    return undefined;
  }
  if (url.username + url.password !== "") {
    draft.problems.add(path, "must not contain a user or password: set user and password");
    return undefined;
  }
  if (!["", "/"].includes(url.pathname + url.search + url.hash)) {
    draft.problems.add(path, "must end after the port");
    return undefined;
  }
  const isImplicit = url.protocol === "smtps:";
  const isLocal = LOOPBACK.test(url.hostname);
  const port = Number(url.port) || (isLocal && !isImplicit ? LOCAL_PORT : usualPort);
  return { host: url.hostname.replace(/^\[|\]$/g, ""), port, isImplicit, isLocal };
}

function readTls(given: MailTls | undefined, server: Server, path: KeyPath, draft: Draft): MailTls {
  if (given === undefined) return server.isImplicit ? "implicit" : server.isLocal ? "none" : "required";
  if (server.isImplicit && given !== "implicit") {
    draft.problems.add(path, `${showValue(given)} does not fit smtps://, which is implicit`);
  }
  return given;
}

/** A password is never sent unencrypted to another machine. */
function checkLogin(raw: RawMail, tls: MailTls, { isLocal }: Server, path: KeyPath, draft: Draft): void {
  if ((raw.user === undefined) !== (raw.password === undefined)) {
    const [given, missing] = raw.user === undefined ? ["password", "user"] : ["user", "password"];
    draft.problems.add([...path, given], `needs ${missing} too`);
  }
  const isSafe = isLocal || tls === "required" || tls === "implicit";
  if (raw.password !== undefined && !isSafe) {
    draft.problems.add([...path, "tls"], `${showValue(tls)} could reveal the password: set required`);
  }
}
