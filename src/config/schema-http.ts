/** The keys of the status page and its API. */

import { type SchemaNode, SECRET, SWITCH } from "./schema-nodes.ts";
import { HOST_PATTERN } from "./schema-redis.ts";

export const HTTP = {
  type: "object",
  title: "a group of keys",
  properties: {
    listen: {
      type: ["string", "boolean"],
      title: "false, a host and a port such as 127.0.0.1:8460, or unix: and a path",
      pattern: `^(false|${HOST_PATTERN}:[0-9]{1,5}|unix:/.+)$`,
      default: "127.0.0.1:8460",
      description:
        "Where the status page, its API, health and metrics are served. Whoever reaches it sees senders, names and states, but no file and no secret. `unix:/run/inlet/inlet.sock` is a socket in the file system, `false` is nowhere.",
    },
    actions: {
      ...SWITCH,
      default: false,
      description:
        "Whether passwords can be supplied and transfers retried, released and discarded through the page and its API. Needs `token`, but for a Unix socket, where whoever reaches it may act.",
    },
    token: {
      ...SECRET,
      description: "What visitors sign in with, and programs send as `Authorization: Bearer`.",
    },
    hosts: {
      type: "array",
      title: "a list of host names",
      items: { type: "string", title: "a host name", pattern: `^${HOST_PATTERN}$` },
      description:
        "Names by which browsers may call the page, beside addresses, `localhost` and the machine's own name: those of a proxy in front of it, for example. Health and metrics answer to every name.",
    },
  },
  additionalProperties: false,
  description: "The status page.",
} as const satisfies SchemaNode;
