/** Notifications from the journal: over restarts, beside other processes, and with disks and receivers that fail. */
import { once } from "node:events";
import { mkdir, readdir, rename, rm, rmdir, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test, vi } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import { JOURNAL_FILE, Journal } from "../../../src/ledger/journal.ts";
import { parseText } from "../../../src/ledger/lines.ts";
import type { DaemonEvent } from "../../../src/model/events.ts";
import type { ChannelSettings } from "../../../src/model/notify.ts";
import type { TransferRecord } from "../../../src/model/record.ts";
import { Notifier, type NotifierTools } from "../../../src/notify/notifier.ts";
import { byMail, byWebhook, groupsOf, notifiedOf } from "../../support/notify.ts";
import { makeFolder } from "../../support/program.ts";
import { accept, openReceiver } from "../../support/receiver.ts";
import { makeRecord } from "../../support/record.ts";

const MINUTE_MS = 60_000;

test("a restart with a new channel, or a lost or damaged state, reports only what waits now", async () => {
  const receiver = await openReceiver(accept);
  const site = await makeSite(byWebhook(receiver.url));
  for (const trackingId of ["t1", "t2"]) site.journal.add(waiting(trackingId));
  await site.journal.flush();
  const first = await site.open();
  first.notifier.review([waiting("t2"), waiting("t2"), { ...waiting("t3"), mailbox: "not configured" }]);
  await vi.waitFor(() => expect(notifiedOf(receiver)).toEqual(["password t2"]), 60_000);
  first.notifier.review([waiting("t2")]);
  await first.notifier.close();
  await first.journal.flush();
  await writeFile(await stateIn(site.folder), "{");
  const second = await site.open();
  await second.happens("t4");
  await vi.waitFor(() => expect(notifiedOf(receiver)).toEqual(["password t2", "password t4"]), 60_000);
  await second.notifier.close();
});

test("a restart finishes the message that is being sent at the stop, and does not send it again", async () => {
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
  const receiver = await openReceiver((response) => void answered.then(() => accept(response)), accept);
  const site = await makeSite(byWebhook(receiver.url));
  const stop = new AbortController();
  const first = await site.open({ stop: stop.signal });
  await first.happens("t1");
  await vi.waitFor(() => expect(receiver.calls).toHaveLength(1), 60_000);
  stop.abort();
  // Some time after the stop.
  setTimeout(answer, 200);
  await first.notifier.close();
  const second = await site.open();
  await second.happens("t1");
  await second.happens("t2");
  await vi.waitFor(() => expect(notifiedOf(receiver)).toEqual(["password t1", "password t2"]), 60_000);
  await second.notifier.close();
});

test("a disk that refuses the journal and the state prevents no message", async () => {
  const receiver = await openReceiver(accept);
  const site = await makeSite(byWebhook(receiver.url));
  const opened = await site.open();
  await rm(site.journalFolder, { recursive: true });
  await writeFile(site.journalFolder, "");
  await rm(site.folder, { recursive: true });
  await opened.happens("t1");
  opened.notifier.listener({ type: "disk-failed", fault: new Fault("DISK_FULL") });
  await vi.waitFor(() => expect(notifiedOf(receiver).toSorted()).toEqual(["disk", "password t1"]), 60_000);
  await rm(site.journalFolder);
  await mkdir(site.journalFolder);
  await opened.happens("t2");
  await vi.waitFor(() => expect(notifiedOf(receiver)).toContain("password t2"), 60_000);
  await opened.notifier.close();
  expect(notifiedOf(receiver)).toHaveLength(3);
});

test("a disk that cannot read the saved state prevents no message, and the state is used once it can be read", async () => {
  useFakeTicks();
  const receiver = await openReceiver(accept);
  const site = await makeSite(byWebhook(receiver.url));
  const first = await site.open();
  await first.happens("t1");
  await vi.waitFor(() => expect(notifiedOf(receiver)).toEqual(["password t1"]), 60_000);
  await first.notifier.close();
  const path = await stateIn(site.folder);
  await rename(path, `${path}.aside`);
  await mkdir(path);
  const second = await site.open();
  second.notifier.listener({ type: "disk-failed", fault: new Fault("DISK_FULL") });
  await vi.waitFor(() => expect(notifiedOf(receiver)).toEqual(["password t1", "disk"]), 60_000);
  await second.happens("t2");
  await rmdir(path);
  await rename(`${path}.aside`, path);
  vi.advanceTimersByTime(5_000);
  await vi.waitFor(() => expect(notifiedOf(receiver)).toContain("password t2"), 60_000);
  await second.notifier.close();
  expect(notifiedOf(receiver).filter((each) => each === "password t1")).toHaveLength(1);
});

test("I7 nothing silent: after the loss of a disk, messages are sent, although several parts open the notifications at once", async () => {
  const receiver = await openReceiver(accept);
  const channel = byWebhook(receiver.url);
  const site = await makeSite(channel);
  const { notifier } = await site.open();
  notifier.release();
  await Promise.all([1, 2].map(() => notifier.apply({ notify: [channel], mailboxes: [] })));
  notifier.listener({ type: "disk-failed", fault: new Fault("DISK_FULL") });
  await vi.waitFor(() => expect(notifiedOf(receiver)).toEqual(["disk"]), 20_000);
  await notifier.close();
});

test("of two processes, one sends for both, and the other takes over when it ends, with all that is known", async () => {
  useFakeTicks();
  const receiver = await openReceiver(accept);
  const site = await makeSite(byWebhook(receiver.url));
  const [one, other] = [await site.open({ isShared: true }), await site.open({ isShared: true }, "other")];
  await one.happens("t1");
  await other.happens("t2");
  await inTime(() => expect(notifiedOf(receiver).toSorted()).toEqual(["password t1", "password t2"]));
  await one.notifier.close();
  await one.happens("t3");
  await inTime(() => expect(notifiedOf(receiver)).toContain("password t3"));
  expect(notifiedOf(receiver)).toHaveLength(3);
  await other.notifier.close();
});

test("of two processes, the end of one ends its troubles", async () => {
  useFakeTicks();
  const receiver = await openReceiver(accept);
  const site = await makeSite(byWebhook(receiver.url));
  const ended = new Set<string>();
  const hasEnded = async (id: string) => ended.has(id);
  const one = await site.open({ isShared: true, hasEnded, process: "one" });
  const other = await site.open({ isShared: true, hasEnded, process: "other" }, "other");
  other.notifier.listener({ type: "queue-lost", fault: new Fault("QUEUE_UNREACHABLE") });
  await other.journal.flush();
  await inTime(() => expect(groupsOf(receiver)).toMatchObject([{ kind: "queue", over: false }]));
  ended.add("other");
  await inTime(() => expect(groupsOf(receiver)).toMatchObject([{}, { kind: "queue", over: true }]));
  await one.notifier.close();
  await other.notifier.close();
});

test.each([
  ["permanently", "550 no such recipient"],
  ["for now", "451 try again later"],
])(
  "a recipient that is refused %s is reported, delays no later mail, and is over when all are accepted",
  async (_, answer) => {
    const server = await openSmtpServer({ "b@example.com": answer });
    const events: DaemonEvent[] = [];
    const mail = { to: ["a@example.com", "b@example.com"], tls: "none", user: undefined } as const;
    const site = await makeSite(byMail(server, {}, mail));
    const opened = await site.open({
      emit: (event) => events.push(event),
      // A retry would come after the end of this test.
      patience: { retryMs: 24 * 60 * MINUTE_MS, blipMs: 0 },
    });
    const notify = async (trackingId: string, mails: number) => {
      await opened.happens(trackingId);
      await vi.waitFor(() => expect(events).toHaveLength(mails), 5_000);
    };
    await notify("t1", 1);
    await notify("t2", 2);
    server.answers.clear();
    await notify("t3", 3);
    await opened.notifier.close();
    const fault = {
      code: "MAIL_RECIPIENTS_REFUSED",
      message: expect.stringMatching(/not accepted for b@example\.com/),
      advice: expect.not.stringMatching(/again by itself/),
    };
    const failed = { type: "notify-failed", waitMs: undefined, notices: 1, fault };
    const succeeded = { type: "notify-succeeded", notices: 1 };
    expect(events).toMatchObject([{ ...failed, isFirst: true }, { ...failed, isFirst: false }, succeeded]);
    expect(server.accepted).toEqual([
      ["a@example.com"],
      ["a@example.com"],
      ["a@example.com", "b@example.com"],
    ]);
  },
);

/** A work folder, and what processes do in it. */
async function makeSite(channel: ChannelSettings) {
  const work = await makeFolder();
  const [folder, journalFolder, temporary] = [join(work, "notify"), join(work, "journal"), join(work, "new")];
  for (const each of [journalFolder, temporary]) await mkdir(each);
  const parse = (line: string) => parseText(line).value;
  const orderOf = (line: object) => ("at" in line ? String(line.at) : "");
  const reader: NotifierTools["journal"] = { folder: journalFolder, pattern: JOURNAL_FILE, parse, orderOf };
  const open = async (tools: Partial<NotifierTools> = {}, writer?: string) => {
    const journal = new Journal(journalFolder, writer, { now: Date.now });
    const service = { baseUrl: new URL("https://service.example") };
    const named = { name: "m", email: "m@example.com" };
    const mailbox = { ...named, pollMs: 1_000, paused: false, quiet: undefined, service };
    const notifier = new Notifier(
      {
        clock: { now: Date.now },
        emit: () => {},
        stop: new AbortController().signal,
        folder,
        temporary,
        isShared: false,
        process: "this",
        patience: { retryMs: 50, blipMs: 0 },
        journal: reader,
        hasEnded: async () => false,
        origin: () => ({
          host: "h",
          inbox: "/inbox",
          version: "1",
          config: "",
          console: undefined,
          zone: "UTC",
          hasSeveralMailboxes: false,
        }),
        serviceOf: () => "https://service.example",
        ...tools,
      },
      { notify: [channel], mailboxes: [mailbox] },
    );
    journal.onBatch = notifier.journalWritten;
    notifier.record = (change) => journal.addNotice(change);
    await notifier.start();
    return {
      notifier,
      journal,
      /** A transfer waits for its password. */
      async happens(trackingId: string) {
        journal.add(waiting(trackingId));
        await journal.flush();
      },
    };
  };
  return { folder, journalFolder, open, journal: new Journal(journalFolder, undefined, { now: Date.now }) };
}

/** The path of the saved state. */
async function stateIn(folder: string): Promise<string> {
  const [name = ""] = (await readdir(folder)).filter((each) => each.endsWith(".json"));
  return join(folder, name);
}

function waiting(trackingId: string): TransferRecord {
  return makeRecord({ trackingId, state: "waiting", reason: "password" });
}

/** Only `vi.advanceTimersByTime` lets time pass for what runs regularly. */
function useFakeTicks(): void {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
}

/** Lets time pass until the check succeeds. */
async function inTime(check: () => void): Promise<void> {
  await vi.waitFor(() => {
    vi.advanceTimersByTime(5_000);
    check();
  }, 60_000);
}

/** Accepts mails, and notes their recipients. `answers`: refusals by recipient. */
async function openSmtpServer(refusals: Readonly<Record<string, string>>) {
  const answers = new Map(Object.entries(refusals));
  const accepted: string[][] = [];
  const serve = async (socket: Socket) => {
    const recipients: string[] = [];
    const answerTo = (line: string): string => {
      if (line === "DATA") return "354 go on";
      const recipient = /^RCPT TO:<(.*)>/.exec(line)?.[1];
      const refusal = answers.get(recipient ?? "");
      if (recipient !== undefined && refusal === undefined) recipients.push(recipient);
      return refusal ?? "250 ok";
    };
    socket.write("220 mail.example.com\r\n");
    let isContent = false;
    for await (const line of createInterface({ input: socket })) {
      if (isContent && line === ".") accepted.push(recipients.splice(0));
      else if (isContent) continue;
      isContent = line === "DATA";
      socket.write(`${answerTo(line)}\r\n`);
    }
  };
  const server = createServer((socket) => void serve(socket).catch(() => {}));
  onTestFinished(() => void server.close());
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  return { port, answers, accepted };
}
