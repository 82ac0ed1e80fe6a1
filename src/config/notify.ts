/** The `notify` list: who is notified of what, by mail or webhook, and when. */
import {
  type ChannelSettings,
  DAEMON_KINDS,
  MAIL_TLS,
  type MailChannel,
  NOTICE_KINDS,
} from "../model/notify.ts";
import { CERTIFICATES, SECRET } from "./credentials.ts";
import { type Spot, showValue } from "./draft.ts";
import {
  entry,
  group,
  HOST_PATTERN,
  key,
  list,
  READ,
  type Read,
  type SchemaNode,
  TEXT,
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

const SERVER = "the address of a mail server such as smtp://mail.example.com:587";

const KINDS = list(`a list of ${NOTICE_KINDS.join(", ")}`, { type: "string", enum: NOTICE_KINDS });

const MAIL_FORM = key(
  entry("a group of keys", ["to", "from"], {
    to: key(
      { ...list("a list of at least one mail address", ADDRESS), minItems: 1 },
      "The recipients of each mail.",
    ),
    from: key(ADDRESS, "The sender of each mail. Undeliverable mails return to it."),
    server: {
      ...TEXT,
      title: SERVER,
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
  }),
  "Sends mails as plain text.",
);

const FORM = {
  ...group(
    {
      mail: { ...MAIL_FORM, [READ]: readMail },
      webhook: key(WEBHOOK, "Receives a POST for each message, instead of a mail."),
      on: key(
        { ...KINDS, minItems: 1 },
        `What to notify of. Default: all; with \`mailboxes\`, all but ${DAEMON_KINDS.map((kind) => `\`${kind}\``).join(", ")}.`,
      ),
      mailboxes: key(
        {
          ...list("a list of names or addresses of mailboxes such as *@example.com", {
            ...TEXT,
            title: "a name or address of a mailbox",
            maxLength: 254,
          }),
          minItems: 1,
        },
        "The mailboxes to notify of, by name or address. Default: all.",
      ),
      gather: key(
        { ...DURATION, default: "30s" },
        "How long a message waits for more notifications before it is sent, at most 24h.",
      ),
      every: key(
        { ...DURATION, default: "15m" },
        "The least time between two messages, at most 24h. Notifications in between go into the next message.",
      ),
      quiet: key(
        { ...QUIET, [READ]: quietReader("leaves no time to notify") },
        "The quiet hours. Notifications wait until they end, except those in `urgent`, and those about a transfer that expires before.",
      ),
      urgent: key(
        KINDS,
        "What to notify of in quiet hours too. `every` applies to urgent messages separately. Default: `[disk]`.",
      ),
    },
    "One channel for notifications, with either `mail` or `webhook`.",
  ),
  title: "a notification",
} as const satisfies SchemaNode;

export const NOTIFY = key(
  list("a list of notifications", { ...FORM, [READ]: readChannel }),
  "Who is notified when a person has to act. See docs/operating.md#notifications.",
);

const MAILBOX_KINDS = NOTICE_KINDS.filter((kind) => !DAEMON_KINDS.includes(kind));
const SCHEME_PORTS: Readonly<Record<string, number>> = { "smtp:": 587, "smtps:": 465 };
const LOCAL_PORT = 25;
const HOST = new RegExp(`^${HOST_PATTERN}$`);

function readChannel(read: Read<typeof FORM>, at: Spot): ChannelSettings | undefined {
  const { mail, webhook, mailboxes, quiet, gather, every, urgent = ["disk"] } = read;
  const { on = mailboxes === undefined ? NOTICE_KINDS : MAILBOX_KINDS } = read;
  const isRefused = at.isRefused("mail") || at.isRefused("webhook");
  if (at.isSet("mail") === at.isSet("webhook") && !isRefused) at.refuse("must have either mail or webhook");
  const channel = mail ?? (webhook && ({ kind: "webhook", ...webhook } as const));
  return channel && { channel, on, urgent, mailboxes, quiet, gatherMs: gather, everyMs: every };
}

function readMail(read: Read<typeof MAIL_FORM>, at: Spot): MailChannel | undefined {
  const { server, timeout: timeoutMs, user, password, ...mail } = read;
  if (server === undefined) return undefined;
  const { host, port, isImplicit, isLocal } = server;
  const smtpTls = isLocal ? "none" : "required";
  const { tls = isImplicit ? "implicit" : smtpTls } = read;
  if (isImplicit && tls !== "implicit") {
    at.refuse(`${showValue(tls)} does not fit smtps://, which is implicit`, "tls");
  }
  if (user === undefined && password !== undefined) at.refuse("needs user too", "password");
  if (user !== undefined && password === undefined) at.refuse("needs password too", "user");
  // A password is never sent unencrypted to another machine.
  if (password !== undefined && !isLocal && ["none", "opportunistic"].includes(tls)) {
    at.refuse(`${showValue(tls)} could reveal the password: set required`, "tls");
  }
  return { kind: "mail", ...mail, host, port, tls, user, password, timeoutMs };
}

/** Messages do not quote the address: by mistake, it may hold a password. */
function readServer(text: string, at: Spot) {
  const url = URL.parse(text);
  const usualPort = SCHEME_PORTS[url?.protocol ?? ""];
  if (url === null || usualPort === undefined || !HOST.test(url.hostname)) {
    return at.refuse(`must be ${SERVER}`);
  }
  if (url.username + url.password !== "") {
    return at.refuse("must not contain a user or password: set user and password");
  }
  if (!["", "/"].includes(url.pathname + url.search + url.hash)) return at.refuse("must end after the port");
  const isImplicit = url.protocol === "smtps:";
  const isLocal = LOOPBACK.test(url.hostname);
  const port = Number(url.port) || (isLocal && !isImplicit ? LOCAL_PORT : usualPort);
  return { host: url.hostname.replace(/^\[|\]$/g, ""), port, isImplicit, isLocal };
}
