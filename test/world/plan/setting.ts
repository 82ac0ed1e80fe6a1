/** What all scenes are made of: the world in which one is played, and what often happens in it. */
import type { Random } from "../ground/random.ts";
import { makeHappening, type Taste } from "./happenings.ts";
import type { Happening, Moment, OrderAct, PlannedHappening } from "./plan.ts";
import type { Mood, SentTransfer, Weather } from "./sent.ts";
import type { Site } from "./site.ts";

const MINUTE_MS = 60_000;

type Setting = ReturnType<typeof makeSetting>;

/** Returns what happens in a scene, in any order. */
export type MakeScene = (setting: Setting) => readonly PlannedHappening[];

export function makeSetting(random: Random, site: Site, transfers: readonly SentTransfer[], taste: Taste) {
  /** The transfer that the scene is about. */
  const transfer = random.int(transfers.length);
  return {
    random,
    site,
    transfers,
    taste,
    transfer,
    make: (kind: Happening["kind"]) => makeHappening(kind, random, site, transfers, taste),
    /** While its content is on the way, or some minutes later. */
    soonMs: () => (random.chance(0.6) ? random.int(20_000) : random.int(3 * MINUTE_MS)),
    kill: (isPowerCut: boolean, inFolder?: string): Happening & { readonly kind: "kill" } => ({
      kind: "kill",
      afterSteps: inFolder === undefined ? random.int(random.chance(0.7) ? 250 : 700) : random.int(8),
      inFolder,
      isPowerCut,
      downMs: 2 * random.int(MINUTE_MS),
    }),
    order: (action: OrderAct): Happening => ({
      kind: "order",
      action,
      transfer,
      withPassword: random.chance(0.3),
    }),
    weather: (mood: Mood, more: Partial<Weather> = {}): Happening & { readonly kind: "weather" } => ({
      kind: "weather",
      service: transfers[transfer]?.service ?? 0,
      weather: { mood, share: random.pick([0.3, 0.7, 1]), ...more },
      ms: (1 + random.int(4)) * MINUTE_MS,
    }),
    /** At the next one of these moments, or after some others. */
    when: (moment: Moment, what: Happening, afterSteps = 0): Happening => ({
      kind: "when",
      moment,
      afterSteps,
      inFolder: undefined,
      pauseMs: 0,
      what,
    }),
    /** In this share of the worlds. `make` draws only then. */
    perhaps: (share: number, make: () => PlannedHappening): readonly PlannedHappening[] =>
      random.chance(share) ? [make()] : [],
  };
}

export function at(atMs: number, what: Happening): PlannedHappening {
  return { atMs, what };
}
