/** A scene: one step of the disk takes long, and meanwhile everything else goes on. */
import type { Happening, Moment, PlannedHappening } from "./plan.ts";
import { at, type MakeScene } from "./setting.ts";

const MINUTE_MS = 60_000;
/** Folders of ours in which a daemon writes while it works on a transfer. */
const WRITTEN = ["staging", "quarantine", "ledger", "slots", "placements", "names", "notes", "outbox"];
/** While it carries out an order. The ledger is where it decides. */
const ANYWHERE = "";
const ORDERED = ["ledger", "ledger", "ledger", "ledger", "notes", "staging", "quarantine", ANYWHERE];
const FAILING = ["failing", "failing", "away", "confused"] as const;
/** Happens without an effect. */
const NOTHING: Happening = { kind: "greedy", ms: 0 };

export const makeSlowStep: MakeScene = (setting) => {
  const { random, site, transfer, transfers, order, make, kill, weather, when, perhaps } = setting;
  const { command, webhook } = site.handoff;
  /** Others would never come. */
  const reception: readonly Moment[] = ["information", "files", site.fetch === "zip" ? "zip" : "file"];
  const programs: readonly Moment[] = [
    ...(command === undefined ? [] : (["command", "command"] as const)),
    ...(webhook === undefined ? [] : (["webhook"] as const)),
    ...(site.hasCheck ? (["check", "check"] as const) : []),
    "message",
  ];
  const slow = (
    moment: Moment,
    steps: number,
    what: Happening,
    skipped = 0,
    folder = random.chance(0.5) ? random.pick(WRITTEN) : ANYWHERE,
  ): Happening => {
    const inFolder = folder === ANYWHERE ? undefined : folder;
    const afterSteps = inFolder === undefined ? random.int(steps) : random.pick([0, 0, 1, 2]);
    const stallMs = random.pick([3_000, 30_000, 60_000]);
    return when(moment, { kind: "when", inFolder, afterSteps, pauseMs: 0, stallMs, what }, skipped);
  };
  /** Of two that decide about the same transfer, the slower one comes second. */
  const decide = (steps: number, what: Happening, skipped = 0): Happening =>
    slow("order", steps, what, skipped, random.pick(ORDERED));
  const act = () => order(random.pick(["discard", "discard", "release", "retry", "redeliver"]));
  const other = (): Happening => {
    const kind = random.weighted({ order: 5, kill: 2, vanish: 1, site: 1, password: 1, consume: 2 });
    if (kind === "order") return order(random.pick(["discard", "discard", "discard", "retry"]));
    return kind === "kill" ? { ...kill(random.chance(0.3)), afterSteps: random.int(60) } : make(kind);
  };
  const damage = (ms: number) => at(0, { kind: "damage", transfer, ms });
  const plays: Readonly<Record<string, () => readonly PlannedHappening[]>> = {
    reception: () => [
      ...perhaps(0.5, () => damage(60_000)),
      at(0, slow(random.pick(reception), random.pick([8, 50]), other())),
    ],
    order: () => {
      const isDamaged = random.chance(0.7);
      const acts = isDamaged ? (["discard", "release", "retry"] as const) : (["redeliver"] as const);
      return [
        at(0, { kind: "arrive", transfer }),
        ...(isDamaged ? [damage(35_000)] : []),
        at(0, decide(random.pick([3, 10]), random.chance(0.5) ? other() : NOTHING)),
        at(40_000 + random.int(20_000), order(random.pick(acts))),
        ...perhaps(0.7, () => at(61_000 + random.int(20_000), act())),
        ...perhaps(0.3, () => at(80_000 + random.int(30_000), act())),
      ];
    },
    // The order is given while the transfer is received once more.
    again: () => [
      at(0, { kind: "arrive", transfer }),
      damage(random.pick([25_000, 100_000])),
      ...perhaps(0.6, () => at(10_000, weather("slow", { scope: "transfers", share: 1 }))),
      at(
        20_000,
        when(random.pick(reception), order(random.pick(["discard", "discard", "discard", "retry"]))),
      ),
      at(20_000, decide(random.pick([3, 10]), random.chance(0.3) ? other() : NOTHING, 1)),
      at(22_000, order("retry")),
    ],
    // What is known of the transfer changes while it is written, and the next process finds what was written.
    notes: () => {
      const begin = random.pick(["list", "information"] as const);
      const inFolder = "notes";
      const stallMs = random.pick([3_000, 30_000, 60_000, 60_000]);
      const what = random.chance(0.4) ? other() : NOTHING;
      const failing = weather(random.pick(FAILING), { scope: "transfers", share: 1 });
      return [
        at(0, { kind: "arrive", transfer }),
        ...perhaps(0.3, () => damage(40_000)),
        ...perhaps(0.7, () => at(0, { ...failing, ms: 5 * MINUTE_MS })),
        // Pauses between attempts grow.
        at(0, when(begin, { kind: "when", inFolder, afterSteps: random.int(6), pauseMs: 0, stallMs, what })),
        ...perhaps(0.3, () => at(random.int(40_000), make("password"))),
        ...perhaps(0.3, () => at(random.int(60_000), act())),
        ...perhaps(0.4, () => at(70_000 + random.int(60_000), kill(false))),
      ];
    },
    program: () => [at(0, slow(random.pick(programs), random.pick([3, 12]), other()))],
    poll: () => [
      ...transfers.keys().map((each) => at(random.int(40_000), { kind: "arrive", transfer: each } as const)),
      at(random.int(30_000), slow("list", random.pick([4, 15]), other())),
    ],
  };
  const played = random.weighted({ reception: 4, order: 3, again: 7, notes: 4, program: 3, poll: 1 });
  return plays[played]?.() ?? [];
};
