/** Scenes about a daemon in trouble: it dies or pauses, or its disk, its queue, its clock or a service fails. */
import type { Random } from "../ground/random.ts";
import { FOLDERS, SYNCED } from "./happenings.ts";
import type { Happening, Loss } from "./plan.ts";
import { MOODS, type Weather } from "./sent.ts";
import { at, type MakeScene } from "./setting.ts";
import { MOVED_INBOX, type Site } from "./site.ts";
import { changeSite } from "./sites.ts";

const MINUTE_MS = 60_000;

export const TROUBLE_SCENES = {
  calm: () => [],

  // The daemon ends or pauses

  kill: ({ kill }) => [at(0, kill(false))],

  "kill in a folder": ({ random, kill }) => [at(0, kill(random.chance(0.3), random.pick(FOLDERS)))],

  "power cut": ({ random, kill }) => [
    at(0, kill(true, random.chance(0.5) ? random.pick(SYNCED) : undefined)),
  ],

  stop: ({ random, site, taste, soonMs }) => [
    at(soonMs(), {
      kind: "stop",
      downMs: random.int(MINUTE_MS),
      ...(random.chance(0.5) ? { inSite: changeSite(random, site, taste) } : {}),
    }),
  ],

  freeze: ({ random }) => [
    at(0, { kind: "freeze", ms: (2 + random.int(8)) * MINUTE_MS, afterSteps: 1 + random.int(400) }),
  ],

  second: ({ random }) => {
    const pause: Happening = {
      kind: "freeze",
      ms: 3 * MINUTE_MS,
      afterSteps: 1 + random.int(random.chance(0.5) ? 300 : 20),
      ...(random.chance(0.5) ? { inFolder: random.pick(FOLDERS) } : {}),
    };
    return [at(0, { kind: "second", ms: 4 * MINUTE_MS }), at(random.int(20_000), pause)];
  },

  /** A job runs twice, and one of the runs pauses. */
  "two workers": ({ random, make, perhaps }) => {
    const pause: Happening = {
      kind: "freeze",
      ms: (1 + random.int(4)) * MINUTE_MS,
      afterSteps: 1 + random.int(random.chance(0.5) ? 300 : 12),
      ...(random.chance(0.5) ? { inFolder: random.pick(FOLDERS) } : {}),
    };
    const check = perhaps(0.4, () => at(0, { kind: "check", exitCode: 75, ms: MINUTE_MS, spoils: false }));
    return [
      at(0, { kind: "queue", mischief: "repeat", ms: 5 * MINUTE_MS }),
      ...check,
      at(random.int(5_000), pause),
      ...perhaps(0.3, () => at(random.int(MINUTE_MS), make("order"))),
    ];
  },

  queue: ({ random, make, soonMs, perhaps }) => [
    at(random.int(10_000), make("queue")),
    ...perhaps(0.4, () => at(soonMs(), make(random.pick(["kill", "queue", "weather"])))),
  ],

  /** Early, so that the work on a transfer is met. */
  moments: ({ random, make, perhaps }) => {
    const first = perhaps(0.5, () => at(0, make(random.pick(["damage", "damage", "check", "weather"]))));
    // Short enough that a command and a download last about as long.
    const slow = perhaps(0.5, () =>
      at(0, { kind: "slow-disk", upToMs: random.pick([10, 40, 150]), ms: MINUTE_MS }),
    );
    const moments = Array.from({ length: 1 + random.int(2) }, () =>
      at(random.chance(0.8) ? 0 : random.int(2 * MINUTE_MS), make("when")),
    );
    const end = perhaps(0.4, () => at(random.int(30_000), make(random.pick(["kill", "stop", "kill"]))));
    return [...slow, ...first, ...moments, ...end];
  },

  // Its disk and its clock

  /** Whatever takes a moment takes seconds, so that everything meets everything. */
  slow: ({ random, make, kill, when, perhaps }) => {
    const slow: Happening = {
      kind: "slow-disk",
      upToMs: random.pick([20, 100, 400, 1_500]),
      ms: 2 * MINUTE_MS,
    };
    const first = perhaps(0.5, () => at(0, make(random.pick(["damage", "damage", "check", "command"]))));
    const kinds = ["order", "order", "order", "site", "vanish", "consume", "password"] as const;
    const others = Array.from({ length: 1 + random.int(4) }, () =>
      at(3_000 + random.int(random.pick([10_000, 90_000])), make(random.pick(kinds))),
    );
    const end = perhaps(0.3, () => at(random.int(MINUTE_MS), kill(random.chance(0.5))));
    // Its start would take all of the time.
    return [at(0, when("list", slow)), ...first, ...others, ...end];
  },

  "disk fails": ({ random, make, perhaps }) => [
    at(0, make(random.pick(["sync-fails", "disk-fails", "disk-fails"]))),
    ...perhaps(0.3, () => at(0, make("disk-fails"))),
  ],

  "disk full": ({ random }) => [
    at(random.int(20_000), { kind: "disk-full", ms: (1 + random.int(3)) * MINUTE_MS }),
  ],

  "bad folder": ({ random, make }) => [at(random.int(30_000), make("bad-folder"))],

  loss: ({ random, site }) => {
    const loss = makeLoss(random);
    return [
      at(20_000 + random.int(20_000), { kind: "backup" }),
      at(90_000 + random.int(MINUTE_MS), {
        kind: "stop",
        downMs: 5_000,
        loss,
        ...(loss.what === "inbox" ? { inSite: { ...site, inbox: MOVED_INBOX } } : {}),
      }),
    ];
  },

  clock: ({ random, transfers, make, weather, kill, perhaps }) => {
    // What begins to wait while the clock is wrong, waits no longer than it may.
    if (random.chance(0.4)) {
      const days = random.pick([2, 10, 10, -2]);
      return [
        at(0, { kind: "clock", byMs: days * 24 * 60 * MINUTE_MS, ms: 45_000 }),
        ...transfers.keys().map((transfer) => at(0, { kind: "arrive", transfer })),
        at(0, weather(random.pick(["failing", "away", "silent"]), { scope: "transfers", share: 1 })),
        ...perhaps(0.8, () =>
          at(40_000, random.chance(0.3) ? kill(false) : { kind: "stop", downMs: 20_000 }),
        ),
      ];
    }
    const clock = at(random.int(MINUTE_MS), make("clock"));
    if (random.chance(0.4)) return [clock];
    const others = ["weather", "check", "command", "damage", "stop"] as const;
    return [clock, at(random.int(MINUTE_MS), make(random.pick(others)))];
  },

  // A service

  weather: ({ random, weather, kill, perhaps }) => [
    at(random.int(20_000), weather(random.pick(MOODS))),
    ...perhaps(0.3, () => at(random.int(20_000), kill(false))),
  ],

  "bad lists": ({ random, transfers, weather }) => {
    if (random.chance(0.4)) {
      // From some time on, an intermediary removes one field. What arrives later is listed without it.
      const strips = random.pick(["mode", "mode", "message", "recipients"] as const);
      const stripping = weather("stripping", { scope: "lists", share: 1, strips });
      return [
        at(20_000, { ...stripping, ms: (2 + random.int(4)) * MINUTE_MS }),
        ...transfers
          .keys()
          .map((transfer) =>
            at(transfer === 0 ? 0 : 25_000 + random.int(MINUTE_MS), { kind: "arrive", transfer } as const),
          ),
      ];
    }
    const moods = ["foreign", "firewall", "confused", "lossy", "stripping", "forgetful", "cutting"] as const;
    return [at(0, weather(random.pick(moods), { scope: "lists" }))];
  },

  /** The service asks for a pause. */
  rest: ({ random, transfers, weather }) => {
    const pauses = ["30", "600", "1800", "86400", "Fri, 01 Jan 2038 00:00:00 GMT", "999999999999", "soon"];
    if (random.chance(0.3))
      return [at(random.int(20_000), weather("limiting", { retryAfter: random.pick(pauses) }))];
    // The others come while it rests.
    const limiting = weather("limiting", {
      retryAfter: random.pick(["120", "300", "300", "1800"]),
      share: 1,
    });
    return [
      at(4_000, { ...limiting, weather: { ...limiting.weather, scope: "transfers" }, ms: 5 * MINUTE_MS }),
      ...transfers.keys().map((transfer) =>
        at(transfer === 0 ? 5_000 : 6_000 + random.int(random.pick([2_000, 2 * MINUTE_MS])), {
          kind: "arrive",
          transfer,
        }),
      ),
    ];
  },

  "long list": ({ transfer, make, perhaps }) => [
    // Listed behind all others, which are settled by then.
    at(100_000, { kind: "arrive", transfer: 0 }),
    ...perhaps(0.5, () => at(90_000, { kind: "return", transfer })),
    ...perhaps(0.3, () => at(60_000, make("weather"))),
  ],

  lies: ({ random, site, weather, order, perhaps }) => [
    at(
      0,
      weather("lying", {
        scope: "transfers",
        share: random.pick([0.3, 0.7, 1]),
        ...perhapsAbout(random, site),
      }),
    ),
    ...perhaps(0.4, () => at(100_000, order(random.pick(["retry", "release"])))),
  ],

  /** From the first bytes on, the others come one by one. */
  "slow download": ({ random, transfer, weather, order, when }) => {
    const drip = weather(random.pick(["dripping", "silent"]), { scope: "transfers", share: 1 });
    const what = { ...drip, ms: 8 * MINUTE_MS };
    const end = random.pick<Happening>([
      order("discard"),
      order("discard"),
      { kind: "vanish", transfer, how: "deleted_by_revocation" },
      { kind: "stop", downMs: 10_000 },
      order("retry"),
    ]);
    return [
      at(0, when(random.pick(["files", "file", "zip", "file"]), what)),
      at(40_000 + random.int(20_000), end),
      // Until then, nothing of it may be received any longer.
      at(3 * MINUTE_MS, { kind: "backup" }),
    ];
  },

  archives: ({ random, make }) =>
    random.chance(0.5) ? [] : [at(0, make(random.pick(["kill", "damage", "check", "weather"])))],
} satisfies Record<string, MakeScene>;

/** Mostly of one operation: what the others say shows it. */
function perhapsAbout(random: Random, { maxBytes }: Site): Partial<Weather> {
  if (maxBytes !== undefined && random.chance(0.6)) return { about: random.pick(["information", "files"]) };
  const operations = ["information", "files", "files", "file", "zip", "checksums", "checksums"] as const;
  return random.chance(0.7) ? { about: random.pick(operations) } : {};
}

function makeLoss(random: Random): Loss {
  const what = random.weighted({ work: 1, state: 1, both: 2, inbox: 2, all: 1 });
  if (what === "inbox") return { what, how: random.pick(["moved", "copied", "new"]) };
  if (what === "all") return { what, how: "restored" };
  return { what, how: random.pick(["gone", "restored"]) };
}
