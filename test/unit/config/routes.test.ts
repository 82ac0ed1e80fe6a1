import { expect, test } from "vitest";
import { handoffOf } from "../../../src/config/settings.ts";
import { config, load, problemsOf, SMALLEST } from "./stage.ts";

function configOf(mailbox: string, more = ""): string {
  const keys = mailbox.replaceAll(/^/gm, "    ");
  return config(`timezone: Europe/Berlin\nmailboxes:\n  - email: a@example.com\n${keys}\n${more}`);
}

test("routes are read with their conditions, and with the hand-off of their mailbox beneath their own", async () => {
  const settings = await load(
    configOf(
      `
handoff: { folderMode: "0770" }
routes:
  - { name: invoices, sender: "*@supplier.example", file: ["*.xml", "*.pdf"], minSize: 1KB, maxSize: 2MiB,
      layout: "invoices/{trackingId}", handoff: { fileMode: "0600" } }
  - { subject: "*test*", action: ignore }
otherwise: hold`,
      'handoff: { fileMode: "0644", folderMode: "0755", marker: READY, keep: { notPickedUp: 9d } }',
    ),
  );
  const [mailbox] = settings.mailboxes;
  const { routing } = mailbox ?? {};
  expect(routing?.otherwise).toBe("hold");
  expect(routing?.routes).toMatchObject([
    {
      name: "invoices",
      action: "deliver",
      when: {
        sender: ["*@supplier.example"],
        file: ["*.xml", "*.pdf"],
        minBytes: 1_000,
        maxBytes: 2 * 2 ** 20,
      },
      layout: "invoices/{trackingId}",
      handoff: { fileMode: 0o600, folderMode: 0o770, marker: "READY" },
    },
    { name: "routes[1]", action: "ignore", when: { subject: ["*test*"] } },
  ]);
  const handoff = (rule?: string) => handoffOf(settings, { mailbox: "A@example.com", rule });
  const [invoices, tests] = routing?.routes ?? [];
  expect(handoff(invoices?.rule)).toBe(invoices?.handoff);
  expect(tests?.rule).toBeUndefined();
  expect(handoff()).toBe(mailbox?.handoff);
  // The rule that decided is gone: nothing is removed, and nothing runs.
  const { keep, command, webhook, ...others } = mailbox?.handoff ?? {};
  expect(handoff("gone")).toEqual({ ...others, gone: { command: "route", webhook: "route" } });
});

test("routes are other rules than earlier ones of the same name: their keep applies to none of the old deliveries", async () => {
  const settingsWith = (condition: string) =>
    load(configOf(`routes: [{ name: r, ${condition}, handoff: { keep: { notPickedUp: 9d } } }]`));
  const before = await settingsWith("sender: anna@supplier.example");
  const rule = before.mailboxes[0]?.routing?.routes[0]?.rule;
  const delivered = { mailbox: "a@example.com", rule };
  expect(handoffOf(before, delivered)).toHaveProperty("keep");
  for (const condition of ["sender: ben@supplier.example", "subject: anna@supplier.example"]) {
    const handoff = handoffOf(await settingsWith(condition), delivered);
    expect(handoff).toMatchObject({ gone: { command: "route", webhook: "route" } });
    expect(handoff).not.toHaveProperty("keep");
  }
});

test("routes are missing unless something is treated differently", async () => {
  for (const text of ["", "routes: []", "otherwise: deliver"]) {
    expect((await load(configOf(text))).mailboxes[0]?.routing).toBeUndefined();
  }
  expect((await load(configOf("otherwise: ignore"))).mailboxes[0]?.routing).toEqual({
    routes: [],
    otherwise: "ignore",
  });
});

test.each([
  ["routes: [{ sendr: x }]", "sendr: unknown key, did you mean sender?"],
  ["routes: [{ minSize: 2MB, maxSize: 1MB }]", "is more than maxSize"],
  ['routes: [{ sender: x, layout: "/abs/{trackingId}" }]', "must be relative"],
  ["routes: [{ sender: x, layout: same }]", "must contain {trackingId} or {transferId}"],
  ["routes: [{ name: r, sender: x }, { name: r, sender: y }]", "is already used by another route"],
  ["routes: [{ action: hold }, { sender: y }]", "matches every transfer"],
  [
    "layout: flat\nhandoff: { deliver: files }\nroutes: [{ sender: x, handoff: { deliver: folder } }]",
    "must contain {trackingId} or {transferId}",
  ],
  ["otherwise: drop", "otherwise"],
])("routes with a mistake are refused: %s", async (text, problem) => {
  expect((await problemsOf(configOf(text))).join("\n")).toContain(problem);
});

test.each<[key: string, pattern: string, simple?: string]>([
  ["subject", "^Order.*$", "Order*"],
  ["subject", "Invoice.*", "Invoice*"],
  ["sender", ".*@supplier\\.example", "*@supplier.example"],
  ["sender", "[a-z]+@supplier.example", "*@supplier.example"],
  ["file", ".*\\.pdf", "*.pdf"],
  ["file", "^report-[0-9]{4}\\.csv$", "report-*.csv"],
  ["file", "data.+", "data*"],
  // What people write.
  ["subject", "*[Order]*"],
  ["subject", "[PRJ-17] *"],
  ["subject", "Price in US$"],
  ["sender", "anna.*@supplier.*"],
  ["sender", "*@*.supplier.example"],
  ["file", "*.*"],
  ["file", "report.*"],
  ["file", "data (?).csv"],
])(
  "a pattern that looks like a regular expression, and no other, has a warning that says what to write: %s %s",
  async (key, pattern, simple) => {
    const route = { [key]: ["*@other.example", pattern], action: "hold" };
    const { warnings } = await load(`${SMALLEST.replace("}]", `, routes: [${JSON.stringify(route)}] }]`)}`);
    const found = warnings.filter((it) => it.includes("regular expression"));
    expect(found).toEqual(simple === undefined ? [] : [expect.any(String)]);
    for (const warning of found) {
      expect(warning).toContain(`mailboxes[0].routes[0].${key}: ${JSON.stringify(pattern)} looks like a`);
      expect(warning).toContain(`only * and ? are wildcards: write ${JSON.stringify(simple)}.`);
    }
  },
);

test("a pattern that looks like a regular expression is found in rules for passwords too", async () => {
  const { warnings } = await load(`${SMALLEST}passwords: [{ sender: '.*@a.example', password: x }]`);
  expect(warnings.join()).toContain('passwords[0].sender: ".*@a.example" looks like a regular expression');
});

test("since is all by default, now, or a date in the time zone, for one mailbox or all", async () => {
  const sinceOf = async (text: string, more?: string) =>
    (await load(configOf(text, more))).mailboxes[0]?.since;
  expect(await sinceOf("")).toBeUndefined();
  expect(await sinceOf("since: all", "defaults: { since: now }")).toBeUndefined();
  expect(await sinceOf("", "defaults: { since: now }")).toBe("now");
  expect(await sinceOf("since: 2026-12-01")).toBe(Date.parse("2026-12-01T00:00+01:00"));
  expect(await sinceOf("since: 2026-07-01T06:30")).toBe(Date.parse("2026-07-01T06:30+02:00"));
});
