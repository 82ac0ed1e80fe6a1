/** A channel beside other processes, and over restarts. */
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { Channel } from "../../../src/notify/channel.ts";
import { SharedState } from "../../../src/notify/shared-state.ts";
import { ChannelState } from "../../../src/notify/state.ts";
import { StateFiles } from "../../../src/notify/state-files.ts";
import { byWebhook, groupsOf, notifiedOf } from "../../support/notify.ts";
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

function openChannel(
  receiver: Receiver,
  folder: string,
  now: () => number,
  stop = new AbortController().signal,
): Channel {
  const origin = { host: "h", inbox: "/inbox", version: "1", config: "", console: undefined };
  return new Channel("id", byWebhook(receiver.url), {
    clock: { now },
    emit: () => {},
    stop,
    folder,
    isShared: true,
    patience: { retryMs: 50, blipMs: 0 },
    origin: () => ({ ...origin, hasSeveralMailboxes: false }),
    mailboxes: () => new Map(),
    serviceOf: () => undefined,
    othersFailing: () => 0,
  });
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
