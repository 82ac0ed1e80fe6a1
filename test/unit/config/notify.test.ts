/** The `notify` list: its defaults, and what it refuses. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { loadSettings } from "../../../src/config/load.ts";
import { describeChannel, NOTICE_KINDS } from "../../../src/model/notify.ts";
import { makeFolder } from "../../support/program.ts";
import { CLIENT_ID } from "./stage.ts";

const MAIL = { to: ["ops@example.com"], from: "inlet@example.com" };
const HOOK = { url: "https://hooks.example.com/T/secret?k=v", secret: "s" };
const LOGIN = { user: "inlet", password: "p" };

describe("an entry with mail", () => {
  test("needs recipients and a sender, and uses this machine's server without TLS", async () => {
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
  ])("through %s uses port %i with TLS %s", async (server, port, tls) => {
    const [entry] = await load([{ mail: { ...MAIL, server } }]);
    expect(entry?.channel).toMatchObject({ port, tls });
  });

  test.each([
    [{ mail: { ...MAIL, server: "mail.example.com" } }, /notify\[0\]\.mail\.server: must be the address/],
    [
      { mail: { ...MAIL, server: "smtp://u:Secret1@mail.example.com" } },
      /must not contain a user or password/,
    ],
    [{ mail: { ...MAIL, server: "smtp://mail.example.com/inbox" } }, /must end after the port/],
    [{ mail: { ...MAIL, server: "smtps://mail.example.com", tls: "none" } }, /"none" does not fit smtps/],
    [
      { mail: { ...MAIL, ...LOGIN, server: "smtp://mail.example.com", tls: "opportunistic" } },
      /could reveal/,
    ],
    [{ mail: { ...MAIL, user: "inlet" } }, /mail\.user: needs password too/],
    [{ mail: { ...MAIL, to: [] } }, /mail\.to: must be a list of at least one/],
    [
      { mail: { ...MAIL, to: ["a@example.com\r\nBcc: b@example.com"] } },
      /mail\.to\[0\]: .* is not a mail address/,
    ],
    [{ mail: { ...MAIL, from: "Inlet <inlet@example.com>" } }, /mail\.from: .* is not a mail address/],
    [{}, /notify\[0\]: must have either mail or webhook/],
    [{ mail: MAIL, on: ["passwords"] }, /on\[0\]: "passwords" is not one of password, quarantined/],
    [{ mail: MAIL, quiet: ["daily"] }, /quiet: leaves no time to notify/],
    [
      { webhook: { url: "http://hooks.example.com/", secret: "s" } },
      /set notify\[0\]\.webhook\.allowHttp to true/,
    ],
    [
      { webhook: { ...HOOK, format: "discord" } },
      /format: "discord" is not one of inlet, slack, mattermost, teams/,
    ],
    [{ webhook: { ...HOOK, secret: undefined } }, /webhook\.secret: is missing: format: inlet needs it/],
    [{ webhook: { ...HOOK, proxy: "u:Secret1@p" } }, /webhook\.proxy: must be the address of a proxy/],
    [{ webhook: { ...HOOK, headers: [{ name: "Content-Type", value: "Secret1" }] } }, /is set by Inlet/],
    [{ webhook: { ...HOOK, headers: [{ name: "a b", value: "Secret1" }] } }, /is not the name of a header/],
    [
      { webhook: { ...HOOK, headers: [{ name: "A", value: "Secret1\n" }] } },
      /headers\[0\]\.value: .*printable/,
    ],
    [
      {
        webhook: {
          ...HOOK,
          headers: [
            { name: "X-Key", value: "Secret1" },
            { name: "x-key", value: "Secret1" },
          ],
        },
      },
      /headers\[1\]\.name: "x-key" is used twice/,
    ],
  ])("that is wrong is refused: %j", async (entry, message) => {
    await expect(load([entry])).rejects.toThrow(message);
    await expect(load([entry])).rejects.not.toThrow(/Secret1/);
  });
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
  const folder = await makeFolder();
  const path = join(folder, "inlet.yaml");
  const service = { baseUrl: "https://transfer.example.com", clientId: CLIENT_ID };
  const keys = { service, inbox: join(folder, "inbox"), mailboxes: [{ email: "m@example.com" }], notify };
  await writeFile(path, JSON.stringify(keys), { mode: 0o600 });
  return (await loadSettings({ path, env })).notify ?? [];
}
