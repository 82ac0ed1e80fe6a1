/** The `notify` list: its defaults, and what it refuses. */
import { inspect } from "node:util";
import { expect, test } from "vitest";
import { describeChannel, NOTICE_KINDS } from "../../../src/model/notify.ts";
import { casesOf, config, load as loadText, problemsOf, SMALLEST } from "./stage.ts";

const MAIL = { to: ["ops@example.com"], from: "inlet@example.com" };
const HOOK = { url: "https://hooks.example.com/T/secret?k=v", secret: "s" };

test("an entry with mail needs recipients and a sender, and uses this machine's server without TLS", async () => {
  const [entry] = await load([{ mail: MAIL }]);
  expect(entry).toMatchObject({
    channel: { kind: "mail", ...MAIL, host: "localhost", port: 25, tls: "none", timeoutMs: 60_000 },
    on: NOTICE_KINDS,
    urgent: ["disk"],
    mailboxes: undefined,
    quiet: undefined,
    gatherMs: 30_000,
    everyMs: 900_000,
  });
});

test.each([
  ["smtp://mail.example.com", 587, "required"],
  ["smtp://mail.example.com:2525", 2525, "required"],
  ["smtps://mail.example.com", 465, "implicit"],
  ["smtps://[2001:db8::1]:1465", 1465, "implicit"],
  ["smtp://127.0.0.1:2525", 2525, "none"],
])("an entry with mail through %s uses port %i with TLS %s", async (server, port, tls) => {
  const [entry] = await load([{ mail: { ...MAIL, server } }]);
  expect(entry?.channel).toMatchObject({ port, tls });
});

const WRONG = `
mail: { to: [a@b.c], from: a@b.c, server: mail.example.com }
  notify[0].mail.server: must be the address of a mail server such as smtp://mail.example.com:587
mail: { to: [a@b.c], from: a@b.c, server: "smtp://u:Secret1@mail.example.com" }
  notify[0].mail.server: must not contain a user or password: set user and password
mail: { to: [a@b.c], from: a@b.c, server: smtp://mail.example.com/inbox }
  notify[0].mail.server: must end after the port
mail: { to: [a@b.c], from: a@b.c, server: smtps://mail.example.com, tls: none }
  notify[0].mail.tls: "none" does not fit smtps://, which is implicit
mail: { to: [a@b.c], from: a@b.c, user: u, password: Secret1, server: smtp://mail.example.com, tls: opportunistic }
  notify[0].mail.tls: "opportunistic" could reveal the password: set required
mail: { to: [a@b.c], from: a@b.c, user: inlet }
  notify[0].mail.user: needs password too
mail: { to: ["a@example.com\\r\\nBcc: b@example.com"], from: a@b.c }
  notify[0].mail.to[0]: "a@example.com\\r\\nBcc: b@example.com" is not a mail address such as
mail: { to: [a@b.c], from: "Inlet <inlet@example.com>" }
  notify[0].mail.from: "Inlet <inlet@example.com>" is not a mail address such as ops@example.com
on: [disk]
  notify[0]: must have either mail or webhook
mail: { to: [a@b.c], from: a@b.c }, quiet: [daily]
  notify[0].quiet: leaves no time to notify
webhook: { url: http://hooks.example.com/Secret1, secret: s }
  would be called unencrypted: use https, or set notify[0].webhook.allowHttp to true
webhook: { url: https://hooks.example.com, secret: s, format: discord }
  notify[0].webhook.format: "discord" is not one of inlet, slack, mattermost, teams
webhook: { url: https://hooks.example.com }
  notify[0].webhook.secret: is missing: format: inlet needs it
webhook: { url: https://hooks.example.com, secret: s, proxy: "u:Secret1@p" }
  notify[0].webhook.proxy: must be the address of a proxy
webhook: { url: https://hooks.example.com, secret: s, headers: [{ name: Content-Type, value: Secret1 }] }
  notify[0].webhook.headers[0].name: "Content-Type" is set by Inlet
webhook: { url: https://hooks.example.com, secret: s, headers: [{ name: a b, value: Secret1 }] }
  notify[0].webhook.headers[0].name: "a b" is not the name of a header
webhook: { url: https://hooks.example.com, secret: s, headers: [{ name: A, value: "Secret1\\n" }] }
  cannot be the value of a header, which is printable ASCII without blanks around it
webhook: { url: https://hooks.example.com, secret: s, headers: [{ name: X, value: Secret1 }, { name: x, value: y }] }
  notify[0].webhook.headers[1].name: "x" is used twice
`;

test.each(casesOf(WRONG))("refused: %s", async (entry, part) => {
  const problems = await problemsOf(`${SMALLEST}notify: [{ ${entry} }]`);
  expect(problems).toEqual([expect.stringContaining(part)]);
  expect(problems.join()).not.toContain("Secret1");
});

test("an entry for some mailboxes leaves out what concerns none, unless it is chosen", async () => {
  const [some, chosen] = await load([
    { mail: MAIL, mailboxes: ["*@example.com"] },
    { mail: MAIL, mailboxes: ["*@example.com"], on: ["disk"] },
  ]);
  expect(some?.on).not.toContain("disk");
  expect(some?.on).toContain("password");
  expect(chosen?.on).toEqual(["disk"]);
});

test("a webhook is described without the part of its address that may hold a secret", async () => {
  const [entry] = await load([{ webhook: { url: "https://hooks.example.com/T/secret?k=v", secret: "s" } }]);
  expect(entry && describeChannel(entry.channel)).toBe("webhook at hooks.example.com");
});

test("a webhook uses the proxy of the environment, unless it has its own, and hides the proxy's password", async () => {
  const env = { HTTPS_PROXY: "http://u:Secret1@proxy.example:3128", NO_PROXY: "localhost" };
  const own = { ...HOOK, proxy: "http://u:Secret1@own.example:3128" };
  const channels = (await load([{ webhook: HOOK }, { webhook: own }], env)).map(({ channel }) => channel);
  expect(channels).toMatchObject([
    { proxy: { http: "", https: env.HTTPS_PROXY, except: "localhost" } },
    { proxy: { http: own.proxy, https: own.proxy, except: "" } },
  ]);
  expect(JSON.stringify(channels) + inspect(channels, { depth: 9 })).not.toContain("Secret1");
});

test("a webhook for a chat system needs no secret, and headers come from any source of secrets", async () => {
  const headers = [{ name: "Authorization", value: { env: "HOOK_TOKEN" } }];
  const webhook = { url: HOOK.url, format: "slack", headers };
  const [entry] = await load([{ webhook }], { HOOK_TOKEN: "Bearer Secret1" });
  expect(entry?.channel).toMatchObject({ format: "slack", secret: undefined });
  const { headers: read = [] } = entry?.channel.kind === "webhook" ? entry.channel : {};
  expect(read[0]?.name).toBe("Authorization");
  expect((await read[0]?.value.read(new AbortController().signal))?.reveal()).toBe("Bearer Secret1");
  expect(JSON.stringify(entry)).not.toContain("Secret1");
});

async function load(notify: readonly object[], env: Readonly<Record<string, string>> = {}) {
  return (await loadText(config(`notify: ${JSON.stringify(notify)}`), env)).notify ?? [];
}
