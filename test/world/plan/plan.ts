/** Makes the plan of a world from its seed: the site, what senders send, and what happens when. */

import { Random } from "../ground/random.ts";
import type { WatchMood } from "../ground/watches.ts";
import type { Operation } from "../service/requests.ts";
import { makeHabits } from "./habits.ts";
import { isEarly, makeHappening, makeTaste, type Taste } from "./happenings.ts";
import { makeTransfer } from "./mail.ts";
import {
  countTransfers,
  fitHabits,
  fitLimits,
  fitSite,
  fitTransfers,
  hasEnough,
  makeScene,
  pickScene,
  type Scene,
} from "./scenes.ts";
import type { SentTransfer, ServiceHabits, Weather } from "./sent.ts";
import { BOX, INBOX, PLAIN, PLAIN_BOX, RULE_PASSWORDS, SECOND_BOX, type Site } from "./site.ts";
import { makeSite } from "./sites.ts";

const MINUTE_MS = 60_000;
/** Disturbances happen within this time. After it the world is left in peace. */
export const UNREST_MS = 8 * MINUTE_MS;
const SMALL_UNREST_MS = MINUTE_MS;
/** From the last of them to peace. */
const AFTER_MS = 20_000;

/** Scenes in which two things meet. */
const MEETINGS: ReadonlySet<Scene> = new Set(["crossed", "meanwhile", "one slow step"]);

/** What others see of a daemon: it runs a program, sends something, takes up an order, or asks a service for something. */
export type Moment = "check" | "command" | "webhook" | "message" | "order" | Operation;

export type OrderAct = "retry" | "release" | "discard" | "redeliver" | "grant";

/** What a person does to the folders of a daemon that is stopped. */
export type Loss =
  /** The folder is gone. `both`: the work folder and the state folder. */
  | { readonly what: "work" | "state" | "both"; readonly how: "gone" }
  /** As it was at the last backup. */
  | { readonly what: "work" | "state" | "both" | "all"; readonly how: "restored" }
  /** The inbox is elsewhere from then on: moved whole, copied without the folders that begin with a dot, or new. */
  | { readonly what: "inbox"; readonly how: "moved" | "copied" | "new" };

export type Happening =
  | { readonly kind: "arrive"; readonly transfer: number }
  | { readonly kind: "vanish"; readonly transfer: number; readonly how: "deleted_by_revocation" | "unsent" }
  /** The service lists it again. */
  | { readonly kind: "return"; readonly transfer: number }
  | { readonly kind: "site"; readonly site: Site }
  /** A person saves a configuration that the program refuses, and mends it later. */
  | { readonly kind: "bad-site"; readonly ms: number }
  /**
   * Something happens exactly when the daemon has done so many more steps in one folder of ours, or in any; the daemon then
   * pauses, so that it happens in between. With a moment, it happens at the next one of these, after so many others.
   * `stallMs`: it happens at a step that changes something. That step alone takes so long, while the daemon goes on.
   */
  | {
      readonly kind: "when";
      readonly afterSteps: number;
      readonly inFolder: string | undefined;
      readonly moment?: Moment;
      readonly pauseMs: number;
      readonly stallMs?: number;
      readonly what: Happening;
    }
  /** `afterSteps`: of the disk, or of those in one folder of ours. */
  | {
      readonly kind: "kill";
      readonly afterSteps: number;
      readonly inFolder: string | undefined;
      readonly isPowerCut: boolean;
      readonly downMs: number;
      readonly inSite?: Site;
    }
  | { readonly kind: "stop"; readonly downMs: number; readonly inSite?: Site; readonly loss?: Loss }
  | { readonly kind: "backup" }
  /**
   * `afterSteps`: of the disk, or changes in one folder of ours. The latter pause ends sooner if another process adds a name
   * below `until`, or else the name that the paused process was about to change.
   */
  | {
      readonly kind: "freeze";
      readonly ms: number;
      readonly afterSteps: number;
      readonly inFolder?: string;
      readonly until?: string;
    }
  | { readonly kind: "second"; readonly ms: number }
  /** `inFolder`: it begins there. */
  | {
      readonly kind: "sync-fails" | "disk-fails";
      readonly afterSteps: number;
      readonly times: number;
      readonly inFolder?: string | undefined;
    }
  | { readonly kind: "disk-full"; readonly ms: number }
  /** Each step takes up to `upToMs`; with a folder of ours, only those in it. */
  | {
      readonly kind: "slow-disk";
      readonly upToMs: number;
      readonly ms: number;
      readonly inFolder?: string | undefined;
    }
  /** Nothing in this folder of ours can be read or written. */
  | { readonly kind: "bad-folder"; readonly inFolder: string; readonly ms: number }
  | { readonly kind: "clock"; readonly byMs: number; readonly ms: number }
  | {
      readonly kind: "queue";
      readonly mischief: "away" | "lose" | "repeat" | "delay" | "wipe";
      readonly ms: number;
    }
  | { readonly kind: "weather"; readonly service: number; readonly weather: Weather; readonly ms: number }
  | { readonly kind: "damage"; readonly transfer: number; readonly ms: number }
  /** Somebody changes bytes: in the quarantine, in a stage while no daemon runs, or in the inbox. */
  | { readonly kind: "tamper"; readonly transfer: number; readonly where: "quarantine" | "staging" | "inbox" }
  | { readonly kind: "check"; readonly exitCode: number; readonly ms: number; readonly spoils: boolean }
  | { readonly kind: "command"; readonly exitCode: number; readonly ms: number }
  /** Programs run for up to `upToMs`. */
  | { readonly kind: "slow-programs"; readonly upToMs: number; readonly ms: number }
  | { readonly kind: "receiver"; readonly isAway: boolean; readonly ms: number; readonly delayMs?: number }
  | {
      readonly kind: "order";
      readonly action: OrderAct;
      readonly transfer: number;
      /** Together with the order, the right password is supplied. */
      readonly withPassword: boolean;
      /** Given right after it, for the same transfer. */
      readonly next?: OrderAct;
    }
  /** `isCommon`: for every mailbox that received it, whichever its service is. */
  | {
      readonly kind: "password";
      readonly transfer: number;
      readonly isRight: boolean;
      readonly isCommon?: boolean;
    }
  | {
      readonly kind: "consume";
      readonly transfer: number;
      readonly how: "take" | "acknowledge" | "misunderstand" | "pick";
    }
  /** A consumer puts something else in place of what Inlet wrote into the inbox, and will read again. */
  | { readonly kind: "replace"; readonly transfer: number; readonly by: "huge" | "pipe" | "link" | "nothing" }
  /** A consumer takes each delivery in the moment in which it appears. */
  | { readonly kind: "greedy"; readonly ms: number }
  /** Puts something of its own where deliveries go. `isTrap`: at the moment in which a delivery is decided. */
  | {
      readonly kind: "foreign";
      readonly transfer: number;
      readonly isTrap: boolean;
      readonly number: number;
    };

export interface PlannedHappening {
  readonly atMs: number;
  readonly what: Happening;
}

export interface Plan {
  readonly seed: number;
  /** What a small world is about. */
  readonly scene?: Scene;
  /** How each service differs from others. Missing: not at all. */
  readonly habits?: readonly ServiceHabits[];
  /** How long disturbances last. Missing: as usual. */
  readonly unrestMs?: number;
  /** Ends at rest, without another start. */
  readonly isSmall?: boolean;
  /** When watches of folders report changes. Missing: promptly. */
  readonly watches?: WatchMood;
  /** The daemon is started once every few minutes, as from cron, until peace. */
  readonly isCron?: boolean;
  readonly site: Site;
  readonly transfers: readonly SentTransfer[];
  readonly happenings: readonly PlannedHappening[];
}

/** All that happens, also what waits for a moment. */
export function happeningsOf({ happenings }: Plan): Happening[] {
  const allOf = (what: Happening): Happening[] =>
    what.kind === "when" ? [what, ...allOf(what.what)] : [what];
  return happenings.flatMap(({ what }) => allOf(what));
}

/** Three of four worlds are small. */
export function makePlan(seed: number): Plan {
  return seed % 4 === 0 ? makeWholePlan(seed) : makeSmallPlan(seed);
}

/** One or two transfers, and one fault with what it needs to matter. `wanted`: the scene, whatever the seed says. */
export function makeSmallPlan(seed: number, wanted?: Scene): Plan {
  const random = new Random(seed);
  const taste = makeTaste(random);
  const drawn = pickScene(random);
  const scene = wanted ?? drawn;
  // Otherwise most transfers would never be received, and nothing could happen to them.
  const isPlain = scene !== "passwords" && random.chance(0.65);
  const drawnSite = makeSite(random, taste);
  const basic = fitSite(scene, random, isPlain ? withKnownPasswords(drawnSite) : drawnSite);
  if (scene === "archives") Object.assign(taste, { archives: 0.9 });
  const make = () => makeTransfers(random, countTransfers(scene, random), basic, taste);
  let made = make();
  for (let times = 4; times > 0 && !hasEnough(scene, made); times--) made = make();
  const transfers = fitTransfers(scene, random, basic, isPlain ? made.map(asUsual) : made);
  const site = fitLimits(scene, random, basic, transfers);
  const happenings = makeScene(scene, random, site, transfers, taste);
  const habits = makeHabits(random, 0.15).map((each) => fitHabits(scene, random, each));
  // What crosses something else has to be noticed soon.
  const watches = MEETINGS.has(scene) && random.chance(0.8) ? "prompt" : makeWatches(random);
  const isCron = !site.isShared && random.chance(0.08);
  // Most are there before what disturbs them. Some scenes say when.
  const isLate = new Set(happenings.flatMap(({ what }) => (what.kind === "arrive" ? [what.transfer] : [])));
  const early = transfers.keys().flatMap((transfer) => {
    const atMs = random.chance(0.7) ? 0 : random.int(MINUTE_MS);
    return isLate.has(transfer) ? [] : [{ atMs, what: { kind: "arrive", transfer } as const }];
  });
  const ends = happenings.map(({ atMs, what }) => atMs + ("ms" in what ? what.ms : 0));
  const unrestMs = Math.max(SMALL_UNREST_MS, ...ends.map((ms) => ms + AFTER_MS));
  return {
    seed,
    scene,
    isSmall: true,
    unrestMs,
    habits,
    watches,
    isCron,
    site,
    transfers,
    happenings: inOrder([...early, ...happenings]),
  };
}

/** Whatever no rule says otherwise about is delivered. */
function withKnownPasswords(site: Site): Site {
  const boxes = site.boxes.map((box) => ({ ...box, otherwise: "deliver" as const, knowsPassword: true }));
  return { ...site, boxes };
}

/** A rule knows its password, and may use it. */
function asUsual({ securityMode: _, isPasswordInLink: __, ...transfer }: SentTransfer): SentTransfer {
  const password = RULE_PASSWORDS[transfer.service] ?? "";
  return { ...transfer, password, sender: transfer.sender.replaceAll("\ud800", "") };
}

/** Many things at once. */
function makeWholePlan(seed: number): Plan {
  const random = new Random(seed);
  if (COLLISIONS.includes(seed % 22)) return planCollisions(seed, random);
  const taste = makeTaste(random);
  const site = makeSite(random, taste);
  const transfers = makeTransfers(random, 1 + random.int(4), site, taste);
  const happenings: PlannedHappening[] = transfers.map((_, transfer) => ({
    atMs: random.int(4) * MINUTE_MS,
    what: { kind: "arrive", transfer },
  }));
  let current = site;
  for (let count = 2 + random.int(9); count > 0; count--) {
    const atMs = random.int(UNREST_MS);
    const what = makeHappening(random.weighted(taste.kinds), random, current, transfers, taste);
    const next = "site" in what ? what.site : "inSite" in what ? what.inSite : undefined;
    if (next !== undefined) current = next;
    happenings.push({ atMs: isEarly(what, atMs) ? Math.floor(atMs / 8) : atMs, what });
  }
  const habits = makeHabits(random, 0.15);
  const watches = makeWatches(random);
  return { seed, habits, watches, site, transfers, happenings: inOrder(happenings) };
}

function inOrder(happenings: readonly PlannedHappening[]): PlannedHappening[] {
  return happenings.toSorted((a, b) => a.atMs - b.atMs);
}

function makeTransfers(random: Random, count: number, site: Site, taste: Taste): SentTransfer[] {
  return Array.from({ length: count }, (_, at) => makeTransfer(random, at, site, taste));
}

function makeWatches(random: Random): WatchMood {
  return random.weighted({ prompt: 5, late: 2, twice: 1, never: 2, blind: 1 });
}

/** Remainders of seeds by 22. */
const COLLISIONS = [2, 4];

/** Deliveries of two daemons want the same names: of two mailboxes, and of several rounds. One of the daemons pauses. */
function planCollisions(seed: number, random: Random): Plan {
  const done = random.chance(0.5) ? { done: true } : {};
  const files = { deliver: "files", manifest: "beside", ...done } as const;
  const handoff = random.chance(0.7) ? files : ({ manifest: "beside", ...done } as const);
  const boxes = [PLAIN_BOX, { ...PLAIN_BOX, email: SECOND_BOX }];
  const site: Site = { ...PLAIN, boxes, handoff, isShared: random.chance(0.6), layout: "all/{trackingId}" };
  const transfers = Array.from({ length: 1 + random.int(2) }, (_, at) => ({
    ...makeTransfer(random, at, site, { archives: 0, oddNames: 0 }),
    recipients: [BOX, SECOND_BOX],
    password: "Secret-common",
    service: 0,
  }));
  const happenings: PlannedHappening[] = [{ atMs: 0, what: { kind: "second", ms: UNREST_MS } }];
  const add = (times: number, withinMs: number, make: () => Happening) => {
    for (; times > 0; times--) happenings.push({ atMs: random.int(withinMs), what: make() });
  };
  const transfer = () => random.int(transfers.length);
  for (const at of transfers.keys()) add(1, 2 * MINUTE_MS, () => ({ kind: "arrive", transfer: at }));
  add(3, UNREST_MS / 2, () => ({
    kind: "freeze",
    ms: (2 + random.int(6)) * MINUTE_MS,
    afterSteps: 1 + random.int(12),
    inFolder: random.pick(["names", "names", "placements"]),
    ...(random.chance(0.5) ? { until: `${INBOX}/all` } : {}),
  }));
  add(4, UNREST_MS, () => ({ kind: "consume", transfer: transfer(), how: "take" }));
  const again = { kind: "order", action: "redeliver", withPassword: false } as const;
  add(3, UNREST_MS, () => ({ ...again, transfer: transfer() }));
  return { seed, site, transfers, happenings: inOrder(happenings) };
}
