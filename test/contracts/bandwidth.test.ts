/** Every byte of every download counts for the bandwidth limit, which changes nothing but the speed. */
import { buffer } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import type { Bandwidth } from "../../src/service/bandwidth.ts";
import type { Download, ServicePort } from "../../src/service/port.ts";
import {
  expectFault,
  firstFile,
  openPair,
  openTestService,
  SIGNAL,
  transferPlan,
} from "../support/service.ts";

const files = [
  { name: "large", generate: { bytes: 1_500_000 } },
  { name: "small", text: "Hello" },
  { name: "empty", text: "" },
];
const scenario = { transfers: [transferPlan({ message: "Psst", files })] };

/** Counts the bytes, and lets odd pieces pass, some at once and some later. */
function countingBandwidth(): Pick<Bandwidth, "take"> & { passed: number } {
  return {
    passed: 0,
    take(bytes) {
      const granted = Math.min(bytes, 20_011);
      this.passed += granted;
      return this.passed % 2 === 0 ? granted : Promise.resolve(granted);
    },
  };
}

describe("a limit", () => {
  test("counts every byte of files, ZIP, message and checksums, which arrive unchanged", async () => {
    const bandwidth = countingBandwidth();
    const { simulator, service, access, transfer } = await openPair(scenario, { bandwidth });
    const free = openTestService(simulator);
    const open = [
      ...transfer.files.map((file) => (it: ServicePort) => it.openFile(access, file, {}, SIGNAL)),
      (it: ServicePort) => it.openZip(access, {}, SIGNAL),
      (it: ServicePort) => it.openEml(access, {}, SIGNAL),
      (it: ServicePort) => it.openChecksums(access, SIGNAL),
    ];
    for (const each of open) {
      bandwidth.passed = 0;
      const limited = await buffer((await each(service)).body);
      expect(limited.equals(await buffer((await each(free)).body))).toBe(true);
      expect(bandwidth.passed).toBe(limited.length);
    }
  });

  test("does not make a service look stalled", async () => {
    const gate = Promise.withResolvers<void>();
    const held: Pick<Bandwidth, "take"> = { take: (bytes) => gate.promise.then(() => bytes) };
    const { simulator, service, access, transfer } = await openPair(scenario, {
      bandwidth: held,
      timeoutMs: 500,
    });
    const holding = buffer((await service.openFile(access, firstFile(transfer), {}, SIGNAL)).body);
    // When a stalled service is given up, the limited download was held back as long.
    simulator.addFault({ on: "file", does: { kind: "stall", afterBytes: 100 } });
    const free = openTestService(simulator, { timeoutMs: 1_000 });
    const stalled = free.openFile(access, firstFile(transfer), {}, SIGNAL).then(drain);
    await expectFault(stalled, "SERVICE_TIMEOUT");
    gate.resolve();
    const whole = await buffer((await free.openFile(access, firstFile(transfer), {}, SIGNAL)).body);
    expect((await holding).equals(whole)).toBe(true);
  });
});

async function drain(download: Download): Promise<void> {
  for await (const _chunk of download.body);
}
