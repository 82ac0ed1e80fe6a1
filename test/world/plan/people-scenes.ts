/** Scenes about people: they change the configuration, give orders and passwords, take deliveries, and change bytes. */
import type { Random } from "../ground/random.ts";
import type { Happening, OrderAct } from "./plan.ts";
import { at, type MakeScene } from "./setting.ts";
import { ADDRESSES, type Site } from "./site.ts";
import { changeIdentity, changeSite, makeKinds, reuseName, swapAcknowledgement } from "./sites.ts";

const MINUTE_MS = 60_000;

export const PEOPLE_SCENES = {
  // The configuration

  site: ({ random, site, taste, soonMs }) => [
    at(soonMs(), { kind: "site", site: changeSite(random, site, taste) }),
  ],

  "bad site": ({ random, make, perhaps }) => [
    at(random.int(MINUTE_MS), make("bad-site")),
    ...perhaps(0.5, () => at(random.int(MINUTE_MS), make(random.pick(["site", "kill"])))),
  ],

  /** A hand-off that still waits shows whose it is. */
  identity: ({ random, site, perhaps }) => {
    const fails = perhaps(0.5, () => at(0, { kind: "command", exitCode: 1, ms: 3 * MINUTE_MS }));
    const changed = changeIdentity(random, site);
    const back = perhaps(0.3, () => at(3 * MINUTE_MS, { kind: "site", site }));
    const change: Happening = random.chance(0.5)
      ? { kind: "stop", downMs: 2_000, inSite: changed }
      : { kind: "site", site: changed };
    return [...fails, at(60_000 + random.int(MINUTE_MS), change), ...back];
  },

  /** What follows a delivery still waits while its rule becomes another one. */
  rules: ({ random, site, taste, transfer, perhaps }) => {
    const box = random.int(site.boxes.length);
    const changed = random.chance(0.25)
      ? swapAcknowledgement(site)
      : random.chance(0.6)
        ? reuseName(random, site, box, { ...taste, names: 1 })
        : changeSite(random, site, taste);
    const fails = perhaps(0.7, () => at(0, { kind: "command", exitCode: 1, ms: 2 * MINUTE_MS }));
    const seen = perhaps(0.4, () =>
      at(70_000 + random.int(30_000), { kind: "consume", transfer, how: "acknowledge" }),
    );
    const back = perhaps(0.3, () => at(6 * MINUTE_MS, { kind: "site", site }));
    return [...fails, at(50_000 + random.int(20_000), { kind: "site", site: changed }), ...seen, ...back];
  },

  intervals: ({ random, site }) => [
    at(20_000 + random.int(40_000), {
      kind: "site",
      site: { ...site, pollSeconds: random.pick([20, 60, 120]) },
    }),
    at(6 * MINUTE_MS, { kind: "backup" }),
  ],

  // The operator

  /** Something is worth a message, which takes its time. */
  messages: ({ random, site, transfer, kill, order, perhaps }) => {
    const slow: Happening = {
      kind: "receiver",
      isAway: random.chance(0.2),
      ms: MINUTE_MS,
      delayMs: random.pick([0, 4_000, 20_000]),
    };
    const other = random.pick<Happening>([
      kill(false),
      { ...kill(false, "notify"), afterSteps: random.int(20) },
      { kind: "site", site: { ...site, notifyOn: makeKinds(random) } },
      { kind: "stop", downMs: 5_000 },
    ]);
    return [
      at(0, { kind: "damage", transfer, ms: 2 * MINUTE_MS }),
      at(0, slow),
      at(random.int(40_000), other),
      ...perhaps(0.5, () => at(MINUTE_MS, order(random.pick(["retry", "discard"])))),
    ];
  },

  orders: ({ random, transfers, transfer, order, weather, perhaps }) => {
    const hold = perhaps(0.4, () => at(0, { kind: "damage", transfer, ms: 50_000 }));
    const away = perhaps(0.4, () => at(80_000, { kind: "stop", downMs: 40_000 }));
    const silence = perhaps(0.2, () => at(70_000, weather("silent", { share: 1, scope: "lists" })));
    const acts = random.pick<readonly OrderAct[]>([
      ["retry"],
      ["release"],
      ["discard"],
      ["redeliver"],
      ["release", "retry"],
      ["retry", "release"],
      ["release", "discard"],
      ["retry", "retry", "release"],
      ["redeliver", "discard"],
    ]);
    const gone = perhaps(0.2, () => at(60_000, { kind: "vanish", transfer, how: "deleted_by_revocation" }));
    const givenMs = random.chance(0.3) ? random.int(10_000) : 85_000 + random.int(10_000);
    const forOther = (): Happening => ({
      kind: "order",
      action: random.pick(["retry", "release", "redeliver"]),
      transfer: (transfer + 1) % transfers.length,
      withPassword: false,
    });
    const others = transfers.length > 1 ? [at(givenMs + 500, forOther())] : [];
    return [
      ...hold,
      ...gone,
      ...silence,
      ...away,
      ...acts.map((action, n) => at(givenMs + n * (random.chance(0.5) ? 0 : 400), order(action))),
      ...others,
    ];
  },

  passwords: ({ random, site, transfer, kill, weather, order, perhaps }) => {
    const supplied = (isRight: boolean): Happening => ({ kind: "password", transfer, isRight });
    const returns = random.chance(0.2)
      ? [
          at(50_000, { kind: "vanish", transfer, how: "unsent" }),
          at(4 * MINUTE_MS, { kind: "return", transfer }),
          at(6 * MINUTE_MS, supplied(false)),
          at(7 * MINUTE_MS, supplied(false)),
        ]
      : [];
    return [
      ...returns,
      ...perhaps(0.5, () =>
        at(
          random.int(20_000),
          weather(random.pick(["lossy", "failing", "silent", "foreign"]), { scope: "transfers" }),
        ),
      ),
      ...perhaps(0.3, () =>
        at(random.int(15_000), kill(random.chance(0.3), random.chance(0.5) ? "slots" : undefined)),
      ),
      ...perhaps(0.3, () =>
        at(40_000 + random.int(MINUTE_MS), { kind: "site", site: respell(random, site) }),
      ),
      ...Array.from({ length: 1 + random.int(3) }, () =>
        at(40_000 + random.int(2 * MINUTE_MS), supplied(random.chance(0.5))),
      ),
      ...perhaps(0.2, () => at(3 * MINUTE_MS, order("grant"))),
    ];
  },

  twins: ({ random, transfer, perhaps }) => [
    at(30_000 + random.int(30_000), {
      kind: "password",
      transfer,
      isRight: random.chance(0.5),
      isCommon: true,
    }),
    ...perhaps(0.5, () => at(95_000, { kind: "password", transfer, isRight: true })),
  ],

  damage: ({ random, transfer, order, perhaps }) => [
    at(0, { kind: "damage", transfer, ms: random.int(3) * MINUTE_MS + 20_000 }),
    ...perhaps(0.6, () =>
      at(90_000 + random.int(MINUTE_MS), order(random.pick(["retry", "release", "release"]))),
    ),
  ],

  // Programs, consumers and others

  check: ({ random, make, order, kill, soonMs, perhaps }) => [
    at(0, make("check")),
    ...perhaps(0.5, () => at(90_000, order(random.pick(["retry", "release", "discard"])))),
    ...perhaps(0.3, () => at(soonMs(), kill(false))),
  ],

  "hand-off": ({ random, make, soonMs, perhaps }) => [
    at(0, make(random.pick(["command", "receiver"]))),
    ...perhaps(0.5, () => at(soonMs(), make(random.pick(["kill", "site", "stop", "disk-fails"])))),
  ],

  consumers: ({ random, make, soonMs, perhaps }) => {
    if (random.chance(0.4)) {
      const cut: Happening = {
        kind: "kill",
        afterSteps: random.int(300),
        inFolder: undefined,
        isPowerCut: random.chance(0.8),
        downMs: 10_000,
      };
      return [at(0, { kind: "greedy", ms: 3 * MINUTE_MS }), at(0, cut)];
    }
    return [
      ...Array.from({ length: 1 + random.int(3) }, () =>
        at(
          random.chance(0.5) ? random.int(30_000) : random.int(3 * MINUTE_MS),
          make(random.pick(["consume", "consume", "foreign", "replace"])),
        ),
      ),
      ...perhaps(0.3, () => at(soonMs(), make("kill"))),
    ];
  },

  /** Content has to lie somewhere for a while: in quarantine, or in a stage that waits for its check. */
  tamper: ({ random, site, transfer, order, perhaps }) => {
    const where = random.pick(["quarantine", "staging", "staging"] as const);
    const hold: Happening =
      where === "quarantine"
        ? { kind: "damage", transfer, ms: MINUTE_MS }
        : { kind: "check", exitCode: random.pick([75, 1]), ms: 2 * MINUTE_MS, spoils: false };
    // Without a check, nothing else looks at the content again.
    const inSite = random.chance(0.5) ? { inSite: { ...site, hasCheck: false } } : {};
    const stop =
      where === "staging" ? perhaps(0.7, () => at(65_000, { kind: "stop", downMs: 20_000, ...inSite })) : [];
    return [
      at(0, hold),
      at(70_000, { kind: "tamper", transfer, where }),
      ...stop,
      at(130_000, order(random.pick(["release", "release", "retry"]))),
    ];
  },
} satisfies Record<string, MakeScene>;

/** Another spelling of the same service. */
function respell(random: Random, site: Site): Site {
  const [first = [], second = []] = ADDRESSES;
  return { ...site, addresses: [random.pick(first), random.pick(second)] };
}
