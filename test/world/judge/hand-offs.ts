/** Judges what follows a delivery: each program and each call is that of its rule, gets right facts, and is not repeated. */
import type { DaemonEvent } from "../../../src/model/events.ts";
import type { Process } from "../ground/process.ts";
import { type Happening, happeningsOf, type Plan } from "../plan/plan.ts";
import { PROGRAMS } from "../plan/site.ts";
import type { World } from "../world.ts";
import { commandFor } from "./expect.ts";
import type { Delivered, Observer, Run } from "./observer.ts";

const MINUTE_MS = 60_000;

/** What may make a hand-off fail, also if its program succeeds. */
const FAILURES: ReadonlySet<Happening["kind"]> = new Set([
  "second",
  "disk-fails",
  "sync-fails",
  "bad-folder",
  "disk-full",
  "site",
  "receiver",
  "replace",
  "tamper",
]);

/** A hand-off may fail although its program, or who is called, does not. */
export function mayFailByItself(plan: Plan): boolean {
  return happeningsOf(plan).some(
    (what) => FAILURES.has(what.kind) || ("inSite" in what && what.inSite !== undefined),
  );
}

export class HandOffs {
  readonly #observer: Observer;
  readonly #world: World;
  /** When a daemon has given up its disk last: what it had not recorded is as after a crash. */
  #diskLostMs = 0;

  constructor(observer: Observer, world: World) {
    this.#observer = observer;
    this.#world = world;
  }

  /** `env`: what the program got. */
  programRan(
    process: Process,
    argv: readonly string[],
    env: Readonly<Record<string, string>>,
    isGood: boolean,
  ): void {
    const program = argv.join(" ");
    const delivery = this.#deliveryOf(env["INLET_TRANSFER_ID"], env["INLET_ID"]);
    if (delivery === undefined) {
      this.#observer.violate(`${program} ran for an unknown delivery`);
      return;
    }
    this.#checkOwner(delivery, "command", ownerOfProgram(argv));
    this.#checkCommand(delivery, program);
    this.#checkRepetition(delivery.programs, process, `${program} for ${delivery.trackingId}`);
    delivery.programs.push({ program, atMs: this.#nowMs, isGood, process });
    this.#checkEnvironment(delivery, env);
  }

  called(
    process: Process,
    { id, transferId }: { readonly id?: string; readonly transferId?: string },
    isGood: boolean,
  ): void {
    const delivery = this.#deliveryOf(transferId, id);
    if (delivery === undefined) {
      this.#observer.violate("the webhook was called for an unknown delivery");
      return;
    }
    this.#checkOwner(delivery, "webhook", "common");
    this.#checkRepetition(delivery.calls, process, `the webhook of ${delivery.trackingId}`);
    delivery.calls.push({ atMs: this.#nowMs, isGood, process });
  }

  /** What is reported of a hand-off, for logs, notifications and metrics, is what happened. */
  reported(event: DaemonEvent): void {
    if (event.type === "disk-failed") this.#diskLostMs = this.#world.schedule.nowMs;
    if (event.type !== "handoff-failed" && event.type !== "handoff-succeeded") return;
    const { trackingId, round } = event.delivered;
    const { deliveries } = this.#observer;
    const runs = deliveries
      .filter((each) => each.trackingId === trackingId && each.round === round)
      .flatMap(({ programs, calls }) => (event.step === "command" ? programs : calls));
    const isGood = event.type === "handoff-succeeded";
    if (runs.some((each) => each.isGood === isGood) || (!isGood && mayFailByItself(this.#world.plan))) return;
    this.#observer.violate(
      `I7: the ${event.step} of ${trackingId} is reported as ${isGood ? "good" : "failed"}, and was not`,
    );
  }

  /** Its id is the same in every attempt, and no other delivery has it. */
  #deliveryOf(transferId: string | undefined, id: string | undefined): Delivered | undefined {
    const { deliveries } = this.#observer;
    const known = deliveries.find((each) => each.id !== undefined && each.id === id);
    if (known !== undefined) return known.of.transferId === transferId ? known : undefined;
    const found = deliveries.find((each) => each.of.transferId === transferId && each.id === undefined);
    if (found !== undefined) found.id = id;
    return found;
  }

  /** A step belongs to the route, the mailbox or the configuration that had it when the delivery was decided. */
  #checkOwner({ owners, trackingId }: Delivered, step: "command" | "webhook", owner: string): void {
    const mine = [...owners[step]];
    if (mine.some((each) => each?.startsWith(owner))) return;
    this.#observer.violate(
      `the ${step} of ${owner} ran for ${trackingId}, which belongs to ${mine.join(" or ")}`,
    );
  }

  /** The rule that decided has this command now, or had it a moment ago. */
  #checkCommand({ identity, of, trackingId, owners }: Delivered, program: string): void {
    if (identity === undefined) return;
    const isAllowed = this.#observer
      .sitesSince(this.#nowMs - 2 * MINUTE_MS)
      .some((site) =>
        [...owners.command].some(
          (owner) => commandFor(site, of.address, identity, owner)?.join(" ") === program,
        ),
      );
    if (!isAllowed)
      this.#observer.violate(`${program} ran for ${trackingId}, whose rule ${identity} has no such command`);
  }

  /** What has succeeded is repeated only by another process, because of a crash. */
  #checkRepetition(runs: readonly Run[], process: Process, what: string): void {
    const good = runs.findLast((each) => each.isGood);
    if (good === undefined) return;
    const isSame = good.process === process && this.#diskLostMs < good.atMs;
    if (isSame || !this.#world.calm.wasDisturbed(good.atMs - MINUTE_MS))
      this.#observer.violate(`I2: ${what} ran again, and had succeeded`);
  }

  #checkEnvironment(
    { trackingId, of, record, paths, seen, hasAppeared }: Delivered,
    env: Readonly<Record<string, string>>,
  ): void {
    const { disk } = this.#world;
    const observer = this.#observer;
    const folder = env["INLET_FOLDER"] ?? "";
    const facts = [
      env["INLET_TRACKING_ID"] === trackingId,
      env["INLET_SENDER"] === of.transfer.sender || !of.transfer.sender.isWellFormed(),
      env["INLET_VERIFIED"] === (record.verified ?? "none"),
    ];
    if (facts.includes(false)) observer.violate(`a command got wrong facts about ${trackingId}`);
    if (!hasAppeared) observer.violate(`a command ran for ${trackingId} before it was in the inbox`);
    const isLeft = paths.some((path) => disk.tryGet(path) !== undefined);
    if (!isLeft) return;
    const isThere = paths.some((path) => path === folder || path.startsWith(`${folder}/`));
    // Without the record of a round, the next one has its name.
    if (!isThere && !this.#world.hasLost) {
      observer.violate(`a command got a wrong folder of ${trackingId}: ${folder}`);
      return;
    }
    const manifest = env["INLET_MANIFEST"] ?? "";
    // A consumer may take it before the rest has appeared.
    const isTaken = [...seen.values()].includes(manifest) && !paths.includes(manifest);
    if (disk.tryGet(manifest) === undefined && !isTaken && !this.#isTouched(paths))
      observer.violate(`a command got a manifest of ${trackingId} that is not there`);
  }

  #isTouched(paths: readonly string[]): boolean {
    return (
      paths.some((path) => this.#world.disk.tryGet(path) === undefined) || this.#observer.foreign.size > 0
    );
  }

  get #nowMs(): number {
    return this.#world.schedule.nowMs;
  }
}

/** Whose command it is, as far as its path tells. */
function ownerOfProgram([program]: readonly string[]): string {
  if (program === PROGRAMS.common) return "common";
  if (program === PROGRAMS.urgent) return "route";
  const [address = ""] = Object.entries(PROGRAMS).find(([, path]) => path === program) ?? [];
  return `mailbox ${address}`;
}
