/** What small worlds are about: how often each scene is played, and a site, habits and transfers with which it can matter. */
import type { Random } from "../ground/random.ts";
import { makeLock } from "./habits.ts";
import type { Taste } from "./happenings.ts";
import { PEOPLE_SCENES } from "./people-scenes.ts";
import type { PlannedHappening } from "./plan.ts";
import type { SentTransfer, ServiceHabits } from "./sent.ts";
import { type MakeScene, makeSetting } from "./setting.ts";
import { PLAIN_BOX, PROGRAMS, SECOND_BOX, type Site, THIRD_BOX } from "./site.ts";
import { TROUBLE_SCENES } from "./trouble-scenes.ts";

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
  moments: 6,
  slow: 7,
  "two workers": 4,
  lies: 4,
  "slow download": 3,
  archives: 3,
  messages: 4,
  intervals: 1,
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
  "bad lists": 4,
  rest: 2,
  damage: 3,
  tamper: 4,
  check: 4,
  "hand-off": 4,
  orders: 7,
  passwords: 6,
  consumers: 4,
  queue: 3,
} as const;

type Scene = keyof typeof SCENES;

const MAKERS: Readonly<Record<Scene, MakeScene>> = { ...TROUBLE_SCENES, ...PEOPLE_SCENES };

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
    case "queue":
    case "two workers":
      return { ...site, isShared: true };
    case "second":
      return { ...site, isShared: false };
    case "check":
      return { ...site, hasCheck: true };
    case "tamper":
      return { ...site, hasCheck: random.chance(0.5) };
    case "lies":
      return random.chance(0.4) ? { ...site, maxBytes: 150 + random.int(300) } : site;
    case "archives":
      return {
        ...site,
        handoff: { ...handoff, unpack: random.pick(["instead", "beside"] as const) },
        maxBytes: 400 + random.int(900),
      };
    case "orders":
    case "slow":
      return random.chance(0.4)
        ? { ...site, boxes: boxes.map((box) => ({ ...box, otherwise: "hold" as const, routes: [] })) }
        : site;
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

export function fitHabits(scene: Scene, random: Random, habits: ServiceHabits): ServiceHabits {
  if (scene === "long list") return { ...habits, pageCap: 1 };
  if (scene !== "passwords" || random.chance(0.5)) return habits;
  return { ...habits, onWrong: makeLock(random) };
}

/** The two services have a transfer of the same tracking-id, for the same people. */
export function withTwins(random: Random, [first, ...others]: readonly SentTransfer[]): SentTransfer[] {
  if (first === undefined) return [];
  const twin = {
    ...first,
    service: 1 - first.service,
    recipients: [SECOND_BOX, THIRD_BOX],
    password: `Secret-twin-${random.int(2)}`,
  };
  return [{ ...first, password: "Secret-first" }, twin, ...others];
}
