/** Messages: clear words, and no text of a sender that could do harm. The table of faults says which there are. */

import { readFile } from "node:fs/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import type { DaemonEvent, Overdue } from "../../../src/model/events.ts";
import { NOTICE_KINDS } from "../../../src/model/notify.ts";
import { formatMessage, type MessageOrigin } from "../../../src/notify/message.ts";
import { changeOfRecord, changesOfEvent, type Notice } from "../../../src/notify/notices.ts";
import { AREAS } from "../../support/fault-areas.ts";
import { makeRecord } from "../../support/record.ts";

const ORIGIN: MessageOrigin = {
  host: "mail1",
  inbox: "/srv/inbox",
  version: "0.1.0",
  config: undefined,
  hasSeveralMailboxes: true,
  console: "https://inlet.example.com/in",
  zone: "Europe/Berlin",
};

const CONTEXT = { nowMs: 0, blipMs: 0, process: "p", serviceOf: () => undefined };

test("a mail says how many, which, and what to do", () => {
  const message = messageOf(
    Array.from({ length: 25 }, (_, at) => passwordNotice(`t${at}`)),
    ORIGIN,
  );
  expect(message.subject).toBe("[inlet mail1] 25 transfers need a password");
  expect(message.text).toContain("25 transfers need a password.\n");
  expect(message.text).toContain("  t0 from anna@supplier.example to orders@example.com");
  expect(message.text).toContain("inlet password --mailbox orders@example.com t19\n");
  expect(message.text).not.toContain("t20");
  expect(message.text).toContain("… and 5 more: inlet list --state waiting");
});

test("a mail has times in the zone, which it names once, and a webhook has UTC", () => {
  const expires = "2026-07-01T20:00:00.000Z";
  const arrival = { described: "from x", days: [], times: [] } as unknown as Overdue["expectation"];
  const overdue = [{ mailbox: "m", expectation: arrival, dueMs: Date.parse("2026-01-01T20:00:00Z") }];
  const changes = changesOfEvent({ type: "overdue-listed", overdue }, CONTEXT);
  const late = changes.flatMap(({ begin }) => begin);
  const { text, body } = messageOf([{ ...passwordNotice("t1"), expires }, ...late], ORIGIN);
  expect(text).toContain(", expires 2026-07-01 22:00:00\n");
  expect(text).toContain("Expected: from x, by 2026-01-01 21:00:00.\n");
  expect(text.match(/Europe\/Berlin/g)).toHaveLength(1);
  expect(body("id", "inlet")).toContain(expires);
  expect(body("id", "inlet")).toContain("by 2026-01-01T20:00:00.000Z.");
});

test("a message links to the console and to the page of each transfer, or to nothing", () => {
  const notice = { ...passwordNotice("t1"), mailbox: "a b&c", trackingId: "x\n://y" };
  const { text, body } = messageOf([notice], ORIGIN);
  const link = "https://inlet.example.com/in/transfer?mailbox=a+b%26c&trackingId=x%0A%3A%2F%2Fy";
  expect(text).toContain("\nConsole: https://inlet.example.com/in\n");
  expect(text.split("\n")).toContain(`      ${link}`);
  expect(JSON.parse(body("id", "inlet"))).toMatchObject({
    console: "https://inlet.example.com/in",
    notices: [{ first: [{ link }] }],
  });
  const without = messageOf([notice], { ...ORIGIN, console: undefined });
  expect(without.text).not.toMatch(/:\/\/|Console/);
  expect(JSON.parse(without.body("id", "inlet")).notices[0].first[0].link).toBeUndefined();
});

test("a failed command is quoted with its last lines, which cannot be clicked or taken for ours", () => {
  const output = `${"x".repeat(5_000)}\nsee https://evil.example\tnow\n\u202elast`;
  const delivered = { ...makeRecord(), folder: "m/t1", deliveredAt: "2026-03-01T08:00:00.000Z" };
  const fault = new Fault("COMMAND_FAILED", { detail: "it ended with exit code 75", output });
  const event = {
    type: "handoff-failed",
    delivered,
    step: "command",
    fault,
    attempts: 1,
    willRetry: false,
  } as const;
  const ofRecord = changeOfRecord(makeRecord({ state: "quarantined", message: "Refused.", output }), 0);
  for (const { begin } of [...changesOfEvent(event, CONTEXT), ofRecord]) {
    const { text, body } = messageOf(begin, ORIGIN);
    expect(text).toMatch(
      / {4}Its last output:\n {4}\| x{500,600}\n {4}\| see https\[:\]\/\/evil\.example {2}now\n/,
    );
    expect(text).toContain("\n    | \\u{202e}last\n");
    expect(JSON.parse(body("id", "inlet")).notices[0].first[0].output).toMatch(/last$/);
  }
  expect.assertions(6);
});

test("a subject names two kinds, and counts the others", () => {
  const notices = [
    passwordNotice("t1"),
    { ...passwordNotice("t2"), kind: "quarantined" as const, key: "q" },
    { ...passwordNotice("t3"), kind: "gone" as const, key: "g" },
  ];
  const { subject } = messageOf(notices, ORIGIN);
  expect(subject).toBe("[inlet mail1] 1 transfer needs a password, 1 transfer is in quarantine and 1 more");
});

test("troubles and their end have titles of their own", () => {
  const base = { key: "k", atMs: 0 } as const;
  const service = "https://transfer.example.com";
  const titles = (notice: Notice) => messageOf([notice], ORIGIN).subject.replace("[inlet mail1] ", "");
  expect(titles({ ...base, kind: "service", isTrouble: true, service, mailboxes: ["a", "b"] })).toBe(
    `2 mailboxes of ${service} cannot be polled`,
  );
  expect(titles({ ...base, kind: "service", isOver: true, service })).toBe("1 service works again");
  expect(titles({ ...base, kind: "disk", isTrouble: true })).toBe("a disk cannot be used");
  expect(titles({ ...base, kind: "disk", isOver: true })).toBe("the disk can be used again");
});

test("commands name the configuration, quoted for a shell", () => {
  const notices = Array.from({ length: 25 }, (_, at) => passwordNotice(`t${at}`));
  const { text } = messageOf(notices, { ...ORIGIN, config: "/etc/o'neil/inlet.yaml" });
  expect(text).toContain(String.raw`inlet list --state waiting --config '/etc/o'\''neil/inlet.yaml'`);
  expect(text).toContain(
    String.raw`Everything that is open: inlet status --config '/etc/o'\''neil/inlet.yaml'`,
  );
});

test("the command that verifies an address is on its own line, and names only the mailbox", () => {
  const notice = { kind: "verification", key: "k", atMs: 0, mailbox: "orders@example.com" } as const;
  const { subject, text } = messageOf([notice], { ...ORIGIN, config: "/srv/inlet.yaml" });
  expect(subject).toBe("[inlet mail1] 1 address has to be verified again");
  expect(text).toContain("\n      inlet verify-address --config /srv/inlet.yaml orders@example.com\n");
});

test("no text of a sender reaches the subject, ends a line, hides or reorders text, or is a link", () => {
  const hostile = fc.oneof(
    fc.string({ unit: "binary", maxLength: 40 }),
    fc.constantFrom(
      "x\r\nBcc: victim@example.org",
      "a\u202egnp.exe",
      "\u001b[2J",
      "<img src=x>",
      "https://evil.example/login",
      "a\u2028b",
      "\ud800",
      "-- \n",
    ),
  );
  fc.assert(
    fc.property(
      hostile,
      hostile,
      hostile,
      fc.constantFrom(...NOTICE_KINDS),
      (sender, trackingId, text, kind) => {
        const notice = { kind, key: "k", atMs: 0, sender, trackingId, text, mailbox: "m" };
        const plain = { ...notice, sender: "S", trackingId: "T", text: "X" };
        const [message, harmless] = [messageOf([notice], ORIGIN), messageOf([plain], ORIGIN)];
        expect(message.subject).toBe(harmless.subject);
        expect(message.subject).toMatch(/^[\x20-\x7e]+$/);
        expect(message.text).not.toMatch(/[\p{Cf}\u2028\u2029]|(?!\n)\p{Cc}/u);
        expect(message.text.replaceAll(ORIGIN.console ?? "", "")).not.toContain("://");
        expect(message.text.isWellFormed()).toBe(true);
        // As many lines as with harmless text: a sender cannot add one. An empty text has none.
        if (text.trim() !== "")
          expect(message.text.split("\n").length).toBe(harmless.text.split("\n").length);
        const body = JSON.parse(message.body("id", "inlet"));
        expect(body.notices[0].first[0]).toMatchObject({ mailbox: "m" });
        expect(message.body("id", "inlet")).not.toMatch(/[\p{Cf}\u2028\u2029\u007f-\u009f]/u);
      },
    ),
    { numRuns: 500 },
  );
});

test("a chat message has the words of the mail, with links to the console and the pages", () => {
  const notices = Array.from({ length: 12 }, (_, at) => passwordNotice(`t${at}`));
  const { blocks } = JSON.parse(messageOf(notices, ORIGIN).body("id", "slack"));
  const [title, text, ...links] = blocks[0].elements;
  expect(title.elements[0].text).toBe("[inlet mail1] 12 transfers need a password");
  expect(text.elements[0].text).toContain("  t0 from anna@supplier.example to orders@example.com");
  expect(text.elements[0].text).toContain("Everything that is open: inlet status");
  expect(text.elements[0].text).not.toContain("://");
  const shown = links.flatMap(({ elements }: { elements: Link[] }) => elements);
  expect(shown.map(({ text: label, url }: Link) => [label, url])).toEqual([
    ["Console", ORIGIN.console],
    ...notices
      .slice(0, 9)
      .map(({ trackingId }) => [
        trackingId,
        `${ORIGIN.console}/transfer?mailbox=orders%40example.com&trackingId=${trackingId}`,
      ]),
  ]);
  const test = formatMessage([], { ...ORIGIN, console: undefined }, 0, true);
  expect(test.body("id", "mattermost")).toContain("This is a test.");
  expect(test.body("id", "mattermost")).not.toContain("](");
});

type Link = { readonly text: string; readonly url: string };

test("a record's texts are cut", () => {
  const record = makeRecord({
    state: "waiting",
    reason: "password",
    message: "m".repeat(100_000),
    sender: "s".repeat(100_000),
  });
  const rejected = {
    type: "entries-rejected",
    mailbox: "m",
    entries: 2,
    reasons: [new Fault("BAD_ANSWER", { detail: "x".repeat(9_999) })],
  } as const;
  const changes = [changeOfRecord(record, 0), ...changesOfEvent(rejected, CONTEXT)];
  const { text } = messageOf(
    changes.flatMap(({ begin }) => begin),
    ORIGIN,
  );
  expect(text.length).toBeLessThan(4_000);
});

function passwordNotice(trackingId: string): Notice {
  const facts = { mailbox: "orders@example.com", sender: "anna@supplier.example" };
  return { kind: "password", key: trackingId, atMs: 0, trackingId, ...facts, text: "No password is known." };
}

function messageOf(notices: readonly Notice[], origin: MessageOrigin) {
  return formatMessage(notices, origin, 0);
}

const POLL = { type: "poll-failed", mailbox: "a@example.com", isFirst: true, waitMs: 0, tookMs: 1 } as const;
const POLL_FAILED = (fault: Fault): DaemonEvent => ({ ...POLL, token: undefined, fault });

test.each([
  ["service", POLL_FAILED(new Fault("ACCESS_REFUSED"))],
  ["mailbox", POLL_FAILED(new Fault("SECRET_UNREADABLE"))],
  ["disk", { type: "disk-failed", fault: new Fault("DISK_FULL") }],
  ["queue", { type: "queue-lost", fault: new Fault("QUEUE_UNREACHABLE") }],
] as const)("a fault of the area %s has a notification of its kind", (area, event) => {
  const context = { nowMs: 1, blipMs: 0, process: "p", serviceOf: () => "https://example.com/" };
  const [change] = changesOfEvent(event as DaemonEvent, context);
  expect(AREAS[area].notices).toContain(change?.begin[0]?.kind);
});

test.each(["DISK_FULL", "QUEUE_UNREACHABLE", "QUEUE_REFUSED"] as const)(
  "a poll that fails with %s is no trouble of the service",
  (code) => {
    const context = { nowMs: 1, blipMs: 0, process: "p", serviceOf: () => "https://example.com/" };
    expect(changesOfEvent(POLL_FAILED(new Fault(code)), context)).toEqual([]);
  },
);

test("every metric of the table is documented", async () => {
  const page = await readFile(new URL("../../../docs/operating.md", import.meta.url), "utf8");
  for (const { metric } of Object.values(AREAS)) {
    if (metric !== undefined) expect(page).toContain(`\`${metric}`);
  }
});
