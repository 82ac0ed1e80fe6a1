/** Webhooks of the hand-off and of notifications. */
import type { Receiver } from "../base/signed-post.ts";
import { SECRET } from "./credentials.ts";
import { type Draft, formatPath, type KeyPath } from "./draft.ts";
import { readKeys } from "./layers.ts";
import { key, READ, type SchemaNode, SWITCH, TEXT, type Written } from "./schema-nodes.ts";
import { LOOPBACK } from "./service.ts";
import { DURATION } from "./units.ts";

const WEBHOOK_KEYS = {
  type: "object",
  title: "a group of keys",
  properties: {
    url: {
      ...TEXT,
      title: "an address such as https://hooks.example.com/inlet",
      description:
        "The address to call. It must use https, unless the receiver is on this machine or `allowHttp` is true. It must not contain a user or password. Inlet never shows the address, because its query may hold a secret.",
      writeOnly: true,
    },
    secret: key(SECRET, "The key that signs calls, with HMAC-SHA256."),
    timeout: key({ ...DURATION, default: "30s" }, "The longest time to wait for an answer, at most 24h."),
    allowHttp: key(
      { ...SWITCH, default: false },
      "Whether to allow plain http to other machines. The call is then unencrypted.",
    ),
  },
  required: ["url", "secret"],
  additionalProperties: false,
  description:
    "An address that receives a signed POST for each delivery. Until the receiver accepts it, the POST is sent again with growing pauses, for three days. See docs/consuming.md.",
} as const satisfies SchemaNode;

export const WEBHOOK = { ...WEBHOOK_KEYS, [READ]: readWebhook } as const satisfies SchemaNode;

/** `undefined` without a usable webhook. */
async function readWebhook(
  raw: Written<typeof WEBHOOK_KEYS>,
  path: KeyPath,
  draft: Draft,
): Promise<Receiver | undefined> {
  if (raw.url === undefined || raw.secret === undefined) return undefined;
  const { secret, timeout, allowHttp } = await readKeys(WEBHOOK_KEYS.properties, [{ raw, path }], draft);
  const url = URL.parse(raw.url);
  const wrong = describeWrongUrl(url, path, allowHttp);
  if (wrong !== undefined) draft.problems.add([...path, "url"], wrong);
  if (url === null || secret === undefined || wrong !== undefined) return undefined;
  return { url, secret, timeoutMs: timeout };
}

/** Does not quote the address, which may hold a secret; `undefined` for a valid one. */
function describeWrongUrl(url: URL | null, path: KeyPath, allowHttp: boolean): string | undefined {
  if (url === null || !["http:", "https:"].includes(url.protocol)) {
    return `must be ${WEBHOOK_KEYS.properties.url.title}`;
  }
  if (url.username + url.password !== "") return "must not contain a user or password";
  if (url.protocol === "http:" && !LOOPBACK.test(url.hostname) && !allowHttp) {
    return `would be called unencrypted: use https, or set ${formatPath([...path, "allowHttp"])} to true`;
  }
  return undefined;
}
