/** What may happen in any world: how often each kind of happening does, and one function that makes each. */
import type { Random } from "../ground/random.ts";
import type { Happening } from "./plan.ts";
import { MOODS, type SentTransfer } from "./sent.ts";
import type { Site } from "./site.ts";
import { changeSite, toggleCommand } from "./sites.ts";

const MINUTE_MS = 60_000;

/** Their weights. */
const KINDS: Readonly<Record<Happening["kind"], number>> = {
  arrive: 0,
  vanish: 1,
  return: 0.5,
  site: 5,
  "bad-site": 0.5,
  when: 5,
  kill: 8,
  stop: 2,
  backup: 0.5,
  freeze: 1,
  second: 2,
  "sync-fails": 2,
  "disk-fails": 2,
  "disk-full": 1,
  "slow-disk": 1,
  "bad-folder": 0.7,
  clock: 0.6,
  queue: 1,
  weather: 4,
  damage: 2,
  tamper: 1,
  check: 4,
  command: 1,
  "slow-programs": 1,
  receiver: 1,
  order: 7,
  password: 3,
  consume: 4,
  replace: 0.7,
  greedy: 1,
  foreign: 3,
};

/**
 * What a world likes. Worlds that differ in everything alike would be alike: one has many kills and no consumers, another
 * archives and a check that refuses them.
 */
export interface Taste {
  readonly kinds: Readonly<Record<Happening["kind"], number>>;
  readonly check: number;
  readonly unpack: number;
  readonly archives: number;
  readonly command: number;
  readonly names: number;
  readonly knowsPassword: number;
  /** Names that a file system, a shell or another name of the transfer cannot bear. */
  readonly oddNames: number;
}

export function makeTaste(random: Random): Taste {
  const share = (usual: number) =>
    random.choose([
      [1, 0],
      [2, usual],
      [1, 0.9],
    ]);
  const kinds = Object.entries(KINDS).map(([kind, weight]) => [kind, weight * random.pick([0, 1, 1, 4])]);
  return {
    kinds: { ...Object.fromEntries(kinds), site: KINDS.site } as Taste["kinds"],
    check: share(0.4),
    unpack: share(0.3),
    archives: share(0.3),
    command: share(0.4),
    names: random.pick([0.3, 0.9]),
    knowsPassword: random.pick([0.9, 0.9, 0.5]),
    oddNames: random.pick([0, 0, 0.2, 0.6]),
  };
}

/** Folders of ours, each with steps that are few and matter. */
export const FOLDERS = [
  "outbox",
  "ledger",
  "journal",
  "names",
  "placements",
  "quarantine",
  "orders",
  "notes",
  "slots",
  "staging",
  "notify",
  "passwords",
];

/** Of these, the ones whose syncs decide something. */
export const SYNCED = ["ledger", "staging", "ledger", "outbox"];

/** What every happening is made from: some of it is drawn for each, whether its kind uses it or not. */
interface Draw {
  readonly random: Random;
  readonly site: Site;
  readonly transfers: readonly SentTransfer[];
  readonly taste: Taste;
  readonly transfer: number;
  readonly ms: number;
  readonly afterSteps: number;
}

const MAKERS: { readonly [Kind in Happening["kind"]]: (draw: Draw) => Happening & { readonly kind: Kind } } =
  {
    // With a transfer

    arrive: ({ transfer }) => ({ kind: "arrive", transfer }),
    vanish: ({ random, transfer }) => ({
      kind: "vanish",
      transfer,
      how: random.pick(["deleted_by_revocation", "unsent"]),
    }),
    return: ({ transfer }) => ({ kind: "return", transfer }),
    damage: ({ transfer, ms }) => ({ kind: "damage", transfer, ms: ms * 2 }),
    tamper: ({ random, transfer }) => ({
      kind: "tamper",
      transfer,
      where: random.pick(["quarantine", "staging", "inbox"]),
    }),
    order: ({ random, transfer }) => {
      const act = () =>
        random.pick(["retry", "retry", "release", "release", "discard", "redeliver", "grant"] as const);
      const next = random.chance(0.2) ? { next: act() } : {};
      return { kind: "order", action: act(), transfer, withPassword: random.chance(0.4), ...next };
    },
    password: ({ random, transfer }) => ({ kind: "password", transfer, isRight: random.chance(0.6) }),
    replace: ({ random, transfer }) => ({
      kind: "replace",
      transfer,
      by: random.pick(["huge", "pipe", "link", "nothing"]),
    }),
    consume: ({ random, transfer }) => ({
      kind: "consume",
      transfer,
      how: random.pick(["take", "take", "acknowledge", "pick"]),
    }),
    foreign: ({ random, transfer }) => ({
      kind: "foreign",
      transfer,
      isTrap: random.chance(0.6),
      number: random.int(6),
    }),

    // To the daemon

    when: ({ random, site, transfers, taste }) => {
      const kinds = [
        "order",
        "order",
        "vanish",
        "consume",
        "site",
        "password",
        "disk-full",
        "bad-folder",
        "weather",
      ] as const;
      const inner = random.pick(kinds);
      const inFolder = random.chance(0.7) ? random.pick(FOLDERS) : undefined;
      return {
        kind: "when",
        inFolder,
        afterSteps: random.int(inFolder === undefined ? 250 : 10),
        pauseMs: random.pick([0, 50, 5_000]),
        what: makeHappening(inner, random, site, transfers, taste),
      };
    },
    kill: ({ random, site, taste, afterSteps }) => {
      const downMs = random.int(3 * MINUTE_MS);
      const isPowerCut = random.chance(0.4);
      const inFolder = random.chance(0.6) ? random.pick(FOLDERS) : undefined;
      const where =
        inFolder === undefined ? { afterSteps, inFolder } : { afterSteps: random.int(6), inFolder };
      const changed = random.chance(0.4) ? changeSite(random, site, taste) : undefined;
      // What follows a delivery often changes while its record is made.
      const inSite = inFolder === "outbox" && downMs % 2 === 0 ? toggleCommand(site) : changed;
      return { kind: "kill", ...where, isPowerCut, downMs, ...(inSite === undefined ? {} : { inSite }) };
    },
    stop: ({ random, site, taste, ms }) => ({
      kind: "stop",
      downMs: ms / 2,
      ...(random.chance(0.4) ? { inSite: changeSite(random, site, taste) } : {}),
    }),
    freeze: ({ ms, afterSteps }) => ({ kind: "freeze", ms: ms * 2, afterSteps: 1 + afterSteps }),
    second: ({ ms }) => ({ kind: "second", ms }),
    site: ({ random, site, taste }) => ({ kind: "site", site: changeSite(random, site, taste) }),
    "bad-site": ({ ms }) => ({ kind: "bad-site", ms }),

    // Around it

    "sync-fails": ({ random, afterSteps }) => ({
      kind: "sync-fails",
      afterSteps,
      times: 1 + random.int(3),
      inFolder: pickHalf(SYNCED, afterSteps),
    }),
    "disk-fails": ({ random, afterSteps }) => ({
      kind: "disk-fails",
      afterSteps,
      times: 1 + random.int(3),
      inFolder: pickHalf(FOLDERS, afterSteps),
    }),
    "disk-full": ({ ms }) => ({ kind: "disk-full", ms }),
    "slow-disk": ({ random, ms }) => ({ kind: "slow-disk", ms, upToMs: random.pick([50, 500, 3_000]) }),
    "bad-folder": ({ random, ms }) => ({
      kind: "bad-folder",
      inFolder: random.pick(["outbox", "orders", "notes", "ledger", "staging", "new"]),
      ms: 3 * MINUTE_MS + ms,
    }),
    backup: () => ({ kind: "backup" }),
    clock: ({ random }) => {
      const byMs = random.chance(0.3)
        ? random.int(10 * 24 * 60) * MINUTE_MS
        : (5 + random.int(20 * 60)) * MINUTE_MS;
      return {
        kind: "clock",
        byMs: random.chance(0.5) ? byMs : -byMs,
        ms: 30_000 + random.int(2 * MINUTE_MS),
      };
    },
    queue: ({ random, ms }) => ({
      kind: "queue",
      mischief: random.pick(["away", "lose", "repeat", "repeat", "delay", "wipe"]),
      ms,
    }),
    weather: ({ random, ms }) => {
      const mood = random.pick(MOODS);
      const retryAfter = random.pick([undefined, "20", "600"]);
      const scope = random.pick([undefined, "lists", "transfers"] as const);
      const weather = {
        mood,
        share: random.pick([0.4, 1]),
        ...(retryAfter && { retryAfter }),
        ...(scope && { scope }),
      };
      return { kind: "weather", service: random.chance(0.7) ? 0 : 1, weather, ms };
    },
    check: ({ random, ms }) => ({
      kind: "check",
      exitCode: random.pick([1, 1, 75]),
      ms,
      spoils: random.chance(0.5),
    }),
    command: ({ random, ms }) => ({ kind: "command", exitCode: random.pick([0, 1]), ms }),
    "slow-programs": ({ random, ms }) => ({
      kind: "slow-programs",
      upToMs: random.pick([10_000, 40_000]),
      ms,
    }),
    receiver: ({ random, ms }) => ({
      kind: "receiver",
      isAway: random.chance(0.7),
      ms,
      delayMs: random.pick([0, 0, 4_000, 20_000]),
    }),
    greedy: ({ ms }) => ({ kind: "greedy", ms }),
  };

export function makeHappening(
  kind: Happening["kind"],
  random: Random,
  site: Site,
  transfers: readonly SentTransfer[],
  taste: Taste,
): Happening {
  const transfer = random.int(transfers.length);
  const ms = (1 + random.int(6)) * MINUTE_MS;
  const afterSteps = random.int(random.chance(0.5) ? 60 : 400);
  return MAKERS[kind]({ random, site, transfers, taste, transfer, ms, afterSteps });
}

/** Most transfers arrive in the beginning, and these meet them only if they are there before. */
export function isEarly(what: Happening, atMs: number): boolean {
  if (what.kind === "kill") return what.inFolder !== undefined && what.downMs % 2 === 0;
  return atMs % 2 === 0 && (what.kind === "check" || what.kind.endsWith("-fails"));
}

/** Any folder for half of the numbers. */
function pickHalf(folders: readonly string[], number: number): string | undefined {
  return number % 2 === 0 ? folders[(number / 2) % folders.length] : undefined;
}
