/** A scene: one step of the disk takes long, and meanwhile everything else goes on. */
import type { Happening, Moment, PlannedHappening } from "./plan.ts";
import { at, type MakeScene } from "./setting.ts";

/** Folders of ours in which a daemon writes while it works on a transfer. */
const WRITTEN = [
  "staging",
  "quarantine",
  "ledger",
  "slots",
  "placements",
  "names",
  "notes",
  "outbox",
  "orders",
];
/** While a transfer is received. */
const RECEPTION = ["information", "files", "file", "zip", "checksums"] as const;
const PROGRAMS = ["command", "webhook", "message", "check"] as const;
/** Happens without an effect. */
const NOTHING: Happening = { kind: "greedy", ms: 0 };

export const makeSlowStep: MakeScene = (setting) => {
  const { random, transfer, transfers, order, make, kill, when, perhaps } = setting;
  const slow = (
    moment: Moment,
    steps: number,
    what: Happening,
    skipped = 0,
    inFolder = pickFolder(),
  ): Happening => {
    const afterSteps = random.int(inFolder === undefined ? steps : 3);
    const stallMs = random.pick([3_000, 30_000, 60_000]);
    return when(moment, { kind: "when", inFolder, afterSteps, pauseMs: 0, stallMs, what }, skipped);
  };
  const pickFolder = () => (random.chance(0.5) ? random.pick(WRITTEN) : undefined);
  const act = () => order(random.pick(["discard", "discard", "release", "retry", "redeliver"]));
  const other = (): Happening => {
    const kind = random.weighted({ order: 5, kill: 2, vanish: 1, site: 1, password: 1, consume: 2 });
    if (kind === "order") return act();
    return kind === "kill" ? { ...kill(random.chance(0.3)), afterSteps: random.int(60) } : make(kind);
  };
  const damage = (ms: number) => at(0, { kind: "damage", transfer, ms });
  const plays: Readonly<Record<string, () => readonly PlannedHappening[]>> = {
    reception: () => [
      ...perhaps(0.5, () => damage(60_000)),
      at(0, slow(random.pick(RECEPTION), random.pick([8, 50]), other())),
    ],
    order: () => [
      ...perhaps(0.6, () => damage(50_000)),
      at(0, slow("order", random.pick([3, 10]), random.chance(0.5) ? other() : NOTHING)),
      at(40_000 + random.int(30_000), act()),
      ...perhaps(0.3, () => at(70_000 + random.int(30_000), act())),
    ],
    // The order is given while the transfer is received once more.
    again: () => [
      damage(random.pick([25_000, 100_000])),
      at(20_000, when(random.pick(RECEPTION), act())),
      at(20_000, slow("order", random.pick([3, 10]), random.chance(0.3) ? other() : NOTHING, 1)),
      at(22_000, order("retry")),
    ],
    // The next process finds what was written.
    notes: () => [
      ...perhaps(0.5, () => damage(40_000)),
      at(
        0,
        slow(random.pick(["list", "information"]), 0, random.chance(0.5) ? other() : NOTHING, 0, "notes"),
      ),
      ...perhaps(0.5, () => at(random.int(40_000), make(random.pick(["password", "weather", "weather"])))),
      ...perhaps(0.5, () => at(random.int(60_000), act())),
      at(70_000 + random.int(30_000), kill(false)),
    ],
    program: () => [at(0, slow(random.pick(PROGRAMS), random.pick([3, 12]), other()))],
    poll: () => [
      ...transfers.keys().map((each) => at(random.int(40_000), { kind: "arrive", transfer: each } as const)),
      at(random.int(30_000), slow("list", random.pick([4, 15]), other())),
    ],
  };
  const played = random.weighted({ reception: 4, order: 3, again: 7, notes: 2, program: 3, poll: 1 });
  return plays[played]?.() ?? [];
};
