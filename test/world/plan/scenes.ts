/** What small worlds are about: how often each scene is played, and a site, habits and transfers with which it can matter. */
import type { Random } from "../ground/random.ts";
import { makeLock } from "./habits.ts";
import type { Taste } from "./happenings.ts";
import { PEOPLE_SCENES } from "./people-scenes.ts";
import type { PlannedHappening } from "./plan.ts";
import type { SentTransfer, ServiceHabits } from "./sent.ts";
import { type MakeScene, makeSetting } from "./setting.ts";
import {
  ACKNOWLEDGEMENTS,
  PLAIN_BOX,
  PROGRAMS,
  type RawHandoff,
  RULE_PASSWORDS,
  SECOND_BOX,
  type Site,
  THIRD_BOX,
} from "./site.ts";
import { TROUBLE_SCENES } from "./trouble-scenes.ts";

const MINUTE_MS = 60_000;

/** Their weights. */
const SCENES = {
  calm: 2,
  kill: 5,
  "kill in a folder": 6,
  "power cut": 5,
  stop: 3,
  site: 3,
  identity: 3,
  rules: 3,
  moments: 5,
  "one slow step": 28,
  slow: 5,
  crossed: 7,
  "two workers": 3,
  "paused decision": 4,
  lies: 6,
  "slow download": 4,
  archives: 9,
  messages: 4,
  "kinds of messages": 2,
  intervals: 1.5,
  acknowledgements: 2,
  "long list": 2,
  "bad folder": 2,
  "bad site": 1,
  twins: 2,
  loss: 3,
  freeze: 2,
  second: 3,
  "disk fails": 4,
  "disk full": 1,
  clock: 3,
  weather: 8,
  "bad lists": 5,
  rest: 7,
  damage: 3,
  tamper: 6,
  check: 3,
  "check ends": 1.5,
  "hand-off": 3,
  "during a program": 6,
  orders: 6,
  "order and crash": 4,
  passwords: 5,
  meanwhile: 8,
  locks: 4,
  "co-recipients": 2,
  consumers: 4,
  queue: 3,
} as const;

export type Scene = keyof typeof SCENES;

const MAKERS: Readonly<Record<Scene, MakeScene>> = { ...TROUBLE_SCENES, ...PEOPLE_SCENES };

export function isScene(name: string): name is Scene {
  return Object.hasOwn(SCENES, name);
}

export function pickScene(random: Random): Scene {
  return random.weighted(SCENES);
}

/** What happens in a small world. */
export function makeScene(
  scene: Scene,
  random: Random,
  site: Site,
  transfers: readonly SentTransfer[],
  taste: Taste,
): readonly PlannedHappening[] {
  return MAKERS[scene](makeSetting(random, site, transfers, taste));
}

/** A site in which the scene can matter. */
export function fitSite(scene: Scene, random: Random, site: Site): Site {
  const { handoff, boxes } = site;
  const command = { command: [PROGRAMS.common], ...handoff };
  switch (scene) {
    case "paused decision":
    case "queue":
    case "two workers":
      return { ...site, isShared: true };
    case "slow download":
      return random.chance(0.7) ? { ...site, fetch: "files" } : site;
    case "second":
      return { ...site, isShared: false };
    case "check":
    case "check ends":
      return { ...site, hasCheck: true };
    case "tamper":
      return { ...site, hasCheck: random.chance(0.8) };
    case "intervals":
      return { ...site, pollSeconds: random.pick([20, 120, 120]) };
    case "kinds of messages":
      return random.chance(0.5) ? { ...site, notifyOn: ["disk"] } : site;
    case "acknowledgements":
      return {
        ...site,
        handoff: { ...acknowledged(handoff), acknowledgement: random.pick(ACKNOWLEDGEMENTS) },
      };
    case "meanwhile":
    case "locks":
      return { ...site, passwordAttempts: random.pick([2, 3, 3, 4]) };
    case "rest":
      return { ...site, isShared: random.chance(0.1) };
    case "co-recipients":
      return {
        ...site,
        boxes: [...boxes.slice(0, 1), { ...PLAIN_BOX, email: SECOND_BOX, service: boxes[0]?.service ?? 0 }],
      };
    case "during a program":
      return { ...site, handoff: random.chance(0.8) ? command : handoff, hasCheck: random.chance(0.4) };
    case "archives":
      return {
        ...site,
        handoff: { ...handoff, unpack: random.pick(["instead", "beside", "beside"] as const) },
      };
    case "one slow step":
      return fitSlowStep(random, site);
    case "order and crash":
      return random.chance(0.8) ? withHold(random, site) : site;
    case "orders":
    case "slow":
    case "crossed":
      return random.chance(0.4) ? withHold(random, site) : site;
    case "hand-off":
    case "rules":
    case "identity":
      return random.chance(0.8) ? { ...site, handoff: command } : site;
    case "twins":
      return {
        ...site,
        boxes: [...boxes.slice(0, 1), { ...PLAIN_BOX, email: THIRD_BOX, service: 1, knowsPassword: false }],
      };
    default:
      return site;
  }
}

/** With a check and a program more often than usual: their ends meet other things. */
function fitSlowStep(random: Random, site: Site): Site {
  const { handoff } = site;
  return random.weighted({ command: 4, hold: 2, check: 2, usual: 3 }) === "hold"
    ? withHold(random, site)
    : {
        ...site,
        hasCheck: random.chance(0.25),
        handoff: random.chance(0.5) ? { command: [PROGRAMS.common], ...handoff } : handoff,
      };
}

/** Everything is held, as soon as it is listed or when its files are known. */
function withHold(random: Random, site: Site): Site {
  const held = random.chance(0.5)
    ? { otherwise: "hold" as const, routes: [] }
    : { routes: [{ file: "*", action: "hold" as const }] };
  return { ...site, boxes: site.boxes.map((box) => ({ ...box, ...held })) };
}

/** Without what an acknowledgement cannot be combined with. */
function acknowledged({ command, webhook, keep, unpack }: RawHandoff): RawHandoff {
  return {
    ...(command && { command }),
    ...(webhook && { webhook }),
    ...(keep && { keep }),
    ...(unpack && { unpack }),
  };
}

export function fitHabits(scene: Scene, random: Random, habits: ServiceHabits): ServiceHabits {
  switch (scene) {
    case "long list":
      return { ...habits, pageCap: 1 };
    case "locks":
      return { ...habits, onWrong: makeShortLock(random) };
    case "passwords":
      return random.chance(0.3) ? { ...habits, onWrong: makeLock(random) } : habits;
    default:
      return habits;
  }
}

/** It may say that it is shorter than it is. */
function makeShortLock(random: Random): NonNullable<ServiceHabits["onWrong"]> {
  const says = random.chance(0.6) ? { saysUntil: true, saysMs: 1_000 + random.int(20_000) } : {};
  return { ...makeLock(random), after: 2, lockMs: (2 + random.int(8)) * MINUTE_MS, ...says };
}

export function countTransfers(scene: Scene, random: Random): number {
  if (scene === "long list") return 5 + random.int(3);
  if (scene === "rest" || scene === "messages" || scene === "bad lists") return 2 + random.int(2);
  return scene === "meanwhile" ? 1 : 1 + random.int(2);
}

/** Whether there is what the scene is about: several archives. */
export function hasEnough(scene: Scene, [transfer]: readonly SentTransfer[]): boolean {
  const archives = transfer?.files.filter(({ members }) => members !== undefined) ?? [];
  return scene !== "archives" || archives.length > 1;
}

/** What senders send, as far as the scene needs it. */
export function fitTransfers(
  scene: Scene,
  random: Random,
  { boxes }: Site,
  made: readonly SentTransfer[],
): readonly SentTransfer[] {
  const first = boxes[0]?.service ?? 0;
  const all = boxes.filter(({ service }) => service === first).map(({ email }) => email);
  switch (scene) {
    case "twins":
      return withTwins(random, made);
    case "meanwhile":
      // Mostly, nobody knows it before a person supplies it.
      return random.chance(0.2) ? made : made.map((each, at) => ({ ...each, password: `Secret-${at}` }));
    case "locks":
      // Nobody knows it before a person supplies it.
      return made.map((each, at) => ({ ...each, password: `Secret-${at}` }));
    case "co-recipients":
      return made.map((each) => ({ ...each, service: first, recipients: all }));
    case "bad lists":
      // No password helps, and not every list says so.
      return made
        .map((each) => (each.service === first ? each : { ...each, ...sentTo(first), recipients: all }))
        .map((each, at) => (random.chance(at === 0 ? 0.3 : 0.6) ? makeQuick(each) : each));
    case "rest":
      return made.map((each) => ({
        ...each,
        ...(each.service === first ? {} : sentTo(first)),
        recipients: all.slice(0, 1),
      }));
    default:
      return made;
  }
}

/** Limits matter where they are near to what is sent, or to what is unpacked from it. */
export function fitLimits(
  scene: Scene,
  random: Random,
  site: Site,
  [transfer]: readonly SentTransfer[],
): Site {
  const isWanted = scene === "archives" || (scene === "lies" && random.chance(0.6));
  if (!isWanted || transfer === undefined) return site;
  const sent = sizeOf(transfer.files);
  const unpacked = sizeOf(transfer.files.flatMap(({ members }) => members ?? []));
  const [least, most] = scene === "lies" ? [0.5 * sent, 1.2 * sent] : [0.8 * sent, 1.1 * (sent + unpacked)];
  return { ...site, maxBytes: Math.max(50, Math.round(least + random.next() * (most - least))) };
}

/** To another service, with the password that rules know of it. */
function sentTo(service: number): Pick<SentTransfer, "service" | "password"> {
  return { service, password: RULE_PASSWORDS[service] ?? "" };
}

function makeQuick({ isPasswordInLink: _, ...transfer }: SentTransfer): SentTransfer {
  return { ...transfer, securityMode: "QUICK" };
}

function sizeOf(files: readonly { readonly bytes: Buffer }[]): number {
  return files.reduce((sum, { bytes }) => sum + bytes.length, 0);
}

/** The two services have a transfer of the same tracking-id, for the same people. */
function withTwins(random: Random, [first, ...others]: readonly SentTransfer[]): SentTransfer[] {
  if (first === undefined) return [];
  const twin = {
    ...first,
    service: 1 - first.service,
    recipients: [SECOND_BOX, THIRD_BOX],
    password: `Secret-twin-${random.int(2)}`,
  };
  return [{ ...first, password: "Secret-first" }, twin, ...others];
}
