/** What disturbs a world, and until when: what a daemon owes in time counts from the end of all that was in its way. */
import type { Mood } from "../plan/sent.ts";

interface Span {
  readonly fromMs: number;
  untilMs: number;
}

interface Weathered extends Span {
  readonly service: number;
  readonly mood: Mood;
}

export class Calm {
  readonly #nowMs: () => number;
  readonly #spans: Span[] = [];
  readonly #weather: Weathered[] = [];
  readonly #powerCutsMs: number[] = [];
  /** Jumps of the clock disturb nothing: a daemon has to bear them. */
  readonly jumpsMs: number[] = [];

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Something is in the way of everything, for so long. Returns how it ends sooner or later than that. */
  disturb(ms: number): { endNow(): void } {
    const span = { fromMs: this.#nowMs(), untilMs: this.#nowMs() + ms };
    this.#spans.push(span);
    return {
      endNow: () => {
        span.untilMs = this.#nowMs();
      },
    };
  }

  weather(service: number, mood: Mood, ms: number): void {
    const fromMs = this.#nowMs();
    this.#weather.push({ fromMs, untilMs: fromMs + ms, service, mood });
  }

  powerCut(): void {
    this.#powerCutsMs.push(this.#nowMs());
  }

  hadPowerCut(sinceMs: number): boolean {
    return this.#powerCutsMs.some((atMs) => atMs >= sinceMs);
  }

  /** Peace has come: whatever lasts is over. */
  end(): void {
    for (const span of [...this.#spans, ...this.#weather])
      span.untilMs = Math.min(span.untilMs, this.#nowMs());
  }

  wasDisturbed(sinceMs: number): boolean {
    return this.#spans.some(({ untilMs }) => untilMs >= sinceMs);
  }

  hadWeather(service: number, moods: readonly Mood[], sinceMs: number): boolean {
    return this.#weather.some(
      (each) => each.service === service && each.untilMs >= sinceMs && moods.includes(each.mood),
    );
  }

  /** Since when nothing was in the way of everything, or of this service. In the future while something is. */
  sinceMs(service?: number): number {
    const mine = this.#weather.filter((each) => service === undefined || each.service === service);
    return Math.max(0, ...[...this.#spans, ...mine].map(({ untilMs }) => untilMs));
  }

  /** Whether anything but jumps of the clock, starts and changes of the configuration ever happened to a service. */
  isUntouched(service: number): boolean {
    return (
      this.#spans.every(({ fromMs, untilMs }) => fromMs === untilMs) &&
      !this.#weather.some((each) => each.service === service)
    );
  }
}
