/** The schema of the configuration: every key, its values, meaning and default. */
import { CHECK_KEYS } from "./check.ts";
import { FOLDERS } from "./folders.ts";
import { HANDOFF } from "./handoff.ts";
import { HTTP } from "./http.ts";
import { KEEP, LIMITS } from "./limits.ts";
import { DEFAULTS, MAILBOX } from "./mailboxes.ts";
import { NOTIFY } from "./notify.ts";
import { COMMON_PASSWORDS } from "./passwords.ts";
import { REDIS, ROLE } from "./queue.ts";
import { QUEUE } from "./redis-address.ts";
import { group, type SchemaNode, type Written } from "./schema-nodes.ts";
import { SERVICE_KEYS } from "./service.ts";
import { TIMEZONE } from "./times.ts";

const LOG = group(
  {
    level: {
      type: "string",
      enum: ["debug", "info", "warn", "error"],
      description:
        "How much `run` and `once` log. Default: `info` for `run`, `warn` for `once`. `--log-level` takes precedence.",
    },
  },
  "The log.",
);

export const SCHEMA = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  title: "the configuration of Inlet",
  type: "object",
  properties: {
    version: {
      type: "integer",
      title: "1, the only version that this Inlet supports: a newer file needs a newer Inlet",
      minimum: 1,
      maximum: 1,
      default: 1,
      description:
        "The version of the configuration format. It changes only when an older Inlet could not read the file.",
    },
    service: group(SERVICE_KEYS, "The transfer service, for every mailbox without its own."),
    ...FOLDERS,
    timezone: TIMEZONE,
    queue: QUEUE,
    redis: REDIS,
    role: ROLE,
    mailboxes: {
      type: "array",
      title: "a list of at least one mailbox",
      items: MAILBOX,
      minItems: 1,
      description:
        "The mailboxes to poll, at least one. No two mailboxes may have the same address or the same name.",
    },
    defaults: DEFAULTS,
    passwords: COMMON_PASSWORDS,
    limits: LIMITS,
    keep: KEEP,
    check: group(
      CHECK_KEYS,
      "A program that decides about each complete transfer before its delivery, such as a virus scanner.",
    ),
    handoff: HANDOFF,
    notify: NOTIFY,
    http: HTTP,
    log: LOG,
  },
  required: ["inbox", "mailboxes"],
  additionalProperties: false,
} as const satisfies SchemaNode & { readonly $schema: string };

/** The values that the schema accepted; refused ones are left out. */
export type RawSettings = Written<typeof SCHEMA>;
