/** `once --dry-run` says what `once` then does, on many random sites with random pasts. */
import { expect, test } from "vitest";
import { Secret } from "../../../src/base/secret.ts";
import { withKeys } from "../../../src/ledger/keys.ts";
import { WANTED_FIELDS } from "../../../src/mailbox/list-fields.ts";
import {
  HELD,
  IGNORED,
  isDelivered,
  type TransferRecord,
  waitsForPassword,
} from "../../../src/model/record.ts";
import type { Plan } from "../../../src/model/views.ts";
import { type PlannedTransfer, planMailbox } from "../../../src/operate/plan.ts";
import { openService } from "../../../src/service/service.ts";
import { Process } from "../../world/ground/process.ts";
import { type Happening, makePlan } from "../../world/plan/plan.ts";
import type { StoredTransfer } from "../../world/plan/sent.ts";
import { CLIENT_IDS, RULE_PASSWORDS } from "../../world/plan/site.ts";
import { pump, World } from "../../world/world.ts";
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
  // All six of them in both halves would need many more worlds.
  expect(seen.size).toBeGreaterThanOrEqual(5);
}

/** Some transfers have a past, and others are new. Returns what the dry run said wrongly. */
async function compare(seed: number, seen: Set<Plan | "settled">): Promise<string[]> {
  const plan = makePlan(4 * seed);
  const isNew = (number: number) => (number + seed) % 2 === 0;
  const happenings = plan.happenings.filter(
    ({ what }) => PAST.includes(what.kind) && !(what.kind === "arrive" && isNew(what.transfer)),
  );
  // What only the content shows is found out by downloading it.
  const transfers = plan.transfers.map(({ checksums: _, ...transfer }) => transfer);
  const { maxFiles: __, maxBytes: ___, ...site } = plan.site;
  const world = new World({ ...plan, site, transfers, habits: [], isCron: false, happenings });
  await world.run(async () => true);
  for (const transfer of world.transfers) {
    if (["unsent", "processing"].includes(transfer.state)) transfer.state = "active";
  }
  const said = await rehearse(world);
  const opened = world.transfers.map((it) => it.opened);
  const before = await world.records();
  await world.runOnce();
  const after = await world.records();
  await world.close();
  return after.flatMap((record) => {
    const planned = said.find((it) => it.trackingId === record.trackingId && it.mailbox === record.mailbox);
    const sent = world.transfers.find((it) => it.trackingId === record.trackingId);
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
  const { settings, schedule, site } = world;
  const signal = new AbortController().signal;
  const process = new Process("dry run", world);
  const planned: PlannedTransfer[] = [];
  const read = async () => {
    const mailboxes = await withKeys(settings.work, settings.mailboxes, "foreseen");
    for (const [at, mailbox] of mailboxes.entries()) {
      const number = site.boxes[at]?.service ?? 0;
      const clientId = new Secret(CLIENT_IDS[number] ?? "");
      const options = { ...mailbox.service, clientId, maxRequests: () => 16 };
      const service = openService({ ...options, openConnections: world.network.open(process) });
      const { token } = await service.obtainToken(mailbox.email, undefined, signal);
      const query = { active: true, fields: WANTED_FIELDS };
      const address = { email: mailbox.email, token };
      const listed = (await Array.fromAsync(service.listReceived(address, query, () => {}, signal))).flat();
      for await (const plan of planMailbox(settings, mailbox, listed, schedule.nowMs, signal)) {
        if (plan !== undefined) planned.push(plan);
      }
    }
  };
  await pump(schedule, process.run(read));
  return planned;
}

function isTrue(
  planned: PlannedTransfer | undefined,
  record: TransferRecord,
  earlier: TransferRecord | undefined,
  { password, service, files, recipients }: StoredTransfer,
): boolean {
  const { state, reason } = record;
  const isUnchanged = state === earlier?.state && record.round === earlier.round;
  const isHeld = state === "waiting" && reason === HELD;
  const isLeftOut = state === "gone" && reason === IGNORED;
  // A wrong password is found out by sending it.
  const isRefused = state === "waiting" && reason === "password" && password !== RULE_PASSWORDS[service];
  const hasNoProof = files.length === 0 && state === "quarantined";
  switch (planned?.plan) {
    case undefined:
      return isUnchanged;
    case "deliver":
      return isDelivered(record) || isRefused || hasNoProof;
    case "open":
      return isDelivered(record) || isHeld || isLeftOut || isRefused || hasNoProof;
    case "password":
      // The rule of another recipient may know it.
      return waitsForPassword(record) || (recipients.length > 1 && isDelivered(record));
    case "hold":
      return isHeld;
    case "ignore":
      return isLeftOut;
    case "wait":
      return isUnchanged;
  }
}
