/** Figures about what follows deliveries. */
import { Counter, Gauge, type Registry } from "prom-client";
import type { Clock } from "../base/clock.ts";
import type { HandoffStep, HandoffSummary } from "../model/handoff.ts";

export class HandoffMetrics {
  readonly #attempts: Counter<"step" | "result">;
  #summary: HandoffSummary = { waiting: 0, oldestMs: undefined, troubled: 0, troubles: [] };

  constructor(registry: Registry, clock: Clock) {
    const registers = [registry];
    this.#attempts = new Counter({
      name: "inlet_handoff_total",
      help: "Attempts to run the command or to call the webhook after a delivery, by how they ended.",
      labelNames: ["step", "result"],
      registers,
    });
    const read = () => this.#summary;
    new Gauge({
      name: "inlet_not_picked_up",
      help: "Delivered folders that no consumer has picked up.",
      registers,
      collect() {
        this.set(read().waiting);
      },
    });
    new Gauge({
      name: "inlet_oldest_not_picked_up_seconds",
      help: "How long ago the oldest folder was delivered that no consumer has picked up.",
      registers,
      collect() {
        const { oldestMs } = read();
        this.set(oldestMs === undefined ? 0 : Math.max(0, clock.now() - oldestMs) / 1000);
      },
    });
  }

  tried(step: HandoffStep, result: "ok" | "failed"): void {
    this.#attempts.inc({ step, result });
  }

  seen(summary: HandoffSummary): void {
    this.#summary = summary;
  }
}
