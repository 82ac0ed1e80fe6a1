/** The queue: who works on the inbox now, and whether Redis can be reached and would keep what it is told. */
import { asFault } from "../../base/faults.ts";
import { formatCount } from "../../base/phrases.ts";
import type { RedisQueueSettings, Settings } from "../../config/settings.ts";
import { describeHolder } from "../../inbox/lock.ts";
import { countMembers } from "../../inbox/members.ts";
import { readRedisSecrets } from "../../queue/open.ts";
import type { Findings } from "./findings.ts";

const AREA = "queue";
const TIMEOUT_MS = 10_000;

export async function checkQueue(
  findings: Findings,
  { queue, work }: Settings,
  signal: AbortSignal,
): Promise<void> {
  await tellWhoWorks(findings, work);
  if (queue === "embedded")
    findings.ok(AREA, "engine", "embedded: this machine's daemon does everything itself");
  else await checkRedis(findings, queue, signal);
}

/** Whoever works there is no trouble for the doctor, and is not disturbed by it. */
async function tellWhoWorks(findings: Findings, work: string): Promise<void> {
  try {
    const count = await countMembers(work);
    const [are, holder] = [formatCount(count, "Inlet works", "Inlets work"), await describeHolder(work)];
    findings.ok(
      AREA,
      "inbox",
      count === 0 ? "no Inlet works on it at this moment" : `${are} on it: ${holder}`,
    );
  } catch (error) {
    findings.skip(AREA, "inbox", `who works on it cannot be told: ${asFault(error).message}`);
  }
}

async function checkRedis(findings: Findings, queue: RedisQueueSettings, signal: AbortSignal): Promise<void> {
  try {
    const { inspectQueue } = await import("../../queue/bullmq-inspect.ts");
    const redis = await readRedisSecrets(queue, signal);
    const { place, version, evictionPolicy, persistence } = await inspectQueue(redis, TIMEOUT_MS, signal);
    findings.ok(AREA, "Redis", `${place} answers, version ${version}`);
    if (evictionPolicy === "noeviction")
      findings.ok(AREA, "memory", "it forgets nothing when memory is short");
    else {
      findings.warn(
        AREA,
        "memory",
        `its maxmemory-policy is ${evictionPolicy || "not known"}: it may forget jobs when memory is short`,
        `${commandFor(queue)} CONFIG SET maxmemory-policy noeviction, and write it into Redis's own configuration`,
      );
    }
    findings.ok(AREA, "persistence", persistence);
  } catch (error) {
    const fault = asFault(error);
    if (fault.code === "STOPPED") throw fault;
    findings.failWith(AREA, "Redis", fault);
    for (const check of ["memory", "persistence"]) findings.skip(AREA, check, "Redis cannot be asked");
  }
}

/** Of several servers each has to be told. */
function commandFor({ url, cluster, sentinels }: RedisQueueSettings): string {
  if (cluster.length + sentinels.length > 0) return "On each server: redis-cli";
  const tls = url.protocol === "rediss:" ? " --tls" : "";
  return `redis-cli -h ${url.hostname} -p ${url.port || 6379}${tls}`;
}
