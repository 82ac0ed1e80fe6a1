/** Scenes about people: they change the configuration, give orders and passwords, take deliveries, and change bytes. */
import type { Random } from "../ground/random.ts";
import type { Happening, Moment, OrderAct } from "./plan.ts";
import { at, type MakeScene } from "./setting.ts";
import { ADDRESSES, RULE_PASSWORDS, type Site } from "./site.ts";
import { changeIdentity, changeSite, makeKinds, reuseName, swapAcknowledgement } from "./sites.ts";
import { makeSlowStep } from "./slow-step.ts";

const MINUTE_MS = 60_000;
const ALL_KINDS = ["password", "quarantined", "gone", "held", "refused", "handoff", "disk"];

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

  intervals: ({ random, site: { pollSeconds = 60, ...site } }) => [
    at(20_000 + random.int(40_000), {
      kind: "site",
      site: { ...site, pollSeconds: pollSeconds === 20 ? random.pick([60, 120]) : 20 },
    }),
    // Long enough to count polls.
    at(5 * MINUTE_MS, { kind: "backup" }),
  ],

  /** Consumers acknowledge as the configuration said before, or as it says now. */
  acknowledgements: ({ random, site, transfer, perhaps }) => [
    at(30_000 + random.int(40_000), { kind: "site", site: swapAcknowledgement(site) }),
    ...perhaps(0.6, () => at(80_000, { kind: "consume", transfer, how: "acknowledge" })),
    ...perhaps(0.6, () => at(90_000, { kind: "consume", transfer, how: "misunderstand" })),
  ],

  /** Somebody wants other messages than before when something happens that is worth one. */
  "kinds of messages": ({ random, site, transfer, order, perhaps }) => [
    at(5_000 + random.int(20_000), {
      kind: "site",
      site: { ...site, notifyOn: site.notifyOn === undefined ? makeKinds(random) : ALL_KINDS },
    }),
    at(95_000, { kind: "damage", transfer, ms: 2 * MINUTE_MS }),
    at(95_000, { kind: "arrive", transfer }),
    ...perhaps(0.2, () => at(4 * MINUTE_MS, order("retry"))),
  ],

  // The operator

  /** What was accepted is not lost, although nothing comes of it at once. */
  "order and crash": ({ random, transfers, kill, order, weather, when }) => {
    const givenMs = 30_000 + random.int(40_000);
    const crash = { ...kill(random.chance(0.8)), afterSteps: random.int(70) };
    return [
      ...transfers.keys().map((transfer) => at(random.int(10_000), { kind: "arrive", transfer })),
      at(givenMs - 1_000, weather(random.pick(["slow", "away"]), { share: 1, scope: "transfers" })),
      at(givenMs - 500, when("order", crash)),
      at(givenMs, order(random.pick(["release", "release", "discard", "retry"]))),
    ];
  },

  /** Something is worth a message, which takes its time. */
  messages: ({ random, site, transfers, kill, order, weather, when, perhaps }) => {
    const slow: Happening = {
      kind: "receiver",
      isAway: random.chance(0.2),
      ms: 2 * MINUTE_MS,
      delayMs: random.pick([0, 4_000, 25_000]),
    };
    const soon = { ...kill(random.chance(0.3)), afterSteps: random.int(random.pick([4, 40, 100])) };
    const other = random.pick<Happening>([
      kill(false),
      when("message", soon),
      when("message", soon),
      when("message", { kind: "stop", downMs: 5_000 }),
      { ...kill(false, "notify"), afterSteps: random.int(20) },
      { kind: "site", site: { ...site, notifyOn: makeKinds(random) } },
      { kind: "stop", downMs: 5_000 },
    ]);
    return [
      ...transfers.keys().map((each) => at(0, { kind: "damage", transfer: each, ms: 2 * MINUTE_MS })),
      // One after the other.
      ...perhaps(0.5, () => at(0, weather("slow", { share: 0.7, scope: "transfers" }))),
      at(0, slow),
      at(other.kind === "when" ? 0 : random.int(40_000), other),
      ...perhaps(0.5, () => at(MINUTE_MS, order(random.pick(["retry", "discard"])))),
    ];
  },

  orders: ({ random, transfers, transfer, order, kill, weather, when, perhaps }) => {
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
    // What was accepted is not lost.
    const end = perhaps(0.4, () =>
      at(givenMs - 500, when("order", { ...kill(random.chance(0.7)), afterSteps: random.int(80) })),
    );
    // Then nothing comes of it at once.
    const trouble = perhaps(0.4, () =>
      at(givenMs - 1_000, weather(random.pick(["slow", "away"]), { share: 1, scope: "transfers" })),
    );
    return [
      ...hold,
      ...gone,
      ...silence,
      ...away,
      ...acts.map((action, n) => at(givenMs + n * (random.chance(0.5) ? 0 : 400), order(action))),
      ...others,
      ...trouble,
      ...end,
    ];
  },

  passwords: ({ random, site, transfer, kill, weather, order, perhaps }) => {
    const supplied = (isRight: boolean): Happening => ({ kind: "password", transfer, isRight });
    if (random.chance(0.3)) {
      // The second one comes while the first is tried.
      const slow = { ...weather("slow", { scope: "transfers", share: 1 }), ms: 5 * MINUTE_MS };
      const firstMs = 60_000 + random.int(MINUTE_MS);
      return [
        at(firstMs - 20_000, slow),
        at(firstMs, supplied(false)),
        at(firstMs + random.int(8_000), supplied(true)),
      ];
    }
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
          weather(random.pick(["lossy", "failing", "silent", "foreign", "slow"]), { scope: "transfers" }),
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

  /** Something is worth another attempt, and comes while one is under way that leads to nothing. */
  meanwhile: ({ random, site, transfer, transfers, weather, order, when, perhaps }) => {
    const supplied = (isRight: boolean): Happening => ({ kind: "password", transfer, isRight });
    const { password = "", service = 0 } = transfers[transfer] ?? {};
    if (password === RULE_PASSWORDS[service]) {
      const about = random.pick(["information", "files"] as const);
      const silent = weather("silent", { scope: "transfers", share: 1, about });
      return [
        at(0, { kind: "arrive", transfer }),
        at(0, { ...silent, ms: 8 * MINUTE_MS }),
        at(0, when(about, order("retry"), 2 + random.int(3))),
      ];
    }
    const boxes = site.boxes.map((box) => ({ ...box, knowsPassword: true }));
    const rule: Happening = { kind: "site", site: { ...site, boxes } };
    return [
      at(0, { kind: "arrive", transfer }),
      at(20_000, { ...weather("slow", { scope: "transfers", share: 1 }), ms: 5 * MINUTE_MS }),
      at(25_000, when("information", random.chance(0.8) ? supplied(true) : rule)),
      at(30_000 + random.int(30_000), supplied(false)),
      ...perhaps(0.3, () => at(3 * MINUTE_MS, supplied(random.chance(0.5)))),
    ];
  },

  /** A service locks a transfer after wrong passwords, and people supply more. */
  locks: ({ random, transfer, weather, perhaps }) => {
    const supplied = (isRight: boolean): Happening => ({ kind: "password", transfer, isRight });
    const times = [40_000, 100_000, 4 * MINUTE_MS, 9 * MINUTE_MS, 14 * MINUTE_MS];
    return [
      ...times.map((ms) => at(ms + random.int(30_000), supplied(random.chance(0.2)))),
      ...perhaps(0.2, () => at(random.int(MINUTE_MS), weather("lossy", { scope: "transfers" }))),
    ];
  },

  /** Several mailboxes received the same transfer, and look for its password at the same time. */
  "co-recipients": ({ random, transfer, make, weather, perhaps }) => [
    ...perhaps(0.8, () => at(0, weather("slow", { share: 1, scope: "transfers" }))),
    ...perhaps(0.4, () => at(random.int(MINUTE_MS), make(random.pick(["weather", "kill", "vanish"])))),
    ...perhaps(0.4, () => at(50_000, { kind: "password", transfer, isRight: random.chance(0.6) })),
  ],

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
    at(0, { kind: "damage", transfer, ms: random.int(4) * MINUTE_MS + 20_000 }),
    ...perhaps(0.8, () => at(80_000 + random.int(20_000), order(random.pick(["retry", "retry", "release"])))),
    ...perhaps(0.3, () => at(130_000, order(random.pick(["retry", "release", "discard"])))),
  ],

  /** An order, or something else that decides, meets the end of a round, or what follows it. */
  crossed: ({ random, site, transfer, transfers, order, make, weather, when, perhaps }) => {
    const moments = ["information", "files", "file", "zip", "checksums", "check", "command"] as const;
    const folders = ["staging", "quarantine", "ledger", "attempts", "placements", "notes", "outbox"];
    const cause = random.weighted({ damage: 4, check: 1, none: 2 });
    const causes: Readonly<Record<typeof cause, readonly Happening[]>> = {
      damage: [{ kind: "damage", transfer, ms: 40_000 }],
      check: [{ kind: "check", exitCode: 1, ms: 40_000, spoils: false }],
      none: [],
    };
    const other = (): Happening =>
      random.weighted({ order: 4, vanish: 1, site: 1, password: 1, consume: 1 }) === "order"
        ? order(random.pick(["discard", "discard", "discard", "release", "retry"]))
        : make(random.pick(["vanish", "site", "password", "consume"]));
    const cross = (): Happening =>
      random.chance(0.4)
        ? when(random.pick(moments), other())
        : // Not at a step of its start.
          when(random.pick(["list", "information"]), {
            kind: "when",
            inFolder: random.pick(folders),
            afterSteps: random.int(6),
            pauseMs: 0,
            what: other(),
          });
    if (random.chance(0.4)) {
      // While the transfer is received, until it ends in quarantine or is delivered.
      const end = random.weighted({ discard: 4, retry: 1, vanish: 1 });
      const anyStep = { kind: "when", inFolder: undefined, pauseMs: 0 } as const;
      const what = end === "vanish" ? make("vanish") : order(end as OrderAct);
      return [
        // Its start would take all of the time.
        at(0, when("list", { kind: "slow-disk", upToMs: random.pick([400, 1_500]), ms: 100_000 })),
        ...perhaps(0.7, () => at(0, { kind: "damage", transfer, ms: 100_000 })),
        at(0, when("information", { ...anyStep, afterSteps: random.int(70), what })),
      ];
    }
    const number = transfers.length > 1 ? 1 + random.int(2) : 1;
    const slow: Happening = {
      kind: "slow-disk",
      upToMs: random.pick([100, 400, 1_500]),
      ms: 100_000,
      inFolder: random.chance(0.4) ? random.pick(folders) : undefined,
    };
    return [
      at(0, random.chance(0.3) ? weather("slow", { share: 1 }) : when("list", slow)),
      ...causes[cause].map((what) => at(0, what)),
      ...Array.from({ length: number }, () => at(random.int(2_000), cross())),
      ...perhaps(0.3, () => at(random.int(60_000), { kind: "site", site })),
    ];
  },

  "one slow step": makeSlowStep,

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

  /** Something happens exactly while a program runs, or a message is on its way. */
  "during a program": ({ random, site, taste, transfer, kill, order, when, make, perhaps }) => {
    const usual = site.handoff.command !== undefined ? "command" : "message";
    const moment = random.pick<Moment>([
      usual,
      usual,
      usual,
      site.handoff.webhook !== undefined ? "webhook" : usual,
      site.hasCheck ? "check" : usual,
    ]);
    const what = random.pick<Happening>([
      { kind: "stop", downMs: random.int(20_000) },
      { kind: "stop", downMs: random.int(20_000) },
      { kind: "stop", downMs: random.int(20_000) },
      { ...kill(random.chance(0.4)), afterSteps: random.int(20) },
      { kind: "disk-full", ms: MINUTE_MS },
      { kind: "bad-folder", inFolder: "outbox", ms: MINUTE_MS },
      { kind: "disk-fails", afterSteps: 0, times: 2, inFolder: "outbox" },
      { kind: "site", site: changeSite(random, site, taste) },
      { kind: "consume", transfer, how: random.pick(["take", "acknowledge"]) },
      order(random.pick(["retry", "discard", "redeliver"])),
    ]);
    return [
      at(0, when(moment, what, random.chance(0.2) ? 1 : 0)),
      ...perhaps(0.6, () => at(0, { kind: "slow-programs", upToMs: 40_000, ms: 2 * MINUTE_MS })),
      ...perhaps(0.3, () => at(0, make(random.pick(["command", "receiver", "check"])))),
      ...perhaps(0.2, () => at(0, when("list", { kind: "slow-disk", upToMs: 400, ms: MINUTE_MS }))),
    ];
  },

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
    if (where === "quarantine") {
      return [
        at(0, { kind: "damage", transfer, ms: MINUTE_MS }),
        at(70_000, { kind: "tamper", transfer, where }),
        at(130_000, order(random.pick(["release", "release", "retry"]))),
      ];
    }
    if (random.chance(0.4)) {
      // Perhaps after its end was decided, and before it was moved.
      const kill: Happening = {
        kind: "kill",
        afterSteps: random.int(24),
        inFolder: "ledger",
        isPowerCut: false,
        downMs: 60_000,
      };
      const again = order(random.pick(["redeliver", "redeliver", "retry"]));
      return [at(0, kill), at(50_000, { kind: "tamper", transfer, where }), at(110_000, again)];
    }
    // Without a check, nothing else looks at the content again.
    const inSite = random.chance(0.6) ? { inSite: { ...site, hasCheck: false } } : {};
    return [
      at(0, { kind: "check", exitCode: random.pick([75, 75, 1]), ms: 2 * MINUTE_MS, spoils: false }),
      at(65_000, { kind: "stop", downMs: 20_000, ...inSite }),
      at(68_000, { kind: "tamper", transfer, where }),
      ...perhaps(0.3, () => at(130_000, order(random.pick(["release", "retry"])))),
    ];
  },

  /** Of two processes, one pauses at some step while it carries out an order or receives, and the other goes on. */
  "paused decision": ({ random, transfer, order, weather, when, perhaps }) => {
    const where = random.pick<Moment>(["order", "order", "file", "zip", "information"]);
    const pause: Happening = {
      kind: "when",
      inFolder: undefined,
      afterSteps: random.int(where === "order" ? 25 : 60),
      pauseMs: random.pick([5_000, 30_000, 90_000]),
      // Nothing else happens.
      what: { kind: "backup" },
    };
    return [
      at(0, { kind: "arrive", transfer }),
      ...perhaps(0.7, () => at(0, { kind: "damage", transfer, ms: 100_000 })),
      ...perhaps(0.8, () => at(0, weather("slow", { share: 1, scope: "transfers" }))),
      at(0, when(where, pause)),
      at(1_000 + random.int(20_000), order(random.pick(["discard", "discard", "retry", "release"]))),
    ];
  },

  /** The check gives no verdict, spoils what it looked at, and is configured no longer. */
  "check ends": ({ random, site, perhaps }) => [
    at(0, { kind: "check", exitCode: 75, ms: 3 * MINUTE_MS, spoils: random.chance(0.8) }),
    at(10_000 + random.int(50_000), { kind: "site", site: { ...site, hasCheck: false } }),
    ...perhaps(0.3, () => at(100_000, { kind: "site", site })),
  ],
} satisfies Record<string, MakeScene>;

/** Another spelling of the same service. */
function respell(random: Random, site: Site): Site {
  const [first = [], second = []] = ADDRESSES;
  return { ...site, addresses: [random.pick(first), random.pick(second)] };
}
