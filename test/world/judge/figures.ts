/** Compares the metrics of a daemon with what it did, in worlds in which one daemon did everything. */
import { Metrics } from "../../../src/observe/metrics.ts";
import type { Daemon, World } from "../world.ts";
import type { Observer } from "./observer.ts";

/** One world in so many has metrics, because they take time. */
const SHARE = 4;

const DISK_TROUBLES: ReadonlySet<string> = new Set([
  "disk-fails",
  "sync-fails",
  "disk-full",
  "bad-folder",
  "when",
]);

/** The metrics of a daemon that begins. `undefined` in most worlds. */
export function startMetrics(world: World, daemon: Daemon): Metrics | undefined {
  if (world.plan.seed % SHARE !== 1) return undefined;
  const readStatus = () => {
    const status = daemon.vitals?.status();
    if (status === undefined) throw new Error("no status yet");
    return status;
  };
  return daemon.process.run(
    () => new Metrics(world.settings.mailboxes, "0", readStatus, { now: daemon.process.now }),
  );
}

/** The figures that differ from what happened. */
export async function findWrongFigures({
  daemon,
  daemons,
  observer,
  requests,
  plan,
}: World): Promise<string[]> {
  const { metrics } = daemon ?? {};
  // A known fault: after a failed call of the disk, a delivery may be counted twice.
  const hasTroubles = plan.happenings.some(({ what }) => DISK_TROUBLES.has(what.kind));
  if (daemon === undefined || metrics === undefined || daemons.started > 1 || hasTroubles) return [];
  const text = await daemon.process.run(() => metrics.text({ freeBytes: undefined, queueDepth: undefined }));
  const sumOf = (name: string, label = "") =>
    text.split("\n").reduce((sum, line) => {
      const isMine = line.startsWith(`${name}{`) && line.includes(label);
      return isMine ? sum + Number(line.slice(line.lastIndexOf(" "))) : sum;
    }, 0);
  const runs = observer.deliveries.flatMap(({ programs, calls }) => [...programs, ...calls]);
  // Counted once all of it is placed.
  const placed = observer.deliveries.filter((each) => !observer.isStaged(each));
  const expected: readonly (readonly [what: string, shown: number, count: number])[] = [
    ["delivered", sumOf("inlet_ended_total", 'state="delivered"'), placed.length],
    ["quarantined", sumOf("inlet_ended_total", 'state="quarantined"'), observer.quarantines],
    ["handed over", sumOf("inlet_handoff_total", 'result="ok"'), runs.filter(({ isGood }) => isGood).length],
    ["refused passwords", sumOf("inlet_passwords_refused_total"), requests.refusals],
  ];
  return [
    ...expected.flatMap(([what, shown, count]) =>
      shown === count ? [] : [`the metrics say ${shown} ${what}, and there were ${count}`],
    ),
    ...findNameless(text, observer.timeline),
  ];
}

/** While a mailbox is configured, everything that happens to it counts under what people call it, or called it then. */
function findNameless(text: string, timeline: Observer["timeline"]): string[] {
  const addresses = new Set(
    timeline.map(({ site }) => site.boxes.map(({ email }) => email.toLowerCase()).join()),
  );
  if (addresses.size > 1) return [];
  const names = new Set(timeline.flatMap(({ site }) => site.boxes.map(({ name, email }) => name ?? email)));
  return text.split("\n").flatMap((line) => {
    const [, mailbox] = /^inlet_\w+_total\{.*mailbox="([^"]*)"/.exec(line) ?? [];
    const isCounted = mailbox !== undefined && !line.endsWith(" 0");
    return isCounted && !names.has(mailbox) ? [`the metrics count for ${mailbox}, which is no mailbox`] : [];
  });
}
