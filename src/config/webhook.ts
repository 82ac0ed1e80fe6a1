/** Webhooks of the hand-off and of notifications. */
import { CHAT_FORMATS } from "../base/chat.ts";
import type { Secret } from "../base/secret.ts";
import type { OwnHeader, Receiver } from "../base/signed-post.ts";
import { SECRET, secretWith } from "./credentials.ts";
import { formatPath, type Spot, showValue } from "./draft.ts";
import {
  entry,
  key,
  list,
  READ,
  type Read,
  type ReadItems,
  type SchemaNode,
  SWITCH,
  TEXT,
} from "./schema-nodes.ts";
import { LOOPBACK, proxyOfEnvironment, SERVICE_KEYS } from "./service.ts";
import { DURATION } from "./units.ts";

const HEADER = entry("a name and a value", ["name", "value"], {
  name: key(
    {
      ...TEXT,
      pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$",
      title: "the name of a header such as Authorization",
    },
    "The name of the header. Headers that Inlet sets itself cannot be set here.",
  ),
  value: key({ ...SECRET, [READ]: secretWith(describeWrongValue) }, "The value: printable ASCII."),
});

const HEADERS = list("a list of headers", HEADER);

const FORM = key(
  entry("a group of keys", ["url"], {
    url: {
      ...TEXT,
      title: "an address such as https://hooks.example.com/inlet",
      description:
        "The address to call. It must use https, unless the receiver is on this machine or `allowHttp` is true. Inlet shows only its host, because its path or query may hold a secret.",
      writeOnly: true,
    },
    format: key(
      { type: "string", enum: ["inlet", ...CHAT_FORMATS], default: "inlet" },
      "What the receiver gets. `inlet`: JSON with all facts, for programs. `slack`, `mattermost`, `teams`: a message for people, with a link to the console at `http.publicUrl`.",
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
  }),
  "An address that receives a POST for each delivery. Until the receiver accepts it, the POST is sent again with growing pauses, for three days.",
);

export const WEBHOOK = { ...FORM, [READ]: readWebhook } as const satisfies SchemaNode;

function readWebhook(read: Read<typeof FORM>, at: Spot): Receiver | undefined {
  const { allowHttp, timeout: timeoutMs, headers = [], ...others } = read;
  const { format, secret, proxy = proxyOfEnvironment(at.draft.env) } = others;
  if (format === "inlet" && secret === undefined && !at.isRefused("secret")) {
    at.refuse("is missing: format: inlet needs it to sign calls", "secret");
  }
  const url = URL.parse(read.url);
  const wrong = describeWrongUrl(url, at, allowHttp);
  if (wrong !== undefined) at.refuse(wrong, "url");
  return url === null ? undefined : { ...others, url, headers, proxy, timeoutMs };
}

/** Headers of Inlet, and those that would change how the call is sent. */
const RESERVED_HEADER =
  /^(connection|content-(encoding|length|type)|expect|host|idempotency-key|inlet-signature|keep-alive|te|trailer|transfer-encoding|upgrade|user-agent)$/;

function readHeaders(headers: ReadItems<typeof HEADER>, at: Spot): readonly OwnHeader[] {
  const read = new Map<string, OwnHeader>();
  for (const [number, header] of headers.entries()) {
    if (header === undefined) continue;
    const name = header.name.toLowerCase();
    const refuse = (why: string) => at.refuse(`${showValue(header.name)} ${why}`, number, "name");
    if (RESERVED_HEADER.test(name)) refuse("is set by Inlet");
    else if (read.has(name)) refuse("is used twice");
    read.set(name, header);
  }
  return [...read.values()];
}

/** Does not quote the value; `undefined` for a valid one. */
function describeWrongValue(value: Secret): string | undefined {
  return /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/.test(value.reveal())
    ? undefined
    : "cannot be the value of a header, which is printable ASCII without blanks around it";
}

/** Does not quote the address, which may hold a secret; `undefined` for a valid one. */
function describeWrongUrl(url: URL | null, at: Spot, allowHttp: boolean): string | undefined {
  if (url === null || !["http:", "https:"].includes(url.protocol)) {
    return `must be ${FORM.properties.url.title}`;
  }
  if (url.username + url.password !== "") return "must not contain a user or password";
  if (url.protocol === "http:" && !LOOPBACK.test(url.hostname) && !allowHttp) {
    return `would be called unencrypted: use https, or set ${formatPath(at.at("allowHttp").path)} to true`;
  }
  return undefined;
}
