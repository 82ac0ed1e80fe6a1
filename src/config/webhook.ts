/** Webhooks of the hand-off and of notifications. */
import { CHAT_FORMATS } from "../base/chat.ts";
import type { Secret } from "../base/secret.ts";
import type { OwnHeader, Receiver } from "../base/signed-post.ts";
import { SECRET, secretWith } from "./credentials.ts";
import { type Draft, formatPath, type KeyPath, showValue } from "./draft.ts";
import { readKeys } from "./layers.ts";
import { key, READ, type SchemaNode, SWITCH, TEXT, type Written } from "./schema-nodes.ts";
import { LOOPBACK, proxyOfEnvironment, SERVICE_KEYS } from "./service.ts";
import { DURATION } from "./units.ts";

const HEADER = {
  type: "object",
  title: "a name and a value",
  properties: {
    name: {
      ...TEXT,
      pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$",
      title: "the name of a header such as Authorization",
      description: "The name of the header. Headers that Inlet sets itself cannot be set here.",
    },
    value: key({ ...SECRET, [READ]: secretWith(describeWrongValue) }, "The value: printable ASCII."),
  },
  required: ["name", "value"],
  additionalProperties: false,
} as const satisfies SchemaNode;

const HEADERS = { type: "array", title: "a list of headers", items: HEADER } as const satisfies SchemaNode;

const WEBHOOK_KEYS = {
  type: "object",
  title: "a group of keys",
  properties: {
    url: {
      ...TEXT,
      title: "an address such as https://hooks.example.com/inlet",
      description:
        "The address to call. It must use https, unless the receiver is on this machine or `allowHttp` is true. It must not contain a user or password. Inlet shows only its host, because its path or query may hold a secret.",
      writeOnly: true,
    },
    format: key(
      { type: "string", enum: ["inlet", ...CHAT_FORMATS], default: "inlet" },
      "What the receiver gets. `inlet`: JSON with all facts, for programs. `slack`, `mattermost`, `teams`: a message for people, for an incoming webhook of Slack or Mattermost, or for a workflow of Microsoft Teams. A message links to the console at `http.publicUrl`.",
    ),
    secret: key(SECRET, "The key that signs calls, with HMAC-SHA256. Required with `format: inlet`."),
    headers: key(
      { ...HEADERS, [READ]: readHeaders },
      "More headers for each call, such as one that the receiver or a gateway demands.",
    ),
    ca: SERVICE_KEYS.ca,
    proxy: SERVICE_KEYS.proxy,
    timeout: key({ ...DURATION, default: "30s" }, "The longest time to wait for an answer, at most 24h."),
    allowHttp: key(
      { ...SWITCH, default: false },
      "Whether to allow plain http to other machines. The call is then unencrypted.",
    ),
  },
  required: ["url"],
  additionalProperties: false,
  description:
    "An address that receives a POST for each delivery. Until the receiver accepts it, the POST is sent again with growing pauses, for three days. See docs/consuming.md.",
} as const satisfies SchemaNode;

export const WEBHOOK = { ...WEBHOOK_KEYS, [READ]: readWebhook } as const satisfies SchemaNode;

/** `undefined` without a usable webhook. */
async function readWebhook(
  raw: Written<typeof WEBHOOK_KEYS>,
  path: KeyPath,
  draft: Draft,
): Promise<Receiver | undefined> {
  if (raw.url === undefined) return undefined;
  const read = await readKeys(WEBHOOK_KEYS.properties, [{ raw, path }], draft);
  const { format, secret, headers = [], ca, timeout: timeoutMs, allowHttp } = read;
  const { proxy = proxyOfEnvironment(draft.env) } = read;
  const secretPath = [...path, "secret"];
  if (format === "inlet" && secret === undefined && !draft.problems.has(secretPath)) {
    draft.problems.add(secretPath, "is missing: format: inlet needs it to sign calls");
  }
  const url = URL.parse(raw.url);
  const wrong = describeWrongUrl(url, path, allowHttp);
  if (wrong !== undefined) draft.problems.add([...path, "url"], wrong);
  if (url === null || wrong !== undefined) return undefined;
  return { url, format, secret, headers, ca, proxy, timeoutMs };
}

/** In lower case: headers of Inlet, and those that would change how the call is sent. */
const RESERVED_HEADERS = [
  "connection",
  "content-encoding",
  "content-length",
  "content-type",
  "expect",
  "host",
  "idempotency-key",
  "inlet-signature",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "user-agent",
];

async function readHeaders(
  entries: Written<typeof HEADERS>,
  path: KeyPath,
  draft: Draft,
): Promise<readonly OwnHeader[]> {
  const headers = new Map<string, OwnHeader>();
  for (const [at, { name, value } = {}] of entries.entries()) {
    if (name === undefined || value === undefined) continue;
    const known = name.toLowerCase();
    const wrong = RESERVED_HEADERS.includes(known)
      ? "is set by Inlet"
      : headers.has(known) && "is used twice";
    if (wrong) draft.problems.add([...path, at, "name"], `${showValue(name)} ${wrong}`);
    headers.set(known, {
      name,
      value: await HEADER.properties.value[READ](value, [...path, at, "value"], draft),
    });
  }
  return [...headers.values()];
}

/** Does not quote the value; `undefined` for a valid one. */
function describeWrongValue(value: Secret): string | undefined {
  return /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/.test(value.reveal())
    ? undefined
    : "cannot be the value of a header, which is printable ASCII without blanks around it";
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
