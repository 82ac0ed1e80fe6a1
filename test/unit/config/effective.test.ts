import { writeFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { readEffective } from "../../../src/config/effective.ts";
import { loadSettings } from "../../../src/config/load.ts";
import { writeConfig } from "./stage.ts";

const TEXT = `service:
  baseUrl: https://transfer.example.com
  clientId: { file: client-id }
  proxy: http://me:Hidden1@proxy.example:3128
  verification: { token: Hidden2 }
inbox: inbox
queue: redis://user:Hidden3@redis.example:6379/2
redis: { sentinelPassword: Hidden4 }
mailboxes:
  - email: orders@example.com
    poll: 5m
    passwords:
      - { sender: "*@supplier.example", password: Hidden5 }
      - { sender: "*@lab.example", password: { command: [pass, show, Hidden6] } }
    service: { timeout: 5s }
  - email: other@example.com
handoff: { webhook: { url: "https://hooks.example.com/Hidden7?key=Hidden8", secret: { env: HOOK } } }
http: { token: { credential: page } }
`;

test("shows each value with its source: a line of the file, a variable, or the default", async () => {
  const { file, find } = await read(TEXT, { INLET_LIMITS__TRANSFERS: "3", INLET_MAILBOXES: undefined });
  expect(find("service.baseUrl")).toEqual(["https://transfer.example.com", `${file}:2`]);
  expect(find("mailboxes[0].poll")).toEqual(["5m", `${file}:11`]);
  expect(find("mailboxes[1].poll")).toEqual(["60s", "default"]);
  expect(find("limits.transfers")).toEqual([3, "INLET_LIMITS__TRANSFERS"]);
  expect(find("limits.filesPerTransfer")).toEqual([16, "default"]);
  expect(find("http.listen")).toEqual(["127.0.0.1:8460", "default"]);
});

test("a mailbox's value from `defaults` has its line there, and unset keys of `defaults` are not listed", async () => {
  const { file, find, all } = await read(`${TEXT}defaults: { poll: 9m }\n`);
  expect(find("mailboxes[0].poll")).toEqual(["5m", `${file}:11`]);
  expect(find("mailboxes[1].poll")).toEqual(["9m", find("defaults.poll")?.[1]]);
  expect(find("defaults.poll")?.[1]).toMatch(/:\d+$/);
  expect(all.filter(({ key }) => key.startsWith("defaults.")).map(({ key }) => key)).toEqual([
    "defaults.poll",
  ]);
});

test("paths are absolute, and defaults that depend on other keys or the environment are worked out", async () => {
  const { file, find } = await read(TEXT, { STATE_DIRECTORY: "/var/lib/inlet-2", HOME: "/home/me" });
  const folder = file.replace(/\/[^/]*$/, "");
  expect(find("inbox")).toEqual([`${folder}/inbox`, `${file}:6`]);
  expect(find("work")).toEqual([`${folder}/inbox/.inlet`, "default"]);
  expect(find("state")).toEqual(["/var/lib/inlet-2", "STATE_DIRECTORY"]);
  const plain = await read(TEXT.replace(/^ {2}(clientId|proxy):.*\n/gm, ""), {
    STATE_DIRECTORY: "/s",
    https_proxy: "http://me:Hidden9@proxy.example:3128",
  });
  expect(plain.find("service.clientId")).toEqual(["file /s/client-id", "default"]);
  expect(plain.find("service.proxy")).toEqual(["http://[secret]@proxy.example:3128/", "https_proxy"]);
});

test("I4 no leaks: shows the source of a secret, or that there is one, and never the secret", async () => {
  const { file, find, all } = await read(TEXT);
  expect(JSON.stringify(all)).not.toMatch(/Hidden/);
  expect(find("service.clientId")).toEqual([`file ${file.replace(/[^/]*$/, "client-id")}`, `${file}:3`]);
  expect(find("service.verification")).toEqual([{ token: "[secret]" }, `${file}:5`]);
  expect(find("queue")).toEqual(["redis://[secret]@redis.example:6379/2", `${file}:7`]);
  expect(find("mailboxes[0].passwords[0].password")).toEqual(["[secret]", `${file}:13`]);
  expect(find("mailboxes[0].passwords[1].password")).toEqual(["command pass", `${file}:14`]);
  expect(find("handoff.webhook.url")).toEqual(["https://hooks.example.com/[secret]", `${file}:17`]);
  expect(find("handoff.webhook.secret")).toEqual(["variable HOOK", `${file}:17`]);
  expect(find("http.token")).toEqual(["credential page", `${file}:18`]);
});

const LAYERED = `${TEXT.replace(
  "service: {",
  `check: { timeout: 1m }
    inbox: own
    handoff: { fileMode: "0660", keep: { pickedUp: 7d } }
    routes:
      - { name: invoices, sender: "*@a.example", layout: "{trackingId}", handoff: { done: true, folderMode: "0700" } }
      - { sender: "*@b.example", action: hold }
    service: {`,
).replace("handoff: { w", "handoff: { group: 7, folderMode: '0770', w")}check: { command: [scan, "{folder}"] }
defaults: { layout: "{sender}/{trackingId}" }
`;

test("a route shows the values of its mailbox, a mailbox the common ones, each with the line that sets it", async () => {
  const { file, all, find } = await read(LAYERED);
  const lineOf = (text: string) => `${file}:${LAYERED.split("\n").findIndex((it) => it.includes(text)) + 1}`;
  const [own, common] = [lineOf("0660"), lineOf("group: 7")];
  const [route, held] = ["mailboxes[0].routes[0]", "mailboxes[0].routes[1]"];
  for (const at of [route, held, "mailboxes[0]", "mailboxes[1]", ""]) {
    const handoff = at === "" ? "handoff" : `${at}.handoff`;
    expect(find(`${handoff}.group`)).toEqual([7, common]);
    expect(find(`${handoff}.fileMode`)).toEqual(/\[0\]/.test(at) ? ["0660", own] : ["0640", "default"]);
    const folderMode = at === route ? ["0700", lineOf("0700")] : ["0770", common];
    expect(find(`${handoff}.folderMode`)).toEqual(folderMode);
    expect(find(`${handoff}.keep.notPickedUp`)).toEqual(["forever", "default"]);
    expect(find(`${handoff}.manifest`)).toEqual(["inside", "default"]);
  }
  expect(find(`${held}.handoff.keep.pickedUp`)).toEqual(["7d", own]);
  expect(find(`${route}.layout`)).toEqual(["{trackingId}", lineOf("0700")]);
  expect(find(`${held}.layout`)).toEqual(["{sender}/{trackingId}", lineOf("defaults:")]);
  expect(find(`${route}.inbox`)).toEqual([file.replace(/[^/]*$/, "own"), lineOf("inbox: own")]);
  expect(find("mailboxes[1].inbox")).toEqual(find("inbox"));
  expect(find("mailboxes[0].check.timeout")).toEqual(["1m", lineOf("check: { timeout")]);
  expect(find("mailboxes[1].check.command")).toEqual([["scan", "{folder}"], lineOf("check: { command")]);
  expect(find("mailboxes[0].service.timeout")).toEqual(["5s", lineOf("timeout: 5s")]);
  expect(find("mailboxes[1].service.baseUrl")).toEqual(find("service.baseUrl"));
  expect(JSON.stringify(all)).not.toMatch(/Hidden/);
  expect(all.filter(({ key }) => /routes\[1\]\.(name|poll|check)|\[1\]\.passwords/.test(key))).toEqual([]);
});

test("a route with all the values that are shown for it is the same route", async () => {
  const { file, all } = await read(LAYERED);
  const handoff: Record<string, unknown> = {};
  for (const { key, value } of all) {
    const [, name = "", inner] = /^mailboxes\[0\]\.routes\[0\]\.handoff\.(\w+)(?:\.(\w+))?$/.exec(key) ?? [];
    if (name === "" || name === "webhook") continue;
    handoff[name] = inner === undefined ? value : { ...(handoff[name] as object), [inner]: value };
  }
  const layered = await loadSettings({ path: file, env: {}, ignoreSecrets: true });
  await writeFile(
    file,
    LAYERED.replace(/handoff: \{ done.*\}(?= \})/, `handoff: ${JSON.stringify(handoff)}`),
  );
  const written = await loadSettings({ path: file, env: {}, ignoreSecrets: true });
  expect(Object.keys(handoff).length).toBeGreaterThan(10);
  expect(JSON.stringify(written.mailboxes[0]?.routing)).toBe(JSON.stringify(layered.mailboxes[0]?.routing));
});

test("leaves out groups that are not configured", async () => {
  const { all, find } = await read(`service: { baseUrl: https://a.example }
inbox: /i
mailboxes: [{ email: a@b.example }]
notify: [{ webhook: { url: https://hooks.example.com, secret: { env: HOOK } } }]
`);
  expect(all.filter(({ key }) => /^redis|^check|^handoff.webhook|mail\./.test(key))).toEqual([]);
  expect(find("notify[0].webhook.timeout")).toEqual(["30s", "default"]);
  expect(find("service.verification")).toEqual(["clientId", "default"]);
});

async function read(text: string, env: Readonly<Record<string, string | undefined>> = {}) {
  const file = await writeConfig(text);
  const all = await readEffective({ path: file, env });
  const find = (key: string) => {
    const found = all.filter((it) => it.key === key);
    expect(found, key).toHaveLength(1);
    return [found[0]?.value, found[0]?.from];
  };
  return { file, all, find };
}
