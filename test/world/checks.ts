/** What must hold in every world that has come to rest. */
import { nameOf } from "../../src/ledger/paths.ts";
import { isDelivered, isUnwanted, type TransferRecord } from "../../src/model/record.ts";
import { headlineOf, type Status } from "../../src/model/status.ts";
import { canonicalAddress } from "../../src/model/transfer.ts";
import type { Delivered } from "./observer.ts";
import { SECOND_BOX, STATE, WORK } from "./plan.ts";
import { decide, handoffFor } from "./routing.ts";
import type { World } from "./world.ts";

/** How a transfer that needs a person is notified of. */
const NOTICE_OF: Readonly<Record<string, string>> = {
  quarantined: "quarantined",
  gone: "gone",
  "waiting password": "password",
  "waiting mode": "password",
  "waiting held": "held",
  delivering: "refused",
};

/** What does not hold. `isRestarted`: the daemon was stopped and started since everything came to rest. */
export async function findProblems(world: World, isRestarted = false): Promise<readonly string[]> {
  const records = await world.records();
  const status = world.daemon?.vitals?.status();
  if (status === undefined) return ["no daemon runs at the end"];
  const known = new Map(records.map((record) => [nameOf(record), record]));
  return [
    ...checkTransfers(world, known, status),
    ...checkPromises(world, status),
    ...checkDeliveries(world, known),
    ...checkOrders(world, known),
    ...checkLeftOvers(world, known, isRestarted),
    ...checkSecrets(world),
  ];
}

function* checkTransfers(
  world: World,
  known: ReadonlyMap<string, TransferRecord>,
  status: Status,
): Iterable<string> {
  const { service } = world;
  const boxes = [world.site.box, ...(world.site.hasSecondBox ? [SECOND_BOX] : [])];
  for (const transfer of service.transfers) {
    if (transfer.wrong > 2) yield `I3: ${transfer.trackingId} got ${transfer.wrong} wrong passwords`;
    for (const mailbox of boxes) {
      const { trackingId, recipients } = transfer;
      const isListed =
        service.stateOf(transfer) === "active" &&
        recipients.some((address) => canonicalAddress(address) === canonicalAddress(mailbox));
      const record = known.get(nameOf({ mailbox, trackingId }));
      if (isListed && record === undefined) yield `I7: ${trackingId} of ${mailbox} is not known`;
      if (record !== undefined) yield* checkState(world, record, isListed, status);
    }
  }
  const needs = [...known.values()].some((record) => needsPerson(record));
  const { tone, words } = headlineOf(status);
  if (needs && tone === "good") yield `I7: status says "${words}", and a person has to act`;
}

/** At rest, nothing is late, except what a foreign file keeps from its place. */
function* checkPromises({ observer }: World, { overdue, troubles }: Status): Iterable<string> {
  const isBlocked = observer.foreign.size > 0;
  for (const { kind } of overdue) {
    if (!(isBlocked && kind === "delivery")) yield `at rest, and a promise is broken: ${kind}`;
  }
  for (const { what, code } of troubles) {
    if (!isBlocked) yield `at rest, and the status has a trouble: ${what} ${code}`;
  }
}

function needsPerson(record: TransferRecord): boolean {
  const { state } = record;
  if (state === "gone") return !isUnwanted(record) && record.acknowledged !== true;
  return state === "quarantined" || state === "waiting" || state === "delivering";
}

function* checkState(
  world: World,
  record: TransferRecord,
  isListed: boolean,
  status: Status,
): Iterable<string> {
  const { observer } = world;
  const { trackingId, mailbox, state, reason } = record;
  const what = `${trackingId} of ${mailbox}`;
  if (reason === "CHECKSUMS_INCOMPLETE") yield `${what} lacks no file, and is in quarantine`;
  const isBlocked = observer.foreign.size > 0;
  if (["discovered", "downloading", "checking"].includes(state)) {
    yield `I7: ${what} stays ${state}, and all is at rest`;
  }
  if (state === "delivering" && !isBlocked) yield `I7: ${what} is decided and not placed`;
  const waitsForPerson = reason === "password" || reason === "mode" || reason === "held";
  if (state === "waiting" && !waitsForPerson && isListed && !isBlocked) {
    yield `I7: ${what} waits (${reason}: ${record.message}), and nothing is in its way`;
  }
  if (state === "waiting" && waitsForPerson) yield* checkReason(world, record, what);
  if (needsPerson(record)) yield* checkVisible(world, record, what, status);
}

/** It waits for a person, and only for a good reason. */
function* checkReason(
  { observer, site, plan }: World,
  record: TransferRecord,
  what: string,
): Iterable<string> {
  const transfer = plan.transfers.find((each) => each.trackingId === record.trackingId);
  if (transfer === undefined) return;
  if (record.reason === "held") {
    const isHeld = decide(site, record.mailbox, transfer).action === "hold";
    if (!isHeld) yield `${what} is held, and no rule says so`;
    return;
  }
  const isKnown = site.knowsPassword && transfer.password === "Secret-common";
  if (isKnown && record.password?.isExhausted !== true) {
    yield `I7: ${what} waits for a password that a rule knows`;
  }
  const supplies = observer.supplies.filter(({ record: of }) => nameOf(of) === nameOf(record));
  if (supplies.some(({ isRight }) => isRight) && !record.password?.spent) {
    yield `${what} waits for a password that a person has supplied`;
  }
}

/** Status shows it, and it was notified of. */
function* checkVisible(
  { observer }: World,
  record: TransferRecord,
  what: string,
  status: Status,
): Iterable<string> {
  const { trackingId, state, reason } = record;
  const key = state === "waiting" ? `${state} ${reason}` : state;
  const isShown = status.attention.some(
    (each) => each.trackingId === trackingId && nameOf(each) === nameOf(record),
  );
  if (!isShown) yield `I7: ${what} is ${key}, and status does not show it`;
  const kind = NOTICE_OF[key];
  const isTold = observer.notices.some((each) => each.kind === kind && each.trackingId === trackingId);
  if (kind !== undefined && !isTold) yield `I7: ${what} is ${key}, and nobody was notified`;
}

function* checkDeliveries(world: World, known: ReadonlyMap<string, TransferRecord>): Iterable<string> {
  const { observer } = world;
  const rounds = Map.groupBy(observer.deliveries, ({ name, round }) => `${name} ${round}`);
  for (const [key, [first, ...more]] of rounds) {
    if (more.length > 0 && first !== undefined) yield `I2: ${key} ended ${more.length + 1} times`;
  }
  const transfers = Map.groupBy(observer.deliveries, ({ name }) => name);
  for (const [name, all] of transfers) {
    const again = observer.orders.filter(
      ({ act, record }) => nameOf(record) === name && ["redeliver", "retry", "release"].includes(act),
    ).length;
    if (all.length > 1 + again) yield `I2: ${name} was delivered ${all.length} times`;
  }
  for (const delivery of observer.deliveries) {
    const record = known.get(delivery.name);
    if (record === undefined) yield `the delivery of ${delivery.trackingId} is forgotten`;
    const isOpen = record?.state === "delivering" && record.round === delivery.round;
    if (isOpen) continue;
    yield* checkHandoff(world, delivery);
    const isBlocked = observer.foreign.size > 0;
    if (!delivery.hasAppeared && !isBlocked)
      yield `I7: ${delivery.trackingId} is delivered, and was never in the inbox`;
  }
}

/** A hand-off that was configured all the time since the attempt began has run. */
function* checkHandoff(world: World, delivery: Delivered): Iterable<string> {
  const { identity, trackingId, round, atMs, sites, programs, calls } = delivery;
  if (identity === undefined) return;
  const all = [...sites, ...world.observer.sitesSince(atMs)];
  const handoffs = all.map((site) => handoffFor(site, identity));
  const isAlways = (has: (handoff: (typeof handoffs)[number]) => boolean) => handoffs.every(has);
  if (isAlways((handoff) => handoff?.command !== undefined) && programs.length === 0) {
    yield `the command of ${trackingId} (round ${round}) never ran`;
  }
  if (isAlways((handoff) => handoff?.webhook !== undefined) && calls === 0) {
    yield `the webhook of ${trackingId} (round ${round}) was never called`;
  }
}

/** Every order that was accepted was carried out. */
function* checkOrders(world: World, known: ReadonlyMap<string, TransferRecord>): Iterable<string> {
  const { observer, plan } = world;
  for (const { act, record, atMs } of observer.orders) {
    const now = known.get(nameOf(record));
    const later = observer.orders.some((each) => each.atMs > atMs && nameOf(each.record) === nameOf(record));
    if (now === undefined || later || now.round > record.round) continue;
    const { trackingId, state } = record;
    const transfer = plan.transfers.find((each) => each.trackingId === trackingId);
    const isListed = transfer !== undefined && world.service.stateOf(transfer) === "active";
    const isEnded = ["quarantined", "gone"].includes(state);
    if (act === "discard" && !isUnwanted(now) && !isDelivered(now)) {
      yield `the order to discard ${trackingId} was lost`;
    }
    if (
      act === "release" &&
      state === "waiting" &&
      now.state === "waiting" &&
      now.reason === "held" &&
      isListed
    ) {
      yield `the order to release ${trackingId} was lost`;
    }
    if ((act === "retry" || act === "release") && isEnded) {
      yield `the order to ${act} ${trackingId} was lost`;
    }
  }
}

/** Nothing is left that nobody will clear. */
function* checkLeftOvers(
  { disk, observer, site, schedule: { nowMs } }: World,
  known: ReadonlyMap<string, TransferRecord>,
  isRestarted: boolean,
): Iterable<string> {
  const stateOf = (entry: string) => known.get(entry.split("~")[0] ?? "")?.state ?? "unknown";
  const isOpen = (entry: string) => ["waiting", "delivering"].includes(stateOf(entry));
  const isUnacknowledged = (entry: string) => {
    const record = known.get(entry.split("~")[0] ?? "");
    return record?.state === "gone" && needsPerson(record);
  };
  const isFresh = (path: string) => (disk.tryGet(path)?.modifiedMs ?? 0) > nowMs - 1_000;
  const isKept: Readonly<Record<string, (entry: string) => boolean>> = {
    staging: isOpen,
    names: (entry) => disk.names(`${WORK}/names/${entry}`).some(isOpen),
    // A start clears temporary files. Beside other processes, only those that are older than an hour. The daemon may make one
    // right now, to see whether it can.
    new: (entry) => site.isShared || !isRestarted || isFresh(`${WORK}/new/${entry}`),
    orders: (entry) => stateOf(entry) === "unknown",
    // A transfer that is gone may have nothing else left: an operator who acknowledges that clears it.
    quarantine: (entry) => isOpen(entry) || isLastRound(known, entry) || isUnacknowledged(entry),
    outbox: (entry) => isOpen(entry) || isAwaited(entry),
  };
  const isAwaited = (entry: string) => {
    const [, key, kind] = /^(.+~\d+)\.(json|wait|kept)$/.exec(entry) ?? [];
    const delivery = observer.deliveries.find(({ name, round }) => `${name}~${round}` === key);
    const isThere = delivery?.paths.some((path) => disk.tryGet(path) !== undefined) ?? false;
    return key === undefined || isThere || kind === "json";
  };
  for (const [folder, isGood] of Object.entries(isKept)) {
    for (const entry of disk.names(`${WORK}/${folder}`)) {
      if (!isGood(entry)) yield `left: ${folder}/${entry}`;
    }
  }
  for (const { path, entry } of disk.walk(`${STATE}/passwords`)) {
    const [, trackingId = ""] = /([^/]+)$/.exec(path) ?? [];
    const records = [...known.values()].filter((record) => record.trackingId === trackingId);
    const isNeeded = records.length === 0 || records.some(({ state }) => state === "waiting");
    if (entry.kind === "file" && !isNeeded) yield `left: ${path}`;
  }
}

function isLastRound(known: ReadonlyMap<string, TransferRecord>, entry: string): boolean {
  const [name = "", round] = entry.split("~");
  const record = known.get(name);
  return record?.state === "quarantined" && record.round === Number(round);
}

function* checkSecrets({ disk, observer }: World): Iterable<string> {
  const isSecret = /Secret-|Token-0|Client0|Hook-/;
  for (const text of observer.texts) if (isSecret.test(text)) yield `I4: a secret in ${text.slice(0, 80)}`;
  for (const root of ["/data"]) {
    for (const { path, entry } of disk.walk(root)) {
      if (entry.kind === "file" && isSecret.test(entry.bytes.toString())) yield `I4: a secret in ${path}`;
    }
  }
}
