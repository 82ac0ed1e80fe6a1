/** The keys that say what runs the work: this process alone, or a queue on Redis that several processes share. */
import { DURATION, PATH, type SchemaNode, SECRET, TEXT } from "./schema-nodes.ts";

/** A name or an address of a machine; one of IPv6 stands in brackets. */
export const HOST_PATTERN = "(\\[[0-9A-Fa-f:.]+\\]|[A-Za-z0-9._-]+)";

export const QUEUE = {
  ...TEXT,
  title: "embedded, or the address of a Redis such as redis://redis.example.com:6379/0",
  default: "embedded",
  description:
    "What runs the work. `embedded` is one process on one machine. The address of a Redis, `redis://USER:PASSWORD@HOST:PORT/DATABASE`, lets several processes share it; of it only the host is needed. `rediss://` uses TLS. How it is reached stands in `redis`.",
  writeOnly: true,
} as const satisfies SchemaNode;

export const ROLE = {
  type: "string",
  enum: ["all", "worker", "scheduler"],
  default: "all",
  description:
    "What this process does: `worker` collects transfers, `scheduler` looks for them, `all` does both. Anything but `all` needs a queue on Redis.",
} as const satisfies SchemaNode;

/** Never shown: somebody may have put a password before the host. */
const NODE = {
  type: "string",
  title: "a host and a port such as redis1.example.com:6379",
  pattern: `^${HOST_PATTERN}:[1-9][0-9]{0,4}$`,
  writeOnly: true,
} as const satisfies SchemaNode;

const NODES = {
  type: "array",
  title: "a list of at least one host and port such as redis1.example.com:6379",
  items: NODE,
  minItems: 1,
} as const satisfies SchemaNode;

export const REDIS = {
  type: "object",
  title: "a group of keys",
  properties: {
    username: { ...TEXT, description: "The user to log in as. It wins over the one in `queue`." },
    password: {
      ...SECRET,
      description: "The password to log in with. It wins over the one in `queue`, and need not be escaped.",
    },
    ca: {
      ...PATH,
      description:
        "A PEM file with the certificate authorities to trust beside the usual ones. Needs `rediss://`.",
    },
    sentinels: {
      ...NODES,
      description: "Sentinels that know which server is the master. Excludes `cluster`.",
    },
    sentinelName: {
      ...TEXT,
      default: "mymaster",
      description: "The name by which the sentinels know the master.",
    },
    sentinelPassword: { ...SECRET, description: "The password of the sentinels, where they have one." },
    cluster: {
      ...NODES,
      description: "Some nodes of a Redis cluster, which name the others. Excludes `sentinels`.",
    },
    prefix: {
      type: "string",
      title: "a name of at most 100 letters, digits, dots, - and _",
      pattern: "^[A-Za-z0-9._-]{1,100}$",
      default: "inlet",
      description:
        "What the names of all keys in Redis begin with. Processes with the same one share their work; in a cluster it is put in braces, which keeps the keys on one node.",
    },
    lock: {
      ...DURATION,
      default: "30s",
      description:
        "After so long without a sign of life another process may take over a transfer. From 2s to 10m.",
    },
  },
  additionalProperties: false,
  description: "How to reach the Redis that `queue` names, and how it is shared.",
} as const satisfies SchemaNode;
