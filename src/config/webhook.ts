/** Webhooks of the hand-off and of notifications. */
import type { Receiver } from "../base/signed-post.ts";
import { readSecretKey, SECRET } from "./credentials.ts";
import { type Draft, formatPath, type KeyPath } from "./draft.ts";
import { type SchemaNode, SWITCH, TEXT, type Written } from "./schema-nodes.ts";
import { LOOPBACK } from "./service.ts";
import { DURATION, readDuration } from "./units.ts";

export const WEBHOOK = {
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
    secret: { ...SECRET, description: "The key that signs calls, with HMAC-SHA256." },
    timeout: {
      ...DURATION,
      default: "30s",
      description: "The longest time to wait for an answer, at most 24h.",
    },
    allowHttp: {
      ...SWITCH,
      default: false,
      description: "Whether to allow plain http to other machines. The call is then unencrypted.",
    },
  },
  required: ["url", "secret"],
  additionalProperties: false,
  description:
    "An address that receives a signed POST for each delivery. Until the receiver accepts it, the POST is sent again with growing pauses, for three days. See docs/consuming.md.",
} as const satisfies SchemaNode;

/** Problems and warnings go to the draft; `undefined` without a usable webhook. */
export async function readWebhook(
  webhook: Written<typeof WEBHOOK> | undefined,
  path: KeyPath,
  draft: Draft,
): Promise<Receiver | undefined> {
  if (webhook?.url === undefined || webhook.secret === undefined) return undefined;
  const { timeout: defaultTimeout, allowHttp: defaultAllowHttp } = WEBHOOK.properties;
  const { timeout = defaultTimeout.default, allowHttp = defaultAllowHttp.default } = webhook;
  const timeoutMs = readDuration(timeout, [...path, "timeout"], draft);
  const secret = await readSecretKey(webhook.secret, [...path, "secret"], draft);
  const url = URL.parse(webhook.url);
  const wrong = describeWrongUrl(url, path, allowHttp);
  if (wrong !== undefined) draft.problems.add([...path, "url"], wrong);
  return url === null || wrong !== undefined ? undefined : { url, secret, timeoutMs };
}

/** Does not quote the address, which may hold a secret; `undefined` for a valid one. */
function describeWrongUrl(url: URL | null, path: KeyPath, allowHttp: boolean): string | undefined {
  if (url === null || !["http:", "https:"].includes(url.protocol)) {
    return `must be ${WEBHOOK.properties.url.title}`;
  }
  if (url.username + url.password !== "") return "must not contain a user or password";
  if (url.protocol === "http:" && !LOOPBACK.test(url.hostname) && !allowHttp) {
    return `would be called unencrypted: use https, or set ${formatPath([...path, "allowHttp"])} to true`;
  }
  return undefined;
}
