/** What the simulated service was asked, and when: polls, by the mailbox that they are about. */
import type { Window } from "./meter.ts";

interface Request {
  readonly atMs: number;
  /** Missing where it is about no mailbox's list. */
  readonly listOf: string | undefined;
}

const LIST = /^GET \/api\/users\/([^/ ]+)\/transfers\/received-transfers 200 /;

export class RequestLog {
  /** In the order in which they were answered. */
  readonly #requests: Request[] = [];
  readonly #listed = new Set<string>();

  /** A line that the simulated service has written about a request. */
  add(line: string, atMs: number): void {
    const name = LIST.exec(line)?.[1];
    const listOf = name === undefined ? undefined : decodeURIComponent(name);
    this.#requests.push({ atMs, listOf });
    if (listOf !== undefined) this.#listed.add(listOf);
  }

  /** How many had their list read, at least once. */
  mailboxes(): number {
    return this.#listed.size;
  }

  count(window: Window): number {
    return this.#in(window).length;
  }

  /** A list that is not empty takes a second request: only an empty page ends it. */
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

  /** The longest time that a mailbox was left alone within the window. */
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
