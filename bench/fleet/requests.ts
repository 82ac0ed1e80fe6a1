/** The simulated service's requests, with the mailbox of each poll. */
import type { Window } from "./meter.ts";

interface Request {
  readonly atMs: number;
  /** Of a poll. */
  readonly listOf: string | undefined;
}

const LIST = /^GET \/api\/users\/([^/ ]+)\/transfers\/received-transfers 200 /;

export class RequestLog {
  /** In the order of the answers. */
  readonly #requests: Request[] = [];
  readonly #listed = new Set<string>();

  /** `line`: of the simulated service's log. */
  add(line: string, atMs: number): void {
    const name = LIST.exec(line)?.[1];
    const listOf = name === undefined ? undefined : decodeURIComponent(name);
    this.#requests.push({ atMs, listOf });
    if (listOf !== undefined) this.#listed.add(listOf);
  }

  /** Mailboxes polled at least once. */
  mailboxes(): number {
    return this.#listed.size;
  }

  count(window: Window): number {
    return this.#in(window).length;
  }

  /** A list with entries takes a second request, because only an empty page ends it. */
  polls(window: Window, hasEntries: (mailbox: string) => boolean): number {
    const shares = this.#in(window).map(({ listOf }) => {
      if (listOf === undefined) return 0;
      return hasEntries(listOf) ? 1 / 2 : 1;
    });
    return shares.reduce<number>((sum, share) => sum + share, 0);
  }

  busiestSecond(window: Window): number {
    const seconds = new Map<number, number>();
    for (const { atMs } of this.#in(window)) {
      const second = Math.floor((atMs - window.fromMs) / 1000);
      seconds.set(second, (seconds.get(second) ?? 0) + 1);
    }
    return Math.max(0, ...seconds.values());
  }

  /** The longest time without a poll of some mailbox within the window. */
  longestGapMs(window: Window): number {
    const last = new Map([...this.#listed].map((name) => [name, window.fromMs]));
    let longestMs = 0;
    const polled = (name: string, atMs: number) => {
      longestMs = Math.max(longestMs, atMs - (last.get(name) ?? window.fromMs));
      last.set(name, atMs);
    };
    for (const { atMs, listOf } of this.#in(window)) if (listOf !== undefined) polled(listOf, atMs);
    for (const name of this.#listed) polled(name, window.toMs);
    return longestMs;
  }

  #in({ fromMs, toMs }: Window): Request[] {
    return this.#requests.filter(({ atMs }) => atMs >= fromMs && atMs < toMs);
  }
}
