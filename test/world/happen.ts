/** What happens in a world: one function for each kind of happening. */
import type { Daemon } from "./daemons.ts";
import { PROGRAM_MS } from "./ground/process.ts";
import type { Happening } from "./plan/plan.ts";
import { FINE, type StoredTransfer } from "./plan/sent.ts";
import type { World } from "./world.ts";

const MINUTE_MS = 60_000;
/** How the queue and the receiver of messages are in peace. */
const NO_MISCHIEF = { lose: 0, repeat: 0, delay: 0 };
const PROMPT_RECEIVER = { isAway: false, delayMs: 0 };
/** The share of the jobs that a mischief of the queue meets. */
const MISCHIEF = 0.5;

type Act<What> = (world: World, what: What) => void;

const ACTS: { readonly [Kind in Happening["kind"]]: Act<Happening & { readonly kind: Kind }> } = {
  // To the daemon

  kill: toDaemon((world, what, daemon) => world.daemons.plantKill(daemon, what)),
  stop: toDaemon((world, what, daemon) => world.daemons.stopFor(daemon, what)),
  freeze: toDaemon(({ calm }, { afterSteps, ms, inFolder, until }, { process }) => {
    process.stepsToFreeze = afterSteps;
    process.freezeMs = ms;
    process.freezesIn = inFolder;
    process.thawsAt = until;
    calm.disturb(Number.POSITIVE_INFINITY);
  }),
  when: toDaemon(({ troubles, calm }, what, { process }) => {
    troubles.trigger(process, what);
    if (what.pauseMs > 0) calm.disturb(2 * MINUTE_MS);
  }),
  "bad-site": toDaemon((world, { ms }, daemon) => world.daemons.refuseSite(daemon, ms)),
  second: toDaemon((world, { ms }) => world.daemons.startSecond(ms)),
  "sync-fails": toDaemon((world, what, { process }) => world.troubles.fail(process, what)),
  "disk-fails": toDaemon((world, what, { process }) => world.troubles.fail(process, what)),

  // With a transfer

  arrive: withTransfer((_world, _what, transfer) => {
    transfer.state = "active";
  }),
  vanish: withTransfer((_world, { how }, transfer) => {
    if (transfer.state === "active") transfer.state = how;
  }),
  return: withTransfer((_world, _what, transfer) => {
    const { state } = transfer;
    if (state === "unsent" || state === "deleted_by_revocation") transfer.state = "active";
  }),
  damage: withTransfer((world, { ms }, { trackingId, service, files: [file] }) => {
    if (file === undefined) return;
    const damaged = world.services[service]?.damaged;
    damaged?.add(file.id);
    world.observer.damaged.add(trackingId);
    world.schedule.after(ms, () => damaged?.delete(file.id));
  }),
  tamper: withTransfer((world, { where }, { trackingId }) => {
    world.observer.asOutsider(() => world.people.tamper(trackingId, where));
  }),
  order: withTransfer((world, { action, withPassword, next }, { trackingId }) => {
    world.people.order(trackingId, action, withPassword, next);
  }),
  password: withTransfer((world, { isRight, isCommon = false }, { trackingId }) => {
    world.people.supply(trackingId, isRight, isCommon);
  }),
  replace: withTransfer((world, { by }, { trackingId }) => {
    world.observer.asOutsider(() => world.people.replace(trackingId, by));
  }),
  consume: withTransfer((world, { how }, { trackingId }) => {
    world.observer.asOutsider(() => world.people.consume(trackingId, how));
  }),
  foreign: withTransfer((world, { isTrap, number }, { trackingId, sender }) => {
    if (isTrap) world.observer.traps.push({ trackingId, number });
    else world.observer.asOutsider(() => world.people.putForeign(trackingId, sender, number));
  }),

  // Around them

  site: (world, { site }) => world.changeSite(site),
  backup: ({ people }) => people.backUp(),
  greedy: ({ people, schedule }, { ms }) => {
    people.isGreedy = true;
    schedule.after(ms, () => {
      people.isGreedy = false;
    });
  },
  "disk-full": ({ disk, calm, schedule }, { ms }) => {
    calm.disturb(ms);
    disk.isFull = true;
    schedule.after(ms, () => {
      disk.isFull = false;
    });
  },
  "slow-disk": (world, { upToMs, ms, inFolder }) => {
    world.calm.disturb(ms + MINUTE_MS);
    world.slowStepMs = upToMs;
    world.slowFolder = inFolder;
    world.schedule.after(ms, () => {
      world.slowStepMs = 0;
    });
  },
  "bad-folder": ({ troubles, calm, schedule }, { inFolder, ms }) => {
    calm.disturb(ms + MINUTE_MS);
    troubles.spoilFolder(inFolder);
    schedule.after(ms, () => troubles.mendFolder());
  },
  clock: (world, { byMs, ms }) => {
    world.wallOffsetMs += byMs;
    world.calm.jumpsMs.push(world.schedule.nowMs);
    world.schedule.after(ms, () => {
      world.wallOffsetMs = 0;
      world.note("the clock is right again");
    });
  },
  queue: ({ site, store, calm, schedule }, { mischief, ms }) => {
    if (!site.isShared) return;
    calm.disturb(ms + MINUTE_MS);
    if (mischief === "wipe") {
      store.wipe();
      return;
    }
    if (mischief === "away") store.isAway = true;
    else store.mischief[mischief] = MISCHIEF;
    schedule.after(ms, () => {
      if (mischief === "away") store.isAway = false;
      else Object.assign(store.mischief, NO_MISCHIEF);
    });
  },
  weather: ({ services, calm, schedule }, { service: number, weather, ms }) => {
    const service = services[number];
    if (service === undefined) return;
    calm.weather(number, weather.mood, ms);
    service.weather = weather;
    schedule.after(ms, () => {
      if (service.weather === weather) service.weather = FINE;
    });
  },
  check: (world, { exitCode, ms, spoils }) => {
    world.doesCheckSpoil = spoils;
    endProgram(world, "check", exitCode, ms);
  },
  command: (world, { exitCode, ms }) => endProgram(world, "command", exitCode, ms),
  "slow-programs": (world, { upToMs, ms }) => {
    world.calm.disturb(ms + upToMs);
    world.longestProgramMs = upToMs;
    world.schedule.after(ms, () => {
      world.longestProgramMs = PROGRAM_MS;
    });
  },
  receiver: ({ receiver, calm, schedule }, { isAway, delayMs = 0, ms }) => {
    calm.disturb(ms + MINUTE_MS);
    Object.assign(receiver, { isAway, delayMs });
    schedule.after(ms, () => void Object.assign(receiver, PROMPT_RECEIVER));
  },
};

export function happen(world: World, what: Happening): void {
  // The table has the function for this kind, which the compiler cannot know of a union.
  const act = ACTS[what.kind] as Act<Happening>;
  act(world, what);
}

/** Ends at once what is still going on around the daemon, its transfers and its people. */
export function endAll(world: World): void {
  const { disk, services, store, exitCodes, receiver, troubles } = world;
  troubles.end();
  world.slowStepMs = 0;
  world.longestProgramMs = PROGRAM_MS;
  world.wallOffsetMs = 0;
  world.people.isGreedy = false;
  disk.isFull = false;
  for (const service of services) {
    service.weather = FINE;
    service.damaged.clear();
  }
  store.isAway = false;
  Object.assign(store.mischief, NO_MISCHIEF);
  Object.assign(exitCodes, { check: 0, command: 0 });
  Object.assign(receiver, PROMPT_RECEIVER);
}

/** Without a running daemon, nothing happens. */
function toDaemon<What>(act: (world: World, what: What, daemon: Daemon) => void): Act<What> {
  return (world, what) => {
    const { running } = world.daemons;
    if (running !== undefined) act(world, what, running);
  };
}

/** Without this transfer, nothing happens: smaller plans leave some out. */
function withTransfer<What extends { readonly transfer: number }>(
  act: (world: World, what: What, transfer: StoredTransfer) => void,
): Act<What> {
  return (world, what) => {
    const transfer = world.transfers[what.transfer];
    if (transfer !== undefined) act(world, what, transfer);
  };
}

/** For a while, all programs of this sort end with this exit code. */
function endProgram(
  { calm, exitCodes, schedule }: World,
  sort: "check" | "command",
  exitCode: number,
  ms: number,
): void {
  calm.disturb(ms);
  exitCodes[sort] = exitCode;
  schedule.after(ms, () => {
    exitCodes[sort] = 0;
  });
}
