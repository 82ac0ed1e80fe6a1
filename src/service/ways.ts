/**
 * Which of several ways to ask a service takes: the path of an operation, the limit of a message. The first way is the usual one.
 * If the service itself refuses it, the way that works is remembered for this version of the service, also for later processes.
 */
import { monotonicMs, pauseOrAbort } from "../base/timers.ts";

/** What is recorded of services. If it is lost, it is found out again. */
export interface Facts {
  has(...fact: readonly string[]): Promise<boolean>;
  add(...fact: readonly string[]): Promise<unknown>;
}

/** After this time the service may have been updated. One that does not say its version is asked less often. */
const VERSION_KNOWN_MS = 10 * 60_000;
const NO_VERSION_MS = 60 * 60_000;
/** Of a service that does not say. */
const NO_VERSION = "[]";
/** The longest wait for another request that finds out the same. */
const LONGEST_WAIT_MS = 2_000;

/** `isSure`: the service of this version has taken it before. */
export interface ChosenWay {
  readonly way: string;
  readonly isSure: boolean;
}

export class Ways {
  readonly #serviceId: string;
  readonly #facts: Facts | undefined;
  readonly #askStatus: (signal: AbortSignal) => Promise<unknown>;
  #version: { readonly version: string; readonly untilMs: number } | undefined;
  /** Shared by those who ask at once. */
  #asking: Promise<string> | undefined;
  /** By the usual way. `version`: missing for the usual way itself, which needs none. */
  readonly #known = new Map<string, { readonly way: string; readonly version?: string }>();
  /** By the usual way: aborts when the request that finds out the way is over. */
  readonly #searches = new Map<string, AbortSignal>();

  constructor(
    serviceId: string,
    askStatus: (signal: AbortSignal) => Promise<unknown>,
    facts: Facts | undefined,
  ) {
    this.#serviceId = serviceId;
    this.#askStatus = askStatus;
    this.#facts = facts;
  }

  /** The version of the service now, as text. Equal for services that do not say. */
  async askVersion(signal: AbortSignal): Promise<string> {
    // A service, or a firewall before it, may refuse its status: it has one version then.
    const version = JSON.stringify((await this.#askStatus(signal).catch(() => undefined)) ?? []);
    const knownMs = version === NO_VERSION ? NO_VERSION_MS : VERSION_KNOWN_MS;
    if (!signal.aborted) this.#version = { version, untilMs: monotonicMs() + knownMs };
    return version;
  }

  async #versionOf(signal: AbortSignal): Promise<string> {
    const { version, untilMs = 0 } = this.#version ?? {};
    if (version !== undefined && monotonicMs() < untilMs) return version;
    this.#asking ??= this.askVersion(signal).finally(() => (this.#asking = undefined));
    return this.#asking;
  }

  /**
   * Calls `ask` with the way to begin with. While nothing is known, others wait for the first one: a wrong guess costs one
   * request, and not one for each of them.
   */
  async take<Value>(
    ways: readonly string[],
    ask: (chosen: ChosenWay) => Promise<Value>,
    signal: AbortSignal,
  ): Promise<Value> {
    const [usual = ""] = ways;
    const chosen = await this.#choose(ways, signal);
    if (this.#known.has(usual)) return ask(chosen);
    const search = this.#searches.get(usual);
    if (search !== undefined) {
      await pauseOrAbort(LONGEST_WAIT_MS, AbortSignal.any([signal, search]));
      return ask(await this.#choose(ways, signal));
    }
    const over = new AbortController();
    this.#searches.set(usual, over.signal);
    try {
      return await ask(chosen);
    } finally {
      this.#searches.delete(usual);
      over.abort();
    }
  }

  /** The service has taken this way, and has itself refused those before it. */
  async note([usual = ""]: readonly string[], way: string, signal: AbortSignal): Promise<void> {
    if (this.#known.get(usual)?.way === way) return;
    const version = way === usual ? undefined : await this.#versionOf(signal);
    this.#known.set(usual, { way, ...(version === undefined ? {} : { version }) });
    const facts = version === undefined ? [[way]] : [[way], [way, version]];
    // What the disk refuses, the next process finds out again.
    for (const fact of facts) await this.#facts?.add(this.#serviceId, ...fact).catch(() => {});
  }

  async #choose(ways: readonly string[], signal: AbortSignal): Promise<ChosenWay> {
    const [usual = ""] = ways;
    const { way, version } = this.#known.get(usual) ?? (await this.#recall(ways, signal));
    if (version === undefined) return { way, isSure: false };
    const now = await this.#versionOf(signal);
    if (version === now) return { way, isSure: version !== NO_VERSION };
    this.#known.delete(usual);
    return this.#choose(ways, signal);
  }

  async #recall([usual = "", ...others]: readonly string[], signal: AbortSignal) {
    // What the disk does not tell is found out again.
    const has = async (...fact: string[]) => this.#facts?.has(this.#serviceId, ...fact).catch(() => false);
    for (const way of others.toReversed()) {
      // Nearly every service takes the usual ways, and is not asked for its version.
      if (!(await has(way))) continue;
      const version = await this.#versionOf(signal);
      if (!(await has(way, version))) continue;
      const recalled = { way, version };
      this.#known.set(usual, recalled);
      return recalled;
    }
    if (await has(usual)) this.#known.set(usual, { way: usual });
    return { way: usual, version: undefined };
  }
}
