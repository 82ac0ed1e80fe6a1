/** A channel beside other processes, over restarts, and with recipients that are refused. */
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test, vi } from "vitest";
import type { DaemonEvent } from "../../../src/model/events.ts";
import type { ChannelSettings } from "../../../src/model/notify.ts";
import { Channel, type ChannelTools } from "../../../src/notify/channel.ts";
import { SharedState } from "../../../src/notify/shared-state.ts";
import { ChannelState } from "../../../src/notify/state.ts";
import { StateFiles } from "../../../src/notify/state-files.ts";
import { byMail, byWebhook, groupsOf, notifiedOf } from "../../support/notify.ts";
import { makeFolder } from "../../support/program.ts";
import { accept, openReceiver, type Receiver } from "../../support/receiver.ts";
import { makeRecord } from "../../support/record.ts";

const MINUTE_MS = 60_000;

test("the trouble of a process that was killed is over once another one has noticed that", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const folder = join(await makeFolder(), "notify");
  await leaveTrouble(folder);
  const receiver = await openReceiver(accept);
  let nowMs = 5 * MINUTE_MS;
  const channel = openChannel(receiver, folder, () => nowMs);
  await channel.start();
  channel.accept({ type: "ready" });
  await channel.finish();
  expect(groupsOf(receiver)).toEqual([]);
  nowMs = 15 * MINUTE_MS;
  vi.advanceTimersByTime(2 * MINUTE_MS);
  await vi.waitFor(() => {
    nowMs += 1_000;
    expect(groupsOf(receiver)).toMatchObject([{ kind: "queue", over: true, count: 1 }]);
  }, 10_000);
  await channel.close();
});

test("a message that is being sent at the stop is finished, and not sent again", async () => {
  const folder = join(await makeFolder(), "notify");
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
  const receiver = await openReceiver((response) => void answered.then(() => accept(response)), accept);
  const stop = new AbortController();
  const first = openChannel(receiver, folder, Date.now, stop.signal);
  await first.start();
  const record = makeRecord({ trackingId: "t1", state: "waiting", reason: "password" });
  first.accept({ type: "transfer-changed", record });
  await vi.waitFor(() => expect(receiver.calls).toHaveLength(1), 10_000);
  stop.abort();
  // Some time after the stop.
  setTimeout(answer, 200);
  await first.close();
  const second = openChannel(receiver, folder, Date.now);
  await second.start();
  second.accept({ type: "transfer-changed", record });
  second.accept({ type: "transfer-changed", record: { ...record, trackingId: "t2" } });
  await vi.waitFor(() => expect(receiver.calls).toHaveLength(2), 10_000);
  await second.close();
  expect(notifiedOf(receiver)).toEqual(["password t1", "password t2"]);
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
    const channel = openChannelTo(byMail(server, {}, mail), join(await makeFolder(), "notify"), {
      emit: (event) => events.push(event),
      isShared: false,
      // A retry would come after the end of this test.
      patience: { retryMs: 24 * 60 * MINUTE_MS, blipMs: 0 },
    });
    await channel.start();
    const notify = async (trackingId: string, mails: number) => {
      const record = makeRecord({ trackingId, state: "waiting", reason: "password" });
      channel.accept({ type: "transfer-changed", record });
      await vi.waitFor(() => expect(events).toHaveLength(mails), 5_000);
    };
    await notify("t1", 1);
    expect(channel.isFailing).toBe(true);
    await notify("t2", 2);
    expect(channel.isFailing).toBe(true);
    server.answers.clear();
    await notify("t3", 3);
    expect(channel.isFailing).toBe(false);
    await channel.close();
    const fault = expect.objectContaining({
      code: "MAIL_RECIPIENTS_REFUSED",
      message: expect.stringMatching(/not accepted for b@example\.com/),
      advice: expect.not.stringMatching(/again by itself/),
    });
    expect(events).toEqual([
      expect.objectContaining({ type: "recipients-refused", notices: 1, fault, isFirst: true }),
      expect.objectContaining({ type: "recipients-refused", notices: 1, fault, isFirst: false }),
      expect.objectContaining({ type: "notify-succeeded", notices: 1 }),
    ]);
    expect(server.accepted).toEqual([
      ["a@example.com"],
      ["a@example.com"],
      ["a@example.com", "b@example.com"],
    ]);
  },
);

function openChannel(
  receiver: Receiver,
  folder: string,
  now: () => number,
  stop = new AbortController().signal,
): Channel {
  return openChannelTo(byWebhook(receiver.url), folder, { clock: { now }, stop });
}

function openChannelTo(settings: ChannelSettings, folder: string, tools: Partial<ChannelTools>): Channel {
  const origin = { host: "h", inbox: "/inbox", version: "1", config: "", console: undefined };
  return new Channel("id", settings, {
    clock: { now: Date.now },
    emit: () => {},
    stop: new AbortController().signal,
    folder,
    isShared: true,
    patience: { retryMs: 50, blipMs: 0 },
    origin: () => ({ ...origin, hasSeveralMailboxes: false }),
    mailboxes: () => new Map(),
    serviceOf: () => undefined,
    othersFailing: () => 0,
    ...tools,
  });
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

/** A process has lost Redis, notified of that, and was killed. */
async function leaveTrouble(folder: string): Promise<void> {
  const files = new StateFiles(folder);
  const makeState = (snapshot?: ReturnType<ChannelState["snapshot"]>) => new ChannelState(0, snapshot);
  const shared = new SharedState({ files, isShared: true, saveAfterMs: 0, makeState, onChanged: () => {} });
  const trouble = { kind: "queue", key: "queue", atMs: 0, isTrouble: true, isLocal: true } as const;
  shared.change(({ pending }) => {
    pending.begin(trouble, files.token);
    pending.take(pending.select(0, () => true));
  });
  await shared.save();
}
