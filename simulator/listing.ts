/** Endpoints of lists: access, order, pages, and faults of lists. */
import { canonicalAddress } from "../src/model/transfer.ts";
import type { Call, Handler, World } from "./call.ts";
import type { Strike } from "./faults.ts";
import { DEFAULT_FIELDS, parseFields } from "./fields.ts";
import { describeBriefly, describeTransfer, type Viewer } from "./record.ts";
import { dataReply } from "./reply.ts";
import { booleanParameter, checkVerified, integerParameter } from "./requests.ts";
import { findRecipient, type StoredTransfer, storeTransfer } from "./transfers.ts";

const DEFAULT_PAGE_SIZE = 10;

export const listReceived: Handler = async (call, world) => {
  const { address = "" } = call.path;
  checkVerified(call, world, address);
  const isMine = (transfer: StoredTransfer): boolean => findRecipient(transfer, address) !== undefined;
  return dataReply(await listRecords(call, world, isMine, { as: "recipient", address }));
};

export const listSent: Handler = async (call, world) => {
  const { address = "" } = call.path;
  checkVerified(call, world, address);
  return dataReply(await listRecords(call, world, sentBy(address), { as: "sender" }));
};

/** The deprecated list, without field selection. */
export const listSentBriefly: Handler = (call, world) => {
  const { address = "" } = call.path;
  checkVerified(call, world, address);
  const page = choosePage(call, world, sentBy(address));
  return dataReply(page.map((transfer) => describeBriefly(transfer, world)));
};

function sentBy(address: string): (transfer: StoredTransfer) => boolean {
  const wanted = canonicalAddress(address);
  return (transfer) => canonicalAddress(transfer.sender) === wanted;
}

function listRecords(
  call: Call,
  world: World,
  isMine: (transfer: StoredTransfer) => boolean,
  viewer: Viewer,
): Promise<unknown[]> {
  const selection = parseFields(
    call.url.searchParams.get("fields") ?? DEFAULT_FIELDS,
    world.settings.otherFields,
    world.settings.refusedFields,
  );
  const active = world.settings.ignoresActive ? undefined : booleanParameter(call, "active");
  const page = choosePage(
    call,
    world,
    (transfer) =>
      isMine(transfer) &&
      (active === undefined || active === (world.transfers.stateOf(transfer) === "Active")),
  );
  return Promise.all(page.map((transfer) => describeTransfer(transfer, selection, viewer, world)));
}

/** The requested page, newest transfers first. */
function choosePage(
  call: Call,
  world: World,
  isWanted: (transfer: StoredTransfer) => boolean,
): readonly StoredTransfer[] {
  const { settings, clock, transfers } = world;
  const page = integerParameter(call, "page", 1, 1);
  const size = Math.min(integerParameter(call, "page-size", DEFAULT_PAGE_SIZE, 1), settings.maxPageSize);
  const oldestMs = clock.now() - settings.retentionMs;
  const listed = transfers
    .all()
    .reverse()
    .filter((transfer) => transfer.expiresAtMs >= oldestMs && isWanted(transfer));
  return misbehavingPage(listed, page, size, call, world) ?? listed.slice((page - 1) * size, page * size);
}

/** The page as faults change it; `undefined` without a fault of lists. */
function misbehavingPage(
  listed: readonly StoredTransfer[],
  page: number,
  size: number,
  call: Call,
  world: World,
): readonly StoredTransfer[] | undefined {
  const strike = call.strikes.find(({ does }) => ["shift", "repeat", "endless"].includes(does.kind));
  if (strike === undefined) return undefined;
  const { does, count } = strike;
  const start = (page - 1) * size;
  const phantom = (number: number): StoredTransfer => inventTransfer(strike, number, call, world);
  switch (does.kind) {
    case "endless":
      return Array.from({ length: size }, (_, index) => phantom((count - 1) * size + index + 1));
    case "repeat": {
      const repeated = (page - 1) * does.entries;
      const first = Math.max(start - repeated, 0);
      return listed.slice(first, first + size);
    }
    case "shift": {
      const inserted = count * does.by;
      const places = Array.from({ length: size }, (_, index) => start + index);
      return places.flatMap((at) => (at < inserted ? phantom(inserted - at) : (listed[at - inserted] ?? [])));
    }
    default:
      return undefined;
  }
}

/** An entry of a list without a transfer that could be opened; equal numbers give equal entries. */
function inventTransfer({ id }: Strike, number: number, call: Call, world: World): StoredTransfer {
  const { address = "" } = call.path;
  const plan = {
    trackingId: `phantom-${id}-${number}`,
    from: address,
    to: [address],
    files: [],
    password: "phantom",
  };
  return storeTransfer(plan, -number, world.settings, world.clock.now());
}
