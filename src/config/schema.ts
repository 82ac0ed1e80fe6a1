/** The schema of the configuration: every key, its values, meaning and default. */
import { CHECK } from "./check.ts";
import { FOLDERS } from "./folders.ts";
import { HANDOFF } from "./handoff.ts";
import { HTTP } from "./http.ts";
import { KEEP, LIMITS } from "./limits.ts";
import { DEFAULTS, MAILBOXES } from "./mailboxes.ts";
import { NOTIFY } from "./notify.ts";
import { COMMON_PASSWORDS } from "./passwords.ts";
import { QUEUE, REDIS, ROLE } from "./queue.ts";
import { group, type SchemaNode } from "./schema-nodes.ts";
import { SERVICE } from "./service.ts";
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
      description: "The version of the configuration format.",
    },
    service: SERVICE,
    ...FOLDERS,
    timezone: TIMEZONE,
    queue: QUEUE,
    redis: REDIS,
    role: ROLE,
    mailboxes: MAILBOXES,
    defaults: DEFAULTS,
    passwords: COMMON_PASSWORDS,
    limits: LIMITS,
    keep: KEEP,
    check: CHECK,
    handoff: HANDOFF,
    notify: NOTIFY,
    http: HTTP,
    log: LOG,
  },
  required: ["inbox", "mailboxes"],
  additionalProperties: false,
} as const satisfies SchemaNode & { readonly $schema: string };
