/** `once --dry-run` says what `once` then does, on many random sites with random pasts. */
import { expect, test } from "vitest";
import { serviceIdOf } from "../../../src/model/mailbox.ts";
import {
  HELD,
  IGNORED,
  isDelivered,
  type TransferRecord,
  waitsForPassword,
} from "../../../src/model/record.ts";
import type { Plan } from "../../../src/model/views.ts";
import { type PlannedTransfer, planMailbox } from "../../../src/operate/plan.ts";
import { type Happening, makePlan } from "../../world/plan.ts";
import { Process } from "../../world/process.ts";
import type { SentTransfer } from "../../world/service.ts";
import { World } from "../../world/world.ts";
import "../../world/run.ts";

const WORLDS = 64;
const SHARDS = 2;
const PAST: readonly Happening["kind"][] = [
  "arrive",
  "site",
  "stop",
  "order",
  "password",
  "consume",
  "check",
];

test("a dry run says what a run then does", () => expectTruth(0));

// More of the same.
test("a dry run says what a run then does, in other worlds", { tags: ["system"] }, () => expectTruth(1));

async function expectTruth(shard: number): Promise<void> {
  const wrong: string[] = [];
  const seen = new Set<Plan | "settled">();
  for (let seed = shard; seed < WORLDS; seed += SHARDS) wrong.push(...(await compare(seed, seen)));
  expect(wrong).toEqual([]);
  expect(seen).toEqual(new Set(["deliver", "open", "password", "hold", "ignore", "settled"]));
}

/** Some transfers have a past, and others are new. Returns what the dry run said wrongly. */
async function compare(seed: number, seen: Set<Plan | "settled">): Promise<string[]> {
  const plan = makePlan(seed);
  const isNew = (number: number) => (number + seed) % 2 === 0;
  const happenings = plan.happenings.filter(
    ({ what }) => PAST.includes(what.kind) && !(what.kind === "arrive" && isNew(what.transfer)),
  );
  const transfers = plan.transfers.map((it) => ({ ...it, state: "unsent" as const, wrong: 0, opened: 0 }));
  const world = new World({ ...plan, transfers, happenings });
  await world.run(async () => true);
  for (const transfer of world.plan.transfers) {
    if (["unsent", "processing"].includes(transfer.state)) transfer.state = "active";
  }
  const said = await rehearse(world);
  const opened = world.plan.transfers.map((it) => it.opened);
  const before = await world.records();
  await world.runOnce();
  const after = await world.records();
  await world.close();
  return after.flatMap((record) => {
    const planned = said.find((it) => it.trackingId === record.trackingId && it.mailbox === record.mailbox);
    const sent = world.plan.transfers.find((it) => it.trackingId === record.trackingId);
    const earlier = before.find((it) => it.trackingId === record.trackingId && it.mailbox === record.mailbox);
    if (sent === undefined) return [];
    seen.add(planned?.plan ?? "settled");
    if (isTrue(planned, record, earlier, sent)) return [];
    const { state, reason, message } = record;
    return [
      `seed ${seed}, opened ${opened}: ${JSON.stringify(planned)} for ${JSON.stringify(earlier)}, and then ${state} ${reason} ${message}`,
    ];
  });
}

async function rehearse(world: World): Promise<PlannedTransfer[]> {
  const { settings, schedule } = world;
  const signal = new AbortController().signal;
  return world.asOperator(async () => {
    const planned: PlannedTransfer[] = [];
    for (const mailbox of settings.mailboxes) {
      const id = serviceIdOf(mailbox.service.baseUrl);
      const service = world.service.open(new Process("dry run", world), id);
      const address = { email: mailbox.email } as Parameters<typeof service.listReceived>[0];
      const query = { active: true } as Parameters<typeof service.listReceived>[1];
      const listed = (await Array.fromAsync(service.listReceived(address, query, () => {}, signal))).flat();
      for await (const plan of planMailbox(settings, mailbox, listed, schedule.nowMs, signal)) {
        if (plan !== undefined) planned.push(plan);
      }
    }
    return planned;
  });
}

function isTrue(
  planned: PlannedTransfer | undefined,
  record: TransferRecord,
  earlier: TransferRecord | undefined,
  { password }: SentTransfer,
): boolean {
  const { state, reason } = record;
  const isUnchanged = state === earlier?.state && record.round === earlier.round;
  const isHeld = state === "waiting" && reason === HELD;
  const isLeftOut = state === "gone" && reason === IGNORED;
  // A wrong password is found out by sending it.
  const isRefused = state === "waiting" && reason === "password" && password !== "Secret-common";
  switch (planned?.plan) {
    case undefined:
      return isUnchanged;
    case "deliver":
      return isDelivered(record) || isRefused;
    case "open":
      return isDelivered(record) || isHeld || isLeftOut || isRefused;
    case "password":
      return waitsForPassword(record);
    case "hold":
      return isHeld;
    case "ignore":
      return isLeftOut;
    case "wait":
      return isUnchanged;
  }
}
