/** The configuration as it may be written: every key, what it holds, what it means, what counts where it is absent. */

import { HANDOFF } from "./schema-handoff.ts";
import { HTTP } from "./schema-http.ts";
import {
  DURATION,
  LONG_DURATION,
  PATH,
  type SchemaNode,
  SECRET,
  SIZE,
  SWITCH,
  TEXT,
} from "./schema-nodes.ts";
import { QUEUE, REDIS, ROLE } from "./schema-redis.ts";
import { SERVICE_KEYS } from "./schema-service.ts";
import { BANDWIDTH, EXPECT, QUIET, TIMEZONE } from "./schema-times.ts";

const PASSWORD_RULE = {
  type: "object",
  title: "a rule",
  properties: {
    sender: {
      ...TEXT,
      maxLength: 254,
      description:
        "Whose transfers it opens: an address in which `*` stands for any characters and `?` for one.",
    },
    trackingId: { ...TEXT, description: "Which transfer it opens, by its tracking id." },
    password: { ...SECRET, description: "The password." },
  },
  required: ["password"],
  additionalProperties: false,
} as const satisfies SchemaNode;

const MAILBOX = {
  type: "object",
  title: "a mailbox",
  properties: {
    email: {
      type: "string",
      title: "an email address",
      pattern: "^[^\\s@.][^\\s@]*@[^\\s@]+$",
      maxLength: 254,
      description: "The address whose received transfers are collected.",
    },
    name: {
      type: "string",
      title: "a name without slashes that does not begin with a dot",
      pattern: "^[^\\u0000-\\u001f/\\\\.][^\\u0000-\\u001f/\\\\]*$",
      maxLength: 100,
      description:
        "What it is called in folders, records and messages. The address, where absent. Keep it: whoever renames a mailbox receives its transfers again.",
    },
    poll: {
      ...DURATION,
      default: "60s",
      description: "How long to wait between two looks for transfers, at most 24h.",
    },
    fetch: {
      type: "string",
      enum: ["auto", "files", "zip"],
      default: "auto",
      description:
        "How to download: `files` one by one, all as one `zip`, or `auto`, a ZIP for many small files and else one by one. The delivered folder is the same.",
    },
    verify: {
      type: "string",
      enum: ["require", "prefer"],
      default: "require",
      description:
        "What to do with files that the service has no checksums for: `require` puts the transfer into quarantine, `prefer` delivers it marked as not verified. A wrong checksum is never delivered.",
    },
    layout: {
      ...TEXT,
      title: "a relative path with placeholders",
      maxLength: 1000,
      default: "{mailbox}/{sender}/{trackingId}",
      description:
        "The folder of a transfer inside the inbox. Placeholders: `{mailbox} {sender} {senderDomain} {trackingId} {transferId} {subject} {year} {month} {day}` (UTC, when it was discovered). One of `{trackingId}` and `{transferId}` must be among them.",
    },
    passwords: {
      type: "array",
      title: "a list of rules",
      items: PASSWORD_RULE,
      description:
        "Passwords by sender or tracking id. Each needs at least one of the two; the first that fits is tried first. Where a sender has an old and a new password, put the new one first and set passwordAttempts to 3: rules leave the last attempt to a person.",
    },
    passwordAttempts: {
      type: "integer",
      minimum: 1,
      maximum: 10,
      default: 2,
      description:
        "How many wrong passwords a transfer may cost, at most. A service may lock or destroy a transfer after a few. An attempt whose verdict is unknown counts too. Rules leave the last attempt to a person, unless there is only one.",
    },
    paused: { ...SWITCH, default: false, description: "Whether to leave this mailbox alone for now." },
    quiet: QUIET,
    expect: EXPECT,
    service: {
      type: "object",
      title: "a group of keys",
      properties: SERVICE_KEYS,
      additionalProperties: false,
      description:
        "Where this mailbox's service differs from the common `service`: the keys given here win, one by one.",
    },
  },
  required: ["email"],
  additionalProperties: false,
} as const satisfies SchemaNode;

const LIMITS = {
  type: "object",
  title: "a group of keys",
  properties: {
    transfers: {
      type: "integer",
      minimum: 1,
      maximum: 1000,
      default: 4,
      description: "How many transfers to collect at once, and one more for each further service.",
    },
    filesPerTransfer: {
      type: "integer",
      minimum: 1,
      maximum: 100,
      default: 4,
      description: "How many files of one transfer to download at once.",
    },
    minFreeSpace: {
      ...SIZE,
      default: "1GiB",
      description: "What must stay free on the inbox's disk. A transfer that would not leave it waits.",
    },
    maxTransferSize: {
      ...SIZE,
      minimum: 1,
      default: "1TiB",
      description:
        "The largest transfer to accept. A larger one goes to quarantine without being downloaded.",
    },
    maxFiles: {
      type: "integer",
      minimum: 1,
      maximum: 10_000_000,
      default: 100_000,
      description:
        "The most files in one transfer. One with more goes to quarantine without being downloaded.",
    },
    bandwidth: BANDWIDTH,
  },
  additionalProperties: false,
  description: "How much at once, and how much at all.",
} as const satisfies SchemaNode;

const KEEP = {
  type: "object",
  title: "a group of keys",
  properties: {
    ledger: {
      ...LONG_DURATION,
      default: "90d",
      description:
        "How long the records of a transfer stay after it expired at the service. While the service lists it they stay in any case.",
    },
    history: {
      ...LONG_DURATION,
      default: "730d",
      description: "How long `inlet history` goes back, in whole months.",
    },
  },
  additionalProperties: false,
  description: "How long Inlet remembers what it did.",
} as const satisfies SchemaNode;

const LOG = {
  type: "object",
  title: "a group of keys",
  properties: {
    level: {
      type: "string",
      enum: ["debug", "info", "warn", "error"],
      description:
        "How much `run` and `once` log. Where absent: `info` for `run`, `warn` for `once`. `--log-level` wins over it.",
    },
  },
  additionalProperties: false,
  description: "The log.",
} as const satisfies SchemaNode;

export const SCHEMA = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  title: "the configuration of Inlet",
  type: "object",
  properties: {
    version: {
      type: "integer",
      title: "1, all that this Inlet knows: a newer file needs a newer Inlet",
      minimum: 1,
      maximum: 1,
      default: 1,
      description:
        "The version of the keys in this file. It changes only where an older Inlet could not follow them.",
    },
    service: {
      type: "object",
      title: "a group of keys",
      properties: SERVICE_KEYS,
      additionalProperties: false,
      description: "The transfer service, for every mailbox that does not say otherwise.",
    },
    inbox: {
      ...PATH,
      description: "The folder in which finished transfers appear. Whoever consumes them watches this one.",
    },
    work: {
      ...PATH,
      description:
        "The folder for the ledger, unfinished transfers and quarantine, on the same file system as the inbox, and Inlet's alone. Where absent: `.inlet` inside the inbox. Where others may write the inbox itself, they could put something else in its place: name a folder that stands where only Inlet, or root, may write.",
    },
    state: {
      ...PATH,
      description:
        "The folder for tokens and dropped passwords, readable by Inlet alone. Where absent: `$STATE_DIRECTORY`, which systemd sets; else `/var/lib/inlet` for root; else `inlet` in `$XDG_STATE_HOME` or `~/.local/state`.",
    },
    timezone: TIMEZONE,
    queue: QUEUE,
    redis: REDIS,
    role: ROLE,
    mailboxes: {
      type: "array",
      title: "a list of at least one mailbox",
      items: MAILBOX,
      minItems: 1,
      description: "The mailboxes to collect, at least one. Addresses and names must differ.",
    },
    limits: LIMITS,
    keep: KEEP,
    handoff: HANDOFF,
    http: HTTP,
    log: LOG,
  },
  required: ["inbox", "mailboxes"],
  additionalProperties: false,
} as const satisfies SchemaNode & { readonly $schema: string };
