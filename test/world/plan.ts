/** Makes the plan of a world from its seed: the site, what senders send, and what happens when. */
import { createHash } from "node:crypto";
import { writeZip } from "../support/zip-writer.ts";
import { START_MS } from "./process.ts";
import { Random } from "./random.ts";
import { MOODS, type Mood, type SentFile, type SentTransfer, type ServiceHabits } from "./service.ts";

const MINUTE_MS = 60_000;
/** Disturbances happen within this time. After it the world is left in peace. */
export const UNREST_MS = 20 * MINUTE_MS;

export const INBOX = "/data/inbox";
export const OTHER_INBOX = "/data/other";
export const WORK = "/data/inbox/.inlet";
export const STATE = "/state";
/** Nothing may ever be written here. */
export const OUTSIDE = "/outside";

export const BOX = "box@example.com";
export const SECOND_BOX = "second@example.com";

/** Each program decides by what the world says. */
export const PROGRAMS = { command: "/bin/hand-over", urgent: "/bin/urgent", check: "/bin/check" } as const;

export interface RawRoute {
  readonly name?: string;
  readonly sender?: string;
  readonly subject?: string;
  readonly file?: string;
  readonly action?: "deliver" | "hold" | "ignore";
  readonly inbox?: string;
  readonly layout?: string;
  readonly handoff?: RawHandoff;
}

export interface RawHandoff {
  readonly command?: readonly string[];
  readonly webhook?: { readonly url: string; readonly secret: string };
  readonly keep?: { readonly pickedUp?: string; readonly notPickedUp?: string };
  readonly acknowledgement?: string;
  readonly deliver?: "folder" | "files";
  readonly manifest?: "inside" | "beside" | "none";
  readonly done?: boolean;
  readonly unpack?: "none" | "beside" | "instead";
}

/** The configuration, as far as worlds change it. */
export interface Site {
  readonly box: string;
  readonly hasSecondBox: boolean;
  readonly fetch: "files" | "zip";
  readonly routes: readonly RawRoute[];
  readonly otherwise: "deliver" | "hold" | "ignore";
  readonly handoff: RawHandoff;
  readonly hasCheck: boolean;
  readonly isShared: boolean;
  readonly knowsPassword: boolean;
  /** Of all mailboxes; missing: the default. */
  readonly layout?: string;
}

/** One mailbox, folders, and a command that follows each delivery. */
export const PLAIN: Site = {
  box: BOX,
  hasSecondBox: false,
  fetch: "files",
  routes: [],
  otherwise: "deliver",
  handoff: { command: [PROGRAMS.command] },
  hasCheck: false,
  isShared: false,
  knowsPassword: true,
};

export type Happening =
  | { readonly kind: "arrive"; readonly transfer: number }
  | { readonly kind: "vanish"; readonly transfer: number; readonly how: "deleted_by_revocation" | "unsent" }
  | { readonly kind: "site"; readonly site: Site }
  /** `afterSteps`: of the disk, or of those in one folder of ours. */
  | {
      readonly kind: "kill";
      readonly afterSteps: number;
      readonly inFolder: string | undefined;
      readonly isPowerCut: boolean;
      readonly downMs: number;
      readonly inSite?: Site;
    }
  | { readonly kind: "stop"; readonly downMs: number; readonly inSite?: Site }
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
  | { readonly kind: "service"; readonly mood: Mood; readonly ms: number }
  | { readonly kind: "damage"; readonly transfer: number; readonly ms: number }
  | { readonly kind: "check"; readonly exitCode: number; readonly ms: number }
  | { readonly kind: "command"; readonly exitCode: number; readonly ms: number }
  | { readonly kind: "receiver"; readonly isAway: boolean; readonly ms: number }
  | {
      readonly kind: "order";
      readonly action: "retry" | "release" | "discard" | "redeliver";
      readonly transfer: number;
      /** Together with the order, the right password is supplied. */
      readonly withPassword: boolean;
    }
  | { readonly kind: "password"; readonly transfer: number; readonly isRight: boolean }
  | { readonly kind: "consume"; readonly transfer: number; readonly how: "take" | "acknowledge" }
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
  /** Missing: the usual ones. */
  readonly habits?: ServiceHabits;
  /** How long disturbances last. Missing: as usual. */
  readonly unrestMs?: number;
  readonly site: Site;
  readonly transfers: readonly SentTransfer[];
  readonly happenings: readonly PlannedHappening[];
}

export function makePlan(seed: number): Plan {
  const plan = makeUsualPlan(seed);
  const random = new Random(seed ^ ODD_SERVICES);
  return random.chance(0.12) ? withOddService(plan, random) : plan;
}

/** Chosen so that none of the worlds that once failed becomes another one. */
const ODD_SERVICES = 143;

/** Its service has other security modes, lists that ignore `active`, rows for messages, and whole thresholds. */
function withOddService(plan: Plan, random: Random): Plan {
  const isCalm = plan.happenings.every(({ what }) => what.kind !== "service");
  return {
    ...plan,
    habits: {
      ignoresActive: random.chance(0.7),
      wholeThreshold: random.chance(0.5),
      // A service that fails may withhold the message, and then it is delivered without.
      hidesMessages: isCalm && random.chance(0.5),
    },
    transfers: plan.transfers.map((transfer, at) => ({
      ...transfer,
      ...(random.chance(0.4) ? { securityMode: "QUICK", password: "Secret-agreed" } : {}),
      ...(random.chance(0.6) ? { messageRow: random.pick(["file", "eml"] as const) } : {}),
      message: random.chance(0.5) ? Buffer.from(`Subject: hello\r\n\r\nmessage ${at}\r\n`) : transfer.message,
    })),
  };
}

function makeUsualPlan(seed: number): Plan {
  const random = new Random(seed);
  if (COLLISIONS.includes(seed % 22)) return planCollisions(seed, random);
  const taste = makeTaste(random);
  const site = makeSite(random, taste);
  const transfers = Array.from({ length: 1 + random.int(3) }, (_, at) =>
    makeTransfer(random, at, site, taste),
  );
  const happenings: PlannedHappening[] = transfers.map((_, transfer) => ({
    atMs: random.int(5) * MINUTE_MS,
    what: { kind: "arrive", transfer },
  }));
  let current = site;
  for (let count = 2 + random.int(9); count > 0; count--) {
    const atMs = random.int(UNREST_MS);
    const what = makeHappening(random, current, transfers.length, taste);
    const next = "site" in what ? what.site : "inSite" in what ? what.inSite : undefined;
    if (next !== undefined) current = next;
    happenings.push({ atMs: isEarly(what, atMs) ? Math.floor(atMs / 8) : atMs, what });
  }
  return { seed, site, transfers, happenings: happenings.toSorted((a, b) => a.atMs - b.atMs) };
}

/** Remainders of seeds by 22. */
const COLLISIONS = [2, 4];

/** Deliveries of two daemons want the same names: of two mailboxes, and of several rounds. One of the daemons pauses. */
function planCollisions(seed: number, random: Random): Plan {
  const done = random.chance(0.5) ? { done: true } : {};
  const files = { deliver: "files", manifest: "beside", ...done } as const;
  const handoff = random.chance(0.7) ? files : ({ manifest: "beside", ...done } as const);
  const isShared = random.chance(0.6);
  const site = { ...PLAIN, hasSecondBox: true, handoff, isShared, layout: "all/{trackingId}" };
  const transfers = Array.from({ length: 1 + random.int(2) }, (_, at) => ({
    ...makeTransfer(random, at, site, { archives: 0 }),
    recipients: [BOX, SECOND_BOX],
    password: "Secret-common",
  }));
  const happenings: PlannedHappening[] = [{ atMs: 0, what: { kind: "second", ms: UNREST_MS } }];
  const add = (times: number, withinMs: number, make: () => Happening) => {
    for (; times > 0; times--) happenings.push({ atMs: random.int(withinMs), what: make() });
  };
  const transfer = () => random.int(transfers.length);
  for (const at of transfers.keys()) add(1, 3 * MINUTE_MS, () => ({ kind: "arrive", transfer: at }));
  add(3, UNREST_MS / 2, () => ({
    kind: "freeze",
    ms: (2 + random.int(10)) * MINUTE_MS,
    afterSteps: 1 + random.int(12),
    inFolder: random.pick(["names", "names", "placements"]),
    ...(random.chance(0.5) ? { until: `${INBOX}/all` } : {}),
  }));
  add(4, UNREST_MS, () => ({ kind: "consume", transfer: transfer(), how: "take" }));
  const again = { kind: "order", action: "redeliver", withPassword: false } as const;
  add(3, UNREST_MS, () => ({ ...again, transfer: transfer() }));
  return { seed, site, transfers, happenings: happenings.toSorted((a, b) => a.atMs - b.atMs) };
}

const KINDS: Readonly<Record<Happening["kind"], number>> = {
  arrive: 0,
  vanish: 1,
  site: 5,
  kill: 8,
  stop: 2,
  freeze: 1,
  second: 2,
  "sync-fails": 2,
  "disk-fails": 2,
  "disk-full": 1,
  service: 3,
  damage: 2,
  check: 4,
  command: 1,
  receiver: 1,
  order: 7,
  password: 2,
  consume: 4,
  foreign: 3,
};

/**
 * What a world likes. Worlds that differ in everything alike would be alike: one has many kills and no consumers, another
 * archives and a check that refuses them.
 */
interface Taste {
  readonly kinds: Readonly<Record<Happening["kind"], number>>;
  readonly check: number;
  readonly unpack: number;
  readonly archives: number;
  readonly command: number;
  readonly names: number;
  readonly knowsPassword: number;
}

function makeTaste(random: Random): Taste {
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
  };
}

/** Of those below, the ones whose syncs decide something. */
const SYNCED = ["ledger", "staging", "ledger", "outbox"];

/** Folders of ours, each with steps that are few and matter. */
const FOLDERS = [
  "outbox",
  "ledger",
  "journal",
  "names",
  "placements",
  "quarantine",
  "orders",
  "notes",
  "attempts",
  "staging",
  "notify",
  "passwords",
];

function makeHappening(random: Random, site: Site, transfers: number, taste: Taste): Happening {
  const transfer = random.int(transfers);
  const ms = (1 + random.int(6)) * MINUTE_MS;
  const afterSteps = random.int(random.chance(0.5) ? 60 : 400);
  const kind = random.weighted(taste.kinds);
  const change = () => changeSite(random, site, taste);
  switch (kind) {
    case "arrive":
      return { kind, transfer };
    case "vanish":
      return { kind, transfer, how: random.pick(["deleted_by_revocation", "unsent"]) };
    case "site":
      return { kind, site: change() };
    case "kill": {
      const downMs = random.int(3 * MINUTE_MS);
      const isPowerCut = random.chance(0.4);
      const inFolder = random.chance(0.6) ? random.pick(FOLDERS) : undefined;
      const where =
        inFolder === undefined ? { afterSteps, inFolder } : { afterSteps: random.int(6), inFolder };
      const changed = random.chance(0.4) ? change() : undefined;
      // What follows a delivery often changes while its record is made.
      const inSite = inFolder === "outbox" && downMs % 2 === 0 ? toggleCommand(site) : changed;
      return { kind, ...where, isPowerCut, downMs, ...(inSite === undefined ? {} : { inSite }) };
    }
    case "stop":
      return { kind, downMs: ms, ...(random.chance(0.4) ? { inSite: change() } : {}) };
    case "freeze":
      return { kind, ms: ms * 4, afterSteps: 1 + afterSteps };
    case "second":
      return { kind, ms };
    case "sync-fails":
    case "disk-fails":
      return { kind, afterSteps, times: 1 + random.int(3), inFolder: failingFolder(kind, afterSteps) };
    case "disk-full":
      return { kind, ms };
    case "service":
      return { kind, mood: random.pick(MOODS), ms };
    case "damage":
      return { kind, transfer, ms: ms * 2 };
    case "check":
      return { kind, exitCode: random.pick([1, 1, 75]), ms };
    case "command":
      return { kind, exitCode: random.pick([0, 1]), ms };
    case "receiver":
      return { kind, isAway: true, ms };
    case "order": {
      const action = random.pick(["retry", "retry", "release", "release", "discard", "redeliver"] as const);
      return { kind, action, transfer, withPassword: random.chance(0.4) };
    }
    case "password":
      return { kind, transfer, isRight: random.chance(0.7) };
    case "consume":
      return { kind, transfer, how: random.pick(["take", "acknowledge"]) };
    case "foreign":
      return { kind, transfer, isTrap: random.chance(0.6), number: random.int(6) };
  }
}

const SENDERS = ["anna@a.example", "ben@b.example"];

function makeSite(random: Random, taste: Taste): Site {
  return {
    box: BOX,
    hasSecondBox: random.chance(0.2),
    fetch: random.chance(0.3) ? "zip" : "files",
    routes: Array.from({ length: random.int(3) }, () => makeRoute(random, taste)),
    otherwise: random.weighted({ deliver: 6, ignore: 1, hold: 1 }),
    handoff: makeHandoff(random, taste),
    hasCheck: random.chance(taste.check),
    isShared: random.chance(0.15),
    knowsPassword: random.chance(taste.knowsPassword),
  };
}

function makeHandoff(random: Random, taste: Taste): RawHandoff {
  return {
    ...(random.chance(taste.command) ? { command: [PROGRAMS.command] } : {}),
    ...(random.chance(0.2) ? { webhook: { url: "https://hooks.example/hand-over", secret: "Hook-0" } } : {}),
    ...(random.chance(0.2) ? { keep: makeKeep(random) } : {}),
    ...(random.chance(0.3) ? { acknowledgement: "ok.txt" } : {}),
    ...random.choose([
      [6, {}],
      [2, { manifest: "beside" as const }],
      [1, { done: true }],
      [2, { deliver: "files" as const, manifest: "beside" as const }],
    ]),
    ...(random.chance(taste.unpack) ? { unpack: "instead" as const } : {}),
  };
}

function makeKeep(random: Random): NonNullable<RawHandoff["keep"]> {
  return random.chance(0.5) ? { notPickedUp: "5m" } : { pickedUp: "2m" };
}

function makeRoute(random: Random, taste: Taste): RawRoute {
  const named = random.chance(taste.names) ? { name: `rule-${random.int(3)}` } : {};
  const when = random.pick<RawRoute>([
    { file: "*.zip" },
    { sender: "*@a.example" },
    { subject: "*urgent*" },
    { file: "*.txt" },
  ]);
  const then = random.pick<RawRoute>([
    { inbox: OTHER_INBOX },
    { handoff: { keep: makeKeep(random) } },
    { handoff: { keep: makeKeep(random) } },
    { action: "hold" },
    { action: "ignore" },
    { layout: "urgent/{trackingId}", handoff: { command: [PROGRAMS.urgent] } },
    {},
  ]);
  return { ...named, ...when, ...then };
}

/** Another configuration, which differs in one respect. */
function changeSite(random: Random, site: Site, taste: Taste): Site {
  const { routes } = site;
  switch (random.int(9)) {
    case 0:
    case 1:
      return { ...site, routes: [makeRoute(random, taste), ...routes] };
    case 2:
      return { ...site, routes: routes.slice(1) };
    case 3: {
      const [first, ...rest] = routes;
      if (first === undefined) return { ...site, routes: [makeRoute(random, taste)] };
      return { ...site, routes: [{ ...first, name: `rule-${random.int(5)}` }, ...rest] };
    }
    case 4:
      return { ...site, box: site.box === BOX ? "Box@Example.com" : BOX };
    case 5:
      return { ...site, hasCheck: !site.hasCheck };
    case 6:
      return toggleCommand(site);
    case 7:
      return { ...site, handoff: makeHandoff(random, taste) };
    default:
      return { ...site, otherwise: random.weighted({ deliver: 4, ignore: 1, hold: 1 }) };
  }
}

function toggleCommand(site: Site): Site {
  const { command, ...others } = site.handoff;
  return { ...site, handoff: command ? others : { ...others, command: [PROGRAMS.command] } };
}

export function makeTransfer(
  random: Random,
  at: number,
  { hasSecondBox }: Site,
  taste: Pick<Taste, "archives">,
): SentTransfer {
  const files = Array.from({ length: 1 + random.int(2) }, (_, number) => makeFile(random, at, number, taste));
  return {
    trackingId: `t${at + 1}`,
    sender: random.pick(SENDERS),
    subject: random.chance(0.3) ? "urgent matter" : "matter",
    recipients: [BOX, ...(hasSecondBox && random.chance(0.7) ? [SECOND_BOX] : [])],
    password: random.chance(0.8) ? "Secret-common" : `Secret-${at}`,
    files,
    message: random.chance(0.15) ? Buffer.from(`Subject: hello\r\n\r\nmessage ${at}\r\n`) : undefined,
    zip: writeZip(files.map(({ name, bytes }) => ({ name, content: bytes, method: 0 }))),
    expiresMs: START_MS + 30 * 24 * 60 * MINUTE_MS,
    state: "unsent",
    wrong: 0,
    opened: 0,
  };
}

function makeFile(
  random: Random,
  transfer: number,
  number: number,
  taste: Pick<Taste, "archives">,
): SentFile {
  const id = `f${transfer}-${number}`;
  const content = Buffer.from(`content ${id} ${"x".repeat(random.int(200))}`);
  if (random.chance(taste.archives)) {
    const members = [{ name: `inner-${number}.txt`, bytes: content }];
    const bytes = writeZip(members.map(({ name }) => ({ name, content, method: 0 })));
    return { id, name: `data-${number}.zip`, bytes, sha256: sha256(bytes), members };
  }
  const name = random.pick([`report-${number}.txt`, `list-${number}.csv`]);
  return { id, name, bytes: content, sha256: sha256(content) };
}

export function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** The text of the configuration file. */
export function formatSite(site: Site): string {
  const passwords = site.knowsPassword ? [{ sender: "*", password: "Secret-common" }] : [];
  const routing = { routes: site.routes, otherwise: site.otherwise };
  const boxes = [
    { email: site.box, passwords, ...routing },
    ...(site.hasSecondBox ? [{ email: SECOND_BOX, passwords }] : []),
  ];
  return JSON.stringify({
    service: {
      baseUrl: "https://service.example",
      clientId: `Client${"0".repeat(60)}`,
      verification: { token: "Token-0" },
    },
    inbox: INBOX,
    state: STATE,
    ...(site.isShared ? { queue: "redis://127.0.0.1:6379" } : {}),
    defaults: {
      poll: "60s",
      fetch: site.fetch,
      ...(site.layout === undefined ? {} : { layout: site.layout }),
    },
    mailboxes: boxes,
    handoff: site.handoff,
    http: { listen: false },
    ...(site.hasCheck ? { check: { command: [PROGRAMS.check] } } : {}),
    notify: [
      { webhook: { url: "https://hooks.example/notify", secret: "Hook-1" }, gather: "5s", every: "1m" },
    ],
  });
}

/** Most transfers arrive in the beginning, and these meet them only if they are there before. */
function isEarly(what: Happening, atMs: number): boolean {
  if (what.kind === "kill") return what.inFolder !== undefined && what.downMs % 2 === 0;
  return atMs % 2 === 0 && (what.kind === "check" || what.kind.endsWith("-fails"));
}

/** Any folder for half of the numbers. */
function failingFolder(kind: "sync-fails" | "disk-fails", number: number): string | undefined {
  const folders = kind === "sync-fails" ? SYNCED : FOLDERS;
  return number % 2 === 0 ? folders[(number / 2) % folders.length] : undefined;
}
