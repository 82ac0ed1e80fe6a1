/** What must hold in every world that has come to rest. */
import { isDelivered, isUnwanted, type TransferRecord } from "../../../src/model/record.ts";
import { headlineOf, type Status } from "../../../src/model/status.ts";
import { RULE_PASSWORDS, type Site, STATE } from "../plan/site.ts";
import type { World } from "../world.ts";
import { boxOf, commandFor, decide, fold, handoffFor } from "./expect.ts";
import { findWrongFigures } from "./figures.ts";
import { mayFailByItself } from "./hand-offs.ts";
import type { Delivered, GivenOrder, Observer, Received } from "./observer.ts";
import { endOf, parseTorn } from "./paths.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** What is of no use any longer is removed within this time. */
const SWEEP_MS = 6 * MINUTE_MS;

/** How a transfer that needs a person is notified of. */
const NOTICE_OF: Readonly<Record<string, string>> = {
  quarantined: "quarantined",
  gone: "gone",
  "waiting password": "password",
  "waiting mode": "password",
  "waiting held": "held",
  delivering: "refused",
};

/** The records of the transfers, each under its transfer-id. */
type Known = ReadonlyMap<string, TransferRecord>;

/** What does not hold. `isRestarted`: the daemon was stopped and started since everything came to rest. */
export async function findProblems(world: World, isRestarted = false): Promise<readonly string[]> {
  // It waits for a person's word, and touches nothing.
  if (world.isRefused) return [...checkDuplicates(world), ...checkSecrets(world)];
  const { daemon } = world;
  const status = daemon?.process.run(() => daemon.vitals?.status());
  if (status === undefined) return ["no daemon runs at the end"];
  const records = await world.records();
  const known = new Map(records.map((record) => [record.transferId, record]));
  return [
    ...checkTransfers(world, known, status),
    ...checkPromises(world, status),
    ...checkDuplicates(world),
    ...checkDeliveries(world, known),
    ...checkOrders(world, known),
    ...checkLeftOvers(world, records, isRestarted),
    ...checkKept(world, records),
    ...checkNotices(world),
    ...checkSecrets(world),
    ...(await findWrongFigures(world)),
  ];
}

function* checkTransfers(world: World, known: Known, status: Status): Iterable<string> {
  const { services, observer, site } = world;
  for (const of of observer.received.values()) {
    const { transfer, address, transferId } = of;
    const box = boxOf(site, address);
    const isMine = transfer.recipients.some((each) => fold(each) === address);
    if (box === undefined || box.service !== transfer.service || !isMine) continue;
    const isListed = services[transfer.service]?.stateOf(transfer) === "active";
    const record = known.get(transferId);
    yield* checkWrong(world, of);
    if (isListed && record === undefined) yield `I7: ${of.key} is not known`;
    const isDoubtful = record?.state === "waiting" && record.reason === "doubt";
    if (isDoubtful) yield* checkDoubt(world, of, status);
    else if (record !== undefined) yield* checkState(world, of, record, isListed, status);
  }
  const needs = [...known.values()].some(
    (record) =>
      needsPerson(world, record) &&
      record.reason !== "locked" &&
      boxOf(site, observer.received.get(record.transferId)?.address ?? "") !== undefined,
  );
  const { tone, words } = headlineOf(status);
  if (needs && tone === "good") yield `I7: status says "${words}", and a person has to act`;
}

/** As the service counts. A delivery to one recipient begins the count of the others anew. */
function* checkWrong({ observer, requests, transfers }: World, { transfer }: Received): Iterable<string> {
  const { trackingId, wrong, recipients } = transfer;
  const budget = Math.max(...observer.timeline.map(({ site }) => site.passwordAttempts ?? 2));
  const grants = observer.orders.filter(
    ({ act, record }) => act === "grant" && record.trackingId === trackingId,
  ).length;
  const hasTwin = transfers.some((each) => each !== transfer && each.trackingId === trackingId);
  const wasDelivered = observer.deliveries.some((each) => each.trackingId === trackingId);
  const known = (budget + grants) * (wasDelivered ? recipients.length : 1);
  const allowed = known + requests.forgottenOn(trackingId);
  if (wrong > allowed && !hasTwin)
    yield `I3: ${trackingId} got ${wrong} wrong passwords, and ${allowed} are allowed`;
}

/** At rest, nothing is late, except what a foreign file keeps from its place. */
function* checkPromises({ observer, hasLost }: World, { overdue, troubles }: Status): Iterable<string> {
  const isBlocked = observer.foreign.size > 0 || observer.spoiled.size > 0;
  for (const { kind } of overdue) {
    if (!(isBlocked && kind === "delivery")) yield `at rest, and a promise is broken: ${kind}`;
  }
  for (const { what, code } of troubles) {
    if (!isBlocked && !(hasLost && code === "RECORDS_MISSING"))
      yield `at rest, and the status has a trouble: ${what} ${code}`;
  }
}

/** It is gone, and no operator has acknowledged that. */
function isUnseen(record: TransferRecord): boolean {
  return record.state === "gone" && !isUnwanted(record) && record.acknowledged !== true;
}

/** What is gone is shown for a day, by the clock of that time. */
function needsPerson({ schedule }: World, record: TransferRecord): boolean {
  const { state, at } = record;
  const isShown = schedule.nowMs - Date.parse(at.gone ?? "") < DAY_MS;
  if (state === "gone") return isShown && isUnseen(record);
  return state === "quarantined" || state === "waiting" || state === "delivering";
}

function* checkState(
  world: World,
  of: Received,
  record: TransferRecord,
  isListed: boolean,
  status: Status,
): Iterable<string> {
  const { observer } = world;
  const { state, reason } = record;
  const what = of.key;
  const { transfer } = of;
  const mayLackSums =
    transfer.checksums !== undefined ||
    transfer.messageRow !== undefined ||
    world.calm.hadWeather(transfer.service, ["lying", "stripping", "confused"], 0);
  if (reason === "CHECKSUMS_INCOMPLETE" && !mayLackSums) yield `${what} lacks no file, and is in quarantine`;
  if (state === "quarantined") yield* checkQuarantine(world, of, record);
  const isBlocked = observer.foreign.size > 0;
  if (["discovered", "downloading", "checking"].includes(state)) {
    yield `I7: ${what} stays ${state}, and all is at rest`;
  }
  if (state === "delivering" && !isBlocked && !observer.spoiled.has(what))
    yield `I7: ${what} is decided and not placed`;
  const waitsForPerson = reason === "password" || reason === "mode" || reason === "held";
  const isLocked =
    reason === "locked" &&
    [...transfer.lockedUntilMs.values()].some((ms) => ms > world.schedule.nowMs - 60 * 60_000);

  const isUnsupported = transfer.securityMode !== undefined && reason === "browser";
  if (state === "waiting" && !waitsForPerson && isListed && !isBlocked && !isLocked && !isUnsupported) {
    yield `I7: ${what} waits (${reason}: ${record.message}), and nothing is in its way`;
  }
  if (state === "waiting" && waitsForPerson) yield* checkReason(world, of, record);
  if (isDelivered(record) && !observer.deliveries.some(({ key }) => key === of.key))
    yield `I7: ${what} is ${state}, and was never delivered`;
  if (needsPerson(world, record) && !isLocked) yield* checkVisible(world, record, what, status);
}

/** Its folder may be somebody else's, or of a delivery whose record is missing. */
function* checkDoubt({ hasLost, observer }: World, { key }: Received, status: Status): Iterable<string> {
  if (!hasLost && observer.foreign.size === 0) yield `I7: ${key} is in doubt, and no record is missing`;
  if (!status.troubles.some(({ code }) => code === "RECORDS_MISSING"))
    yield `I7: ${key} is in doubt, and status does not show it`;
}

/** It is refused, and only for a good reason. */
function* checkQuarantine(
  { observer, calm, site, hasRefused }: World,
  { transfer, key }: Received,
  { reason }: TransferRecord,
): Iterable<string> {
  const { checksums, service, files, messageRow } = transfer;
  const isLarge =
    reason === "LIMIT_EXCEEDED" &&
    (site.maxFiles !== undefined ||
      site.maxBytes !== undefined ||
      observer.timeline.some((each) => each.site.maxFiles !== undefined || each.site.maxBytes !== undefined));
  const isDamaged =
    observer.isDamaged(transfer.trackingId) || calm.hadWeather(service, ["lying", "lossy", "foreign"], 0);
  const isUnverified = checksums !== undefined || messageRow !== undefined || files.length === 0;
  if (!isLarge && !isDamaged && !isUnverified && !hasRefused && observer.foreign.size === 0)
    yield `${key} is in quarantine (${reason}), and nothing is wrong with it`;
}

/** It waits for a person, and only for a good reason. */
function* checkReason(
  { observer, site }: World,
  { transfer, address, key }: Received,
  record: TransferRecord,
): Iterable<string> {
  if (record.reason === "held") {
    const isHeld = decide(site, address, transfer).action === "hold";
    if (!isHeld) yield `${key} is held, and no rule says so`;
    return;
  }
  const box = boxOf(site, address);
  const isRight =
    transfer.securityMode === undefined &&
    transfer.sender.isWellFormed() &&
    transfer.password === RULE_PASSWORDS[transfer.service];
  const isKnown = (box?.knowsPassword === true && isRight) || transfer.isPasswordInLink === true;
  if (isKnown && record.password?.isExhausted !== true && !record.password?.spent) {
    yield `I7: ${key} waits for a password that a rule knows`;
  }
  // It is not clear which of two transfers of one tracking-id a common password is for.
  const isSupplied = observer.supplies.some(
    ({ record: { transferId }, isRight: isGood, isCommon }) =>
      transferId === record.transferId && isGood && !(isCommon && isTwin(observer, transfer.trackingId)),
  );
  if (isSupplied && !record.password?.spent && transfer.securityMode === undefined) {
    yield `${key} waits for a password that a person has supplied`;
  }
}

function isTwin({ received }: Observer, trackingId: string): boolean {
  const services = [...received.values()].flatMap(({ transfer }) =>
    transfer.trackingId === trackingId ? [transfer.service] : [],
  );
  return new Set(services).size > 1;
}

/** Status shows it, and it was notified of. */
function* checkVisible(
  { observer, site, schedule }: World,
  record: TransferRecord,
  what: string,
  status: Status,
): Iterable<string> {
  const { trackingId, transferId, state, reason } = record;
  const key = state === "waiting" ? `${state} ${reason}` : state;
  const box = boxOf(site, observer.received.get(transferId)?.address ?? "");
  // As people call it now.
  const mailbox = box?.name ?? box?.email ?? record.mailbox;
  const isShown = status.attention.some(
    (each) => each.trackingId === trackingId && fold(each.mailbox) === fold(mailbox),
  );
  if (!isShown) yield `I7: ${what} is ${key}, and status does not show it`;
  const kind = NOTICE_OF[key];
  // What somebody wants now was perhaps not wanted when it became so.
  const end = observer.ends.get(observer.keyOf(record));
  const sites = observer.sitesSince(end === undefined ? 0 : end.atMs - MINUTE_MS);
  const isWanted = sites.every(({ notifyOn }) => notifyOn === undefined || notifyOn.includes(kind ?? ""));
  // A transfer that was received once more, and is refused again, is worth another message.
  const sinceMs = state === "quarantined" ? (observer.downloadingMs.get(what) ?? 0) : 0;
  const isTold = observer.notices.some(
    (each) => each.kind === kind && each.trackingId === trackingId && each.atMs >= sinceMs,
  );
  // Messages are collected for some seconds.
  const isFresh = end !== undefined && schedule.nowMs - end.atMs < MINUTE_MS / 2;
  if (kind !== undefined && isWanted && !isTold && !isFresh)
    yield `I7: ${what} is ${key}, and nobody was notified`;
}

/** By the recipient and the tracking-id, whatever the records say. */
function* checkDuplicates({ observer }: World): Iterable<string> {
  const appeared = observer.deliveries.filter(({ hasAppeared }) => hasAppeared);
  for (const [key, all] of Map.groupBy(appeared, (each) => each.key)) {
    const again = observer.orders.filter(
      (order) => order.key === key && ["redeliver", "retry", "release"].includes(order.act),
    ).length;
    const excused = observer.excused.get(key) ?? 0;
    if (all.length > 1 + again + excused) yield `I2: ${key} was delivered ${all.length} times`;
  }
}

function* checkDeliveries(world: World, known: Known): Iterable<string> {
  const { observer } = world;
  const rounds = Map.groupBy(observer.deliveries, ({ name, round }) => `${name} ${round}`);
  for (const [key, [first, ...more]] of rounds) {
    if (more.length > 0 && first !== undefined && !world.hasLost)
      yield `I2: ${key} ended ${more.length + 1} times`;
  }
  for (const delivery of observer.deliveries) {
    const record = known.get(delivery.of.transferId);
    if (record === undefined && !world.hasLost) yield `the delivery of ${delivery.trackingId} is forgotten`;
    const isOpen = record?.state === "delivering" && record.round === delivery.round;
    if (isOpen) continue;
    if (!world.hasLost) yield* checkHandoff(world, delivery);
    yield* observer.checkPlaced(delivery);
    const isBlocked = observer.foreign.size > 0;
    if (!delivery.hasAppeared && !isBlocked && !world.hasLost)
      yield `I7: ${delivery.trackingId} is delivered, and was never in the inbox`;
  }
}

/** A hand-off that was configured all the time since the attempt began has run. */
function* checkHandoff(world: World, delivery: Delivered): Iterable<string> {
  const { identity, trackingId, round, atMs, sites, programs, calls, of, owners } = delivery;
  if (identity === undefined) return;
  const all = [...sites, ...world.observer.sitesSince(atMs)];
  const handoffs = all.map((site) => handoffFor(site, of.address, identity));
  const isAlways = (has: (handoff: (typeof handoffs)[number]) => boolean) => handoffs.every(has);
  const [owner, ...others] = owners.command;
  const isSure = others.length === 0 && owner !== undefined;
  // What a mailbox had of its own waits until the mailbox is back.
  const isBack = owner?.startsWith("mailbox ") === true && identity === "none";
  const isOwned = (site: Site) => commandFor(site, of.address, identity, owner) !== undefined;
  if (
    isSure &&
    (all.every(isOwned) || (isBack && isOwned(world.site))) &&
    !programs.some(({ isGood }) => isGood)
  ) {
    yield `the command of ${trackingId} (round ${round}) never ran`;
  }
  if (isAlways((handoff) => handoff?.webhook !== undefined) && !calls.some(({ isGood }) => isGood)) {
    yield `the webhook of ${trackingId} (round ${round}) was never called`;
  }
}

/** Every order that was accepted was carried out. */
function* checkOrders(world: World, known: Known): Iterable<string> {
  const { observer, services, site, hasLost } = world;
  if (hasLost) return;
  for (const order of observer.orders) {
    const { act, record, atMs, key, hasFailed } = order;
    const now = known.get(record.transferId);
    const of = observer.received.get(record.transferId);
    if (now === undefined || of === undefined || boxOf(site, of.address) === undefined) continue;
    const later = observer.orders.filter(
      (each) => each.atMs >= atMs && each.key === key && each.act !== "retry" && each.act !== "grant",
    );
    const isListed = services[of.transfer.service]?.stateOf(of.transfer) === "active";
    const { trackingId } = record;
    if (wasLost(order, now, later, isListed)) yield `the order to ${act} ${trackingId} was lost`;
    if (act === "redeliver" && now.round <= record.round && hasFailed !== true)
      yield `the order to redeliver ${trackingId} was accepted, and nothing came of it`;
  }
}

/** All is as it was when it was given, and no later order wants it so. `later`: decisions, this one included. */
function wasLost(
  { act, record }: GivenOrder,
  now: TransferRecord,
  later: readonly GivenOrder[],
  isListed: boolean,
): boolean {
  const { state, round } = record;
  const isSameRound = now.round <= round;
  if (act === "discard") {
    const isLast = later.every((each) => each.act === act);
    // Its delivery was decided first.
    const isDecided = isDelivered(now) || now.state === "delivering";
    return isLast && isSameRound && !isUnwanted(now) && !isDecided;
  }
  if (act !== "retry" && act !== "release") return false;
  if (later.some((each) => each.act === "discard")) return false;
  const isHeld = state === "waiting" && now.state === "waiting" && now.reason === "held";
  const isEnded = ["quarantined", "gone"].includes(state);
  return (act === "release" && isHeld && isListed) || (isEnded && isSameRound);
}

/** Nothing is left that nobody will clear. */
function* checkLeftOvers(
  world: World,
  records: readonly TransferRecord[],
  isRestarted: boolean,
): Iterable<string> {
  const { disk, observer, site, schedule, work, hasLost } = world;
  if (hasLost) return;
  const recordOf = (entry: string) => {
    const [name = ""] = entry.split("~");
    const folder = `${work}/ledger/${name.slice(name.lastIndexOf(".") + 1).slice(0, 1)}`;
    const file = disk
      .names(folder)
      .findLast((each) => /^\.(begin|end)-/.test(each.slice(name.length)) && each.startsWith(name));
    const texts = [disk.text(`${work}/notes/${name}.json`), disk.text(`${folder}/${file}`)];
    const [transferId] = texts.flatMap(
      (text) => (parseTorn(text) as { transferId?: string }).transferId ?? [],
    );
    return records.find((record) => record.transferId === transferId);
  };
  const stateOf = (entry: string) => recordOf(entry)?.state ?? "unknown";
  const isOpen = (entry: string) => ["waiting", "delivering"].includes(stateOf(entry));
  const isUnacknowledged = (entry: string) => {
    const record = recordOf(entry);
    return record !== undefined && isUnseen(record);
  };
  const isLastRound = (entry: string) => {
    const [, round] = entry.split("~");
    const record = recordOf(entry);
    return record?.state === "quarantined" && record.round === Number(round);
  };
  /** Somebody else's file has a name that the round needs, whatever later rounds have come to. */
  const isBlocked = (entry: string) =>
    observer.deliveries.some((each) => {
      const { name, round, record } = each;
      const isInWay = (path: string) => path.includes(`/${record.folder}`) && disk.tryGet(path) !== undefined;
      return (
        entry.startsWith(`${name}~${round}`) && observer.isStaged(each) && [...observer.foreign].some(isInWay)
      );
    });
  const isFresh = (path: string) => (disk.tryGet(path)?.modifiedMs ?? 0) > schedule.nowMs - 1_000;
  const isConfigured = (entry: string) => {
    const of = observer.received.get(recordOf(entry)?.transferId ?? "");
    return of === undefined || boxOf(site, of.address) !== undefined;
  };
  /** The order is for what is not here, or releases what is open. */
  const mayWait = ({ action, trackingId, mailbox = "" }: ReturnType<World["orderIn"]>) => {
    const isMine = (record: TransferRecord) =>
      record.trackingId === trackingId && fold(record.mailbox) === fold(mailbox);
    const record = records.find(isMine);
    const of = record && observer.received.get(record.transferId);
    if (record === undefined || of === undefined || boxOf(site, of.address) === undefined) return true;
    return action === "release" && ["waiting", "delivering"].includes(record.state);
  };
  const isKept: Readonly<Record<string, (entry: string) => boolean>> = {
    // A start removes those that a crash has left an hour ago.
    staging: (entry) =>
      entry.startsWith(".inlet-probe-") || isOpen(entry) || !isConfigured(entry) || isBlocked(entry),
    names: (entry) =>
      disk
        .names(`${work}/names/${entry}`)
        .some((claim) => isOpen(claim) || !isConfigured(claim) || isBlocked(claim)),
    // A start clears temporary files. Beside other processes, only those that are older than an hour. The daemon may make one
    // right now, to see whether it can.
    new: (entry) => site.isShared || !isRestarted || isFresh(`${work}/new/${entry}`),
    orders: (entry) => entry.endsWith(".over") || mayWait(world.orderIn(entry)),
    // A transfer that is gone may have nothing else left: an operator who acknowledges that clears it.
    quarantine: (entry) =>
      isOpen(entry) || isLastRound(entry) || isUnacknowledged(entry) || !isConfigured(entry),
    outbox: (entry) => isOpen(entry) || isAwaited(entry) || !isConfigured(entry) || isBlocked(entry),
  };
  const isAwaited = (entry: string) => {
    const [, key, kind] = /^(.+~\d+)\.(json|wait|kept)$/.exec(entry) ?? [];
    const delivery = observer.deliveries.find(({ name, round }) => `${name}~${round}` === key);
    // Another delivery may have the same names by now.
    const isThere = [...(delivery?.seen.values() ?? [])].some((path) => disk.tryGet(path) !== undefined);
    return key === undefined || isThere || kind === "json";
  };
  for (const [folder, isGood] of Object.entries(isKept)) {
    for (const entry of disk.names(`${work}/${folder}`)) {
      if (!isGood(entry)) yield `left: ${folder}/${entry}`;
    }
  }
  for (const { path, entry } of disk.walk(`${STATE}/passwords`)) {
    const [, trackingId = ""] = /([^/]+)$/.exec(path) ?? [];
    const mine = records.filter((record) => record.trackingId === trackingId);
    // Of a round that ended after the start, or shortly before: the next sweep removes it.
    const isFreshEnd = (record: TransferRecord) =>
      isRestarted && (observer.ends.get(observer.keyOf(record))?.atMs ?? 0) > schedule.nowMs - SWEEP_MS;
    const isNeeded =
      mine.length === 0 || mine.some((record) => record.state === "waiting" || isFreshEnd(record));
    if (entry.kind === "file" && !isNeeded) yield `left: ${path}`;
  }
}

/** What an operator decides about is there, and what consumers did is known. */
function* checkKept(world: World, records: readonly TransferRecord[]): Iterable<string> {
  const { disk, observer, work, hasLost } = world;
  if (hasLost) return;
  for (const { state, trackingId, round, transferId } of records) {
    const isKept = disk
      .names(`${work}/quarantine`)
      .some((name) => name.startsWith(`${trackingId}.`) && name.endsWith(`~${round}`));
    if (state === "quarantined" && !isKept) yield `${trackingId} is in quarantine, and its content is gone`;
    const delivery = observer.deliveries.findLast(
      (each) => each.of.transferId === transferId && each.round === round,
    );
    const isKnown = delivery !== undefined && !delivery.isTouched && observer.foreign.size === 0;
    if (isKnown && isDelivered({ state })) yield* checkPickUp(world, delivery, state);
  }
}

function* checkPickUp(
  { disk, work, calm }: World,
  { trackingId, name, round, record, acknowledged, seen, paths, atMs }: Delivered,
  state: string,
): Iterable<string> {
  const { acknowledgement } = record;
  const isAcknowledged = acknowledgement !== undefined && acknowledged.has(acknowledgement);
  const content = [...seen].flatMap(([what, path]) => (what.startsWith(".beside") ? [] : [path]));
  const isThere = content.some((path) => paths.includes(path) && disk.tryGet(path) !== undefined);
  if (state === "picked-up" && isThere && !isAcknowledged)
    yield `${trackingId} counts as picked up, and lies in the inbox`;
  // A power cut may have taken it, or the record of the pick-up, which is not synced.
  const hasMark = paths.some((path) => disk.tryGet(`${path}/${acknowledgement}`) !== undefined);
  const end = endOf(work.replace(/\/\.inlet$/, ""), name, round);
  const isRecorded = (disk.text(end.replace(".end-", ".handoff-")) ?? "") !== "";
  const isForgotten = calm.hadPowerCut(atMs) && !isRecorded;
  const isOld = acknowledged.size > 0 && calm.sinceMs() > 0;
  if (state === "delivered" && isAcknowledged && hasMark && isThere && isOld && !isForgotten)
    yield `${trackingId} was acknowledged, and does not count as picked up`;
}

/** Each notification is about something that was so, and of a kind that somebody wants. */
function* checkNotices({ observer, calm, plan }: World): Iterable<string> {
  for (const { kind, trackingId, atMs, isLate } of observer.notices) {
    // It may have been on its way, or a daemon may not have been able to apply the configuration.
    const isSoon = !calm.wasDisturbed(atMs - MINUTE_MS);
    const sites = observer.sitesSince(isLate ? 0 : atMs - (isSoon ? 1 : 5) * MINUTE_MS);
    if (sites.every(({ notifyOn }) => notifyOn !== undefined && !notifyOn.includes(kind)))
      yield `a notification of ${kind}, which nobody wants`;
    if (trackingId === undefined) continue;
    const mine = observer.deliveries.filter((each) => each.trackingId === trackingId);
    const hasFailed = mine.some(({ programs, calls }) =>
      [...programs, ...calls].some(({ isGood }) => !isGood),
    );
    if (kind === "handoff" && !hasFailed && !mayFailByItself(plan))
      yield `a notification says that the hand-off of ${trackingId} failed, and it did not`;
  }
}

function* checkSecrets({ disk, observer }: World): Iterable<string> {
  const isSecret = /Secret-|Token-\d|Client[AB]0|Hook-/;
  for (const text of observer.texts) if (isSecret.test(text)) yield `I4: a secret in ${text.slice(0, 80)}`;
  for (const { path, entry } of disk.walk("/data")) {
    if (entry.kind === "file" && isSecret.test(entry.bytes.toString())) yield `I4: a secret in ${path}`;
  }
}
