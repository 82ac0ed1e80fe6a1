/** Where deliveries are told of, and what that is signed with. */
import type { HandoffWebhook } from "../model/mailbox.ts";
import type { Draft } from "./draft.ts";
import { parseSecret } from "./parse-secret.ts";
import { showValue } from "./problems.ts";
import { HANDOFF } from "./schema-handoff.ts";
import { LOOPBACK } from "./service.ts";
import { parseDuration } from "./units.ts";

const KEYS = HANDOFF.properties.webhook.properties;
const PATH = ["handoff", "webhook"];

/** Problems and warnings go to the draft; `undefined` where there is none, or one that is of no use. */
export async function parseWebhook(draft: Draft): Promise<HandoffWebhook | undefined> {
  const { webhook } = draft.raw.handoff ?? {};
  if (webhook?.url === undefined || webhook.secret === undefined) return undefined;
  const { timeout = KEYS.timeout.default, allowHttp = KEYS.allowHttp.default } = webhook;
  const timeoutMs = parseDuration(timeout);
  if (timeoutMs === undefined) {
    draft.problems.add([...PATH, "timeout"], `${showValue(timeout)} is longer than 24h`);
  }
  const secret = await parseSecret(webhook.secret, [...PATH, "secret"], draft);
  const url = parseUrl(webhook.url, allowHttp, draft);
  return url === undefined ? undefined : { url, secret, timeoutMs: timeoutMs ?? 0 };
}

/** It may hold a secret, and is not repeated. */
function parseUrl(text: string, allowHttp: boolean, { problems }: Draft): URL | undefined {
  const refuse = (message: string): undefined => {
    problems.add([...PATH, "url"], message);
  };
  const url = URL.parse(text);
  if (url === null || !["http:", "https:"].includes(url.protocol)) return refuse(`must be ${KEYS.url.title}`);
  if (url.username + url.password !== "") return refuse("must not hold a user or password");
  if (url.protocol === "http:" && !LOOPBACK.test(url.hostname) && !allowHttp) {
    return refuse("would be called unencrypted: use https, or set handoff.webhook.allowHttp to true");
  }
  return url;
}
